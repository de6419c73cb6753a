"""The formulas of docs/cost.md and docs/silicon.md are those of the code: both are evaluated on
random products, parts and vector operators."""

from dataclasses import replace
from random import Random

import numpy as np
import pytest

from phaze.cost.gemm import best, core_options, global_options
from phaze.cost.mapping import CoreOption, Product, TensorPart, product
from phaze.cost.vector import Moved, VectorParts, VectorWork, lane_steps, sweep_vector
from phaze.hardware.chip_parts import LATENCY_CYCLES, SUSTAINED_SHARE
from tests.formulas.stated import cells, evaluate, formulas

PRODUCTS = formulas("cost.md", "Matrix products")
VECTORS = formulas("cost.md", "Vector operators")
MAPPING = formulas("silicon.md", "Mapping")


def _product(random: Random) -> Product:
    batch, m, n, k = (random.choice((1, 1, 3)), *(random.randint(1, 700) for _ in range(3)))
    return product(batch, m, n, k, random.choice((1, 2, 4)))


def _part(random: Random) -> TensorPart:
    return TensorPart(
        cores=random.choice((1, 4, 6, 64)),
        rows=random.choice((4, 16, 32)),
        columns=random.choice((8, 16, 64)),
        buffer_bytes=random.choice((2**14, 2**17)),
        buffer_bytes_per_s=random.uniform(1e10, 1e12),
        clock_hz=random.uniform(5e8, 2e9),
        global_bytes=random.choice((2**16, 2**19, 2**22)),
        global_bytes_per_s=random.uniform(1e10, 1e13),
        hbm_bytes_per_s=random.uniform(1e9, 1e12),
        block_cycles=random.choice((0.0, 7.0)),
    )


def _case(flow: str) -> str:
    """Which case of a formula a dataflow has."""
    return {"ws": " (2)", "is": " (3)"}.get(flow, "")


