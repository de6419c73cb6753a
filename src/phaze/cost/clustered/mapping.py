"""The values of a product's cost on clusters: the part it runs on, the choices of a mapping, what it takes in cycles.

:mod:`phaze.cost.clustered.gemm` says which choices there are and what each costs.
"""

from dataclasses import dataclass

from phaze.cost.mapping import Bound, Flow, GlobalOption
from phaze.hardware.silicon.chip import Accelerator

SUSTAINED_SHARE = 0.95
"""Of its cycles that an array works while it has a tile, on every chip: zeros on A100 reach 0.9455 of peak, Gaudi 2
0.969, and AMD states up to 0.94 at the clock measured."""
LATENCY_CYCLES = 1000
"""From a tile's first request to its first operand, and back (assumed; between 500 and 2000 nothing moves)."""


@dataclass(frozen=True, slots=True)
class ClusterPart:
    """What a product's cycles depend on: N clusters of c arrays R x C with an operand buffer, registers for sums and a
    port; the global buffer with the clusters that a read reaches; HBM in bytes a cycle. No clock."""

    clusters: int
    arrays: int
    rows: int
    columns: int
    operand_bytes: float
    sum_bytes: float
    port: float
    fan_out: int
    global_bytes: float
    width: float
    hbm_bytes_per_cycle: float

    @property
    def macs(self) -> int:
        """Multiply-accumulates a cycle."""
        return self.clusters * self.arrays * self.rows * self.columns


@dataclass(frozen=True, slots=True)
class ClusterOption:
    """A choice of the cluster side, with what it costs: ``own`` tiles at once of ``down`` x ``across`` arrays each."""

    flow: Flow
    down: int
    across: int
    own: int
    mt: int
    nt: int
    kc: int
    ks: int
    gm: int
    gn: int
    array_cycles: float
    core_cycles: float
    edge_bytes: float
    port_bytes: float
    global_bytes: float

    @property
    def busy_cycles(self) -> float:
        return max(self.array_cycles, self.core_cycles)


@dataclass(frozen=True, slots=True)
class ClusterCost:
    """The best mapping and its cost, without start-up."""

    core: ClusterOption
    chip: GlobalOption
    cycles: float
    global_cycles: float
    hbm_cycles: float
    hbm_bytes: float
    global_bytes: float

    @property
    def bound(self) -> Bound:
        """What the time waits for."""
        terms: tuple[tuple[Bound, float], ...] = (
            ("array", self.core.array_cycles),
            ("hbm", self.hbm_cycles),
            ("global buffer", self.global_cycles),
            ("core buffer", self.core.core_cycles),
        )
        return max(terms, key=lambda term: term[1])[0]


def cluster_part(chip: Accelerator, clock_hz: float, hbm_share: float = 1.0) -> ClusterPart:
    """The part of ``chip``; the clock enters only as HBM's bytes a cycle."""
    clusters, shared = chip.clusters, chip.global_buffer
    return ClusterPart(
        clusters.count,
        clusters.arrays,
        clusters.rows,
        clusters.columns,
        float(clusters.operand_bytes),
        float(clusters.sum_bytes),
        clusters.port_bytes_per_cycle,
        shared.fan_out,
        float(shared.size_bytes),
        shared.bytes_per_cycle,
        chip.hbm.bandwidth_bytes_per_s * hbm_share / clock_hz,
    )
