"""``phaze plan --certificate``: good certificates hold without phaze, forged ones do not."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from phaze.check.verdict import check
from phaze.cli.answer import exit_code_of
from phaze.cli.main import app
from phaze.cost.network_prices import NetworkPrices
from tests.check.conftest import JOB, planned
from tests.check.forge import Papers, every_day
from tests.check.plan_forgeries import PLAN_NOT_KNOWN, PLAN_REFUSED
from tests.conftest import Ran


@pytest.fixture(scope="session")
def slower(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The best plan at microbatch 1, which is not the best of both."""
    return planned(
        tmp_path_factory.mktemp("slower") / "proof", "--microbatch", "1", "--tensor", "1,2"
    )


def test_a_plan_holds_and_is_the_one_that_was_printed(
    proof: Path, phaze: Callable[..., Ran]
) -> None:
    found = check(proof)
    assert found.holds and found.plan and "a100-80gb, as bundled" in found.words[0], (
        found.sentence()
    )
    ran = phaze("verify", proof, "--json")
    document = json.loads(ran.out)
    assert ran.code == 0 and document["holds"] and document["run_id"] == found.run_id
    plan = json.loads((proof / "plan.json").read_text())
    assert plan["batch_s"] == pytest.approx(found.best, rel=1e-12)


def test_the_same_question_has_the_same_run_id(
    proof: Path, tmp_path: Path, phaze: Callable[..., Ran]
) -> None:
    ran = phaze(
        "plan", *JOB, "--microbatch", "1,2", "--tensor", "1,2", "--certificate", tmp_path / "again"
    )
    assert check(proof).run_id in ran.out
    for name in ("problem", "graphs", "certificate", "plan"):
        assert (tmp_path / "again" / f"{name}.json").read_bytes() == (
            proof / f"{name}.json"
        ).read_bytes()


def test_the_best_of_fewer_choices_is_not_proved_best(
    proof: Path, slower: Path, tmp_path: Path
) -> None:
    papers, other = Papers(proof), Papers(slower)
    heads = [
        {k: v for k, v in row.items() if k != "digest"}
        for row in papers.problem["models"][0]["graphs"]
    ]
    mine = {
        k: v
        for k, v in other.problem["models"][0]["graphs"][other.model["graph"]].items()
        if k != "digest"
    }
    papers.answer["models"] = [{**other.model, "graph": heads.index(mine)}]
    papers.claim(other.certificate["best"])
    assert other.certificate["best"] > 1.01 * Papers(proof).certificate["best"]
    assert "nothing shows" in check(papers.write(tmp_path)).wrong


def test_a_plan_that_needs_a_little_more_memory_than_there_is_is_refused(
    proof: Path, tmp_path: Path
) -> None:
    papers, plan = Papers(proof), json.loads((proof / "plan.json").read_text())
    least = int(0.7 * max(stage["memory_bytes"] for stage in plan["stages"]))
    papers.problem["hbm_bytes"] = [least]
    papers.problem["chip"]["hbm"]["size_bytes"] = least
    assert "does not fit" in check(papers.write(tmp_path)).wrong


def test_a_plan_of_a_stage_of_zero_that_was_not_searched_is_refused(tmp_path: Path) -> None:
    degrees = ("--microbatch", "2", "--tensor", "1", "--devices", "8")
    papers = Papers(planned(tmp_path / "none", *degrees, "--zero", "0"))
    faster = Papers(planned(tmp_path / "first", *degrees, "--zero", "1"))
    assert faster.certificate["best"] < papers.certificate["best"]
    papers.answer["models"] = faster.answer["models"]
    papers.claim(faster.certificate["best"])
    (tmp_path / "lie").mkdir()
    assert "answer.zero" in check(papers.write(tmp_path / "lie")).wrong


SITES = """
schema = "phaze.cluster/1"
name = "sites"
title = "two sites"
devices = 8
[[levels]]
name = "site"
kind = "switch"
size = 4
bandwidth = "300 GB/s"
latency = "1 us"
[[levels]]
name = "between"
kind = "switch"
size = 2
bandwidth = "1 MB/s"
latency = "10 ms"
"""


def test_what_ties_take_over_a_slow_link_leaves_no_plan_open(tmp_path: Path) -> None:
    (tmp_path / "sites.toml").write_text(SITES)
    sites = ("--cluster", str(tmp_path / "sites.toml"), "--stack", "megatron-core")
    assert check(planned(tmp_path / "true", *sites, "--tensor", "1", "--microbatch", "1")).holds


