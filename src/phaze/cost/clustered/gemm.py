"""A matrix product on clusters of arrays, in cycles: the mapping space, enumerated plainly. This is its definition.

A product and the global side (blocks in the global buffer, HBM bytes) are those of :mod:`phaze.cost.gemm`. A
:class:`ClusterPart` has N clusters of c arrays R x C behind one port of p bytes a cycle each way, an operand buffer of
U bytes and S bytes of registers for sums; one read of the global buffer reaches F clusters. The cluster side chooses

    own            1: down x across = c arrays make one tile together;  c: each array has a tile of its own
    mt, nt         what one array makes, over ladders of powers of two times R or C; a tile is bm x bn,
                   bm = min(m, down mt), bn = min(n, across nt);  am = ceil(m / (down mt)), an = ceil(n / (across nt))
    flow           os-mn, os-nm, ws, is, as in gemm.py
    ks             split of k, 1..64, doubled only while there are fewer than 8 N own tiles; kt = ceil(k/ks)
    kc             the deepest slices with 2 e kc (bm + bn) own <= U;  4 bm bn own <= S unless one pass of an os array
                   makes what it makes
    gm x gn        clusters that share what is read, gm gn <= min(F, N), powers of two: the pair with the least traffic

and costs, with L = 1000 cycles of latency and s = 0.95 (:mod:`phaze.cost.clustered.mapping`):

    written    = bm bn own e, or 8 bm bn own where k is split;      asked = e kt (bm + bn) own
    drain      = L + 2R + C - 2 + written / p
    each       = cycles of one array (gemm.array_cycles) + (0 if 8 bm bn own <= S else drain)
                 with room for a second tile of sums, the next one starts while this one is written
    waves      = ceil(ceil(batch am an ks / own) / N)
    array      = (waves each + drain) / s
    core       = max(waves moved / (2R + 6C), waves max(asked, written) / p)     moved: gemm.core_bytes, of one array
    busy       = max(array, core)
    cycles     = max(busy, (reads + writes + sums) / w, hbm bytes / HBM bytes a cycle), the least over all mappings

Every constraint only loosens with N, U, S, p and the global buffer, every term only falls with them, with w and with
HBM's rate, and the clock is in none but that rate: the least time is monotone in each of them. It is not promised for
c, R, C: more arrays need larger tiles. Ties as in gemm.py: HBM bytes, global bytes, busy, order of enumeration.
"""

from collections.abc import Iterable, Iterator

from phaze.cost.clustered.mapping import LATENCY_CYCLES, SUSTAINED_SHARE, ClusterCost, ClusterOption, ClusterPart
from phaze.cost.gemm import array_cycles, core_bytes, global_options, ladder
from phaze.cost.mapping import ENOUGH, FLOWS, NEVER, SPLITS, SUM_BYTES, Flow, GlobalOption, Product, TensorPart
from phaze.errors import InputError


