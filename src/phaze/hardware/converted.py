"""A chip of cores as one of clusters, and a chip with single figures changed.

    clusters of T arrays and V vector units     N = gcd(T, V) of T / N arrays and V / N vector units each
    port                                        the least power of two that is at least w / N       (``port_of``)

N is V where V divides T, as on every GPU and TPU.
"""

from math import gcd

from phaze.hardware.chip import Chip
from phaze.hardware.chip_measurements import UNMEASURED
from phaze.hardware.chip_parts import GENERATIONS, port_of, power_limit
from phaze.values import replace


def _generation_of(bandwidth_bytes_per_s: float, technology: str | None) -> tuple[int, str]:
    """Stacks and generation of a chip that states neither: of its process's time, as many as its rate needs."""
    name = {"n5": "hbm3", "n3": "hbm3e", "n22": "hbm2", "paper-22nm": "hbm2"}.get(technology or "", "hbm2e")
    return max(1, round(bandwidth_bytes_per_s / GENERATIONS[name].bandwidth_bytes_per_s)), name


def as_clusters(chip: Chip) -> Chip:
    """The chip as clusters at its rated clock, without what was measured of its cores; its process is not read."""
    if chip.of_clusters:
        return chip
    cores, vectors, built = chip.clusters, chip.vectors, chip.built
    count = gcd(cores.count, vectors.count)
    arrays, units = cores.count // count, vectors.count // count
    stacks, generation = _generation_of(chip.hbm.bandwidth_bytes_per_s, chip.technology)
    return replace(
        chip,
        stated_hz=chip.clock_hz,
        clusters=replace(
            cores,
            count=count,
            arrays=arrays,
            lanes=units * vectors.lanes,
            operand_bytes=arrays * cores.operand_bytes,
            register_bytes=units * vectors.register_bytes,
            port_bytes_per_cycle=port_of(chip.global_bytes_per_cycle, count),
            buffer_bytes_per_s=None,
        ),
        vectors=None,
        hbm=replace(chip.hbm, stacks=stacks, generation=generation),
        links=replace(chip.links, count=1),
        built=replace(
            built,
            clusters=(round(count * built.clusters[0] / built.clusters[1]), count),
            hbm=(round(stacks * built.hbm[0] / built.hbm[1]), stacks),
        ),
        calibration=None,
        process=None,
        power=power_limit(chip.published.tdp_w),
    )


def without_measurements(chip: Chip) -> Chip:
    """The chip as a search prices it: nothing that was measured of it counts."""
    return replace(chip, calibration=None, measured=UNMEASURED)


def changed_chip(
    chip: Chip,
    hbm_bytes: int | None = None,
    hbm_bytes_per_s: float | None = None,
    global_bytes_per_s: float | None = None,
    link_bytes_per_s: float | None = None,
    clock_hz: float | None = None,
) -> Chip:
    """The chip with another memory, bandwidth or clock; area and limits stay as they were."""
    clock, hbm, links, shared = clock_hz or chip.clock_hz, chip.hbm, chip.links, chip.global_buffer
    if global_bytes_per_s is not None:
        # Stated at the clock that the chip runs at, kept at the rated one.
        rated = global_bytes_per_s if chip.rated_hz is None else global_bytes_per_s / clock * chip.rated_hz
        shared = replace(shared, bandwidth_bytes_per_s=rated)
    return replace(
        chip,
        clock_hz=clock,
        hbm=replace(
            hbm,
            size_bytes=hbm_bytes or hbm.size_bytes,
            bandwidth_bytes_per_s=hbm_bytes_per_s or hbm.bandwidth_bytes_per_s,
        ),
        global_buffer=shared,
        links=replace(links, bandwidth_bytes_per_s=link_bytes_per_s or links.bandwidth_bytes_per_s),
    )
