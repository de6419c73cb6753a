"""Profiles that cannot be used are refused with the path of what is wrong."""

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from phaze.cost.memory import ParameterState
from phaze.errors import InputError
from phaze.hardware.library import load_stack
from phaze.placement.profile import problem_of

GOOD: dict[str, Any] = {
    "schema": "phaze.profile/1",
    "rules": "icml24",
    "devices": 4,
    "hbm_bytes": 100,
    "link_bytes_per_s": 1.5,
    "microbatches": 8,
    "optimizer": "sgd",
    "recompute": "best",
    "widths": {
        "2": {
            "layers": [
                {
                    "id": i,
                    "forward_s": 1,
                    "backward_s": 2.5,
                    "parameter_bytes": 3,
                    "activation_bytes": 4,
                    "sharded": True,
                }
                for i in (5, -1)
            ],
            "edges": [{"from": -1, "to": 5, "bytes": 7}],
        }
    },
}
LAYER = ("widths", "2", "layers", 1)


def _changed(path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    document = copy.deepcopy(GOOD)
    place: Any = document
    for key in path[:-1]:
        place = place[key]
    if value is KeyError:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return document


def test_a_profile_becomes_a_problem_in_topological_order() -> None:
    problem = problem_of(GOOD, "p")
    assert [layer.id for layer in problem.graphs[0].layers] == [-1, 5]
    assert (problem.graphs[0].edges[0].tail, problem.graphs[0].edges[0].head) == (0, 1)
    assert (problem.recompute, problem.hbm_bytes) == ("best", 100.0)


def test_ties_of_the_topological_order_go_by_id() -> None:
    document = _changed(("widths", "2", "edges"), [])
    assert [layer.id for layer in problem_of(document, "p").graphs[0].layers] == [-1, 5]


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (("widths",), {}, "p: widths: there is no tensor-parallel degree"),
        (("widths", "0"), GOOD["widths"]["2"], "'0' is not a tensor-parallel degree"),
        (("widths", "two"), GOOD["widths"]["2"], "'two' is not a tensor-parallel degree"),
        (("widths", "02"), GOOD["widths"]["2"], "'02' is not a tensor-parallel degree"),
        (
            ("widths", "4"),
            {"layers": GOOD["widths"]["2"]["layers"][:1], "edges": []},
            "p: widths.4.layers: layer -1",
        ),
        (("widths", "2", "layers"), [], "p: widths.2.layers: there is no layer"),
        (("widths", "2", "edges", 0, "to"), 9, r"p: widths.2.edges\[0\].to: there is no layer 9"),
        (
            ("widths", "2", "edges", 0, "from"),
            0,
            r"p: widths.2.edges\[0\].from: there is no layer 0",
        ),
        (("widths", "2", "edges", 0, "from"), 5, "cycle through or into layer 5"),
        (
            ("widths", "2", "edges"),
            [{"from": a, "to": 4 - a, "bytes": 1} for a in (-1, 5)],
            "cycle .*layer -1",
        ),
        ((*LAYER, "id"), 5, "the id 5 appears twice"),
        ((*LAYER, "forward_s"), float("nan"), r"p: widths.2.layers\[1\].forward_s: nan"),
        ((*LAYER, "forward_s"), float("inf"), r"p: widths.2.layers\[1\].forward_s: inf"),
        (("devices",), 10**30, "p: devices: a number beyond all bounds"),
    ],
)
def test_what_is_wrong_is_said_with_its_path(path: tuple[Any, ...], value: Any, said: str) -> None:
    with pytest.raises(InputError, match=said) as caught:
        problem_of(_changed(path, value), "p")
    assert "\n" not in str(caught.value)


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, Any], str]:
    def put(name: str, document: Any) -> str:
        path = tmp_path / name
        path.write_text(
            document if isinstance(document, str) else json.dumps(document), encoding="utf-8"
        )
        return str(path)

    return put