def _up(a: int, b: int) -> int:
    return -(-a // b)


def splits(arrays: int) -> list[tuple[int, int, int]]:
    """(down, across, own): the ways in which the arrays of a cluster work together, then each alone."""
    together = [(down, arrays // down, 1) for down in range(1, arrays + 1) if arrays % down == 0]
    return together if arrays == 1 else [*together, (1, 1, arrays)]


def tiles(extent: int, part: ClusterPart) -> list[int]:
    """Tile extents to try: multiples of the array's sides by powers of two, and the whole extent."""
    return sorted({*ladder(part.rows, extent), *ladder(part.columns, extent)})


def slices(one_pass: bool, bm: int, bn: int, own: int, p: Product, part: ClusterPart) -> int:
    """kc, the deepest slices that the operand buffer holds; 0 where none fits, or the sums do not."""
    if not one_pass and float(SUM_BYTES) * bm * bn * own > part.sum_bytes:
        return 0
    fits = part.operand_bytes / (2.0 * p.element_bytes * own * (bm + bn))
    least = 1 if one_pass else min(part.rows, p.k)
    if fits < least:
        return 0
    return [step for step in ladder(least, p.k) if step <= fits][-1]


def shared_reads(p: Product, am: int, an: int, most: int) -> tuple[float, int, int]:
    """Least bytes that clusters read from the global buffer, and the group gm x gn of at most ``most`` that shares."""
    best = (NEVER, 1, 1)
    gm = 1
    while gm <= most:
        gn = 1
        while gn * 2 * gm <= most:
            gn *= 2
        reads = float(p.element_bytes) * p.batch * p.k * (float(p.m) * _up(an, gn) + float(p.n) * _up(am, gm))
        best = min(best, (reads, gm, gn), key=lambda x: x[0])
        gm *= 2
    return best


def _one_pass(flow: Flow, mt: int, nt: int, part: ClusterPart) -> bool:
    if flow == "os-mn":
        return mt <= part.rows and nt <= part.columns
    return flow == "os-nm" and mt <= part.columns and nt <= part.rows


def cluster_options(p: Product, part: ClusterPart) -> Iterator[ClusterOption]:
    """Every choice of the cluster side, in the order that breaks ties."""
    most = min(part.fan_out, part.clusters)
    for down, across, own in splits(part.arrays):
        for mt in tiles(_up(p.m, down), part):
            for nt in tiles(_up(p.n, across), part):
                am, an = _up(p.m, down * mt), _up(p.n, across * nt)
                shared = shared_reads(p, am, an, most)
                for flow in FLOWS:
                    bm, bn = min(p.m, down * mt), min(p.n, across * nt)
                    kc = slices(_one_pass(flow, mt, nt, part), bm, bn, own, p, part)
                    for ks in SPLITS if kc else ():
                        if ks > p.k or (ks > 1 and p.batch * am * an * (ks // 2) >= ENOUGH * part.clusters * own):
                            break
                        yield _option(p, part, (down, across, own), (mt, nt, am, an), flow, kc, ks, shared)


def _option(
    p: Product,
    part: ClusterPart,
    split: tuple[int, int, int],
    tile: tuple[int, int, int, int],
    flow: Flow,
    kc: int,
    ks: int,
    shared: tuple[float, int, int],
) -> ClusterOption:
    (down, across, own), (mt, nt, am, an), (reads, gm, gn) = split, tile, shared
    bm, bn, kt = min(p.m, down * mt), min(p.n, across * nt), _up(p.k, ks)
    deep, e, outputs = min(kc, kt), float(p.element_bytes), float(p.batch) * p.m * p.n
    array = _as_array(part)
    count = p.batch * am * an * ks
    waves = float(_up(_up(count, own), part.clusters))
    made = float(bm) * bn * own
    written, asked = made * (e if ks == 1 else 2.0 * SUM_BYTES), e * kt * (float(bm) + bn) * own
    drain = LATENCY_CYCLES + 2 * part.rows + part.columns - 2 + written / part.port
    each = array_cycles(flow, mt, nt, kt, deep, array) + (0.0 if 8.0 * made <= part.sum_bytes else drain)
    moved = core_bytes(flow, mt, nt, kt, deep, p, array)
    feed = 2.0 * part.rows + 6.0 * part.columns
    writes = outputs * e + (0.0 if ks == 1 else 2.0 * SUM_BYTES * ks * outputs)
    return ClusterOption(
        flow, down, across, own, mt, nt, deep, ks, gm, gn,
        array_cycles=(waves * each + drain) / SUSTAINED_SHARE,
        core_cycles=max(waves * moved / feed, waves * max(asked, written) / part.port),
        edge_bytes=float(count) * (down * across) * moved,
        port_bytes=float(count) * (e * kt * (float(bm) + bn)),
        global_bytes=reads + writes,
    )  # fmt: skip


def _as_array(part: ClusterPart) -> TensorPart:
    """One array, for the formulas of gemm.py that look at its sides alone."""
    return TensorPart(1, part.rows, part.columns, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


def _cost(core: ClusterOption, chip: GlobalOption, part: ClusterPart) -> ClusterCost:
    moved = core.global_bytes + chip.sums_bytes
    shared, hbm = moved / part.width, chip.hbm_bytes / part.hbm_bytes_per_cycle
    return ClusterCost(core, chip, max(core.busy_cycles, shared, hbm), shared, hbm, chip.hbm_bytes, moved)


def no_tile(part: ClusterPart) -> InputError:
    """The sentence for buffers that hold no tile at all."""
    return InputError(
        "clusters.operand_buffer",
        f"{part.operand_bytes:.0f} bytes hold no tile of {part.arrays} arrays of {part.rows} x {part.columns}",
        f"give at least {4 * part.arrays * (part.rows + part.columns)} bytes",
    )


def best(p: Product, part: ClusterPart) -> ClusterCost:
    """The mapping of least cycles, by trying every pair of choices; the product must not be empty."""
    return _least(p, part, cluster_options(p, part))


def best_by_front(p: Product, part: ClusterPart) -> ClusterCost:
    """As :func:`best`, over the undominated choices of the cluster side alone; for a product or two without compiling.

    A choice that is neither busier nor moves more than another makes a pair that is no worse, with every global side.
    """
    front: list[ClusterOption] = []
    for new in cluster_options(p, part):
        busy, moved = new.busy_cycles, new.global_bytes
        if not any(old.busy_cycles <= busy and old.global_bytes <= moved for old in front):
            front = [old for old in front if old.busy_cycles < busy or old.global_bytes < moved]
            front.append(new)
    return _least(p, part, front)


def _least(p: Product, part: ClusterPart, cores: Iterable[ClusterOption]) -> ClusterCost:
    found: tuple[tuple[float, float, float, float], ClusterCost] | None = None
    sides = list({(o.hbm_bytes, o.sums_bytes): o for o in reversed([*global_options(p, part.global_bytes)])}.values())
    once = p.a_bytes + p.b_bytes + p.c_bytes
    for core in cores:
        through = GlobalOption("through", 0, 0, 0, False, max(core.global_bytes, once), 0.0)
        for side in (*reversed(sides), through):
            cost = _cost(core, side, part)
            key = (cost.cycles, cost.hbm_bytes, cost.global_bytes, core.busy_cycles)
            if found is None or key < found[0]:
                found = (key, cost)
    if found is None:
        raise no_tile(part)
    return found[1]
