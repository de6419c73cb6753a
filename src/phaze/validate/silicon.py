"""Chips of clusters against what is published and measured of them: area, power, sustained rate.

A figure is ``fitted`` where a constant of the model was set by it, ``partly fitted`` where one of
several was, or a flag of the chip was chosen with the figure in view, else ``predicted``. ``seen``
says whether the model could still change when the figure was first compared (docs/silicon.md lists
every choice): chips of :data:`UNSEEN` were added after all constants were frozen.

    area    all dies, mm2                          power   of a large product at the clock held, W
    rate    of the measured product at the clock held, FLOP/s
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Literal

from phaze.cost.mapped import part_of
from phaze.cost.mapping import product
from phaze.cost.products import map_product
from phaze.hardware.area import Areas
from phaze.hardware.bundled import read
from phaze.hardware.calibration import IDEAL
from phaze.hardware.chip import Chip
from phaze.hardware.clocked import at_held_clock, chip_areas, clocked, refusal
from phaze.hardware.dies import Die
from phaze.hardware.library import chip_keys, cluster_chip_names, stated_chip, with_nodes
from phaze.hardware.power import product_power_at

Figure = Literal["area", "power", "rate"]
Basis = Literal["fitted", "partly fitted", "predicted"]
FITTED: frozenset[tuple[str, Figure]] = frozenset(
    {("a100-80gb", "area"), ("a100-pcie-80gb", "area"), ("tpu-v4i", "area"), ("a100-80gb", "rate")}
)
# AMD's interfaces are those of Aldebaran; operands shared in a cluster (H100, B200), the voltage's
# slope (MI325X over MI300X) and the energy of a unit (TPU v4) were chosen with these figures in
# view.
PARTLY_FITTED: frozenset[tuple[str, Figure]] = frozenset(
    {
        ("aldebaran", "area"),
        ("mi250x", "area"),
        ("b200", "rate"),
        ("gh200", "rate"),
        ("h100", "rate"),
        ("mi325x", "rate"),
        ("tpu-v4", "power"),
    }
)
UNSEEN: frozenset[str] = frozenset({"ascend-910", "gc200", "gv100", "mi100", "mtia-v2", "wormhole"})
# Sold with a die that is compared under another name: their areas and rates are no further figures.
SAME_DIE: frozenset[str] = frozenset(
    {"a100-40gb", "b300", "gb200", "gb300", "h100-500w", "h200", "h800"}
)
# Rows, columns and depth of a product that fills every array of a chip.
LARGE = 8192
# A die photo's parts, and ours.
PARTS = (
    ("cores", ("arrays", "vector", "buffers")),
    ("network", ("network",)),
    ("global_buffer", ("global_buffer",)),
    ("hbm_interface", ("hbm",)),
    ("link_interface", ("links",)),
    ("other", ("uncore",)),
)
PHOTOS = (("ga100", "a100-80gb"), ("aldebaran", "aldebaran"))
FITTED_PARTS = frozenset({("aldebaran", "hbm_interface"), ("aldebaran", "link_interface")})


@dataclass(frozen=True, slots=True)
class SiliconRow:
    """One figure of ours beside the published or measured one, in mm2, W or FLOP/s."""

    chip: str
    figure: Figure
    part: str
    basis: Basis
    seen: bool
    predicted: float
    published: float
    upper_bound: bool

    @property
    def error(self) -> float:
        """Ours over the published one, less 1."""
        return self.predicted / self.published - 1


def _row(
    name: str, figure: Figure, predicted: float, published: float, upper_bound: bool = False
) -> SiliconRow:
    return SiliconRow(
        name,
        figure,
        "total",
        _basis(name, figure),
        name not in UNSEEN,
        predicted,
        published,
        upper_bound,
    )


def _basis(name: str, figure: Figure) -> Basis:
    if (name, figure) in FITTED:
        return "fitted"
    return "partly fitted" if (name, figure) in PARTLY_FITTED else "predicted"


def product_rate(chip: Chip, m: int, n: int, k: int) -> float:
    """FLOP/s of a product at the clock that a chip holds, without start-up:
    ``2 m n k / (cycles of the best mapping / clock)``."""
    p = product(1, m, n, k)
    return 2.0 * p.macs / (map_product(p, part_of(chip, IDEAL)).time_s / chip.clock_hz)


def full_power_w(chip: Chip) -> float | None:
    """Watts of a large product at the rated clock, or at the node's fastest where that is lower."""
    at_clock = clocked(chip)
    if chip.process is None or at_clock is None:
        return None
    return float(
        product_power_at(
            at_clock.power, chip.process, min(chip.rated_clock_hz, chip.process.voltage.most_hz)
        )
    )


