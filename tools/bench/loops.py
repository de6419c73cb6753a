"""Our best mapping with stationary weights as a nest of loops, so that another's model can be asked
about the same one.

A mapping (mt, nt; :mod:`phaze.cost.gemm`) of C[m,n] = A[m,k] B[k,n] on an R x C array is, from the
inside out,

    m: mt    weights stay while a tile's rows stream
    n: ceil(nt / C),  k: ceil(k / R)    the passes of a tile, its sums in the core's buffer
    m: ceil(m / mt),  n: ceil(n / nt)   the tiles

Models differ in what they charge at the two ends of a product: ours lets tiles follow each other
without a gap and pays the array's fill and drain once. What an honest other may charge on top is
the first tile in, the last one out:

    ends = (e kc (mt + nt) + 4 mt nt) / global bytes a cycle + R + C
"""

from dataclasses import dataclass

from phaze.cost.gemm import best
from phaze.cost.mapping import SUM_BYTES, TensorPart, product

Loop = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Nest:
    """Loops from the inside out, dimension and extent; cycles by our cost, and cycles of the
    ends."""

    loops: tuple[Loop, ...]
    cycles: float
    ends: float


def _up(a: int, b: int) -> int:
    return -(-a // b)


def nest_of(shape: tuple[int, int, int], part: TensorPart) -> Nest:
    """Our best mapping of the product m x n x k with stationary weights."""
    m, n, k = shape
    asked = product(1, m, n, k)
    found = best(asked, part, ("ws",))
    mt, nt, kc = found.core.mt, found.core.nt, found.core.kc
    inside = (("m", mt), ("n", _up(nt, part.columns)), ("k", _up(k, part.rows)))
    outside = (("m", _up(m, mt)), ("n", _up(n, max(nt, part.columns))))
    tile = float(asked.element_bytes) * kc * (mt + nt) + float(SUM_BYTES) * mt * nt
    ends = tile / (part.global_bytes_per_s / part.clock_hz) + part.rows + part.columns
    return Nest(
        tuple(loop for loop in (*inside, *outside) if loop[1] > 1),
        found.time_s * part.clock_hz,
        ends,
    )
