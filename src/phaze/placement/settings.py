"""The two settings, built as values: a software stack on a cluster of levels, and what the ICML
2024 paper did.

Nothing else names them: solver, pricing and checker read the values of
:class:`phaze.placement.rules.Rules`.
"""

from collections.abc import Sequence
from dataclasses import replace

from phaze.cost.memory import ParameterState, sent_bytes, stack_state, update_bytes
from phaze.errors import InputError
from phaze.hardware.cluster import Cluster, cluster_of, switch_level
from phaze.hardware.formats import RECIPES, WIDE, Precision
from phaze.hardware.stack import Optimizer, Stack
from phaze.pipeline.families import FAMILIES, ICML24, ONE_F_ONE_B, ONE_STAGE
from phaze.pipeline.family import Family
from phaze.pipeline.names import NAMES, PipelineFamily
from phaze.placement.job import TrainingJob
from phaze.placement.layers import LayerGraph, PlacedLayer
from phaze.placement.problem import PlacementProblem, RecomputeChoice
from phaze.placement.rules import ZEROS, Rules, icml24_rules
from phaze.placement.sharing import REPLICAS, Sharing

# Under icml24 memory is counted in bytes of parameters: as many again for gradients, and with Adam
# for its state.
PLAIN = ParameterState(1.0, 1.0, 0.0)
WITH_ADAM = ParameterState(1.0, 1.0, 1.0)
# What the host launches for a chunk beyond the operators of its layers: a receive before it and a
# send after it.
LAUNCHES_A_CHUNK = 2


def families_of(
    graphs: Sequence[LayerGraph],
    names: Sequence[PipelineFamily],
    chunks: Sequence[int] | None = None,
) -> tuple[Family, ...]:
    """The named families, those that interleave with every number of chunks that two or more stages
    can have, of ``chunks`` if given, and none beside one that dominates it. A plan of one stage is
    always among them."""
    blocks = max(sum(layer.block for layer in graph.layers) for graph in graphs)
    allowed = [FAMILIES[name] for name in NAMES if name in names]
    useful = [family for family in allowed if family.dominated_by not in names]
    variants = tuple(variant for family in useful for variant in family.variants(blocks, chunks))
    if not variants:
        seen = (
            f"{', '.join(names)} need equal blocks in a row, at least two a stage, and there "
            f"are {blocks}"
        )
        raise InputError("family", seen, "allow 1f1b, or other chunks")
    return variants if "1f1b" in names else (ONE_STAGE, *variants)


def require_levels(stack: Stack, cluster: Cluster, where: str) -> None:
    """Refuse stages as the paper times them on a network of several levels: which one an edge takes
    is not said."""
    if stack.stages == "icml24" and len(cluster.levels) > 1:
        raise InputError(
            where,
            f"{cluster.name} has {len(cluster.levels)} levels and the stack {stack.name} "
            "has stages = 'icml24', "
            "stages of unequal width whose edges arrive over one flat link",
            "give a cluster of one level, such as paper-flat, or a stack with stages = 'layers'",
        )


def stack_rules(
    stack: Stack, cluster: Cluster, families: tuple[Family, ...] = (ONE_F_ONE_B,)
) -> Rules:
    """How a stack runs pipelines and synchronises replicas on a network; ``families`` where it runs
    1F1B."""
    require_levels(stack, cluster, "cluster")
    published, link = stack.stages == "icml24", cluster.levels[0].bandwidth_bytes_per_s
    rules, first = (
        icml24_rules(link) if published else Rules("cluster", families),
        stack.synchronisation == "first",
    )
    return replace(
        rules,
        families=families if stack.pipeline == "1f1b" else (ICML24,),
        end="first" if first else "slowest",
        zeros=ZEROS,
        link_bytes_per_s=link if published or (first and len(cluster.levels) == 1) else None,
        reduction_cost=stack.overlap.reduction.cost,
        gather_cost=stack.overlap.gather.cost,
        sharded_cost=stack.overlap.fully_sharded.cost,
        bucket=stack.overlap.reduction.bucket,
        norm=stack.clips_gradients,
        host_s=stack.overlap.step_host,
        piece_start_s=LAUNCHES_A_CHUNK * stack.host_s,
        overlapped_transfers=stack.overlap.transfers.runs,
        exchange_beside=stack.overlap.exchange.runs,
        gradient_wire=stack.gradient_wire_bytes / 2.0,
        prefetch=stack.prefetch,
    )


