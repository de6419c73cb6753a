"""What someone tries who wants a false certificate of a plan to hold: each a change of a good one,
made consistent."""

from typing import Any

from tests.check.forge import Forgery, Papers
from tests.check.forgeries import SEARCHED, both, put, score, stage, times

MODEL = ("certificate", "answer", "models", 0)
TRAINING = ("problem", "models", 0, "training")
STACK = (*TRAINING, "machine", "stack")
LEVELS = (*TRAINING, "machine", "cluster", "levels")
CONSTANTS = (*TRAINING, "constants")
CHIP = ("problem", "chip")
CLUSTERS = (*CHIP, "clusters", "accelerator", "clusters")
GRAPH = ("problem", "models", 0, "graphs", 0)


def _fusion(change: Any) -> Forgery:
    """Change what is fused in the forward pass of the block of the answer's graph."""

    def forge(papers: Papers) -> None:
        own = papers.certificate["fusion"][0][papers.model["graph"]][1]
        own[0] = change(own[0])

    return forge


def _operators(change: Any) -> Forgery:
    """Change the operators of a block of the answer's graph."""

    def forge(papers: Papers) -> None:
        change(papers.layer()["forward"]["operators"])

    return forge


def _other_way(**values: Any) -> Forgery:
    return lambda papers: papers.model.update(values)


PLAN_REFUSED: dict[str, Forgery] = {
    "a batch that is faster": score(0.999),
    "a batch that is much faster": score(0.1),
    "a batch that is slower": score(1.001),
    "a bound above the answer": times("certificate", "bound", by=1.01),
    "a bound below the answer": times("certificate", "bound", by=0.9),
    "a gap": put("certificate", "gap", value=0.5),
    "a gap with its bound": both(
        put("certificate", "gap", value=0.5), times("certificate", "bound", by=0.5)
    ),
    "a gap in both": both(
        put("certificate", "gap", value=0.5),
        times("certificate", "bound", by=0.5),
        put("problem", "gap", value=0.5),
    ),
    "best that is not a number": put("certificate", "best", value="fast"),
    "two models": lambda papers: papers.answer["models"].append(papers.model),
    "no model": put("certificate", "answer", "models", value=[]),
    "a chip in the answer": put("certificate", "answer", "chip", value={}),
    "a graph that there is none of": _other_way(graph=99),
    "another graph": _other_way(graph=0),
    "another mode of recompute": _other_way(recompute="none"),
    "recompute that there is none of": _other_way(recompute="sometimes"),
    "more replicas than devices": _other_way(data=16),
    "fewer replicas": _other_way(data=4),
    "no replica": _other_way(data=0),
    "a ZeRO stage that is none": _other_way(zero=5),
    "another ZeRO stage": _other_way(zero=3),
    "chunks without stages": _other_way(chunks=5),
    "an order that is none": _other_way(order="sideways"),
    "a layer left out": stage(lambda stages: [[layers[1:], mode] for layers, mode in stages]),
    "a layer twice": stage(
        lambda stages: [[[*layers, layers[0]], mode] for layers, mode in stages]
    ),
    "a stage that is empty": stage(lambda stages: [*stages, [[], "none"]]),
    "stages against the edges": stage(
        lambda stages: [[stages[0][0][13:], "none"], [stages[0][0][:13], "none"]]
    ),
    "a mode of a stage that is none": stage(
        lambda stages: [[layers, "later"] for layers, _ in stages]
    ),
    "fewer devices": put(*TRAINING, "devices", value=4),
    "more devices than the cluster": put(*TRAINING, "devices", value=10**6),
    "a larger batch": put(*TRAINING, "batch", value=64),
    "a smaller batch": put(*TRAINING, "batch", value=16),
    "a ZeRO stage taken away": put("problem", "models", 0, "configurations", value=[]),
    "memory beside the chip's": put("problem", "hbm_bytes", 0, value=1 << 40),
    "hardly any memory": both(
        put("problem", "hbm_bytes", 0, value=1 << 28),
        put(*CHIP, "hbm", "size_bytes", value=1 << 28),
    ),
    "no room left free": put(*TRAINING, "headroom", value=0.999),
    "a faster clock": times(*CONSTANTS, "clock_hz", by=2.0),
    "a slower clock": times(*CONSTANTS, "clock_hz", by=0.5),
    "faster software": times(*CONSTANTS, "software_share", by=1.5),
    "a share of nothing": put(*CONSTANTS, "hbm_share", value=0),
    "no start-up": put(*CONSTANTS, "start_up_s", value=0.0),
    "more clusters": times(*CLUSTERS, "count", by=2),
    "wider ports": times(*CLUSTERS, "port_bytes_per_cycle", by=0.01),
    "faster HBM": times(*CHIP, "clusters", "accelerator", "hbm", "bandwidth_bytes_per_s", by=3),
    "slower links": times(*LEVELS, 0, "bandwidth_bytes_per_s", by=0.01),
    "no host": put(*STACK, "host_s", value=0.0),
    "no optimizer traffic": put(*STACK, "optimizer_traffic_bytes", value=0.0),
    "everything hidden": put(*STACK, "overlap", "reduction", "slows", value=0.0),
    "an operator fused with none": _fusion(lambda groups: groups[1:]),
    "an operator fused twice": _fusion(lambda groups: [groups[0], *groups]),
    "everything fused": _fusion(lambda groups: [[number for group in groups for number in group]]),
    "fusion of no graph": put("certificate", "fusion", value=[]),
    "an operator less": _operators(lambda operators: operators.pop()),
    "multipliers": lambda papers: papers.certificate["multipliers"][0][0].append(
        [1, 1, [[], 1, 0]]
    ),
    "another schema": put("certificate", "schema", value="phaze.plan/1"),
    "another cost model": put("certificate", "cost_model", value="0" * 64),
    "a graph of another width": put(*GRAPH, "tensor", value=4),
    "a graph of another microbatch": put(*GRAPH, "microbatch", value=8),
    "one graph fewer in graphs.json": lambda papers: papers.graphs["models"][0].pop(),
    "a key more in the answer": _other_way(trust=True),
    **SEARCHED,
}
PLAN_NOT_KNOWN: dict[str, Forgery] = {
    "a key of the problem": put("problem", "shards", value=[2]),
    "a key of the chip": put(*CHIP, "turbo", value=True),
    "a key of the stack": put(*STACK, "hides_everything", value=True),
    "a key of the constants": put(*CONSTANTS, "magic", value=1.0),
    "a key of the job": put(*TRAINING, "patience", value=1),
    "no witness": put("certificate", "answer", value=None),
}
