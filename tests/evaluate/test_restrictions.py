"""What was requested of a plan's search: it stands in the job, in the sentence, on the page and in
the claim."""

import json
from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import Any

import pytest

import phaze
from phaze.api.values import Planned
from phaze.evaluate.request import request_of
from phaze.evaluate.restrictions import proof_words, restated_job
from phaze.report.page.plan_page import plan_page
from tests.conftest import Ran

LLAMA = {
    "hidden": 1024,
    "layers": 4,
    "heads": 8,
    "kv_heads": 8,
    "head_dim": 128,
    "mlp": 4096,
    "vocabulary": 32000,
}
LLAMA["sequence"] = 2048
JOB: dict[str, Any] = {"llama": LLAMA, "chip": "h100", "devices": 8, "batch": 32}
OPTIONS: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({"tensor": 2}, {"tensor": [2]}, "TP 2"),
    ({"microbatch": "1,2"}, {"microbatch": [1, 2]}, "microbatch 1 or 2"),
    ({"recompute": "full"}, {"recompute": "full"}, "recompute full"),
    ({"recompute": "full+offload"}, {"recompute": "full+offload"}, "recompute full+offload"),
    ({"zero": 1}, {"zero": 1}, "ZeRO 1"),
    ({"context": [1, 2]}, {"context": [1, 2]}, "CP 1 or 2"),
    (
        {"context": 2, "context_way": "ring"},
        {"context": [2], "context_way": ["ring"]},
        "context parallelism by ring",
    ),
    ({"expert": 1}, {"expert": [1]}, "EP 1"),
    ({"shard": 2}, {"shard": [2]}, "state sharded over 2 ranks"),
    ({"attention": "eager"}, {"attention": ["eager"]}, "eager attention"),
    ({"family": "1f1b"}, {"family": ["1f1b"]}, "pipeline 1f1b"),
    ({"chunks": 2}, {"chunks": [2]}, "VPP 1 or 2"),
    ({"headroom": "20%"}, {"headroom": 0.2}, "20 % of memory kept free"),
]


def _page(plan: Planned) -> str:
    return unescape(plan_page(plan.document, "plan"))


@pytest.mark.parametrize(
    ("options", "stated", "words"), OPTIONS, ids=[words for _, _, words in OPTIONS]
)
def test_every_restriction_stands_in_job_sentence_and_page(
    options: dict[str, Any], stated: dict[str, Any], words: str
) -> None:
    plan = phaze.plan(**JOB, **options)
    assert plan["job"]["restricted"] == stated
    sentence, page = " ".join(repr(plan).split()), _page(plan)
    for text in (sentence, page):
        assert (
            words in text
            and "as requested" in text
            and "no plan of megatron-core is faster" not in text
        )
    (command,) = [line for line in page.splitlines() if "phaze plan --llama" in line][:1] or [""]
    for key, value in options.items():
        assert f"--{key.replace('_', '-')}" in command, (key, value, command)
    again = request_of(restated_job(plan["job"])).job
    assert again.batch == 32 and (again.zero, again.recompute, again.headroom) == (
        options.get("zero", 1 if "shard" in options else 0), options.get("recompute", "best"),
        0.2 if "headroom" in options else 0.06,
    )  # fmt: skip


def test_a_plan_without_restrictions_names_the_stack_whose_plans_were_searched() -> None:
    plan = phaze.plan(**JOB)
    assert "restricted" not in plan["job"]
    assert proof_words(plan.document).startswith("proved: no plan of megatron-core is faster")
    other = phaze.plan(**JOB, stack="torchtitan")
    assert proof_words(other.document).startswith("proved: no plan of torchtitan is faster")
    assert "No plan of torchtitan is faster by phaze's cost model: proved." in _page(other)


