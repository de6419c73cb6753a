"""The formulas of collectives in docs/cost.md are those of the code, within one switch of bundled
clusters."""

from collections.abc import Callable

import pytest

from phaze.cost.collective import KINDS, ways
from phaze.hardware.library import load_cluster
from phaze.values import replace
from tests.formulas.stated import evaluate, formulas

STATED = formulas("cost.md", "Collectives")
# Which formula gives which algorithm of which collective.
NAMED = {
    ("all_reduce", "ring"): "ring",
    ("all_reduce", "halving-doubling"): "halving-doubling",
    ("all_reduce", "tree"): "tree",
    ("all_reduce", "in-switch"): "in-switch",
    ("all_reduce", "small"): "small",
    ("all_gather", "ring"): "gather",
    ("reduce_scatter", "ring"): "gather",
    ("all_to_all", "direct"): "all-to-all",
    ("point_to_point", "direct"): "point-to-point",
}


@pytest.mark.parametrize("name", ["dgx-h100", "selene", "nvl72"])
def test_every_algorithm_within_a_switch_takes_what_the_document_says(name: str) -> None:
    cluster = replace(load_cluster(name), library="any")
    level = cluster.levels[0]
    constants = level.constants("calibrated")
    step = level.latency_s / 4 if constants.small_step_s is None else constants.small_step_s
    seen = set()
    for ranks in (2, 4, 8):
        for size in (4096.0, 3e6, 5e9):
            names: dict[str, float | Callable[..., float]] = {
                "S": size, "n": ranks, "s": constants.start_s, "a": level.latency_s,
                "d": constants.piece_s,
                "B": constants.share * level.bandwidth_bytes_per_s,
                "local": constants.local_bytes_per_s,
                "in-switch rate": constants.in_switch_share * level.bandwidth_bytes_per_s,
                "small start": constants.small_start_s, "small step": step,
                "small rate": constants.small_share * level.bandwidth_bytes_per_s,
            }  # fmt: skip
            names["f"] = evaluate(STATED["f"], names)
            names["pieces"] = lambda wire, known=dict(names): evaluate(
                STATED["pieces(W)"], known | {"W": wire}
            )
            for kind in KINDS:
                for way in ways(kind, size, ranks, cluster):
                    stated = NAMED.get((kind, way.way))
                    if stated is not None:
                        seen.add(stated)
                        assert evaluate(STATED[stated], names) == pytest.approx(
                            way.time_s, rel=1e-9
                        ), (kind, way)
    assert set(STATED) - {"f", "pieces(W)"} - seen <= {"in-switch", "small"}
    if name == "dgx-h100":
        assert set(STATED) - {"f", "pieces(W)"} == seen


def test_a_ring_over_two_levels_has_the_bandwidth_of_the_document() -> None:
    cluster = load_cluster("dgx-h100")
    node, fabric = cluster.levels
    shares = [level.constants("calibrated").share for level in (node, fabric)]
    rate = min(shares[0] * node.bandwidth_bytes_per_s, 8 * shares[1] * fabric.bandwidth_bytes_per_s)
    size, ranks = 8e9, 64
    (ring,) = (way for way in ways("all_reduce", size, ranks, cluster) if way.way == "ring")
    outer = fabric.constants("calibrated")
    wire = 2 * (ranks - 1) / ranks * size / rate
    names = {"d": outer.piece_s, "W": wire}
    latency = outer.start_s + 2 * (ranks - 1) * fabric.latency_s
    local = size / outer.local_bytes_per_s
    assert ring.time_s == pytest.approx(
        latency + evaluate(STATED["pieces(W)"], names) + local, rel=1e-9
    )