def test_a_plan_of_two_sites_that_sends_for_nothing_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sites.toml").write_text(SITES)
    asked = [
        "plan",
        "--model",
        "llama2-7b",
        "--chip",
        "a100-80gb",
        "--devices",
        "8",
        "--batch",
        "32",
    ]
    asked += [
        "--sequence",
        "128",
        "--cluster",
        str(tmp_path / "sites.toml"),
        "--stack",
        "megatron-core",
    ]
    asked += ["--tensor", "1", "--microbatch", "1", "--certificate"]
    true, free = tmp_path / "true", tmp_path / "free"
    assert exit_code_of(app, [*asked, str(true)]) == 0 and check(true).holds
    monkeypatch.setattr(NetworkPrices, "transfer_s", lambda self, level, sizes: 0.0 * sizes)
    assert exit_code_of(app, [*asked, str(free)]) == 1, "the plan is refused before it is printed"
    monkeypatch.setattr("phaze.placement.answer.plan_faults", lambda question, document: [])
    assert exit_code_of(app, [*asked, str(free)]) == 0
    faster, slower = (json.loads((folder / "plan.json").read_text()) for folder in (free, true))
    assert faster["pipeline"] > 1 and faster["batch_s"] < slower["batch_s"]
    assert check(free).wrong and not check(free).holds


@pytest.mark.parametrize("name", every_day(PLAN_REFUSED))
def test_a_forged_plan_is_refused(name: str, proof: Path, tmp_path: Path) -> None:
    papers = Papers(proof)
    PLAN_REFUSED[name](papers)
    found = check(papers.write(tmp_path))
    assert found.wrong and not found.holds, found.sentence()


@pytest.mark.parametrize("name", every_day(PLAN_NOT_KNOWN))
def test_what_is_not_known_is_not_passed_over(name: str, proof: Path, tmp_path: Path) -> None:
    papers = Papers(proof)
    PLAN_NOT_KNOWN[name](papers)
    found = check(papers.write(tmp_path))
    assert found.missing and not found.holds, found.sentence()


def test_another_question_is_seen_in_the_claim(proof: Path, tmp_path: Path) -> None:
    """A width left out, or an ideal chip, with everything adapted, is a true sentence about another
    job."""
    papers, good = Papers(proof), check(proof)
    keep = [
        at for at, row in enumerate(papers.problem["models"][0]["graphs"]) if row["tensor"] == 1
    ]
    places = {old: new for new, old in enumerate(keep)}
    model = papers.problem["models"][0]
    for table in (model["graphs"], papers.graphs["models"][0], papers.certificate["fusion"][0]):
        table[:] = [table[at] for at in keep]
    papers.certificate["multipliers"] = [[[] for _ in keep]]
    model["configurations"] = [
        {**one, "graph": places[one["graph"]]}
        for one in model["configurations"]
        if one["graph"] in places
    ]
    papers.model["graph"] = places[papers.model["graph"]]
    found = check(papers.write(tmp_path))
    assert found.holds and found.run_id != good.run_id
    assert "TP 1, 2" in good.words[2] and "TP 1," in found.words[2] != good.words[2]


def test_a_plan_that_is_not_the_certificate_s_is_seen(
    proof: Path, tmp_path: Path, phaze: Callable[..., Ran]
) -> None:
    for change in ("batch_s", "data", "microbatch", "zero"):
        shutil.copytree(proof, tmp_path / change)
        document = json.loads((proof / "plan.json").read_text())
        document[change] *= 2
        (tmp_path / change / "plan.json").write_text(json.dumps(document))
        ran = phaze("verify", tmp_path / change)
        assert ran.code == 1 and f"plan.json: {change}" in " ".join(ran.out.split()), ran.out


def test_graphs_that_are_not_the_model_s_are_seen(
    proof: Path, tmp_path: Path, phaze: Callable[..., Ran]
) -> None:
    papers = Papers(proof)
    papers.graphs["models"][0][0]["approximations"] = ["it is much faster"]
    shutil.copytree(proof, tmp_path / "run")
    papers.write(tmp_path / "run")
    assert check(tmp_path / "run").holds
    ran = phaze("verify", tmp_path / "run")
    assert ran.code == 1 and "is not one of bert-large as phaze has it" in " ".join(ran.out.split())


def test_where_a_certificate_cannot_be_written(
    tmp_path: Path, good: Path, phaze: Callable[..., Ran]
) -> None:
    ran = phaze("plan", "--fixed", "run.json", "--certificate", tmp_path)
    assert ran.code == 2 and "--certificate" in ran.err
    ran = phaze("plan", *JOB, "--microbatch", "1", "--tensor", "1", "--certificate", good)
    assert ran.code == 2 and "holds a search" in ran.err


def test_python_writes_and_verifies_the_same(proof: Path, tmp_path: Path) -> None:
    import phaze as face

    face.plan("bert-large", chip="a100-80gb", devices=8, batch=32, sequence=128, microbatch=[1, 2],
    tensor=[1, 2],
              certificate=tmp_path / "own")  # fmt: skip
    found = face.verify(tmp_path / "own")
    assert found["holds"] and found["run_id"] == check(proof).run_id
