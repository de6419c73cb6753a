"""What a given plan takes (``phaze plan --fixed``): its batch time and the memory of every stage,
fitting or not.

The blocks of the model are cut evenly over the stages in their order; what lies before them joins
the first stage, what lies after them the last (:func:`even_cuts`); a stack that balances its stages
cuts by time (:func:`balanced_cuts`); a plan that states the blocks of its stages is cut so
(:func:`stated_cuts`). The price is that of the plan's family, 1F1B or interleaved if it names none,
in the better order of stages and replicas.
"""

from collections.abc import Sequence

from phaze.cost.network_prices import NetworkPrices
from phaze.errors import InputError
from phaze.evaluate.flow import block_calls, rank_problem
from phaze.evaluate.layer_table import LayerTable
from phaze.evaluate.layers import Setting, model_table
from phaze.evaluate.memo import Memo
from phaze.evaluate.run_file import RunJob
from phaze.graph.ir import Model
from phaze.hardware.calibration import Basis
from phaze.placement.job import TrainingJob
from phaze.placement.layout import Shape
from phaze.placement.pipeline import price
from phaze.placement.plan import Plan
from phaze.placement.problem import PlacementProblem
from phaze.placement.rules import ORDERS, Mode
from phaze.placement.structure import StageCut


def even_cuts(model: Model, stages: int, mode: Mode) -> tuple[StageCut, ...]:
    """Blocks cut evenly, earlier stages taking what does not divide; the rest with its
    neighbours."""
    blocks = block_calls(model)
    if stages > len(blocks):
        raise InputError(
            "plan.pipeline",
            f"{stages} stages and {len(blocks)} blocks",
            "use at most as many stages",
        )
    share, more = divmod(len(blocks), stages)
    return _cut_after(model, [share + (i < more) for i in range(stages)], mode)


def stated_cuts(model: Model, counts: Sequence[int], mode: Mode) -> tuple[StageCut, ...]:
    """Stages of so many blocks, first to last; what lies before the blocks in the first stage,
    after them in the last.

    A first or last stage may have none if something lies before or after the blocks.
    """
    blocks = len(block_calls(model))
    if sum(counts) != blocks:
        raise InputError(
            "plan.blocks",
            f"{sum(counts)} blocks in all and the model has {blocks}",
            f"give {blocks}",
        )
    cuts = _cut_after(model, counts, mode)
    for number, cut in enumerate(cuts):
        if not cut.layers:
            raise InputError("plan.blocks", f"stage {number} is empty", "give every stage a block")
    return cuts


def _cut_after(model: Model, counts: Sequence[int], mode: Mode) -> tuple[StageCut, ...]:
    """Stages of ``counts`` blocks each; a stage ends before the first block of the next one that
    has any."""
    blocks = block_calls(model)
    ends = [sum(counts[: number + 1]) for number in range(len(counts))]
    last = [blocks[end] - 1 if end < len(blocks) else blocks[-1] for end in ends[:-1]]
    first = [0, *(end + 1 for end in last)]
    return tuple(
        StageCut(tuple(range(a, b + 1)), mode)
        for a, b in zip(first, [*last, len(model.calls) - 1], strict=True)
    )


def balanced_cuts(model: Model, table: LayerTable, stages: int, mode: Mode) -> tuple[StageCut, ...]:
    """Calls in their order; a stage ends with the call that takes the sum of times past its share,
    i/S of all."""
    passes_s = (table.forward_s + table.backward_s)[:, 0].tolist()
    times = [passes_s[call.layer] for call in model.calls]
    if stages > len(times):
        raise InputError(
            "plan.pipeline",
            f"{stages} stages and {len(times)} layers",
            "use at most as many stages",
        )
    total, done = sum(times), 0.0
    cuts: list[list[int]] = [[]]
    for number, time_s in enumerate(times):
        cuts[-1].append(number)
        done += time_s
        left = len(times) - number - 1
        past = done > total * len(cuts) / stages or left == stages - len(cuts)
        if len(cuts) < stages and past:
            cuts.append([])
    return tuple(StageCut(tuple(cut), mode) for cut in cuts)


def _require_pieces(model: Model, cuts: Sequence[StageCut], chunks: int) -> None:
    """Refuse chunks of which one would be empty."""
    fewest = min(len(cut.layers) for cut in cuts)
    if chunks > fewest:
        raise InputError(
            "plan.chunks",
            f"{chunks} chunks and a stage of {fewest} layers",
            "use at most as many chunks",
        )


def fixed_plan(
    job: RunJob, basis: Basis = "calibrated", memo: Memo | None = None
) -> tuple[PlacementProblem, Plan]:
    """The plan of a job with its times and memory; ``memo`` keeps what jobs share."""
    plan = job.plan
    setting = Setting(job.chip, job.cluster, job.stack, basis, precision=job.precision)
    where = (job.chip, job.cluster, job.stack, basis, job.precision)
    table = (memo or Memo()).take(
        ("table", job.traced, where), lambda: model_table(job.model, setting)
    )
    placement_job = TrainingJob(
        setting.machine,
        job.devices,
        job.batch,
        job.optimizer,
        (plan.zero,),
        plan.mode,
        shards=(plan.shard or 0,),
    )
    family = plan.schedule
    problem = rank_problem(placement_job, job.model, setting, table, (family,))
    cuts = even_cuts(job.model, plan.pipeline, plan.mode)
    if job.stack.balances_stages:
        cuts = balanced_cuts(job.model, table, plan.pipeline, plan.mode)
    if plan.blocks is not None:
        cuts = stated_cuts(job.model, plan.blocks, plan.mode)
    _require_pieces(job.model, cuts, family.chunks)
    degrees = (plan.tensor * plan.context, plan.pipeline, plan.data)
    every = [Shape(*degrees, order, family.chunks, family.name) for order in ORDERS]
    # Where no order suits the ranks that shard experts the price says why.
    shapes = [shape for shape in every if problem.sharing.allows(shape)] or every[-1:]
    prices = NetworkPrices(job.cluster, basis)
    return problem, min(
        (price(problem, shape, cuts, prices) for shape in shapes), key=lambda priced: priced.batch_s
    )
