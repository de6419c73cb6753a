"""What ``phaze verify`` says of a folder beside its certificate: models, figures of a plan, answers
that are not its own, and options that would not be heard."""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from phaze.api.plan_certificate import plan_independently
from phaze.check.verdict import check
from phaze.evaluate.repriced import UNPRICED, repriced, unlike
from phaze.report.progress import on_standard_error
from tests.check.forge import Papers
from tests.cli.fuzz_cases import PRESETS
from tests.conftest import Ran
from tests.search.test_verify import STUDY, finished

HEADROOM = 0.06


def _words(ran: Ran) -> str:
    return " ".join(ran.out.split())


def test_a_bundled_model_at_other_sizes_is_said_to_be_one_after_it_was_compared(
    good: Path, phaze: Callable[..., Ran]
) -> None:
    alone = check(good)
    assert any(
        "'bert-large', not a bundled model at its default sizes" in line for line in alone.words
    )
    ran = phaze("verify", good)
    assert ran.code == 0
    assert (
        "bert-large, as bundled at these sizes (compared by phaze itself); sequence 64"
        in _words(ran)
    )


def test_graphs_of_ones_own_under_a_bundled_name_are_not_said_to_be_bundled(
    good: Path, tmp_path: Path, phaze: Callable[..., Ran]
) -> None:
    graphs = json.loads((good / "graphs.json").read_text())["models"][0]
    names = []
    for at, graph in enumerate(graphs):
        names.append(tmp_path / f"graph{at}.json")
        names[-1].write_text(json.dumps({"schema": "phaze.graph/1", **graph}))
    listed = ", ".join(f'"{path}"' for path in names)
    study = STUDY.replace("sequence = 64", f"graphs = [{listed}]")
    run = finished(tmp_path, study)
    ran = phaze("verify", run)
    assert ran.code == 0 and "'bert-large', not a bundled model at its default sizes" in _words(ran)
    assert "as bundled at these sizes" not in _words(ran)


@pytest.mark.parametrize("other", ["front.json", "sweep.json", "plan.json"])
def test_a_folder_with_a_second_answer_is_refused(
    other: str, good: Path, tmp_path: Path, phaze: Callable[..., Ran]
) -> None:
    shutil.copytree(good, tmp_path / "run")
    (tmp_path / "run" / other).write_text("{}")
    ran = phaze("verify", tmp_path / "run")
    assert ran.code == 2 and f"it holds result.json and {other}" in ran.err


@pytest.mark.parametrize(
    ("fixture", "more", "said"),
    [
        ("good", ("--space", "paper", "--quick"), "--space: the answer is checked against"),
        (
            "good",
            ("--space", "paper", "--study", "nowhere.toml"),
            "--space: the answer is checked against",
        ),
        ("good", ("--gap", "0.1"), "--gap: a run has its own gap"),
        ("proof", ("--study", "nowhere.toml"), "has no study to compare with"),
        ("proof", ("--space", "paper"), "holds a plan.json"),
    ],
)
def test_an_option_that_would_not_be_heard_is_refused(
    fixture: str,
    more: tuple[str, ...],
    said: str,
    request: pytest.FixtureRequest,
    phaze: Callable[..., Ran],
) -> None:
    ran = phaze("verify", request.getfixturevalue(fixture), *more)
    assert ran.code == 2 and said in ran.err, ran.err


def test_a_result_that_is_not_the_certificate_s_is_not_held_against_another_space(
    good: Path, tmp_path: Path, phaze: Callable[..., Ran]
) -> None:
    shutil.copytree(good, tmp_path / "run")
    path = tmp_path / "run" / "result.json"
    result = json.loads(path.read_text())
    result["models"][0]["throughput_per_s"] *= 2
    path.write_text(json.dumps(result, indent=2))
    ran = phaze("verify", tmp_path / "run", "--space", good.parent / "space.toml")
    assert ran.code == 1 and "throughput_per_s" in _words(ran)


def _leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    rows = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else None
    )
    if rows is None:
        yield path
        return
    for key, inner in rows:
        yield from _leaves(inner, (*path, key))


