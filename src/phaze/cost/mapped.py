"""One product on one chip, of cores or of clusters, behind one face: its best mapping, and what bounds its time.

On clusters (:mod:`phaze.cost.clustered.gemm`) the mapping is in cycles, so with f the clock that the chip runs at and s
the software share every time is cycles / f / s. A tile of the mapping is then what one cluster makes, or one array of
it where each has a tile of its own; ``workers`` says how many of them there are.

    arrays_alone_s    the same with memories and ports infinitely fast
    arrays_at_peak_s  the same without what a chip or its software was measured to lose, at the rated clock
"""

from dataclasses import replace
from math import inf

from phaze.cost.clustered.mapping import SUSTAINED_SHARE, ClusterCost, ClusterPart, cluster_part
from phaze.cost.clustered.products import map_on_clusters
from phaze.cost.mapping import CoreOption, Product, ProductCost, TensorPart
from phaze.cost.parts import chip_arrays, tensor_parts
from phaze.cost.products import map_product
from phaze.hardware.calibration import IDEAL, Constants
from phaze.hardware.chip import Chip


def part_of(chip: Chip, constants: Constants) -> TensorPart:
    """The tensor part of one chip of cores, all of them."""
    parts, _ = tensor_parts(chip_arrays([chip]), constants, "all_cores")
    rows = parts.stacked()[0]
    return TensorPart(int(rows[0]), int(rows[1]), int(rows[2]), *(float(x) for x in rows[3:]))


def _fast(part: TensorPart) -> TensorPart:
    return replace(part, buffer_bytes_per_s=inf, global_bytes_per_s=inf, hbm_bytes_per_s=inf)


def _fast_clusters(part: ClusterPart) -> ClusterPart:
    return replace(part, port=inf, width=inf, hbm_bytes_per_cycle=inf)


def running_hz(chip: Chip, constants: Constants) -> float:
    """The clock that a chip of clusters is priced at."""
    return constants.clock_hz or chip.clock_hz


def hbm_bytes_per_s(chip: Chip, constants: Constants) -> float:
    """Bytes a second that products get from HBM."""
    return chip.hbm.bandwidth_bytes_per_s * constants.hbm_share


def mapped(p: Product, chip: Chip, constants: Constants) -> ProductCost:
    """The best mapping of a product that is not empty, on all of a chip."""
    design = chip.clusters
    if design is None:
        return map_product(p, part_of(chip, constants))
    clock = running_hz(chip, constants)
    found = map_on_clusters(p, cluster_part(design.accelerator, clock, constants.hbm_share))
    return _in_seconds(p, found, design.accelerator.clusters.count, clock * constants.software_share)


def _in_seconds(p: Product, found: ClusterCost, clusters: int, cycles_per_s: float) -> ProductCost:
    own = found.core
    core = CoreOption(
        flow=own.flow,
        mt=min(p.m, own.down * own.mt),
        nt=min(p.n, own.across * own.nt),
        kc=own.kc,
        ks=own.ks,
        gm=own.gm,
        gn=own.gn,
        array_s=own.array_cycles / cycles_per_s,
        core_s=own.core_cycles / cycles_per_s,
        core_bytes=own.edge_bytes,
        global_bytes=own.global_bytes,
    )
    return ProductCost(
        core,
        found.chip,
        found.cycles / cycles_per_s,
        found.global_cycles / cycles_per_s,
        found.hbm_cycles / cycles_per_s,
        found.hbm_bytes,
        found.global_bytes,
        clusters * own.own,
    )


def arrays_alone_s(p: Product, chip: Chip, constants: Constants) -> float:
    """Seconds with memories and ports infinitely fast."""
    design = chip.clusters
    if design is None:
        return map_product(p, _fast(part_of(chip, constants))).time_s
    clock = running_hz(chip, constants)
    cycles = map_on_clusters(p, _fast_clusters(cluster_part(design.accelerator, clock))).cycles
    return cycles / clock / constants.software_share


def arrays_at_peak_s(p: Product, chip: Chip) -> float:
    """Seconds with memories infinitely fast and arrays that lose nothing but what does not fill them."""
    design = chip.clusters
    if design is None:
        return map_product(p, _fast(part_of(chip, IDEAL))).time_s
    clock = chip.rated_clock_hz
    return SUSTAINED_SHARE * map_on_clusters(p, _fast_clusters(cluster_part(design.accelerator, clock))).cycles / clock