def gathered_share(graphs: Sequence[LayerGraph], stack: Stack, precision: Precision) -> float:
    """Bytes of weights that are gathered, over 16 bits each: those of blocks go in the recipe's
    format where the stack holds them in it, all others in 16 bits; the mean over all parameters."""
    recipe = RECIPES.get(precision)
    if recipe is None or not stack.low_precision_weights or recipe.bits == 4 or not graphs:
        return 1.0
    layers = graphs[0].layers
    sizes = [layer.parameter_bytes + layer.frozen.bytes for layer in layers]
    low = sum(size for size, layer in zip(sizes, layers, strict=True) if layer.full_s != 0)
    whole = sum(sizes)
    return 1.0 - (1.0 - recipe.operand_bytes / 2.0) * low / whole if whole else 1.0


def _plain(graph: LayerGraph) -> LayerGraph:
    """The graph with layers of which times and sizes count alone."""
    layers = (
        PlacedLayer(
            layer.id,
            layer.forward_s,
            layer.backward_s,
            layer.parameter_bytes,
            layer.activation_bytes,
            layer.sharded,
            layer.expert_bytes,
            layer.weight_s,
            frozen=layer.frozen,
        )
        for layer in graph.layers
    )
    return replace(graph, layers=tuple(layers))


def job_rules(job: TrainingJob) -> Rules:
    """How layers of a job are placed: what its stack says, on its network."""
    return stack_rules(job.machine.stack, job.machine.cluster)


def stack_problem(
    job: TrainingJob,
    graphs: Sequence[LayerGraph],
    families: tuple[Family, ...],
    microbatches: int,
    hbm: tuple[float, float | None],
    sharing: Sharing = REPLICAS,
) -> PlacementProblem:
    """Layers at one or more widths as a stack trains them on a cluster; ``families`` where it runs
    1F1B, ``hbm``: bytes of a device's memory, and bytes per second where they are known."""
    stack, cluster, precision, optimizer = (
        job.machine.stack,
        job.machine.cluster,
        job.machine.precision,
        job.optimizer,
    )
    rules = stack_rules(stack, cluster, families)
    rules = replace(rules, weight_wire=gathered_share(graphs, stack, precision))
    if sharing.shard and rules.flat_link_bytes_per_s is not None:
        raise InputError(
            "shard", "gradients are reduced over one flat link, as published", "leave it out"
        )
    if precision == WIDE:  # everything is sent in 32 bits
        rules = replace(rules, gradient_wire=1.0)
    if graphs and not rules.plain_layers:
        rules = replace(rules, modes=(*rules.modes[:-1], *graphs[0].option_names, rules.modes[-1]))
    plain = optimizer != stack.optimizer == "sgd"
    state = stack_state(precision, optimizer, stack)
    return PlacementProblem(
        rules=rules,
        devices=job.devices,
        hbm_bytes=hbm[0],
        microbatches=microbatches,
        recompute=job.recompute,
        state=state,
        cluster=cluster,
        graphs=tuple(_plain(graph) if rules.plain_layers else graph for graph in graphs),
        zero=job.zero,
        sent_bytes=sent_bytes(precision),
        hbm_bytes_per_s=hbm[1],
        optimizer_traffic_bytes=update_bytes(stack, precision, optimizer),
        zeroed_bytes=state.gradient if stack.zeroes_gradients else 0.0,
        reserve_bytes=stack.reserve_bytes,
        scatter_gather=stack.scatter_gather,
        headroom=job.headroom,
        sgd_state=stack_state(precision, "sgd", stack) if plain else None,
        sharing=sharing,
    )


def icml24_problem(
    graphs: Sequence[LayerGraph],
    *,
    devices: int,
    microbatches: int,
    hbm_bytes: float,
    link_bytes_per_s: float,
    optimizer: Optimizer,
    recompute: RecomputeChoice,
) -> PlacementProblem:
    """Layers at one or more widths as the ICML 2024 paper placed them: one flat link, all state on
    every device."""
    # Devices beyond these help no plan: every layer a stage of the widest split.
    most = max([devices, *(len(graph.layers) * graph.width for graph in graphs)])
    adam = optimizer == "adam"
    return PlacementProblem(
        rules=icml24_rules(link_bytes_per_s),
        devices=devices,
        hbm_bytes=hbm_bytes,
        microbatches=microbatches,
        recompute=recompute,
        state=WITH_ADAM if adam else PLAIN,
        cluster=cluster_of(
            "flat", "one flat link", [switch_level("all", most, link_bytes_per_s, 0.0)]
        ),
        graphs=tuple(graphs),
        sent_bytes=1.0,
        sgd_state=PLAIN if adam else None,
    )
