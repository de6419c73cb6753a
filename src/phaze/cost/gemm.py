"""A matrix product on a chip: the mapping space, enumerated plainly. This file is the definition of
its cost.

A :class:`Product` is ``batch`` products C[m,n] = A[m,k] B[k,n]. A :class:`TensorPart` has T cores
of c arrays R x C, a buffer of U bytes and S bytes for sums, behind a port of p bytes each way; a
global buffer of G bytes; HBM. A plain core has c = 1, its sums in the buffer, p infinite and no
latency L. A mapping is one choice of each of these:

  core side (:func:`core_options`), all over ladders of powers of two times R or C, capped at the
  dimension
    teams      1: down x across = c arrays make one tile together;  c: each array has tiles of its
               own (:func:`splits`)
    m1, n1     what one array makes; a tile is mt x nt, mt = min(m, down m1), nt = min(n, across
               n1); am = ceil(m / (down m1)), an = ceil(n / (across n1)): the product is batch am an
               ks tiles
    flow       os-mn (m on rows, n on columns, outputs stay), os-nm (the other way round),
               ws (k on rows, n on columns, weights stay, m streams),
               is (k on rows, m on columns, inputs stay, n streams)
    ks         split of k over cores, 1..64, doubled only while there are fewer than 8 T teams
               tiles; kt = ceil(k/ks); partial sums meet in the global buffer
    kc         depth of the operand slices in the buffer: of min(R, k) doubled below k, and k, the
               deepest with 2 e kc (mt + nt) teams + (4 mt nt where sums are in the buffer) <= U,
               and 4 mt nt teams <= S; slices are double-buffered; when one os pass makes the tile
               there are no sums to keep, and kc begins at 1
    gm x gn    cores that share what is read: a fragment of A goes to gn cores at once, one of B to
               gm; gm gn <= T and the fan-out, each a power of two up to the widest multicast: the
               pair with the least traffic
  global side (:func:`global_options`), over ladders of powers of two
    a          blocks of Mg rows of A stay, B and C stream:  2 e Mg k + 2 e s (k + Mg) <= G, s =
               min(n, 64); an A that
               stays whole in a product without batch is not double-buffered:  e m k + 2 e s (k + m) <= G
    b          blocks of Ng columns of B stay, A and C stream, alike
    c          blocks Mg x Ng of sums stay, A and B stream in slices of Kg: 4 Mg Ng + 2 e Kg (Mg +
               Ng) <= G
    through    nothing stays: HBM sees what the cores ask for
    each with or without operands that the operators before left in the buffer (half of G is then
    kept for them)

Costs, with e bytes an element and waves = ceil(ceil(batch am an ks / teams) / T):

    cycles(os)  = ceil(m1/R) ceil(n1/C) (kt, at least R a visit) + k0 blocks
                (:func:`array_cycles`)
    cycles(ws)  = ceil(kt/R) ceil(n1/C) max(m1, R) + k0 blocks, is alike;   blocks = ceil(m1/R)
                ceil(n1/C)
    written     = mt nt teams e, or 8 mt nt teams where k is split;      asked = e kt (mt + nt)
                teams
    drain       = L + 2R + C - 2 + written / p
    t_array     = (waves (cycles + (0 if 8 mt nt teams <= S else drain)) + drain) / (clock
                sustained_share)
                  passes follow each other; with room for a second tile of sums, the next starts
                  while one is written
    t_core      = max(waves core_bytes / core bandwidth, waves max(asked, written) / p)
                (:func:`core_bytes`)
    t_global    = (reads + writes + partial sums) / global bandwidth
                  reads  = e batch k (m ceil(an/gn) + n ceil(am/gm))
                         (:func:`multicast`)
                  writes = e batch m n (+ 8 ks batch m n when ks > 1);  order c adds 8 batch m n (ceil(k/Kg) - 1)
    t_hbm       = (a ra + b rb + c) / HBM bandwidth,   ra, rb: how often an operand is fetched
    time        = max(t_array, t_core, t_global, t_hbm), the least over all mappings
                (:func:`best`)

Every constraint only loosens with T, U, finite S and G, and every term only falls with them and
with a clock, port or bandwidth, so the least time is monotone in each of them (not in c, R, C: more
arrays need larger tiles); t_array is at least the multiply-accumulates over T c R C clock, t_hbm
the operands once. Ties: least HBM bytes, then global bytes, then max(t_array, t_core), then the
first in the order of enumeration.
"""

from collections.abc import Iterator

