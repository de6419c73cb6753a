"""Our costs beside what was measured on hardware: every row, with the chip's constants and from its
data sheet alone.

Rows: products and softmaxes on an A100 (each alone), the fastest product found on each of some
chips, all-reduces of 2 to 8 A100 (in place), and forward and backward of one layer of a 22B model
on 8 A100 (queued in training; the backward all-reduces run beside the weight gradients).

    layer forward  = sum of its kernels + all-reduces;     with full recompute the backward pass
                   begins with a forward
    layer backward = sum of its kernels + sum over all-reduces of max(0, it - the weight gradient
    before it)
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Any

from phaze.cost.chip_set import chip_set
from phaze.cost.collective import collective
from phaze.cost.fitting import Measured, measured_product, measured_vector, predicted_s
from phaze.cost.mapping import product
from phaze.cost.measured_clock import chip_constants
from phaze.cost.table import cost_works
from phaze.cost.vector import Moved, VectorWork
from phaze.cost.work import Work, works_of
from phaze.graph.fuse import fuse_layer
from phaze.graph.zoo import load_family
from phaze.hardware.calibration import Basis
from phaze.hardware.chip import Chip
from phaze.hardware.cluster import Cluster
from phaze.hardware.library import load_chip, load_cluster

CHIP, CLUSTER = "a100-80gb", "vtrain-a100"
BASES: tuple[Basis, Basis] = ("calibrated", "datasheet")


@dataclass(frozen=True, slots=True)
class AccuracyRow:
    """One measured figure in seconds, and ours for it."""

    group: str
    label: str
    measured_s: float
    calibrated_s: float
    datasheet_s: float
    source: str

    @property
    def error(self) -> float:
        return self.calibrated_s / self.measured_s - 1

    @property
    def datasheet_error(self) -> float:
        return self.datasheet_s / self.measured_s - 1


def _data() -> dict[str, list[dict[str, Any]]]:
    text = (files("phaze.cost") / "data" / "measured.json").read_text(encoding="utf-8")
    found: dict[str, list[dict[str, Any]]] = json.loads(text)
    return found


def measured_operators() -> tuple[Measured, ...]:
    """The measured products and softmaxes."""
    return tuple(_measured(row) for row in _data()["operators"])


def _measured(row: dict[str, Any]) -> Measured:
    if row["operator"] == "gemm":
        return measured_product(product(*row["sizes"]), row["seconds"])
    elements, rows = row["sizes"]
    return measured_vector(row["operator"], elements, rows, row["seconds"])


def operator_rows() -> list[AccuracyRow]:
    """Products and softmaxes."""
    chip, raw = load_chip(CHIP), _data()["operators"]
    rows = measured_operators()
    ours = [predicted_s(rows, chip_set([chip]), chip_constants(chip, basis)) for basis in BASES]
    return [
        AccuracyRow(said["operator"], row.label.split()[1], row.seconds, a, b, said["source"])
        for said, row, a, b in zip(raw, rows, *ours, strict=True)
    ]


def rate_rows() -> list[AccuracyRow]:
    """The product with the greatest rate found on each of several chips."""
    found = []
    for row in _data()["rates"]:
        chip, asked = (
            load_chip(row["chip"]),
            [measured_product(product(*row["sizes"]), row["seconds"])],
        )
        # Measured over many products in a row, whose launches overlap.
        in_a_row = [replace(chip_constants(chip, basis), start_up_s=0.0) for basis in BASES]
        a, b = (predicted_s(asked, chip_set([chip]), constants)[0] for constants in in_a_row)
        label = f"{chip.name} {asked[0].label.split()[1]}"
        found.append(
            AccuracyRow("greatest product rate", label, row["seconds"], a, b, row["source"])
        )
    return found


def all_reduce_rows() -> list[AccuracyRow]:
    """All-reduces inside a node."""
    cluster = load_cluster(CLUSTER)

    def ours(row: dict[str, Any], basis: Basis) -> float:
        return collective("all_reduce", row["bytes"], row["ranks"], cluster, basis).time_s

    return [
        AccuracyRow(
            f"all_reduce, {row['ranks']} devices",
            f"{row['bytes'] / 2**20:.0f} MiB",
            row["seconds"],
            ours(row, "calibrated"),
            ours(row, "datasheet"),
            row["source"],
        )
        for row in _data()["all_reduce"]
    ]


def block_works(sizes: dict[str, int]) -> tuple[tuple[Work, ...], tuple[Work, ...]]:
    """Forward and backward of a block of the family ``gpt``, element-wise chains fused, as
    Megatron-LM runs it.

    Backward ends with adding the gradients to the 32-bit sums of the batch: 8 bytes a parameter.
    """
    gpt = {"hidden": sizes["hidden"], "layers": 2, "heads": sizes["heads"], "vocabulary": 51200}
    model = load_family(
        "gpt",
        gpt | {"sequence": sizes["sequence"]},
        tensor=sizes["tensor"],
        microbatch=sizes["microbatch"],
    )
    block = fuse_layer(
        next(layer for i, layer in enumerate(model.layers) if model.count(i) > 1), "chains"
    )
    parameters = block.parameter_elements
    summed = VectorWork(
        parameters, 0, 1.0, 1, (Moved(4.0 * parameters),), (Moved(4.0 * parameters),)
    )
    return works_of(block.forward), (*works_of(block.backward), Work("vector", vector=summed))


def pass_s(
    works: Sequence[Work], chip: Chip, cluster: Cluster, basis: Basis, hidden: bool
) -> float:
    """Seconds of kernels and collectives one after the other; ``hidden``: an all-reduce runs beside
    the last product before it, the weight gradient of the layer whose input gradient it sums."""
    times = cost_works(works, chip_set([chip]), chip_constants(chip, basis, "training")).times_s()[
        :, 0
    ]
    total = float(times.sum())
    for i, work in enumerate(works):
        if work.collective is not None:
            asked = work.collective
            waited = collective("all_reduce", asked.bytes, asked.group, cluster, basis).time_s
            beside = (
                [float(times[j]) for j in range(i) if works[j].core == "tensor"][-1:]
                if hidden
                else []
            )
            total += max(0.0, waited - sum(beside))
    return total


def layer_rows() -> list[AccuracyRow]:
    """Forward and backward of one layer."""
    chip, cluster = load_chip(CHIP), load_cluster("selene")
    found = []
    for row in _data()["layers"]:
        works = block_works(row)
        ours: dict[str, list[float]] = {"forward": [], "backward": []}
        for basis in BASES:
            forward, backward = (
                pass_s(w, chip, cluster, basis, hidden)
                for w, hidden in zip(works, (False, True), strict=True)
            )
            ours["forward"].append(forward)
            ours["backward"].append(backward + (forward if row["recompute"] == "full" else 0.0))
        for name, (a, b) in ours.items():
            label = f"{name}, recompute {row['recompute']}"
            found.append(
                AccuracyRow("layer of 22B, 8 devices", label, row[f"{name}_s"], a, b, row["source"])
            )
    return found


def accuracy_rows() -> list[AccuracyRow]:
    """Every measured row."""
    return [*operator_rows(), *rate_rows(), *all_reduce_rows(), *layer_rows()]
