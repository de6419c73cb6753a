"""Two grids over the same ranks, their groups in the levels of a cluster, all against lists of
ranks."""

from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Literal

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from phaze.cost.ranks import Axis, Degrees, Divided, GridOrder, members_by_level, require_divided
from phaze.errors import InputError
from phaze.hardware.cluster import Cluster, cluster_of, switch_level

Sync = Literal["dense", "expert"]
two = st.sampled_from((1, 2, 4))
orders: st.SearchStrategy[GridOrder] = st.sampled_from(("data", "pipeline"))


@dataclass(frozen=True, slots=True)
class Grids(Degrees):
    """Degrees with both grids over their ranks, place by place, and the axes of every group."""

    @property
    def expert_data(self) -> int:
        """e: ranks that hold the same experts and reduce their gradients."""
        return self.width * self.data // (self.expert * self.expert_tensor)

    @property
    def ranks(self) -> int:
        return self.width * self.stages * self.data

    def dense_rank(self, stage: int, replica: int, context: int, tensor: int) -> int:
        """The rank at a place of the dense grid."""
        first = (
            stage * self.data + replica if self.order == "data" else replica * self.stages + stage
        )
        return (first * self.context + context) * self.tensor + tensor

    def expert_rank(self, stage: int, sharer: int, expert: int, part: int) -> int:
        """The rank at a place of the expert grid; ``sharer`` runs through the ranks with the same
        experts."""
        inside = (sharer * self.expert + expert) * self.expert_tensor + part
        if self.order == "data":
            return stage * self.data * self.width + inside
        replica, place = divmod(inside, self.width)
        return (replica * self.stages + stage) * self.width + place

    @property
    def tensor_axes(self) -> tuple[Axis, ...]:
        return ((1, self.tensor),)

    @property
    def context_axes(self) -> tuple[Axis, ...]:
        return ((self.tensor, self.context),)

    @property
    def expert_axes(self) -> tuple[Axis, ...]:
        return ((self.expert_tensor, self.expert),)

    @property
    def expert_tensor_axes(self) -> tuple[Axis, ...]:
        return ((1, self.expert_tensor),)

    def sync_axes(self, what: Sync) -> tuple[Axis, ...]:
        """Ranks that hold the same weights of that kind, over which their gradients are reduced."""
        stride = self.tensor if what == "dense" else self.expert * self.expert_tensor
        inner = self.width // stride
        if self.order == "data":
            return ((stride, self.width * self.data // stride),)
        return (stride, inner), (self.width * self.stages, self.data)


@st.composite
def degrees(draw: st.DrawFn) -> Grids:
    t, c, stages, d, p, x = (draw(two) for _ in range(6))
    try:
        return Grids(t, c, stages, d, p, x, draw(orders))
    except InputError:
        assume(False)
        raise


def _cluster(sizes: tuple[int, ...]) -> Cluster:
    levels = tuple(switch_level(f"l{i}", size, 1e9, 1e-6) for i, size in enumerate(sizes))
    return cluster_of("made", "made", levels)


def _groups(axes: tuple[Axis, ...], ranks: int) -> list[set[int]]:
    """The group of every rank that lies at the origin of all axes."""
    firsts = [r for r in range(ranks) if all(r // stride % count == 0 for stride, count in axes)]
    steps = [range(0, stride * count, stride) for stride, count in axes]
    return [{first + sum(offset) for offset in product(*steps)} for first in firsts]


def _listed(group: set[int], sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Members of a group that meet at each level, by counting."""
    found, unit, met = [], 1, 1
    for size in sizes:
        unit *= size
        first = min(group) // unit
        inside = sum(rank // unit == first for rank in group)
        found.append(inside // met)
        met = inside
    return tuple(found)


@given(degrees())
def test_both_grids_number_every_rank_once(job: Grids) -> None:
    dense = product(range(job.stages), range(job.data), range(job.context), range(job.tensor))
    expert = product(
        range(job.stages), range(job.expert_data), range(job.expert), range(job.expert_tensor)
    )
    assert sorted(job.dense_rank(*place) for place in dense) == list(range(job.ranks))
    assert sorted(job.expert_rank(*place) for place in expert) == list(range(job.ranks))


@given(degrees())
def test_both_grids_agree_on_the_stage_of_a_rank(job: Grids) -> None:
    dense = {
        job.dense_rank(s, r, c, t): s
        for s, r, c, t in product(
            range(job.stages), range(job.data), range(job.context), range(job.tensor)
        )
    }
    for s, e, p, x in product(
        range(job.stages), range(job.expert_data), range(job.expert), range(job.expert_tensor)
    ):
        assert dense[job.expert_rank(s, e, p, x)] == s


@given(degrees())
def test_a_group_is_what_its_coordinates_run_through(job: Grids) -> None:
    t, c, x, p = job.tensor, job.context, job.expert_tensor, job.expert
    for s, r in product(range(job.stages), range(job.data)):
        tensor = {job.dense_rank(s, r, 0, i) for i in range(t)}
        context = {job.dense_rank(s, r, i, 0) for i in range(c)}
        assert tensor in _groups(job.tensor_axes, job.ranks)
        assert context in _groups(job.context_axes, job.ranks)
    for s, e in product(range(job.stages), range(job.expert_data)):
        assert {job.expert_rank(s, e, i, 0) for i in range(p)} in _groups(
            job.expert_axes, job.ranks
        )
        assert {job.expert_rank(s, e, 0, i) for i in range(x)} in _groups(
            job.expert_tensor_axes, job.ranks
        )
    for s, i in product(range(job.stages), range(t)):
        same = {job.dense_rank(s, r, j, i) for r, j in product(range(job.data), range(c))}
        assert same in _groups(job.sync_axes("dense"), job.ranks)
    for s, i, j in product(range(job.stages), range(p), range(x)):
        same = {job.expert_rank(s, e, i, j) for e in range(job.expert_data)}
        assert same in _groups(job.sync_axes("expert"), job.ranks)


@given(degrees(), st.lists(two, min_size=1, max_size=3))
def test_members_by_level_are_those_that_lists_of_ranks_count(job: Grids, inner: list[int]) -> None:
    sizes = (*inner, max(1, -(-job.ranks // prod(inner))))
    cluster = _cluster(sizes)
    kinds = (job.tensor_axes, job.context_axes, job.expert_axes, job.expert_tensor_axes)
    for axes in (*kinds, job.sync_axes("dense"), job.sync_axes("expert")):
        for group in _groups(axes, job.ranks):
            assert members_by_level(cluster, axes) == _listed(group, sizes)


@given(st.integers(1, 12), st.integers(1, 40), st.lists(st.integers(1, 9), min_size=1, max_size=3))
def test_members_of_any_group_make_up_at_least_the_group(
    stride: int, count: int, sizes: list[int]
) -> None:
    cluster = _cluster((*sizes, stride * count))
    assert prod(members_by_level(cluster, ((stride, count),))) >= count


@given(degrees())
def test_ranks_that_share_experts_are_all_of_a_stage(job: Grids) -> None:
    assert job.expert * job.expert_tensor * job.expert_data == job.width * job.data


MODEL = Divided(sequence=4096, heads=32, kv_heads=4, experts=128, expert_mlp=768)


@pytest.mark.parametrize(
    ("values", "key"),
    [
        ({"data": 3, "expert": 2}, "expert"),
        ({"tensor": 2, "data": 4, "expert": 4, "order": "pipeline"}, "expert"),
        ({"context": 0}, "context"),
    ],
)
def test_degrees_that_share_no_ranks_are_refused(values: dict[str, int], key: str) -> None:
    with pytest.raises(InputError, match=key):
        Degrees(**values)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("job", "model", "sharded", "way", "words"),
    [
        (Degrees(data=3, expert=3), MODEL, False, "ring", "128 experts do not divide by 3"),
        (Degrees(data=5, expert_tensor=5), MODEL, False, "ring", "width 768 does not divide by 5"),
        (Degrees(tensor=2, expert=2), MODEL, False, "ring", "needs it"),
        (Degrees(data=2, expert=2), Divided(4096), False, "ring", "the model has none"),
        (Degrees(context=3), MODEL, False, "ring", "6 chunks"),
        (Degrees(tensor=3, context=8), MODEL, True, "ring", "512 positions"),
        (
            Degrees(tensor=4, context=16),
            MODEL,
            True,
            "ulysses",
            "8 heads of a rank do not divide by 16",
        ),
    ],
)
def test_a_model_that_degrees_do_not_divide_is_refused_in_a_sentence(
    job: Degrees, model: Divided, sharded: bool, way: str, words: str
) -> None:
    with pytest.raises(InputError, match=words):
        require_divided(job, model, sharded, way)


def test_degrees_of_published_runs_are_allowed() -> None:
    require_divided(Degrees(tensor=1, data=16, expert=16), MODEL, False)
    require_divided(Degrees(tensor=4, context=8, data=2, expert=64), MODEL, True, "ring")