def _with(document: dict[str, Any], path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    changed = place = json.loads(json.dumps(document))
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return dict(changed)


def test_every_figure_of_a_plan_is_priced_anew(proof: Path) -> None:
    """Each value of plan.json but those that are said to be unchecked: another one is seen."""
    document = json.loads((proof / "plan.json").read_text())
    true = json.loads(json.dumps(repriced(document, HEADROOM, "plan.json")))
    assert list(unlike(document, true, document["batch_s"])) == []
    stated = {key: value for key, value in document.items() if key in true}
    assert {
        "tokens_per_s",
        "mfu",
        "memory_left",
        "breakdown",
        "stages",
        "constants",
        "simulated_s",
    } <= set(stated)
    assert set(document) - set(true) <= {*UNPRICED, "job", "lower_bound_s", "proved", "rules"}
    for path in _leaves(stated):
        old: Any = stated
        for step in path:
            old = old[step]
        other = (
            old * 1.001 + 1
            if isinstance(old, float | int) and not isinstance(old, bool)
            else "another"
        )
        assert list(unlike(_with(document, path, other), true, document["batch_s"])), path


def test_figures_of_a_plan_that_are_not_its_own_are_refused(
    proof: Path, tmp_path: Path, phaze: Callable[..., Ran]
) -> None:
    shutil.copytree(proof, tmp_path / "run")
    document = json.loads((proof / "plan.json").read_text())
    (tmp_path / "run" / "plan.json").write_text(json.dumps({**document, "mfu": 0.99}))
    ran = phaze("verify", tmp_path / "run")
    assert ran.code == 1 and "plan.json: mfu is 0.99, and priced anew" in _words(ran)


def test_what_of_a_plan_is_not_checked_is_said(proof: Path, phaze: Callable[..., Ran]) -> None:
    assert (
        "figures of plan.json"
        in json.loads(phaze("verify", proof, "--quick", "--json").out)["unchecked"]
    )
    said = _words(phaze("verify", proof))
    assert "Not checked: what plan.json says beside its plan (alternatives" in said
    assert "bert-large, as bundled at these sizes (compared by phaze itself)" in said


@pytest.mark.parametrize("name", ["own.json", pytest.param("gpt2-xl", marks=pytest.mark.slow)])
def test_forged_graphs_under_a_bundled_name_are_refused_whatever_plan_json_calls_them(
    name: str, proof: Path, tmp_path: Path
) -> None:
    """The claim names the model of problem.json: plan.json may not lead away from comparing its
    graphs."""
    shutil.copytree(proof, tmp_path / "run")
    papers = Papers(proof)
    papers.graphs["models"][0][0]["approximations"] = ["it is much faster"]
    papers.write(tmp_path / "run")
    path = tmp_path / "run" / "plan.json"
    document = json.loads(path.read_text())
    document["job"]["model"] = name
    path.write_text(json.dumps(document))
    assert check(tmp_path / "run").holds
    with on_standard_error() as progress:
        _, wrong, _ = plan_independently(str(tmp_path / "run"), False, progress)
    assert wrong == [f"plan.json: model is {name!r}, and the certificate has 'bert-large'"]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("stages", 0, "memory_bytes"), -1.0),
        (("breakdown",), {}),
        (("microbatch",), "one"),
        (("job", "stack"), "no-such-stack"),
        (("job", "cluster"), "no-such-cluster"),
    ],
)
def test_figures_with_which_a_plan_cannot_be_priced_anew_are_an_objection(
    path: tuple[str | int, ...], value: Any, proof: Path, tmp_path: Path, phaze: Callable[..., Ran]
) -> None:
    shutil.copytree(proof, tmp_path / "run")
    document = json.loads((proof / "plan.json").read_text())
    place: Any = document
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    (tmp_path / "run" / "plan.json").write_text(json.dumps(document))
    ran = phaze("verify", tmp_path / "run", "--json")
    found = json.loads(ran.out)
    assert ran.code == 1 and not found["holds"] and found["objections"], found


def test_figures_are_left_unchecked_only_where_a_file_of_the_job_is_not_here(
    proof: Path, tmp_path: Path, phaze: Callable[..., Ran]
) -> None:
    shutil.copytree(proof, tmp_path / "run")
    document = json.loads((proof / "plan.json").read_text())
    document["job"]["cluster"] = "gone/cluster.toml"
    (tmp_path / "run" / "plan.json").write_text(json.dumps(document))
    found = json.loads(phaze("verify", tmp_path / "run", "--json").out)
    assert found["holds"] and "as gone/cluster.toml is not here" in found["unchecked"]


KINDS = {
    "experts": "--model mixtral-8x7b --chip h100 --devices 16 --batch 64 --expert 1,8 --tokens 1T",
    "split backward": (
        "--model llama3-8b --chip h100 --devices 16 --batch 64 --stack torchtitan-eager "
        "--family zb-v"
    ),
    "shards in fp8": (
        "--model llama3-8b --chip h100 --devices 16 --batch 64 --shard 8 --zero 3 "
        "--precision fp8"
    ),
    "offload": (
        "--model llama3-70b --chip h100 --devices 64 --batch 64 --recompute full,offload "
        "--context 2"
    ),
    "GPipe": "--model llama3-8b --chip tpu-v5p --devices 16 --batch 64 --stack maxtext",
    "by sizes": (
        "--gpt hidden=1024,layers=24,heads=16,vocabulary=51200,sequence=512 --chip h100 "
        "--devices 8 --batch 32"
    ),
    "a chip of one's own": (
        "--model bert-large --chip {folder}/own.toml --cluster tpu-v4-pod --devices 8 "
        "--batch 32"
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_plans_of_every_kind_hold_with_all_their_figures(
    kind: str, tmp_path: Path, phaze: Callable[..., Ran]
) -> None:
    shutil.copy(PRESETS / "chips" / "tpu-v4.toml", tmp_path / "own.toml")
    job = KINDS[kind].format(folder=tmp_path).split()
    wide = ["--tensor", "4,8"] if kind == "offload" else ["--tensor", "1,2"]
    made = phaze("plan", *job, "--microbatch", "1", *wide, "--certificate", tmp_path / "proof")
    assert made.code == 0, made.err
    ran = phaze("verify", tmp_path / "proof", "--json")
    found = json.loads(ran.out)
    assert ran.code == 0 and found["holds"] and "priced anew" not in found["unchecked"], found
