"""The least that is kept, against every subset of small networks."""

import random
from itertools import combinations

import pytest

from phaze.graph.saved.cut import least_kept

Network = tuple[list[int], set[int], set[int], dict[int, list[int]], dict[int, int]]


def network(seed: int) -> Network:
    """A random graph of tensors in a runnable order: wanted, sources, what each is made from,
    sizes."""
    rng = random.Random(seed)
    n = rng.randint(1, 9)
    made = {t: sorted(rng.sample(range(t), rng.randint(0, min(t, 3)))) for t in range(n)}
    sources = {t for t in range(n) if (not made[t] and rng.random() < 0.8) or rng.random() < 0.3}
    wanted = {t for t in range(n) if rng.random() < 0.4}
    return list(range(n)), wanted, sources, made, {t: rng.randint(1, 6) for t in range(n)}


def enough(kept: set[int], wanted: set[int], sources: set[int], made: dict[int, list[int]]) -> bool:
    """Whether everything wanted is kept or can be made from what is: sources are not there unless
    kept."""

    def there(tensor: int) -> bool:
        return tensor in kept or (
            tensor not in sources and all(there(operand) for operand in made[tensor])
        )

    return all(there(tensor) for tensor in wanted)


@pytest.mark.parametrize("seed", range(300))
def test_no_set_of_fewer_bytes_is_enough(seed: int) -> None:
    tensors, wanted, sources, made, size = network(seed)
    found = least_kept(wanted, sources, made, size)
    assert enough(set(found), wanted, sources, made)
    least = min(
        sum(size[t] for t in kept)
        for count in range(len(tensors) + 1)
        for kept in combinations(tensors, count)
        if enough(set(kept), wanted, sources, made)
    )
    assert sum(size[t] for t in found) == least


def test_of_equal_cuts_the_one_nearest_to_what_is_wanted_is_kept() -> None:
    assert least_kept({2}, {0}, {0: [], 1: [0], 2: [1]}, {0: 4, 1: 4, 2: 4}) == {2}


def test_what_comes_from_nothing_costs_nothing() -> None:
    assert least_kept({1}, set(), {0: [], 1: [0]}, {0: 4, 1: 4}) == frozenset()