from phaze.cost.mapping import (
    ENOUGH,
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


def splits(arrays: int) -> list[tuple[int, int, int]]:
    """(down, across, teams): the ways in which the arrays of a core work together, then each
    alone."""
    together = [(down, arrays // down, 1) for down in range(1, arrays + 1) if arrays % down == 0]
    return together if arrays == 1 else [*together, (1, 1, arrays)]


def tiles(extent: int, part: TensorPart) -> list[int]:
    """Tile extents to try: multiples of the array's sides by powers of two, and the whole
    dimension."""
    return sorted({*ladder(part.rows, extent), *ladder(part.columns, extent)})


def in_one_pass(flow: Flow, m1: int, n1: int, part: TensorPart) -> bool:
    """Whether an array keeps the outputs that it makes in place until they are whole."""
    rows, columns = (n1, m1) if flow == "os-nm" else (m1, n1)
    return flow.startswith("os") and rows <= part.rows and columns <= part.columns


def depth(one_pass: bool, mt: int, nt: int, teams: int, p: Product, part: TensorPart) -> int:
    """kc, the deepest slices that the buffer holds; 0 where none fits, or the sums do not."""
    sums = 0.0 if one_pass else float(SUM_BYTES) * mt * nt * teams
    if sums > part.sum_bytes:
        return 0
    room = part.buffer_bytes - (sums if part.sum_bytes == NEVER else 0.0)
    fits = room / (2.0 * p.element_bytes * teams * (mt + nt))
    least = 1 if one_pass else min(part.rows, p.k)
    if fits < least:
        return 0
    return [step for step in ladder(least, p.k) if step <= fits][-1]


def array_cycles(flow: Flow, m1: int, n1: int, kt: int, kc: int, part: TensorPart) -> float:
    """Cycles that one tile keeps an array, passes following each other without a gap."""
    r, c = part.rows, part.columns
    if flow == "ws":
        return float(_up(kt, r)) * _up(n1, c) * max(m1, r)
    if flow == "is":
        return float(_up(kt, r)) * _up(m1, c) * max(n1, r)
    rows, columns = (m1, n1) if flow == "os-mn" else (n1, m1)
    folds = float(_up(rows, r)) * _up(columns, c)
    if folds == 1:
        return float(max(kt, r))
    visits = _up(kt, kc)
    return folds * (float(visits - 1) * kc + max(kt - (visits - 1) * kc, r))


def core_bytes(
    flow: Flow, m1: int, n1: int, kt: int, kc: int, p: Product, part: TensorPart
) -> float:
    """Bytes between a buffer and one array for one tile; sums are added in place."""
    r, c, e = part.rows, part.columns, float(p.element_bytes)
    sums = float(SUM_BYTES) * m1 * n1
    if flow == "ws":
        return e * kt * n1 + e * kt * m1 * _up(n1, c) + sums * _up(kt, r)
    if flow == "is":
        return e * kt * m1 + e * kt * n1 * _up(m1, c) + sums * _up(kt, r)
    rows, columns = (m1, n1) if flow == "os-mn" else (n1, m1)
    visits = 1 if in_one_pass(flow, m1, n1, part) else _up(kt, kc)
    return e * kt * (float(rows) * _up(columns, c) + float(columns) * _up(rows, r)) + sums * visits


def multicast(p: Product, am: int, an: int, part: TensorPart) -> tuple[float, int, int]:
    """Least bytes that the cores read from the global buffer, and the group gm x gn that shares
    them."""
    best = (NEVER, 1, 1)
    gm = 1
    while gm <= min(part.group, part.multicast):
        gn = 1
        while gn * 2 * gm <= part.group and gn * 2 <= part.multicast:
            gn *= 2
        reads = (
            float(p.element_bytes)
            * p.batch
            * p.k
            * (float(p.m) * _up(an, gn) + float(p.n) * _up(am, gm))
        )
        best = min(best, (reads, gm, gn), key=lambda x: x[0])
        gm *= 2
    return best


def core_options(p: Product, part: TensorPart) -> Iterator[CoreOption]:
    """Every choice of the core side, in the order that breaks ties."""
    for split in splits(part.arrays):
        down, across, teams = split
        for m1 in tiles(_up(p.m, down), part):
            for n1 in tiles(_up(p.n, across), part):
                am, an = _up(p.m, down * m1), _up(p.n, across * n1)
                mt, nt = min(p.m, down * m1), min(p.n, across * n1)
                shared = multicast(p, am, an, part)
                for flow in FLOWS:
                    kc = depth(in_one_pass(flow, m1, n1, part), mt, nt, teams, p, part)
                    for ks in SPLITS if kc else ():
                        tile_count = p.batch * am * an
                        if ks > p.k or (
                            ks > 1 and tile_count * (ks // 2) >= ENOUGH * part.cores * teams
                        ):
                            break
                        yield _option(
                            p, part, split, (m1, n1, mt, nt), tile_count * ks, flow, kc, ks, shared
                        )


def _option(
    p: Product,
    part: TensorPart,
    split: tuple[int, int, int],
    tile: tuple[int, int, int, int],
    tile_count: int,
    flow: Flow,
    kc: int,
    ks: int,
    shared: tuple[float, int, int],
) -> CoreOption:
    (down, across, teams), (m1, n1, mt, nt), (reads, gm, gn) = split, tile, shared
    kt, e, outputs = _up(p.k, ks), float(p.element_bytes), float(p.batch) * p.m * p.n
    deep = min(kc, kt)
    waves = float(_up(_up(tile_count, teams), part.cores))
    made = float(mt) * nt * teams
    written = made * (e if ks == 1 else 2.0 * SUM_BYTES)
    asked = e * kt * (float(mt) + nt) * teams
    drain = part.latency_cycles + 2 * part.rows + part.columns - 2 + written / part.port_bytes_per_s
    lost = part.block_cycles * (float(_up(m1, part.rows)) * _up(n1, part.columns))
    waits = 0.0 if 2.0 * SUM_BYTES * made <= part.sum_bytes else drain
    cycles = array_cycles(flow, m1, n1, kt, deep, part) + (lost + waits)
    moved = core_bytes(flow, m1, n1, kt, deep, p, part)
    writes = outputs * e + (0.0 if ks == 1 else 2.0 * SUM_BYTES * ks * outputs)
    return CoreOption(
        flow, down, across, teams, mt, nt, deep, ks, gm, gn,
        array_s=(waves * cycles + drain) / part.array_hz,
        core_s=max(waves * moved / part.buffer_bytes_per_s,
        waves * max(asked, written) / part.port_bytes_per_s),
        core_bytes=float(tile_count) * (down * across) * moved,
        port_bytes=float(tile_count) * (e * kt * (float(mt) + nt)),
        global_bytes=reads + writes,
    )  # fmt: skip


def _blocks(
    p: Product, room: float, fetched: tuple[float, float, float], resident: bool
) -> Iterator[GlobalOption]:
    e, (a, b, c) = float(p.element_bytes), fetched
    for mg in ladder(1, p.m):
        ahead = 1.0 if mg == p.m and p.batch == 1 else 2.0
        if ahead * e * mg * p.k + 2.0 * e * min(p.n, SLICE) * (float(p.k) + mg) <= room:
            yield GlobalOption(
                "a", mg, min(p.n, SLICE), p.k, resident, a + b * _up(p.m, mg) + c, 0.0
            )
    for ng in ladder(1, p.n):
        ahead = 1.0 if ng == p.n and p.batch == 1 else 2.0
        if ahead * e * ng * p.k + 2.0 * e * min(p.m, SLICE) * (float(p.k) + ng) <= room:
            yield GlobalOption(
                "b", min(p.m, SLICE), ng, p.k, resident, a * _up(p.n, ng) + b + c, 0.0
            )
    for mg in ladder(1, p.m):
        for ng in ladder(1, p.n):
            fits = (room - float(SUM_BYTES) * mg * ng) / (2.0 * e * (float(mg) + ng))
            if fits >= 1:
                kg = [step for step in ladder(1, p.k) if step <= fits][-1]
                sums = 2.0 * SUM_BYTES * p.batch * p.m * p.n * (_up(p.k, kg) - 1)
                yield GlobalOption(
                    "c", mg, ng, kg, resident, a * _up(p.n, ng) + b * _up(p.m, mg) + c, sums
                )


def operand_bytes(p: Product, global_bytes: float, resident: bool) -> tuple[float, float, float]:
    """HBM bytes of A, B and C fetched once; ``resident``: without those that half of the global
    buffer still holds."""
    needs = (p.a_need_bytes, p.b_need_bytes, p.c_need_bytes)
    a, b, c = (
        0.0 if resident and need <= 0.5 * global_bytes else whole
        for need, whole in zip(needs, (p.a_bytes, p.b_bytes, p.c_bytes), strict=True)
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
    time_s = max(core.busy_s, global_s, hbm_s)
    return ProductCost(
        core, chip, time_s, global_s, hbm_s, chip.hbm_bytes, moved, part.cores * core.teams
    )


def no_tile(part: TensorPart) -> InputError:
    """The sentence for buffers that hold no tile at all."""
    plain, side = part.sum_bytes == NEVER, f"{part.rows} x {part.columns}"
    return InputError(
        "tensor_cores.buffer.size" if plain else "clusters.operand_buffer",
        f"{part.buffer_bytes:.0f} bytes hold no tile of "
        + (f"a {side} array" if plain else f"{part.arrays} arrays of {side}"),
        f"give at least {4 * part.arrays * (part.rows + part.columns)} bytes",
    )


def best(p: Product, part: TensorPart, flows: tuple[Flow, ...] = FLOWS) -> ProductCost:
    """The mapping of least time in ``flows``, by trying every pair of choices; the product must not
    be empty."""
    sides = list(
        {
            (o.hbm_bytes, o.sums_bytes): o
            for o in reversed([*global_options(p, part.global_bytes)])
        }.values()
    )
    least: tuple[tuple[float, float, float, float], ProductCost] | None = None
    for core in (option for option in core_options(p, part) if option.flow in flows):
        for side in (*reversed(sides), _through(p, core)):
            cost = _cost(core, side, part)
            key = (cost.time_s, cost.hbm_bytes, cost.global_bytes, core.busy_s)
            if least is None or key < least[0]:
                least = (key, cost)
    if least is None:
        raise no_tile(part)
    return least[1]
