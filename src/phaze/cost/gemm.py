"""A matrix product on a chip: the mapping space, enumerated plainly. This file is the definition of its cost.

A :class:`Product` is ``batch`` products C[m,n] = A[m,k] B[k,n]. A :class:`TensorPart` has T cores, each an R x C array
with a buffer of U bytes; a global buffer of G bytes; HBM. A mapping is one choice of each of these:

  core side (:func:`core_options`), all over ladders of powers of two times R or C, capped at the dimension
    mt, nt     output tile that one core makes; the product is ``batch ceil(m/mt) ceil(n/nt) ks`` items
    flow       os-mn (m on rows, n on columns, outputs stay), os-nm (the other way round),
               ws (k on rows, n on columns, weights stay, m streams),
               is (k on rows, m on columns, inputs stay, n streams)
    ks         split of k over cores, 1..64, doubled only while there are fewer than 8 T items; kt = ceil(k/ks);
               partial sums meet in the global buffer
    kc         depth of the operand slices in the core buffer: of min(R, k) doubled below k, and k, the deepest with
               2 e kc (mt + nt) + 4 mt nt <= U (slices are double-buffered; when one os pass makes the tile there are no
               sums to keep, and kc begins at 1)
    gm x gn    cores that share what is read: a fragment of A goes to gn cores at once, one of B to gm; gm gn <= T,
               each a power of two up to 16 (the widest multicast of shipping chips): the pair with the least traffic
  global side (:func:`global_options`), over ladders of powers of two
    a          blocks of Mg rows of A stay, B and C stream:  2 e Mg k + 2 e s (k + Mg) <= G, s = min(n, 64); an A that
               stays whole in a product without batch is not double-buffered:  e m k + 2 e s (k + m) <= G
    b          blocks of Ng columns of B stay, A and C stream, alike
    c          blocks Mg x Ng of sums stay, A and B stream in slices of Kg: 4 Mg Ng + 2 e Kg (Mg + Ng) <= G
    through    nothing stays: HBM sees what the cores ask for
    each with or without operands that the operators before left in the buffer (half of G is then kept for them)

Costs, with waves = ceil(items / T), e bytes an element, am = ceil(m/mt), an = ceil(n/nt):

    cycles(os)  = ceil(mt/R) ceil(nt/C) (kt, at least R a visit) + k0 blocks                (:func:`array_cycles`)
    cycles(ws)  = ceil(kt/R) ceil(nt/C) max(mt, R) + k0 blocks, is alike;   blocks = ceil(mt/R) ceil(nt/C)
    t_array     = (waves cycles + 2R + C - 2) / clock            fill and drain once: passes follow each other
    t_core      = waves core_bytes / core bandwidth                                         (:func:`core_bytes`)
    t_global    = (reads + writes + partial sums) / global bandwidth
                  reads  = e batch k (m ceil(an/gn) + n ceil(am/gm))                        (:func:`multicast`)
                  writes = e batch m n (+ 8 ks batch m n when ks > 1);  order c adds 8 batch m n (ceil(k/Kg) - 1)
    t_hbm       = (a ra + b rb + c) / HBM bandwidth,   ra, rb: how often an operand is fetched
    time        = max(t_array, t_core, t_global, t_hbm), the least over all mappings        (:func:`best`)

Every constraint only loosens with T, U and G, and every term only falls with a clock or bandwidth, so the least time
is monotone in each of them; t_array is at least the multiply-accumulates over T R C clock, t_hbm the operands once.
Ties: least HBM bytes, then global bytes, then max(t_array, t_core), then the first in the order of enumeration.
"""

from collections.abc import Iterator

from phaze.cost.mapping import (
    ENOUGH,
    FANOUT,
    FLOWS,
    NEVER,
    SLICE,
    SPLITS,
    SUM_BYTES,
    CoreOption,
    Flow,
    GlobalOption,
    Product,
    ProductCost,
    TensorPart,
)
from phaze.errors import InputError