def test_place_answers_every_file_in_order(phaze: Any, write: Callable[[str, Any], str]) -> None:
    good = write("good.json", GOOD)
    tight = write("tight.json", _changed(("hbm_bytes",), 1))
    bad = write("bad.json", _changed(("devices",), 0))
    nan = write("nan.json", json.dumps(GOOD).replace("2.5", "NaN"))
    ran = phaze("place", good, tight, bad, nan, "missing.json", good, "--json")
    lines = [json.loads(line) for line in ran.out.splitlines()]
    assert ran.code == 2
    assert [line.get("feasible") for line in lines] == [True, False, None, None, None, True]
    assert "bad.json: devices: 0 is out of range" in lines[2]["error"]
    assert "NaN" in lines[3]["error"]
    assert "no such file" in lines[4]["error"]
    assert lines[0] == lines[5]
    assert ran.err.count("phaze: ") == 3


def test_exit_codes_say_whether_all_fit(phaze: Any, write: Callable[[str, Any], str]) -> None:
    good, tight = write("good.json", GOOD), write("tight.json", _changed(("hbm_bytes",), 1))
    assert phaze("place", good, "--json").code == 0
    assert phaze("place", tight, good, "--json").code == 3
    assert phaze("place", "--json").code == 2


def test_layers_that_branch_too_widely_are_said_with_their_file(
    phaze: Any, write: Callable[[str, Any], str]
) -> None:
    layer = GOOD["widths"]["2"]["layers"][0]
    layers = [{**layer, "id": i} for i in range(20)]
    edges = [{"from": 0, "to": i, "bytes": 1.0} for i in range(1, 20)]
    ran = phaze(
        "place",
        write("wide.json", _changed(("widths",), {"1": {"layers": layers, "edges": edges}})),
        "--json",
    )
    assert ran.code == 2
    assert "wide.json: widths.1.edges: the layers branch into more than 100,000 sets" in ran.err


def test_a_profile_may_come_from_standard_input(
    phaze: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    import io

    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(GOOD)))
    ran = phaze("place", "-", "--json")
    assert (ran.code, json.loads(ran.out)["feasible"]) == (0, True)


def test_a_person_sees_stages_and_where_the_time_goes(
    phaze: Any, write: Callable[[str, Any], str]
) -> None:
    ran = phaze("place", write("good.json", GOOD))
    assert ran.code == 0
    for word in (
        "step time",
        "nothing is faster",
        "stage",
        "memory",
        "Where the time goes",
        "exposed DP communication",
    ):
        assert word in ran.out
    assert max(map(len, ran.out.splitlines())) <= 80


def test_a_person_sees_what_would_make_it_fit(phaze: Any, write: Callable[[str, Any], str]) -> None:
    ran = phaze("place", write("tight.json", _changed(("hbm_bytes",), 1)))
    assert ran.code == 3
    for word in ("nothing fits", "fullest stage", "hbm", "microbatch", "does not help alone"):
        assert word in ran.out


CLUSTER: dict[str, Any] = {
    **{key: value for key, value in GOOD.items() if key != "link_bytes_per_s"},
    "rules": "cluster",
    "cluster": [
        {"name": "node", "kind": "switch", "size": 2, "bandwidth": "10 B/s", "latency": 0.1},
        {"name": "net", "kind": "switch", "size": 4, "bandwidth": 1, "latency": "1 s"},
    ],
    "stack": "ideal",
}


def test_a_profile_with_a_cluster_is_placed(phaze: Any, write: Callable[[str, Any], str]) -> None:
    ran = phaze("place", write("cluster.json", CLUSTER), "--json")
    document = json.loads(ran.out)
    assert (ran.code, document["rules"], document["feasible"]) == (0, "cluster", True)
    assert document["order"] in ("pipeline", "data")
    assert sum(document["breakdown"].values()) == pytest.approx(document["batch_s"], rel=1e-12)
    shown = phaze("place", write("cluster.json", CLUSTER))
    assert "nothing is faster" in shown.out
    assert max(map(len, shown.out.splitlines())) <= 80


