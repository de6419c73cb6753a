"""The published system's times, as ranges of processor seconds, and where they come from; no
optimum stands here."""

from collections.abc import Mapping
from types import MappingProxyType

from tools.bench.line import Took

SOURCE = "measured from the published code (ICML 2024) on a 2-core machine of this kind"

# Layers and widths of a placement on 1024 devices: the solver as its setup builds it, and with -O3.
PLACEMENT: Mapping[tuple[int, int], tuple[Took, Took]] = MappingProxyType(
    {
        (26, 1): (Took(1.2, 1.4), Took(0.07, 0.09)),
        (50, 3): (Took(14.5, 16.8), Took(0.96, 1.74)),
        (98, 4): (Took(63.0, 82.0), Took(4.7, 6.8)),
    }
)
# Operators of a layer schedule: the published integer program by a solver.
SCHEDULE: Mapping[int, tuple[str, Took]] = MappingProxyType(
    {12: ("published Gurobi", Took(0.07, 0.07)), 36: ("published HiGHS", Took(2.8, 4.1))}
)
# One tensor operator on one chip by the published mapper: the median; the longest took 3 s.
MAPPER = Took(0.25, 0.25)
