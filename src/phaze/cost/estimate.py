"""One operator on one chip in full: time, what bounds it, share of peak, mapping, traffic, energy.

    share of peak = FLOP / (time x peak FLOP/s) for products, lane operations / (time x lanes x
    clock) for vector work

``band`` is how far a time may be off, by docs/accuracy.md: 10 % calibrated, 15 % where one share
was fitted, 20 % from a data sheet.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from phaze.cost.chip_set import ChipSet, chip_set
from phaze.cost.energy import energies
from phaze.cost.gemm import no_tile
from phaze.cost.mapped import mapped, part_of
from phaze.cost.mapping import Product, ProductCost
from phaze.cost.measured_clock import chip_constants
from phaze.cost.table import Column, cost_works
from phaze.cost.vector import PASSES, Moved, VectorWork, whole_bursts
from phaze.cost.work import Work
from phaze.errors import InputError, unknown_name
from phaze.graph.opset import KINDS
from phaze.hardware.calibration import BANDS, Basis, Load, Trusted, format_rates
from phaze.hardware.chip import Chip
from phaze.hardware.chip_estimates import estimates_of
from phaze.hardware.formats import PLAIN, RECIPES, Precision, Recipe, require_format
from phaze.hardware.provenance import chip_provenance

TWO_OPERANDS = frozenset({"add", "multiply", "divide", "compare"})
LOW: Mapping[Precision, Recipe] = MappingProxyType({"fp8": RECIPES["fp8-tensorwise"], **RECIPES})
"""Low-precision recipes; a product alone in fp8 has one scale a tensor."""
VECTOR_RULES = ("map", "reduce", "normalize", "move")


@dataclass(frozen=True, slots=True)
class Estimate:
    """What one operator takes; ``energy_j`` is None where the chip names no technology."""

    chip: str
    basis: Trusted
    load: Load
    band: float
    time_s: float
    start_up_s: float
    bound: str
    share_of_peak: float
    operations: float
    traffic_bytes: dict[str, float]
    energy_j: dict[str, float] | None
    average_w: float | None
    mapping: ProductCost | None


def vector_work(kind: str, elements: int, rows: int = 0) -> VectorWork:
    """A vector operator by its kind, at 16 bits: one operand in (two for sums, products and
    gradients), one out."""
    choices = [
        name for name, row in KINDS.items() if row.core == "vector" and row.rule in VECTOR_RULES
    ]
    if kind not in choices or kind == "fused":
        raise unknown_name(
            "vector", "vector operator", kind, [name for name in choices if name != "fused"]
        )
    row = KINDS[kind]
    if not 0 <= elements <= 2**60 or not 0 <= rows <= elements:
        raise InputError(
            "vector", f"{elements} elements in {rows} rows", "give 0 to 2^60 elements, no more rows"
        )
    if row.rule in ("reduce", "normalize") and rows == 0:
        rows = max(1, elements // 1024)
    written = rows if row.rule == "reduce" else elements
    operands = (
        2 if kind in TWO_OPERANDS or (kind.endswith("_backward") and row.rule != "move") else 1
    )
    reads, writes = 2.0 * elements * operands, 2.0 * written
    if row.rule == "move" and rows:
        reads, writes = whole_bursts(reads, rows), whole_bursts(writes, rows)
    counted = rows if row.rule in ("reduce", "normalize") else 0
    masks = float(elements) if kind in ("dropout", "dropout_backward") else 0.0
    out = Moved(writes + (masks if kind == "dropout" else 0.0))
    read = Moved(reads + (masks if kind == "dropout_backward" else 0.0))
    none = () if kind in ("fill", "random") else (read,)
    return VectorWork(elements, counted, float(row.operations), PASSES.get(kind, 1), none, (out,))


def _bound(column: Column, work: Work, mapping: ProductCost | None) -> str:
    """The slowest of the terms of the work."""
    terms: dict[str, float] = {}
    if mapping is not None:
        terms[mapping.bound] = mapping.time_s
    if work.vector is not None:
        vectors = column.vectors
        named = {"lanes": vectors.lanes_s, "hbm": vectors.hbm_s}
        named |= {"global buffer": vectors.global_s, "core buffer": vectors.buffer_s}
        for name, values in named.items():
            terms[name] = max(terms.get(name, 0.0), float(values[0, 0]))
    return (
        max(terms, key=lambda name: terms[name]) if terms and max(terms.values()) > 0 else "nothing"
    )


def _energy(column: Column, chips: ChipSet, chip: Chip) -> dict[str, float] | None:
    figures = estimates_of(chip)
    if figures is None:
        return None
    found = energies(column, 0, chips, figures.technology).by_component()
    return found | {"static": figures.static_w * float(column.time_s(0)[0])}


def estimate_work(
    work: Work,
    chip: Chip,
    basis: Basis = "calibrated",
    load: Load = "alone",
    precision: Precision = PLAIN,
) -> Estimate:
    """One work on one chip, spread over all its cores or clusters; its products in 16 bits, or as
    they are made."""
    constants = replace(chip_constants(chip, basis, load), rates=_rates(chip, basis, precision))
    trust = chip_provenance(chip, basis)
    chips = chip_set([chip])
    column = cost_works([work], chips, constants)
    time_s = float(column.time_s(0)[0])
    mapping = None
    if len(work.products) == 1 and not work.products[0].empty:
        mapping = mapped(work.products[0].packed(constants.rates), chip, constants)
    if not np.isfinite(time_s):
        raise no_tile(part_of(chip, constants))
    vector = work.vector
    lane_operations = 0.0 if vector is None else vector.operations * vector.elements
    operations = work.flops or lane_operations
    peak = chip.peak_flops_in(precision) if work.flops else chip.vector_flops
    energy = _energy(column, chips, chip)
    moved = {
        "core buffer": float((column.core_bytes(0) + column.vector_bytes(0))[0]),
        "global buffer": float(column.global_bytes(0)[0]),
        "hbm": float(column.hbm_bytes(0)[0]),
    }
    start_up = constants.vector_start_up_s if work.core == "vector" else constants.start_up_s
    return Estimate(
        chip=chip.name,
        basis=trust.basis,
        load=load,
        # An operator alone at its peaks is as far off as one from a data sheet.
        band=trust.band or BANDS["datasheet"],
        time_s=time_s,
        start_up_s=start_up,
        bound=_bound(column, work, mapping),
        share_of_peak=operations / (time_s * peak) if time_s else 0.0,
        operations=operations,
        traffic_bytes=moved,
        energy_j=energy,
        average_w=None if energy is None or not time_s else sum(energy.values()) / time_s,
        mapping=mapping,
    )


def _rates(chip: Chip, basis: Basis, precision: Precision) -> tuple[tuple[int, float], ...]:
    return format_rates(chip.calibration, chip.formats, basis, LOW.get(precision))


def estimate_product(
    p: Product,
    chip: Chip,
    basis: Basis = "calibrated",
    load: Load = "alone",
    precision: Precision = PLAIN,
) -> Estimate:
    """One product on one chip; of low precision with operands of that many bits, and results of
    16."""
    recipe = LOW.get(precision)
    if recipe is None:
        if precision != PLAIN:
            raise unknown_name("precision", "precision of a product", precision, (PLAIN, *LOW))
    else:
        require_format(recipe.name, chip.formats, chip.name, "precision")
        scale = recipe.operand_bytes / 2.0
        p = replace(p, a_bytes=p.a_bytes * scale, b_bytes=p.b_bytes * scale, bits=recipe.bits)
    return estimate_work(Work("tensor", (p,)), chip, basis, load, precision)


def estimate_document(found: Estimate) -> dict[str, Any]:
    """The estimate as plain values."""
    document = {name: value for name, value in asdict(found).items() if name != "mapping"}
    mapping = found.mapping
    if mapping is not None:
        core, chip = asdict(mapping.core), asdict(mapping.chip)
        document["mapping"] = {
            "flow": core["flow"],
            "core": {name: core[name] for name in ("mt", "nt", "kc", "ks", "gm", "gn")},
            "chip": {name: chip[name] for name in ("order", "mg", "ng", "kg", "resident")},
        }
        times = (("array", core["array_s"]), ("core buffer", core["core_s"]))
        document["waits_s"] = dict(
            (*times, ("global buffer", mapping.global_s), ("hbm", mapping.hbm_s))
        )
    return document
