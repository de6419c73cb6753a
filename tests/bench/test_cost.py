"""How long costs take over the paper's 29,360 chips, warm; printed beside the budget, not
judged."""

import resource
import time
from collections.abc import Callable

from phaze.cost.chip_set import ChipSet
from phaze.cost.mapping import product
from phaze.cost.parts import tensor_parts
from phaze.cost.products import map_product, sweep_products
from phaze.cost.table import cost_table
from phaze.cost.work import Work, works_of
from phaze.graph.fuse import fuse
from phaze.graph.zoo import load_model
from phaze.hardware.calibration import IDEAL
from phaze.hardware.library import load_chip
from phaze.search.chips import enumerate_space
from tests.search.made import core_space


def paper_chips() -> ChipSet:
    """The paper's space as the cost room sees it."""
    return enumerate_space(core_space("paper")).arrays()


def best_of(count: int, run: Callable[[], object]) -> tuple[float, float]:
    """The least seconds of ``count`` runs after one that warms up: by the clock, and of the
    processor."""
    run()
    seconds = []
    for _ in range(count):
        start, begun = time.perf_counter(), time.process_time()
        run()
        seconds.append((time.perf_counter() - start, time.process_time() - begun))
    return min(s for s, _ in seconds), min(s for _, s in seconds)


def model_works() -> list[Work]:
    """Every operator of GPT-3 175B, fused, both passes, at widths 1, 2, 4, 8 and microbatches 1, 2,
    4, 8."""
    works: list[Work] = []
    for width in (1, 2, 4, 8):
        for micro in (1, 2, 4, 8):
            model = fuse(load_model("gpt3-175b", width, micro), "full")
            works += [
                w
                for layer in model.layers
                for g in (layer.forward, layer.backward)
                for w in works_of(g)
            ]
    return works


def test_one_product_over_all_chips() -> None:
    chips = paper_chips()
    p = product(1, 4096, 12288, 4096)
    seconds, busy = best_of(
        5, lambda: sweep_products([p], tensor_parts(chips, IDEAL, "all_cores")[0])
    )
    print(
        f"one product on {len(chips):,} chips            {seconds:8.3f} s   ({busy:.3f} "
        "s of a core)   budget 0.1"
    )


def test_all_works_of_a_model_over_all_chips() -> None:
    chips, works = paper_chips(), model_works()

    def run() -> None:
        table = cost_table(works, chips, IDEAL)
        table.all_cores.times_s()
        table.one_core.times_s()

    seconds, busy = best_of(3, run)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    distinct = len(set(works))
    told = f"{distinct} works x {len(chips):,} chips, one and all cores"
    print(f"{told} {seconds:8.3f} s   ({busy:.3f} s of a core)   budget 5")
    print(f"memory of it                              {peak:8.3f} GiB budget 1")


def test_one_product_on_one_chip() -> None:
    from phaze.cost.mapped import part_of

    part = part_of(load_chip("tpu-v4"), IDEAL)
    seconds, _ = best_of(5, lambda: map_product(product(1, 4096, 12288, 4096), part))
    print(f"one product on one chip, with its mapping {seconds * 1e6:8.1f} us")