def chip_rows(chip: Chip) -> Iterator[SiliconRow]:
    """The figures of one chip that can be compared."""
    if chip.name in SAME_DIE:
        return
    published, measured, at_clock = chip.published, chip.measured, clocked(chip)
    if published.die_mm2 is not None and at_clock is not None:
        yield _row(
            chip.name, "area", at_clock.areas.total, published.die_mm2, published.die_is_upper_bound
        )
    if measured.power_w is not None and chip.process is not None and at_clock is not None:
        drawn = float(product_power_at(at_clock.power, chip.process, at_clock.held_hz))
        yield _row(chip.name, "power", drawn, measured.power_w)
    if measured.rate_flops is not None and measured.rate_shape is not None:
        yield _row(chip.name, "rate", product_rate(chip, *measured.rate_shape), measured.rate_flops)


def _parts(areas: Areas[float], die: str, name: str) -> Iterator[SiliconRow]:
    published = read(Die, "dies", die).components
    ours = areas.by_part()
    for component, parts in PARTS:
        fitted = die == "ga100" or (die, component) in FITTED_PARTS
        predicted = sum(ours[part] for part in parts)
        published_mm2 = next(value for key, value in published.items() if key == component)
        yield SiliconRow(
            name, "area", component, "fitted" if fitted else "predicted", True, predicted, published_mm2,
            False
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class SiliconCheck:
    """Every chip at the clock it holds, and every figure beside ours."""

    chips: tuple[Chip, ...]
    rows: tuple[SiliconRow, ...]


def check_silicon() -> SiliconCheck:
    """All bundled chips of clusters."""
    # As they are read: one that its limit would refuse is shown as refused.
    chips = tuple(
        at_held_clock(with_nodes(stated_chip(*chip_keys(name)))) for name in cluster_chip_names()
    )
    rows = [row for chip in chips for row in chip_rows(chip)]
    areas = {chip.name: chip_areas(chip) for chip in chips}
    for die, name in PHOTOS:
        die_areas = areas[name]
        rows += [] if die_areas is None else _parts(die_areas, die, name)
    return SiliconCheck(chips, tuple(rows))


def large_product_share(chip: Chip) -> float:
    """Of its peak that a chip sustains on a product of 8192 x 8192 x 8192."""
    return product_rate(chip, LARGE, LARGE, LARGE) / chip.peak_flops


def silicon_document(check: SiliconCheck) -> dict[str, Any]:
    """As plain values in SI units and mm2."""
    return {
        "rows": [{**asdict(row), "error": row.error} for row in check.rows],
        "chips": [_chip_document(chip) for chip in check.chips],
    }


def _chip_document(chip: Chip) -> dict[str, Any]:
    at_clock, refused = clocked(chip), refusal(chip)
    return {
        "chip": chip.name,
        "technology": chip.technology,
        "area_mm2": None if at_clock is None else at_clock.areas.total,
        "area_by_part_mm2": None if at_clock is None else at_clock.areas.by_part(),
        "clock_hz": chip.rated_clock_hz,
        "held_clock_hz": chip.clock_hz,
        "sustained_limit_w": chip.sustained_w,
        "full_power_w": full_power_w(chip),
        "held_power_w": None if at_clock is None else at_clock.held_w,
        "accepted": refused is None,
        "refused": refused,
        "large_product_share": large_product_share(chip),
    }
