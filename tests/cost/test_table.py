"""From a graph to tables: works, residency, one core and all cores, energy and power, over one chip
and many."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phaze.cost.accuracy import block_works
from phaze.cost.chip_set import ChipSet, chip_set
from phaze.cost.energy import energies, layer_power
from phaze.cost.mapping import NEVER, product
from phaze.cost.memory import held_bytes, state_of
from phaze.cost.residency import needs_of
from phaze.cost.table import cost_table, cost_works
from phaze.cost.vector import Moved, VectorWork
from phaze.cost.work import Work, works_of
from phaze.errors import InputError
from phaze.graph.ir import Access, Operator, OperatorGraph, Tensor
from phaze.hardware.bundled import preset_names
from phaze.hardware.calibration import DATASHEET, IDEAL
from phaze.hardware.columns import columns_of
from phaze.hardware.library import load_chip
from phaze.hardware.technology import load_technology
from phaze.values import replace
from tests.hardware.chips import areas_in

KIB = 1024


def tensor(number: int, kib: int, role: Any = "intermediate") -> Tensor:
    return Tensor(number, kib * KIB // 2, 2, role)


def chain() -> OperatorGraph:
    """x -> gelu -> y -> product with w -> z -> (z, y) added -> out, sizes in KiB: x y z out 512, w
    512."""
    tensors = (
        tensor(0, 512, "input"),
        tensor(1, 512),
        tensor(2, 512, "parameter"),
        tensor(3, 512),
        tensor(4, 512),
    )
    a = {t.id: Access(t.id, t.bytes) for t in tensors}
    n = 512
    operators = (
        Operator(0, "gelu", "vector", (("elements", n * n),), (a[0],), (a[1],)),
        Operator(
            1,
            "product",
            "tensor",
            (("batch", 1), ("m", n), ("n", n), ("k", n)),
            (a[1], a[2]),
            (a[3],),
        ),
        Operator(2, "add", "vector", (("elements", n * n),), (a[3], a[1]), (a[4],)),
    )
    return OperatorGraph(tensors, operators, (0, 2), (4,))


def fused() -> OperatorGraph:
    """The product and the addition of :func:`chain` as one operator of both cores."""
    graph = chain()
    gelu, matrix, add = graph.operators
    one = Operator(
        1, "fused", "both", (), (matrix.reads[0], matrix.reads[1]), add.writes, "", (matrix, add)
    )
    return replace(graph, operators=(gelu, one))


def test_needs_count_what_was_touched_in_between() -> None:
    gelu, matrix, add = needs_of(chain())
    assert gelu.reads == (NEVER,)
    assert matrix.reads == (512 * KIB, NEVER)
    assert add.reads == (512 * KIB, 4 * 512 * KIB - 512 * KIB)
    assert gelu.writes == (3 * 512 * KIB,)
    assert matrix.writes == (512 * KIB,)
    assert add.writes == (NEVER,)


def test_without_residency_everything_goes_through_hbm() -> None:
    assert all(
        need == NEVER
        for op in needs_of(chain(), residency=False)
        for need in (*op.reads, *op.writes)
    )
    chip = chip_set([load_chip("tpu-v4", form="cores")])
    with_, without = (cost_table(works_of(chain(), flag), chip, IDEAL) for flag in (True, False))
    assert with_.all_cores.times_s().sum() < without.all_cores.times_s().sum()
    assert with_.all_cores.hbm_bytes(0)[0] == 512 * KIB
    assert without.all_cores.hbm_bytes(0)[0] == 2 * 512 * KIB


def test_a_larger_global_buffer_keeps_more() -> None:
    chip = load_chip("tpu-v4", form="cores")
    sizes = (512 * KIB, 2 * 512 * KIB, 8 * 512 * KIB, 64 * 512 * KIB)
    chips = chip_set(
        [replace(chip, global_buffer=replace(chip.global_buffer, size_bytes=s)) for s in sizes]
    )
    moved = [cost_works([w], chips, IDEAL).hbm_bytes(0) for w in works_of(chain())]
    total = np.sum(moved, axis=0)
    assert list(total) == sorted(total, reverse=True)
    assert total[-1] == 3 * 512 * KIB


def test_an_epilogue_runs_beside_its_product_and_costs_its_elements() -> None:
    work = works_of(fused())[1]
    assert work.core == "both"
    assert work.vector is not None
    assert (work.vector.elements, work.vector.operations) == (512 * 512, 1.0)
    assert work.products[0].c_bytes == 512 * KIB
    chip = load_chip("tpu-v4", form="cores")
    slow = replace(chip, vectors=replace(chip.vectors, count=1, lanes=1))
    times = cost_works([work], chip_set([chip, slow]), IDEAL).time_s(0)
    assert (
        times[0] < cost_table(works_of(chain()), chip_set([chip]), IDEAL).all_cores.times_s().sum()
    )
    assert times[1] >= 512 * 512 / 1.05e9


def test_a_paired_operator_has_the_smaller_number_of_cores() -> None:
    chip = load_chip("tpu-v4", form="cores")
    table = cost_table(works_of(fused()), chip_set([chip]), IDEAL)
    two = cost_works(
        works_of(fused()),
        chip_set([replace(chip, clusters=replace(chip.clusters, count=2))]),
        IDEAL,
    )
    assert table.spread_s(1, paired=True)[0] == two.time_s(1)[0]
    assert table.spread_s(1, paired=False)[0] == table.all_cores.time_s(1)[0]


SIZES = {"hidden": 1024, "heads": 16, "sequence": 512, "microbatch": 2, "tensor": 1}
BLOCK = [work for works in block_works(SIZES) for work in works]


def test_equal_works_are_costed_once() -> None:
    table = cost_table([*BLOCK, *BLOCK], chip_set([load_chip("tpu-v4-paper", form="cores")]), IDEAL)
    assert len(table.works) <= len(BLOCK)
    assert [table.works[row] for row in table.rows] == [*BLOCK, *BLOCK]


@pytest.mark.parametrize("name", preset_names("chips"))
def test_all_cores_are_never_slower_than_one(name: str) -> None:
    table = cost_table(BLOCK, chip_set([load_chip(name, form="cores")]), DATASHEET)
    assert (table.all_cores.times_s() <= table.one_core.times_s() * (1 + 1e-12)).all()


def test_doubling_each_field_of_a_chip_changes_some_answer() -> None:
    base = columns_of([load_chip("tpu-v4-paper", form="cores")])
    copy = Work(
        "vector",
        vector=VectorWork(2**24, 0, 0.0, 1, (Moved(2.0**25, 2.0**26 + 1),), (Moved(2.0**25),)),
    )
    many = Work("tensor", (replace(product(1, 2048, 2048, 2048), a_need_bytes=2.0**26 + 1),))
    wide = Work(
        "vector", vector=VectorWork(2**24, 2**15, 7.0, 2, (Moved(2.0**25),), (Moved(2.0**25),))
    )
    works = [*BLOCK, copy, many, wide, Work("tensor", (product(1, 8192, 8192, 65536),))]
    starved: tuple[dict[str, float], ...] = (
        {},
        {"hbm_bytes_per_s": 5e10},
        {"width": 100.0},
        {"operand_bytes_per_cycle": 1.0},
        {"register_bytes_per_cycle": 1.0},
    )
    counted = (
        "clusters", "rows", "columns", "vectors", "lanes", "operand_bytes",
        "operand_bytes_per_cycle", "register_bytes",
        "register_bytes_per_cycle", "global_bytes", "width", "hbm_bytes_per_s", "clock_hz",
    )  # fmt: skip
    none = np.zeros(1)
    for field in counted:
        changed = False
        for rates in starved:
            starving: dict[str, Any] = {name: np.array([rate]) for name, rate in rates.items()}
            before = replace(base, **starving)
            after = replace(before, **{field: getattr(before, field) * 2})
            sets = (ChipSet(chips, chips.clock_hz, none, none) for chips in (before, after))
            a, b = (cost_works(works, chips, IDEAL).times_s() for chips in sets)
            changed = changed or bool((a != b).any())
        assert changed, field


def test_nothing_to_do_takes_no_time() -> None:
    table = cost_table([], chip_set([load_chip("tpu-v4", form="cores")]), DATASHEET)
    assert table.all_cores.times_s().shape == (0, 1)


def test_many_chips_get_what_each_gets_alone() -> None:
    chips = [
        load_chip(name, form="cores")
        for name in ("tpu-v4", "a100-80gb", "tpu-v4-paper", "h100", "tpu-v4")
    ]
    together = cost_works(BLOCK, chip_set(chips), DATASHEET).times_s()
    for index, chip in enumerate(chips):
        alone = cost_works(BLOCK, chip_set([chip]), DATASHEET).times_s()[:, 0]
        assert np.array_equal(together[:, index], alone)


@settings(max_examples=40)
@given(
    st.integers(1, 2000),
    st.integers(1, 2000),
    st.integers(1, 2000),
    st.sampled_from(["tpu-v4", "a100-80gb"]),
)
def test_energy_is_never_below_its_compulsory_part(m: int, n: int, k: int, name: str) -> None:
    chip = load_chip(name, form="cores")
    assert chip.technology is not None
    technology = load_technology(chip.technology)
    chips = chip_set([chip])
    p = product(1, m, n, k)
    spent = energies(cost_works([Work("tensor", (p,))], chips, DATASHEET), 0, chips, technology)
    table = technology.energy
    compulsory = p.macs * table.mac_j + (p.a_bytes + p.b_bytes + p.c_bytes) * table.hbm_j_per_byte
    assert spent.total()[0] >= compulsory * (1 - 1e-12)
    assert spent.total()[0] == pytest.approx(sum(spent.by_component().values()))


def test_a_layer_draws_between_static_and_design_power() -> None:
    chip = load_chip("tpu-v4", form="cores")
    technology = load_technology("n7")
    area = np.array([areas_in(technology, chip).total])
    works, _ = block_works(SIZES | {"hidden": 4096, "heads": 32, "sequence": 2048})
    column = cost_works(works, chip_set([chip]), DATASHEET)
    static_w = technology.energy.static_w_per_mm2 * area
    power = layer_power(column, range(len(works)), chip_set([chip]), technology, static_w)
    assert static_w[0] < power.average_w[0] <= power.peak_w[0] < 400
    assert power.energy_j[0] == pytest.approx(power.average_w[0] * column.times_s().sum())


def test_the_energy_of_a_vector_operator_follows_its_formula() -> None:
    chips, technology = (
        chip_set([load_chip("a100-80gb", form="cores"), load_chip("tpu-v4", form="cores")]),
        load_technology("n7"),
    )
    area, table = np.array([800.0, 600.0]), technology.energy
    work = VectorWork(3_000_000, 0, 7.0, 1, (Moved(6e6),), (Moved(6e6),))
    column = cost_works([Work("vector", (), work)], chips, DATASHEET)
    spent = energies(column, 0, chips, technology)
    assert spent.vector_units == pytest.approx(7.0 * 3_000_000 * table.lane_j)
    assert spent.vector_buffers == pytest.approx(
        2 * 12e6 * table.core_buffer_j_per_byte(chips.columns.register_bytes)
    )
    assert spent.hbm == pytest.approx(12e6 * table.hbm_j_per_byte)
    assert spent.tensor_arrays == pytest.approx(0.0)
    assert spent.tensor_buffers == pytest.approx(0.0)
    static_w = table.static_w_per_mm2 * area
    power = layer_power(column, [0, 0], chips, technology, static_w)
    watts = spent.total() / column.time_s(0) + static_w
    assert power.average_w == pytest.approx(watts)
    assert power.peak_w == pytest.approx(watts)


def test_a_layer_of_nothing_draws_no_power() -> None:
    chips, technology = chip_set([load_chip("a100-80gb", form="cores")]), load_technology("n7")
    column = cost_works([Work("vector", (), VectorWork(0, 0, 1.0, 1, (), ()))], chips, IDEAL)
    power = layer_power(column, [0], chips, technology, np.array([80.0]))
    assert column.time_s(0).tolist() == [0.0]
    assert (power.average_w.tolist(), power.peak_w.tolist()) == ([0.0], [0.0])


def test_memory_by_precision_optimizer_and_zero() -> None:
    assert state_of("bf16", "adam").total == 18
    assert state_of("fp32", "adam").total == 16
    assert state_of("fp8", "sgd").total == 11
    assert state_of("bf16", "adam", 20.0).optimizer == 14
    assert state_of("bf16", "adam", 4.0).gradient == 2
    with pytest.raises(InputError, match="do not hold a weight"):
        state_of("bf16", "adam", 1.0)
    held = [held_bytes(1e9, state_of("bf16", "adam"), zero, 4) for zero in (0, 1, 2, 3)]
    assert held == [18e9, 9e9, 6e9, 4.5e9]
    with pytest.raises(InputError, match="4 is not a stage"):
        held_bytes(1, state_of("bf16", "adam"), 4, 2)
    with pytest.raises(InputError, match="out of range"):
        held_bytes(1, state_of("bf16", "adam"), 0, 0)
