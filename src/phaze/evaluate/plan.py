"""The fastest split of a job over the devices of a cluster (``phaze plan``).

    for every microbatch, tensor width, with or without sequence parallelism, kind of attention, context and expert
    degree that is requested (a *choice*):
        trace of one rank -> layer costs on the chip -> placement problem -> its fastest plan
    as far as that may be among the best                 (:func:`phaze.evaluate.plan_order.planned`)

The least batch time of all is the answer; the others say what they lose by. It is proved: no split
with these microbatches, widths, degrees and sequence parallelism, any number of stages and
replicas, any cuts, recompute chosen stage by stage, either order of stages and replicas, any
pipeline family that the stack runs with any number of chunks, any stage of ZeRO unless one is
given, has a shorter batch time by the formula. Ties go to the smaller width, then the larger
microbatch, then without sequence parallelism.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from phaze.cost.network_prices import NetworkPrices
from phaze.evaluate.flow import rank_problem
from phaze.evaluate.layers import Setting
from phaze.evaluate.parallel_rank import Parallel
from phaze.graph.ir import Attention, Model
from phaze.graph.split_context import Way
from phaze.placement.job import TrainingJob
from phaze.placement.plan import Plan
from phaze.placement.problem import PlacementProblem

# So many of the best choices are distinguished; what could not be among them is not considered
# closely.
ALTERNATIVES_SHOWN = 5
# A plan that takes more than so many times the best one is no alternative to it: to solve it
# exactly would take most of the time of an answer.
ALTERNATIVES_WITHIN = 1.5
ModelAt = Callable[[int, int, bool, Attention], Model]
Choosing = tuple[int, int, bool, Attention]
# The rank of a choice under further degrees.
RankAt = Callable[[Choosing, Parallel], Model]


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """A job to plan: ``model_at`` gives the trace of one rank at (width, microbatch, sequence
    parallel, attention), ``job`` what all its placement problems have in common; ``attentions`` are
    those to try. ``experts`` is the published split (pipeline, data, tensor) of 1024 devices, where
    there is one.
    ``wider_widths``: usual widths that need more devices than there are. ``refused``: choices that
    the model cannot run, and why. ``contexts`` and ``expert``: how many ranks may share a sequence,
    in which ``ways``, or shard the experts, of whose tokens the fullest rank gets ``rows`` times
    the mean; ``rank_at`` gives the rank of a choice then. ``free_degrees``: degrees were not requested, so that
    those which no choice can have are left out and not refused."""

    model_at: ModelAt
    setting: Setting
    job: TrainingJob
    widths: tuple[int, ...]
    microbatches: tuple[int, ...]
    sequence_parallel: tuple[bool, ...]
    experts: tuple[int, int, int] | None = None
    wider_widths: tuple[int, ...] = ()
    refused: tuple[tuple[Choosing, str], ...] = ()
    attentions: tuple[Attention, ...] = ("eager",)
    contexts: tuple[int, ...] = (1,)
    expert: tuple[int, ...] = (1,)
    ways: tuple[Way, ...] = ("ring",)
    rows: float = 1.0
    rank_at: RankAt | None = None
    free_degrees: bool = False

    @property
    def prices(self) -> NetworkPrices:
        """What collectives and transfers take."""
        return NetworkPrices(self.setting.cluster, self.setting.basis)

    def sharded_over(self, ranks: int) -> "PlanRequest":
        """The request with state sharded over so many of the ranks with the same weights, 0:
        all."""
        return replace(self, job=replace(self.job, shards=(ranks,)))


@dataclass(frozen=True, slots=True)
class Candidate:
    """The fastest plan at one width, microbatch and kind of parallelism; None if nothing fits."""

    microbatch: int
    sequence_parallel: bool
    model: Model
    problem: PlacementProblem
    plan: Plan | None

    @property
    def rank(self) -> tuple[float, int, int, bool, str]:
        """What candidates are ordered by."""
        batch_s = float("inf") if self.plan is None else self.plan.batch_s
        return (
            batch_s,
            self.model.tensor,
            -self.microbatch,
            self.sequence_parallel,
            self.model.attention,
        )


def problem_at(request: PlanRequest, model: Model) -> PlacementProblem:
    """The placement problem of a traced rank."""
    return rank_problem(request.job, model, request.setting)


def choices(request: PlanRequest) -> Iterator[Choosing]:
    """Every (width, microbatch, sequence parallel, attention) to try, in order."""
    refused = {choice for choice, _ in request.refused}
    for width in request.widths:
        for microbatch in request.microbatches:
            for spread in request.sequence_parallel if width > 1 else (False,):
                for attention in request.attentions:
                    if (width, microbatch, spread, attention) not in refused:
                        yield width, microbatch, spread, attention
