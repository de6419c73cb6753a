"""What an accelerator sustains: its area and power, the clock that its power limit allows, and products at that clock.

    rate = 2 m n k / (cycles / held clock + start-up)

with cycles of the best mapping (:mod:`phaze.cost.gemm`), which knows no clock but HBM's bytes a cycle.
"""

from dataclasses import dataclass

from phaze.cost.mapping import Product, product
from phaze.cost.parts import cluster_part
from phaze.cost.products import map_product
from phaze.hardware.area import Areas
from phaze.hardware.power import ClockPower, power_at, product_power_at, refusal
from phaze.hardware.silicon.chip import Accelerator
from phaze.hardware.silicon.design import ClusterDesign
from phaze.hardware.technology import Technology
from phaze.hardware.technology_files import load_node


@dataclass(frozen=True, slots=True)
class SustainedChip:
    """A chip at the clock it holds; without a technology there is no area and no power, and the rated clock is held."""

    chip: Accelerator
    node: Technology | None
    areas: Areas[float] | None
    power: ClockPower[float] | None
    held_hz: float

    @property
    def full_power_w(self) -> float | None:
        """Watts of a large product at the rated clock, or at the node's fastest where that is lower."""
        if self.node is None or self.power is None:
            return None
        return float(product_power_at(self.power, self.node, min(self.chip.clock_hz, self.node.voltage.most_hz)))

    @property
    def held_power_w(self) -> float | None:
        """Watts at the clock held, the greater of a large product and a vector operator."""
        return None if self.node is None or self.power is None else float(power_at(self.power, self.node, self.held_hz))

    @property
    def refused(self) -> str | None:
        """Why the chip cannot run under its limit, where it cannot."""
        return None if self.power is None else refusal(self.power, self.chip, self.held_hz)

    def time_s(self, p: Product, clock_hz: float | None = None) -> float:
        """Seconds of one product alone at the clock held, or at another; with what was measured of HBM and start-up."""
        clock, said = clock_hz or self.held_hz, self.chip.measured
        share, start_up_s = said.hbm_share or 1.0, said.start_up_s or 0.0
        return map_product(p, cluster_part(self.chip, clock, share)).time_s / clock + start_up_s

    def rate_flops(self, m: int, n: int, k: int) -> float:
        """FLOP/s of a product at the clock held, without start-up."""
        p = product(1, m, n, k)
        return 2.0 * p.macs / (map_product(p, cluster_part(self.chip, self.held_hz)).time_s / self.held_hz)


def sustain(chip: Accelerator) -> SustainedChip:
    """``chip`` with the nodes that it names."""
    if chip.technology is None:
        return SustainedChip(chip, None, None, None, chip.clock_hz)
    node, base = load_node(chip.technology), chip.built.base_technology
    design = ClusterDesign(chip, node, None if base is None else load_node(base))
    return SustainedChip(chip, node, design.areas, design.power, design.held_hz)
