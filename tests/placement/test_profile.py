"""Profiles that cannot be used are refused with the path of what is wrong."""

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from phaze.errors import InputError
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
        (("widths",), KeyError, "p: widths: this key is missing"),
        (("widths",), {}, "p: widths: there is no tensor width"),
        (("widths", "0"), GOOD["widths"]["2"], "'0' is no tensor width"),
        (("widths", "two"), GOOD["widths"]["2"], "'two' is no tensor width"),
        (("widths", "02"), GOOD["widths"]["2"], "'02' is no tensor width"),
        (("widths", "4"), {"layers": GOOD["widths"]["2"]["layers"][:1], "edges": []}, "p: widths.4.layers: layer -1"),
        (("widths", "2", "layers"), [], "p: widths.2.layers: there is no layer"),
        (("widths", "2", "edges", 0, "to"), 9, r"p: widths.2.edges\[0\].to: there is no layer 9"),
        (("widths", "2", "edges", 0, "from"), 0, r"p: widths.2.edges\[0\].from: there is no layer 0"),
        (("widths", "2", "edges", 0, "from"), 5, "cycle through or into layer 5"),
        (("widths", "2", "edges"), [{"from": a, "to": 4 - a, "bytes": 1} for a in (-1, 5)], "cycle .*layer -1"),
        (("widths", "2", "edges", 0, "bytes"), -1, r"p: widths.2.edges\[0\].bytes: -1.* is out of range"),
        (("widths", "2", "edges", 0, "bytes"), "7", "wrong type"),
        ((*LAYER, "id"), 5, "the id 5 stands twice"),
        ((*LAYER, "id"), 1.5, "whole number"),
        ((*LAYER, "forward_s"), float("nan"), r"p: widths.2.layers\[1\].forward_s: nan"),
        ((*LAYER, "forward_s"), float("inf"), r"p: widths.2.layers\[1\].forward_s: inf"),
        ((*LAYER, "backward_s"), -0.5, r"p: widths.2.layers\[1\].backward_s: -0.5 is out of range"),
        ((*LAYER, "parameter_bytes"), 1e300, r"p: widths.2.layers\[1\].parameter_bytes: 1e\+300 is out of range"),
        ((*LAYER, "activation_bytes"), None, "wrong type"),
        ((*LAYER, "sharded"), "yes", "true or false"),
        ((*LAYER, "sharded"), KeyError, r"p: widths.2.layers\[1\].sharded: this key is missing"),
        ((*LAYER, "speed"), 1, "unknown key 'speed'"),
        (("devices",), 0, "p: devices: 0 is out of range"),
        (("devices",), 2.5, "whole number"),
        (("devices",), 10**30, "p: devices: a number beyond all bounds"),
        (("microbatches",), -1, "p: microbatches: -1 is out of range"),
        (("hbm_bytes",), 0, "p: hbm_bytes: 0 is out of range"),
        (("link_bytes_per_s",), 0.0, "p: link_bytes_per_s: 0.0 is out of range"),
        (("link_bytes_per_s",), float("nan"), "p: link_bytes_per_s: nan"),
        (("optimizer",), "adamw", "p: optimizer: 'adamw' is not known here; did you mean 'adam'"),
        (("rules",), "icml25", "p: rules: 'icml25' is not known here"),
        (("recompute",), "sometimes", "p: recompute"),
        (("schema",), "phaze.profile/2", "p: schema"),
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
        path.write_text(document if isinstance(document, str) else json.dumps(document), encoding="utf-8")
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


def test_a_profile_may_come_from_standard_input(phaze: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import io

    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(GOOD)))
    ran = phaze("place", "-", "--json")
    assert (ran.code, json.loads(ran.out)["feasible"]) == (0, True)


def test_a_person_sees_stages_and_where_the_time_goes(phaze: Any, write: Callable[[str, Any], str]) -> None:
    ran = phaze("place", write("good.json", GOOD))
    assert ran.code == 0
    for word in ("batch time", "nothing is faster", "stage", "memory", "Where the time goes", "synchronisation"):
        assert word in ran.out
    assert max(map(len, ran.out.splitlines())) <= 80


def test_a_person_sees_what_would_make_it_fit(phaze: Any, write: Callable[[str, Any], str]) -> None:
    ran = phaze("place", write("tight.json", _changed(("hbm_bytes",), 1)))
    assert ran.code == 3
    for word in ("nothing fits", "fullest stage", "hbm", "microbatch", "does not help alone"):
        assert word in ran.out
