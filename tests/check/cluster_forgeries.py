"""A small question under rules cluster, and what someone tries who wants a false certificate of it
to hold."""

import copy
from typing import Any

from tests.check.forge import Forgery, Papers
from tests.check.forgeries import SEARCHED, both, put, score, stage, times

CLUSTERS = """
schema = "phaze.space/2"
name = "small-clusters"
title = "some chips of clusters"
base = "n5-reticle-base"
[axes]
clusters = [4, 8]
arrays = [2, 4]
rows = [32]
columns = [64]
lanes = [128, 512]
operand_buffer = ["64 KiB"]
registers = ["1 MiB"]
global_buffer = ["25 MiB"]
global_width = [2048]
hbm_stacks = [2, 4]
links = ["225 GB/s", "900 GB/s"]
[keep]
most_area = "500 mm2"
sustained_power = "180 W"
most_w_per_mm2 = 3.0
"""
CLUSTER_STUDY = """schema = "phaze.study/1"
rules = "cluster"
name = "small"
space = "{folder}/space.toml"
models = [{{name = "bert-large", sequence = 128}}]
[training]
devices = 8
batch = 16
microbatches = [1, 2]
"""
MODEL = ("certificate", "answer", "models", 0)
CHIP = ("certificate", "answer", "chip")
TRAINING = ("problem", "models", 0, "training")
STACK = (*TRAINING, "machine", "stack")
LEVELS = (*TRAINING, "machine", "cluster", "levels")
NODE = ("problem", "space", "base", "clusters", "node")
DESIGN = ("problem", "space", "base", "clusters", "accelerator")