def _up(a: int, b: int) -> int:
    return -(-a // b)


def ladder(start: int, limit: int) -> list[int]:
    """start, 2 start, 4 start, ... below ``limit``, then ``limit`` itself."""
    steps = []
    while start < limit:
        steps.append(start)
        start *= 2
    return [*steps, limit]


def tiles(extent: int, part: TensorPart) -> list[int]:
    """Tile extents to try: multiples of the array's sides by powers of two, and the whole dimension."""
    return sorted({*ladder(part.rows, extent), *ladder(part.columns, extent)})


def depth(flow: Flow, mt: int, nt: int, p: Product, part: TensorPart) -> int:
    """kc, the deepest slices that the core buffer holds beside the sums; 0 where none fits."""
    rm, rn = (part.columns, part.rows) if flow == "os-nm" else (part.rows, part.columns)
    one_pass = flow.startswith("os") and mt <= rm and nt <= rn
    room = part.buffer_bytes - (0.0 if one_pass else float(SUM_BYTES) * mt * nt)
    fits = room / (2.0 * p.element_bytes * (mt + nt))
    least = 1 if one_pass else min(part.rows, p.k)
    if fits < least:
        return 0
    return [step for step in ladder(least, p.k) if step <= fits][-1]


def array_cycles(flow: Flow, mt: int, nt: int, kt: int, kc: int, part: TensorPart) -> float:
    """Cycles that one item keeps the array, passes following each other without a gap."""
    r, c = part.rows, part.columns
    if flow == "ws":
        return float(_up(kt, r)) * _up(nt, c) * max(mt, r)
    if flow == "is":
        return float(_up(kt, r)) * _up(mt, c) * max(nt, r)
    rows, columns = (mt, nt) if flow == "os-mn" else (nt, mt)
    folds = float(_up(rows, r)) * _up(columns, c)
    if folds == 1:
        return float(max(kt, r))
    visits = _up(kt, kc)
    return folds * (float(visits - 1) * kc + max(kt - (visits - 1) * kc, r))


def core_bytes(flow: Flow, mt: int, nt: int, kt: int, kc: int, p: Product, part: TensorPart) -> float:
    """Bytes between one core's buffer and its array for one item; sums are added in place."""
    r, c, e = part.rows, part.columns, float(p.element_bytes)
    sums = float(SUM_BYTES) * mt * nt
    if flow == "ws":
        return e * kt * nt + e * kt * mt * _up(nt, c) + sums * _up(kt, r)
    if flow == "is":
        return e * kt * mt + e * kt * nt * _up(mt, c) + sums * _up(kt, r)
    rows, columns = (mt, nt) if flow == "os-mn" else (nt, mt)
    one_pass = rows <= r and columns <= c
    return e * kt * (float(rows) * _up(columns, c) + float(columns) * _up(rows, r)) + sums * (
        1 if one_pass else _up(kt, kc)
    )


def multicast(p: Product, am: int, an: int, cores: int) -> tuple[float, int, int]:
    """Least bytes that the cores read from the global buffer, and the group gm x gn that shares them."""
    best = (NEVER, 1, 1)
    gm = 1
    while gm <= min(cores, FANOUT):
        gn = 1
        while gn * 2 * gm <= cores and gn < FANOUT:
            gn *= 2
        reads = float(p.element_bytes) * p.batch * p.k * (float(p.m) * _up(an, gn) + float(p.n) * _up(am, gm))
        best = min(best, (reads, gm, gn), key=lambda x: x[0])
        gm *= 2
    return best


def core_options(p: Product, part: TensorPart) -> Iterator[CoreOption]:
    """Every choice of the core side, in the order that breaks ties."""
    for mt in tiles(p.m, part):
        for nt in tiles(p.n, part):
            am, an = _up(p.m, mt), _up(p.n, nt)
            reads, gm, gn = multicast(p, am, an, part.cores)
            blocks = float(_up(mt, part.rows)) * _up(nt, part.columns)
            for flow in FLOWS:
                kc = depth(flow, mt, nt, p, part)
                for ks in SPLITS if kc else ():
                    if ks > p.k or (ks > 1 and p.batch * am * an * (ks // 2) >= ENOUGH * part.cores):
                        break
                    kt = _up(p.k, ks)
                    deep = min(kc, kt)
                    items = float(p.batch) * am * an * ks
                    waves = float(-(-(p.batch * am * an * ks) // part.cores))
                    cycles = array_cycles(flow, mt, nt, kt, deep, part) + part.block_cycles * blocks
                    moved = core_bytes(flow, mt, nt, kt, deep, p, part)
                    outputs = float(p.batch) * p.m * p.n
                    writes = outputs * p.element_bytes + (0.0 if ks == 1 else 2.0 * SUM_BYTES * ks * outputs)
                    yield CoreOption(
                        flow, mt, nt, deep, ks, gm, gn,
                        array_s=(waves * cycles + (2 * part.rows + part.columns - 2)) / part.clock_hz,
                        core_s=waves * moved / part.buffer_bytes_per_s,
                        core_bytes=items * moved,
                        global_bytes=reads + writes,
                    )  # fmt: skip


def _blocks(p: Product, room: float, kept: tuple[float, float, float], resident: bool) -> Iterator[GlobalOption]:
    e, (a, b, c) = float(p.element_bytes), kept
    for mg in ladder(1, p.m):
        ahead = 1.0 if mg == p.m and p.batch == 1 else 2.0
        if ahead * e * mg * p.k + 2.0 * e * min(p.n, SLICE) * (float(p.k) + mg) <= room:
            yield GlobalOption("a", mg, min(p.n, SLICE), p.k, resident, a + b * _up(p.m, mg) + c, 0.0)
    for ng in ladder(1, p.n):
        ahead = 1.0 if ng == p.n and p.batch == 1 else 2.0
        if ahead * e * ng * p.k + 2.0 * e * min(p.m, SLICE) * (float(p.k) + ng) <= room:
            yield GlobalOption("b", min(p.m, SLICE), ng, p.k, resident, a * _up(p.n, ng) + b + c, 0.0)
    for mg in ladder(1, p.m):
        for ng in ladder(1, p.n):
            fits = (room - float(SUM_BYTES) * mg * ng) / (2.0 * e * (float(mg) + ng))
            if fits >= 1:
                kg = [step for step in ladder(1, p.k) if step <= fits][-1]
                sums = 2.0 * SUM_BYTES * p.batch * p.m * p.n * (_up(p.k, kg) - 1)
                yield GlobalOption("c", mg, ng, kg, resident, a * _up(p.n, ng) + b * _up(p.m, mg) + c, sums)


def operand_bytes(p: Product, global_bytes: float, resident: bool) -> tuple[float, float, float]:
    """HBM bytes of A, B and C fetched once; ``resident``: without those that half of the global buffer still holds."""
    needs = (p.a_need_bytes, p.b_need_bytes, p.c_need_bytes)
    a, b, c = (
        0.0 if resident and need <= 0.5 * global_bytes else held
        for need, held in zip(needs, (p.a_bytes, p.b_bytes, p.c_bytes), strict=True)
    )
    return a, b, c


def global_options(p: Product, global_bytes: float) -> Iterator[GlobalOption]:
    """Every choice of the global side but ``through``, whose bytes depend on the core side."""
    yield from _blocks(p, global_bytes, operand_bytes(p, global_bytes, False), False)
    yield from _blocks(p, 0.5 * global_bytes, operand_bytes(p, global_bytes, True), True)


def _through(p: Product, core: CoreOption) -> GlobalOption:
    once = p.a_bytes + p.b_bytes + p.c_bytes
    return GlobalOption("through", 0, 0, 0, False, max(core.global_bytes, once), 0.0)


def _cost(core: CoreOption, chip: GlobalOption, part: TensorPart) -> ProductCost:
    moved = core.global_bytes + chip.sums_bytes
    global_s, hbm_s = moved / part.global_bytes_per_s, chip.hbm_bytes / part.hbm_bytes_per_s
    return ProductCost(core, chip, max(core.busy_s, global_s, hbm_s), global_s, hbm_s, chip.hbm_bytes, moved)


def no_tile(part: TensorPart) -> InputError:
    """The sentence for a core buffer that holds no tile at all."""
    return InputError(
        "tensor_cores.buffer.size",
        f"{part.buffer_bytes:.0f} bytes hold no tile of a {part.rows} x {part.columns} array",
        f"give at least {4 * (part.rows + part.columns)} bytes",
    )


def best(p: Product, part: TensorPart, flows: tuple[Flow, ...] = FLOWS) -> ProductCost:
    """The mapping of least time in ``flows``, by trying every pair of choices; the product must not be empty."""
    sides = list({(o.hbm_bytes, o.sums_bytes): o for o in reversed([*global_options(p, part.global_bytes)])}.values())
    found: tuple[tuple[float, float, float, float], ProductCost] | None = None
    for core in (option for option in core_options(p, part) if option.flow in flows):
        for side in (*reversed(sides), _through(p, core)):
            cost = _cost(core, side, part)
            key = (cost.time_s, cost.hbm_bytes, cost.global_bytes, core.busy_s)
            if found is None or key < found[0]:
                found = (key, cost)
    if found is None:
        raise no_tile(part)
    return found[1]