def test_a_named_cluster_brings_its_stack_and_its_state() -> None:
    named = problem_of({**CLUSTER, "cluster": "selene", "stack": None, "optimizer": "adam"}, "p")
    assert (named.rules.reduction_cost, named.state) == (
        load_stack("megatron-2021").overlap.reduction.cost,
        ParameterState(2.0, 4.0, 12.0),
    )
    titan = problem_of(
        {**CLUSTER, "cluster": "selene", "stack": "torchtitan", "optimizer": "adam"}, "p"
    )
    assert titan.state == ParameterState(2.0, 4.0, 10.0)
    plain = problem_of({**CLUSTER, "precision": "fp32", "zero": 1, "schedule": "gpipe"}, "p")
    assert (plain.state, plain.sent_bytes, plain.zero) == (ParameterState(4.0, 4.0, 0.0), 4.0, 1)


def test_a_cluster_that_does_not_fit_is_a_shortage(
    phaze: Any, write: Callable[[str, Any], str]
) -> None:
    ran = phaze("place", write("tight.json", {**CLUSTER, "hbm_bytes": 3}), "--json")
    document = json.loads(ran.out)
    assert (ran.code, document["feasible"], document["rules"]) == (3, False, "cluster")
    assert document["shortage"]["levers"]["hbm_bytes"] == document["shortage"]["needed_bytes"] > 3
    assert (
        "what would make it fit"
        in phaze("place", write("tight.json", {**CLUSTER, "hbm_bytes": 3})).out.lower()
    )


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"cluster": None}, "p: cluster: this key is missing"),
        ({"cluster": "selena"}, "unknown cluster 'selena'; did you mean 'selene'"),
        ({"cluster": []}, "there is no level"),
        ({"stack": "megatron"}, "unknown stack 'megatron'"),
        ({"zero": 4}, "p: zero: 4 is out of range"),
        ({"precision": "int4"}, "p: precision: 'int4' is not known here"),
        ({"schedule": "zigzag"}, "p: schedule: 'zigzag' is not known here"),
        ({"devices": 9}, "p: devices: the cluster has 8 and 9 are requested"),
        (
            {"link_bytes_per_s": 1.0},
            "p: link_bytes_per_s: rules cluster take links from the cluster",
        ),
        ({"widths": {}}, "p: widths: there is no tensor-parallel degree"),
    ],
)
def test_what_is_wrong_with_a_cluster_is_said_with_its_path(
    change: dict[str, Any], said: str
) -> None:
    with pytest.raises(InputError, match=said):
        problem_of({**CLUSTER, **change}, "p")


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"selective_bytes": 5.0}, "selective_bytes 5.0 is out of range"),
        ({"selective_bytes": 1.0, "selective_s": 2.0}, "selective_s 2.0 is out of range"),
        ({"selective_s": 1.0}, "selective_bytes is missing"),
        ({"tied": "word", "tied_bytes": 9.0}, "tied_bytes 9.0 is out of range"),
        ({"tied_bytes": 1.0}, "there is no name in tied"),
    ],
)
def test_what_is_wrong_with_a_layer_of_a_cluster_is_said(keys: dict[str, Any], said: str) -> None:
    document = copy.deepcopy(CLUSTER)
    document["widths"]["2"]["layers"][0] |= keys
    with pytest.raises(InputError, match=said):
        problem_of(document, "p")
    document |= {"rules": "icml24", "link_bytes_per_s": 1.0, "cluster": None, "stack": None}
    with pytest.raises(
        InputError, match=r"p: widths\.2\.layers\[0\]: it has keys of rules cluster"
    ):
        problem_of(document, "p")


@pytest.mark.parametrize("key", ["cluster", "stack", "zero"])
def test_rules_icml24_refuse_the_keys_of_a_cluster(key: str) -> None:
    with pytest.raises(InputError, match=f"p: {key}: this key belongs to rules cluster"):
        problem_of({**GOOD, key: {"cluster": "selene", "stack": "ideal", "zero": 1}[key]}, "p")


def test_rules_icml24_need_a_link() -> None:
    with pytest.raises(InputError, match="p: link_bytes_per_s: this key is missing"):
        problem_of({key: value for key, value in GOOD.items() if key != "link_bytes_per_s"}, "p")