def test_a_restricted_plan_may_be_slower_than_one_that_was_not_searched() -> None:
    free, narrow = phaze.plan(**JOB), phaze.plan(**JOB, tensor=8, microbatch=1, recompute="full")
    assert narrow["batch_s"] > free["batch_s"] and narrow["proved"]
    said = proof_words(narrow.document)
    assert (
        "only among plans of megatron-core with TP 8, microbatch 1 and recompute full, as requested"
        in said
    )
    assert "may be faster" in said and "recompute chosen stage by stage" not in said


def test_the_page_has_one_figure_against_the_rule_of_thumb() -> None:
    plan = phaze.plan(**JOB, tensor=[1, 2, 4, 8])
    page = _page(plan)
    figure = f"{100 * plan['rule_of_thumb']['slower']:+.0f} %"
    assert (
        plan["rule_of_thumb"]["slower"] > 0.1
        and f"{figure} throughput over the rule of thumb" in page
    )
    assert (
        page.partition("<body>")[2].count("over the rule of thumb") == 2
    )  # the title and the card of the best plan


@pytest.fixture(scope="module")
def proof(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("restricted") / "proof"
    phaze.plan(**JOB, tensor=2, microbatch=[1, 2], recompute="full", zero=1, certificate=folder)
    return folder


def test_the_claim_of_a_certificate_states_the_restrictions(
    proof: Path, phaze: Callable[..., Ran]
) -> None:
    ran = phaze("verify", proof)
    claim = " ".join(ran.out.split())
    assert ran.code == 0
    assert (
        "among those requested (microbatch 1, 2; recompute full; tensor 2; zero 1) no plan" in claim
    )


def _forged(
    proof: Path, folder: Path, of_the_problem: bool, change: Callable[[dict[str, Any]], None]
) -> Path:
    """The certificate with other restrictions in plan.json, and in problem.json where its digests
    are made to agree."""
    from phaze.check.reading import sha256

    folder.mkdir()
    for path in proof.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    plan = json.loads((folder / "plan.json").read_text())
    change(plan["job"].setdefault("restricted", {}))
    (folder / "plan.json").write_text(json.dumps(plan))
    if of_the_problem:
        problem = json.loads((folder / "problem.json").read_text())
        change(problem["restricted"])
        text = json.dumps(problem)
        (folder / "problem.json").write_text(text)
        certificate = json.loads((folder / "certificate.json").read_text())
        certificate["problem"] = sha256(text)
        (folder / "certificate.json").write_text(json.dumps(certificate))
    return folder


@pytest.mark.parametrize("of_the_problem", [False, True])
@pytest.mark.parametrize("key", ["tensor", "microbatch", "recompute", "zero"])
def test_a_claim_that_is_silent_on_a_restriction_is_refused(
    key: str, of_the_problem: bool, proof: Path, tmp_path: Path, phaze: Callable[..., Ran]
) -> None:
    ran = phaze(
        "verify",
        _forged(proof, tmp_path / "forged", of_the_problem, lambda stated: stated.pop(key)),
    )
    assert ran.code == 1 and "does not hold" in " ".join(ran.out.split())


@pytest.mark.parametrize("of_the_problem", [False, True])
@pytest.mark.parametrize(
    "stated", [{"tensor": [1]}, {"tensor": [1, 2, 4]}, {"magic": 1}, {"headroom": 0.5}]
)
def test_a_claim_with_another_restriction_is_refused(
    stated: dict[str, Any],
    of_the_problem: bool,
    proof: Path,
    tmp_path: Path,
    phaze: Callable[..., Ran],
) -> None:
    ran = phaze(
        "verify",
        _forged(proof, tmp_path / "forged", of_the_problem, lambda own: own.update(stated)),
    )
    assert ran.code == 1 and "does not hold" in " ".join(ran.out.split())


def test_a_mode_of_recompute_is_stated_by_its_name() -> None:
    plan = phaze.plan(**JOB, recompute="full,offload")
    assert plan["job"]["restricted"] == {"recompute": "full+offload"}