def _cut(papers: Papers) -> None:
    """The same layers in two stages, half of the replicas: all degrees are those of a plan."""
    layers, mode = papers.model["stages"][0]
    half = len(layers) // 2
    papers.model.update(
        stages=[[layers[:half], mode], [layers[half:], mode]],
        data=max(1, papers.model["data"] // 2),
    )


def _fused(at: int, change: Any) -> Forgery:
    """Change what is fused in a pass of the block of the answer's graph."""

    def forge(papers: Papers) -> None:
        own = papers.certificate["fusion"][0][papers.model["graph"]][1]
        own[at] = change(copy.deepcopy(own[at]))

    return forge


def _worse(papers: Papers) -> None:
    """A plan that is true and slower, said to be the best."""
    papers.model["zero"] = 3 if papers.model["zero"] != 3 else 0


def _shared(papers: Papers) -> None:
    at = papers.model["graph"]
    for own in (papers.graphs["models"][0][at], papers.problem["models"][0]["graphs"][at]):
        own["context"] = 2


def _lighter(papers: Papers) -> None:
    for row in papers.layer("layer")["backward"]["operators"]:
        if "k" in row[3]:
            row[3]["k"] //= 2


CLUSTER_REFUSED: dict[str, Forgery] = {
    # the score and the plan
    "a score that is too good": score(0.999),
    "a score that is a little too good": score(1 - 1e-7),
    "a score that is too bad": score(1.001),
    "twice the replicas": times(*MODEL, "data", by=2),
    "half of the replicas": times(*MODEL, "data", by=0.5),
    "no replica": put(*MODEL, "data", value=0),
    "another stage of ZeRO": _worse,
    "a stage of ZeRO that there is not": put(*MODEL, "zero", value=4),
    "ZeRO of a text": put(*MODEL, "zero", value="1"),
    "chunks of one stage": put(*MODEL, "chunks", value=2),
    "chunks that the blocks do not have": put(*MODEL, "chunks", value=1000),
    "no chunk": put(*MODEL, "chunks", value=0),
    "an order that there is not": put(*MODEL, "order", value="best"),
    "two stages at the price of one": _cut,
    (
        "a stage that "
        "recomputes at no cost"
    ): stage(lambda stages: [[stages[0][0], "full"], *stages[1:]]),
    "a mode that there is not": stage(lambda stages: [[stages[0][0], "free"], *stages[1:]]),
    "a layer in no stage": stage(lambda stages: [[stages[0][0][:-1], stages[0][1]], *stages[1:]]),
    "a layer in two stages": stage(lambda stages: [*stages, [[stages[-1][0][-1]], "none"]]),
    "stages in the wrong order": stage(lambda stages: [[stages[0][0][20:], "none"],
    [stages[0][0][:20], "none"]]),
    "an empty stage": stage(lambda stages: [*stages, [[], "none"]]),
    "another graph": lambda papers: papers.model.update(graph=(papers.model["graph"] + 1) % 2),
    "a graph that does not exist": put(*MODEL, "graph", value=99),
    "a configuration that the study does not have": put(*MODEL, "recompute", value="none"),
    "schedules beside a formula": put(*MODEL, "schedules", value=[]),
    # the chip
    "a chip with more clusters than the space has": put(*CHIP, "clusters", value=64.0),
    "a chip with more lanes": times(*CHIP, "lanes", by=8.0),
    "a chip without its links": lambda papers: papers.answer["chip"].pop("links"),
    "a chip that says its clock": put(*CHIP, "clock", value=1e10),
    "the memory of another chip": lambda papers: papers.answer.update(
        hbm_bytes=min(size for size in papers.problem["hbm_bytes"] if size != papers.answer["hbm_bytes"])
    ),
    "a memory that no chip has": put("certificate", "answer", "hbm_bytes", value=1 << 50),
    # fusion and graphs
    "an operator that is left out": _fused(1, lambda groups: groups[:-1]),
    "an operator that is done twice": _fused(1, lambda groups: [*groups, groups[-1]]),
    "operators in an order that cannot run": _fused(0, lambda groups: groups[::-1]),
    "all of a pass as one operator": _fused(1,
    lambda groups: [[number for group in groups for number in group]]),
    "what is recomputed left out": _fused(3, lambda groups: []),
    "half of the work in the answer's graph": _lighter,
    "multipliers that no rule asks for": lambda papers: papers.certificate.update(
        multipliers=[[[[1, 1, [[], 1.0, 0.0]]] for _ in papers.graphs["models"][0]]]
    ),
    # the job and the chips, changed behind the answer's back
    "twice the batch": times(*TRAINING, "batch", by=2),
    "no headroom left": put(*TRAINING, "headroom", value=0.999),
    "a host that takes longer": times(*STACK, "host_s", by=10.0),
    "synchronisation that is not hidden": put(*STACK, "overlap", "fully_sharded", "runs", value=False),
    "no fusion of gradients": put(*STACK, "accumulation_apart", value=80.0),
    "products in few bits": put(*TRAINING, "machine", "precision", value="fp8-delayed"),
    "products in few bits, said twice": both(
        put(*TRAINING, "machine", "precision", value="fp8-delayed"),
        put(*TRAINING, "precision", value="fp8-delayed")
    ),
    "activations on the host": put(*TRAINING, "machine", "host_bytes_per_s", value=5e10),
    "a family that the stack does not run": put(*MODEL, "family", value="zb-v"),
    "a family of no name": put(*MODEL, "family", value=None),
    "ranks that share a sequence": _shared,
    "an optimizer that moves more": times(*STACK, "optimizer_traffic_bytes", by=100.0),
    "a state that does not fit": times(*STACK, "state_bytes", by=1e4),
    "a reserve that does not fit": put(*STACK, "reserve_bytes", value=1e12),
    "logits that do not fit": put(*STACK, "logit_bytes", value=1e6),
    "another schedule rule": put(*STACK, "schedule", value="overlap"),
    "the schedule rule of the paper": put(*STACK, "schedule", value="icml24"),
    "the stages of the paper over several levels": put(*STACK, "stages", value="icml24"),
    "two dies": put(*DESIGN, "built", "dies", value=2),
    "a base die": put(*DESIGN, "built", "base_dies", value=1),
    "an objective of energy": put("problem", "objective", "kind", value="throughput_per_watt"),
    "an objective of luck": put("problem", "objective", "kind", value="luck"),
    "a ring": both(put(*LEVELS, 0, "kind", value="ring"), times(*LEVELS, 0, "latency_s", by=1e4)),
    "a slower fabric": times(*LEVELS, 0, "latency_s", by=1e4),
    "a share above the peak": put(*TRAINING, "constants", "software_share", value=0.5),
    "a slower memory": put(*TRAINING, "constants", "vector_hbm_share", value=0.1),
    "chips that leak": times(*NODE, "energy", "leakage_w_per_mm2", by=4.0),
    "a steeper voltage": times(*NODE, "voltage", "slope", by=3.0),
    "units that take no power": times(*NODE, "energy", "mac_j", by=0.0),
    "a rated clock of half": times(*DESIGN, "clock_hz", by=0.5),
    "a limit of half the power": times("problem", "space", "keep", "sustained_power", by=0.6),
    "a negative area": times(*NODE, "area", "mac_mm2", by=-1.0),
    "a curve that falls": both(lambda papers: papers.problem["space"]["base"]["clusters"]["node"]["area"]["sram"][
        "values"].reverse()),
    **SEARCHED,
}  # fmt: skip

NOT_KNOWN: dict[str, Forgery] = {
    "a key of a stack": put(*STACK, "hides_everything", value=True),
    "a key of a job": put(*TRAINING, "offload", value=True),
    "a key of a machine": put(*TRAINING, "machine", "context", value=2),
    "a key of a graph": put("graphs", "models", 0, 0, "shard", value=8),
    "a key of a layer": put("graphs", "models", 0, 0, "layers", 0, "experts", value=8),
    "a key of the problem": put("problem", "lottery", value=1),
    "a key of a chip": put(*DESIGN, "chiplets", value=2),
    "a key of a node": put(*NODE, "cooling", value=2),
    "a key of a space": put("problem", "space", "tied", value={}),
    "a key of the rules of a space": put("problem", "space", "keep", "most_kg", value=2),
    "a measured base": put(*DESIGN, "measured", "clock_hz", value=1e9),
    "a schedule rule that there is not": put(*STACK, "schedule", value="Links"),
    "another pipeline": put(*STACK, "pipeline", value="zb-h1"),
    "a network of no known kind": put(*LEVELS, 0, "kind", value="mesh"),
    "a constant": put(*TRAINING, "constants", "luck", value=1.0),
}
"""What this checker has no rules for, each said to be so and never passed over."""