def _of_core(p: Product, part: TensorPart, core: CoreOption) -> dict[str, float]:
    """The names of the formulas for a choice of the core side, each from the document's own
    formulas."""
    rows, columns = (core.mt, core.nt) if core.flow != "os-nm" else (core.nt, core.mt)
    names: dict[str, float] = {
        "batch": p.batch, "m": p.m, "n": p.n, "k": p.k, "e": p.element_bytes, "mt": core.mt,
        "nt": core.nt,
        "ks": core.ks, "kt": -(-p.k // core.ks), "kc": core.kc, "gm": core.gm, "gn": core.gn,
        "T": part.cores,
        "R": part.rows, "C": part.columns, "k0": part.block_cycles, "rows": rows,
        "columns": columns,
        "utilisation": 1.0, "clock": part.clock_hz,
        "core buffer bandwidth": part.buffer_bytes_per_s,
        "global buffer bandwidth": part.global_bytes_per_s, "sums": 0.0,
    }  # fmt: skip
    for name in ("am", "an", "items", "waves", "visits", "depth", "blocks"):
        names[name] = evaluate(PRODUCTS[name], names)
    if rows <= part.rows and columns <= part.columns:
        names |= {"visits": 1, "depth": max(names["kt"], part.rows)}
    for name in ("cycles", "bytes"):
        names[name] = evaluate(PRODUCTS[name + _case(core.flow)], names)
    names["partial"] = evaluate(PRODUCTS["partial"], names) if core.ks > 1 else 0.0
    return names


@pytest.mark.parametrize("seed", range(6))
def test_every_choice_of_the_core_side_costs_what_the_document_says(seed: int) -> None:
    random = Random(seed)
    p, part = _product(random), _part(random)
    options = list(core_options(p, part))
    assert {option.flow for option in options} == {"os-mn", "os-nm", "ws", "is"}
    for core in random.sample(options, min(len(options), 60)):
        names = _of_core(p, part, core)
        assert evaluate(PRODUCTS["t_array"], names) == pytest.approx(core.array_s, rel=1e-12)
        assert evaluate(PRODUCTS["t_core"], names) == pytest.approx(core.core_s, rel=1e-12)
        stated_s = evaluate(PRODUCTS["t_global"], names)
        assert stated_s == pytest.approx(core.global_bytes / part.global_bytes_per_s, rel=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_blocks_in_the_global_buffer_fit_and_move_what_the_table_says(seed: int) -> None:
    random = Random(seed)
    p, part = _product(random), _part(random)
    rows = {
        "a": cells("cost.md", "a: Mg = 1, 2, 4 ... or m rows of A stay"),
        "b": cells("cost.md", "b: Ng = 1, 2, 4 ... or n columns of B stay"),
        "c": cells("cost.md", "c: Mg x Ng sums stay, A and B in slices of Kg"),
    }
    options = [option for option in global_options(p, part.global_bytes) if not option.resident]
    for option in options:
        whole = {"a": option.mg == p.m, "b": option.ng == p.n, "c": False}[
            option.order
        ] and p.batch == 1
        names: dict[str, float] = {
            "q": 1 if whole else 2, "e": p.element_bytes, "Mg": option.mg, "Ng": option.ng,
            "Kg": option.kg, "k": p.k,
            "m": p.m, "n": p.n, "batch": p.batch, "s": min(p.n if option.order == "a" else p.m, 64),
            "room": part.global_bytes, "a": p.a_bytes, "b": p.b_bytes, "c": p.c_bytes,
        }  # fmt: skip
        fits, moved, sums = rows[option.order]
        assert evaluate(fits.split(", ")[0], names) == 1.0
        assert evaluate(moved, names) == pytest.approx(option.hbm_bytes, rel=1e-12)
        assert evaluate(sums, names) == pytest.approx(option.sums_bytes, rel=1e-12)
    # The ladder ends where the document's condition does: the next step would not fit.
    for order, extent in (("a", p.m), ("b", p.n)):
        sizes = [
            option.mg if order == "a" else option.ng for option in options if option.order == order
        ]
        beyond = max(sizes, default=0)
        if 0 < beyond < extent:
            larger = min(2 * beyond, extent)
            names = {
                "q": 1 if larger == extent and p.batch == 1 else 2,
                "e": p.element_bytes,
                "k": p.k,
            }
            names |= {
                "Mg": larger,
                "Ng": larger,
                "s": min(p.n if order == "a" else p.m, 64),
                "room": part.global_bytes,
            }
            assert evaluate(rows[order][0].split(", ")[0], names) == 0.0


@pytest.mark.parametrize("seed", range(3))
def test_a_product_waits_for_the_slowest_of_the_four(seed: int) -> None:
    random = Random(seed)
    p, part = _product(random), _part(random)
    cost = best(p, part)
    names = _of_core(p, part, cost.core) | {
        "sums": cost.chip.sums_bytes,
        "HBM bytes": cost.hbm_bytes,
    }
    names |= {"share": 1.0, "HBM bandwidth": part.hbm_bytes_per_s, "start-up": 0.0}
    names |= {
        name: evaluate(PRODUCTS[name], names) for name in ("t_array", "t_core", "t_global", "t_hbm")
    }
    assert evaluate(PRODUCTS["time"], names) == pytest.approx(cost.time_s, rel=1e-12)


@pytest.mark.parametrize("seed", range(30))
def test_vector_operators_take_what_the_document_says(seed: int) -> None:
    random = Random(seed)
    elements = random.randint(1, 100_000)
    rows = random.choice((0, elements, random.randint(1, elements)))
    work = VectorWork(
        elements, rows, random.uniform(1, 9), 2, (Moved(random.uniform(0, 1e6)),), (Moved(3e4),)
    )
    cores, lanes, kept = (
        random.choice((1, 3, 16)),
        random.choice((8, 64, 512)),
        random.choice((256.0, 4e6)),
    )
    parts = VectorParts(
        *(np.array([value]) for value in (cores, lanes)),
        *(np.array([value]) for value in (1e11, kept, 1.3e9, 0.0, 4e11, 7e10)),
    )
    names: dict[str, float] = {
        "elements": elements, "rows": rows, "V": cores, "lanes": lanes,
        "operations": work.operations, "clock": 1.3e9,
        "reads": work.reads[0].bytes, "writes": 3e4,
        "passes": 2.0 if rows and 4 * elements / rows > kept else 1.0,
        "buffer bandwidth": 1e11, "global bandwidth": 4e11, "HBM bandwidth": 7e10, "share": 1.0,
        "start-up": 0.0,
    }  # fmt: skip
    if rows in (0, elements):
        names["steps"] = evaluate(VECTORS["steps"], names)
    else:
        names["L"] = -(-elements // rows)
        over = [
            evaluate(VECTORS["steps (3)"], names | {"w": w}) for w in (1, 2, 4, 8, 16) if w <= cores
        ]
        alone = [evaluate(VECTORS["steps (2)"], names)] if lanes >= names["L"] else []
        names["steps"] = min(over + alone)
    assert (
        names["steps"]
        == lane_steps(np.array([elements]), np.array([rows]), parts.cores, parts.lanes)[0, 0]
    )
    names["bytes"] = evaluate(VECTORS["bytes"], names)
    names |= {"HBM bytes": names["bytes"], "t_lanes": evaluate(VECTORS["t_lanes"], names)}
    cost = sweep_vector([work], parts)
    assert evaluate(VECTORS["time"], names) == pytest.approx(float(cost.time_s[0, 0]), rel=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_a_product_on_clusters_takes_what_the_document_says(seed: int) -> None:
    random = Random(seed)
    p = _product(random)
    columns = random.choice((16, 32))
    part = TensorPart(
        cores=random.choice((2, 7)), arrays=random.choice((1, 4)), rows=16, columns=columns,
        port_bytes_per_s=random.choice((64.0, 256.0)), buffer_bytes=2.0**16,
        buffer_bytes_per_s=32.0 + 6.0 * columns,
        sum_bytes=random.choice((2.0**13, 2.0**17)), fan_out=4, multicast=4,
        global_bytes_per_s=2000.0,
        global_bytes=2.0**20, hbm_bytes_per_s=500.0, clock_hz=1.0, sustained_share=SUSTAINED_SHARE,
        latency_cycles=LATENCY_CYCLES,
    )  # fmt: skip
    options = list(core_options(p, part))
    for core in [*random.sample(options, min(len(options), 60)), best(p, part).core]:
        bm, bn = core.mt, core.nt
        m1, n1 = -(-bm // core.down), -(-bn // core.across)
        array = TensorPart(part.cores, part.rows, part.columns, 0, 1, 1, 0, 1, 1)
        names = _of_core(p, array, replace(core, mt=m1, nt=n1))
        names |= {
            "bm": bm,
            "bn": bn,
            "teams": core.teams,
            "p": part.port_bytes_per_s,
            "N": part.cores,
            "array cycles": names["cycles"],
        }
        names |= {"am": -(-p.m // (core.down * m1)), "an": -(-p.n // (core.across * n1))}
        for name in ("asked", "written", "drain", "waves"):
            names[name] = (
                evaluate(MAPPING[name], names)
                if name != "written" or core.ks == 1
                else 8.0 * bm * bn * core.teams
            )
        names["each"] = evaluate(
            MAPPING["each" if 8 * bm * bn * core.teams <= part.sum_bytes else "each (2)"], names
        )
        names["feed"] = evaluate(MAPPING["feed"], names)
        assert evaluate(MAPPING["busy"], names) == pytest.approx(core.busy_s, rel=1e-12)
    cost = best(p, part)
    names = {
        "busy": cost.core.busy_s,
        "f": 1.0,
        "global bytes": cost.global_bytes,
        "w": part.global_bytes_per_s,
    }
    names |= {"HBM bytes": cost.hbm_bytes, "H": part.hbm_bytes_per_s}
    assert evaluate(MAPPING["time"], names) == pytest.approx(cost.time_s, rel=1e-12)


def test_every_formula_of_these_sections_is_evaluated() -> None:
    assert set(PRODUCTS) == {
        "time", "am", "an", "items", "waves", "visits", "depth", "blocks", "cycles", "cycles (2)",
        "cycles (3)",
        "t_array", "bytes", "bytes (2)", "bytes (3)", "t_core", "partial", "t_global", "t_hbm",
    }  # fmt: skip
    assert set(VECTORS) == {"t_lanes", "steps", "steps (2)", "steps (3)", "bytes", "time"}
    assert set(MAPPING) == {
        "asked",
        "written",
        "drain",
        "each",
        "each (2)",
        "waves",
        "feed",
        "busy",
        "time",
    }
