"""Every documented key of every format, changed, changes an answer or is refused; a label shows
where it can be read.

The keys come from the models of the formats, so a key that is added without a case fails here.
"""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from phaze.api.calibrate_chip import COLUMNS as CALIBRATED
from phaze.api.calibrate_chip import _rows as measurements
from phaze.cli.schema import formats
from phaze.errors import InfeasibleError, InputError
from phaze.graph.tensor_plan import plan_of
from phaze.hardware.dies import Die, _compare_die
from phaze.validate.rows import COLUMNS as MEASURED
from tests.keys.answers import Refused, phaze, told
from tests.keys.cases import HARDWARE, Base
from tests.keys.derived import derived
from tests.keys.job_cases import JOBS
from tests.keys.problem_cases import PROBLEMS
from tests.keys.silicon_cases import SHARE, SILICON
from tests.keys.small import preset, written
from tests.keys.walk import changed, keys_of


def tensor_plan(folder: Path) -> dict[str, Any]:
    cut = {"weight": "blocks.*.qkv.weight", "dim": 0, "unit": 16, "parts": [64, 32, 32]}
    return {
        "schema": "phaze.tensor-plan/1",
        "cut": [cut, {"weight": "blocks.*.out.weight", "dim": 1, "unit": 16}],
    }


# A plan of one's own is what a model is traced with (tests/graph/torch): each key changes the
# ranks' weights or order.
TENSOR_PLAN = Base(
    tensor_plan,
    lambda document, folder: [plan_of(document, "plan.toml")],
    (
        ("sequence_parallel", "sequence_parallel", False),
        ("tokens_first", "tokens_first", True),
        ("cut.weight", "cut/0/weight", "blocks.*.other.weight"),
        ("cut.dim", "cut/0/dim", 1),
        ("cut.unit", "cut/0/unit", 8),
        ("cut.parts", "cut/0/parts", [32, 64, 32]),
        ("cut.tokens", "cut/1/tokens", True),
    ),
)
OTHERS = {
    "phaze.tensor-plan/1": [TENSOR_PLAN],
    "phaze.stack/1": [*HARDWARE["phaze.stack/1"], SHARE],
}
BASES: dict[str, list[Base]] = HARDWARE | SILICON | JOBS | PROBLEMS | OTHERS
# What a printed plan says of itself: whose it is, how it was found, what it leaves whole. Given
# back, it is not read.
SAID = {"phaze.tensor-plan/1": {"model", "basis", "whole.module", "whole.why"}}
NAMES = {"name": "label-k7", "title": "a label k7"}
FREE = {"notes": "a label k7", "sources": {"clock": "a label k7"}}
# What nothing is computed from: the value, and the command that shows it. A name or a title says
# what a thing is, notes and sources where numbers come from, published figures what to hold ours
# against, and a number of links is how many make up their bandwidth.
LABELS: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "phaze.chip/1": (
        ("chips", "FILE", "--json"),
        NAMES
        | FREE
        | {
            "clock_basis": "recalled",
            "links.count": 77777,
            "published.peak": 7.7777e12,
            "published.die": 777.77,
            "published.die_is_upper_bound": True,
            "published.tdp": 777.77,
            "published.process": "a label k7",
        },
    ),
    "phaze.chip/2": (
        ("chips", "FILE", "--json"),
        NAMES
        | FREE
        | {
            "clock_basis": "recalled",
            "measured.power": 777.77,
            "published.peak": 7.7777e12,
            "published.die": 777.77,
            "published.die_is_upper_bound": True,
            "published.tdp": 777.77,
            "published.process": "a label k7",
        },
    ),
    "phaze.technology/2": (("technologies", "FILE", "--json"), NAMES | FREE),
    "phaze.cluster/1": (
        ("clusters", "FILE", "--json"),
        NAMES | FREE | {"levels/0/name": "label-k7"},
    ),
    "phaze.stack/1": (("stacks", "FILE", "--json"), NAMES | FREE),
    "phaze.technology/1": (("technologies", "FILE", "--json"), NAMES | FREE),
    "phaze.ownership/1": (("chips", "h100", "--terms", "FILE", "--json"), NAMES | FREE),
    "phaze.space/1": (
        ("chips", "--space", "FILE", "--count"),
        NAMES | {"sources": {"axes": "a label k7"}},
    ),
    "phaze.space/2": (
        ("chips", "--space", "FILE", "--count"),
        NAMES | {"sources": {"axes": "a label k7"}},
    ),
    "phaze.study/1": (("study", "check", "FILE", "--json"), NAMES),
    "phaze.graph/1": (
        ("graph", "--model", "FILE", "--json"),
        {"name": "label-k7", "layers/1/name": "label-k7"},
    ),
    "phaze.profile/1": (("place", "FILE", "--json"), {"cluster/0/name": "label-k7"}),
}
# Answers that are read back: each value is checked against the search that it came from
# (tests/search/test_verify.py, tests/front), so that none can be changed at all.
ANSWERS = ("phaze.front/1", "phaze.sweep/1")


def _names(kind: str) -> set[str]:
    steps = LABELS.get(kind, ((), {}))[1]
    return {
        ".".join(step for step in path.split("/") if not step.isdigit()) for path in steps
    } | SAID.get(kind, set())


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the documents of a case lie, with the files that they name."""
    monkeypatch.chdir(tmp_path)
    own = preset("clusters", "dgx-h100")
    own["levels"][0]["bandwidth"] = "chip"
    written(tmp_path, "own.json", own)
    written(tmp_path, "technology.json", preset("technologies", "n5"))
    for name, kind in (("cached.json", "cache"), ("plain.json", "scratchpad")):
        chip = preset("chips", "h100") | {"name": "named", "technology": "technology.json"}
        written(tmp_path, name, changed(chip, "global_buffer/kind", kind))
    return tmp_path


@pytest.mark.parametrize(
    "name", [name for name in formats() if name not in (*ANSWERS, "phaze.die/1")]
)
def test_every_key_of_a_format_has_a_case_or_is_a_label(name: str) -> None:
    cased = {key for base in BASES[name] for key, _, _ in base.cases}
    cased |= {key for base in BASES[name] for key in base.keys.split()}
    known = set(keys_of(formats()[name].model))
    assert known - cased - _names(name) == set()
    assert (cased | _names(name)) - known == set()


def unnoticed(name: str, base: Base, folder: Path) -> list[str]:
    """The keys whose change neither changed the answer nor was refused."""
    document, model = base.document(folder), formats()[name].model
    before = list(base.answer(document, folder))

    def noticed(other: dict[str, Any]) -> str:
        try:
            after = base.answer(other, folder)
            return (
                "changed" if any(now != was for now, was in zip(after, before, strict=True)) else ""
            )
        except (Refused, InputError, InfeasibleError):
            return "refused"

    missed = [
        f"{key} = {value!r}"
        for key, place, value in base.cases
        if not noticed(changed(document, place, value))
    ]
    for key in base.keys.split():
        seen: set[str] = set()
        for other in derived(
            model, document, key
        ):  # a refusal counts where no other value changes the answer
            seen.add(noticed(other))
            if "changed" in seen:
                break
        missed += [] if seen & {"changed", "refused"} else [key]
    return missed


def _marked(name: str, at: int) -> Any:
    """Searches take seconds; a few of them stay with the everyday tests."""
    slow = (
        [pytest.mark.slow]
        if (name, at) in (("phaze.study/1", 0), ("phaze.study/1", 3), ("phaze.study/1", 5))
        else []
    )
    return pytest.param(name, at, marks=slow)


@pytest.mark.parametrize(
    ("name", "at"), [_marked(name, at) for name, own in BASES.items() for at in range(len(own))]
)
def test_a_changed_key_changes_an_answer_or_is_refused(name: str, at: int, folder: Path) -> None:
    assert unnoticed(name, BASES[name][at], folder) == []


@pytest.mark.parametrize(
    ("name", "path"), [(name, path) for name, (_, values) in LABELS.items() for path in values]
)
def test_a_label_is_shown(name: str, path: str, folder: Path) -> None:
    command, values = LABELS[name]
    first = BASES[name][0].document(folder)
    value = values[path]
    if name == "phaze.profile/1":  # The levels of a profile are named where one of them is refused.
        first = changed(first, "cluster/0/kind", "torus")
    place = written(folder, "label.json", changed(first, path.replace(".", "/"), value))
    try:
        out = phaze(*(place if word == "FILE" else word for word in command))
    except Refused as said:
        out = str(said)
    shown = next(iter(value.values())) if isinstance(value, dict) else value
    assert (json.dumps(shown) if isinstance(shown, bool) else str(shown)) in out


def die(folder: Path) -> dict[str, Any]:
    return preset("dies", "gh100")


def test_every_key_of_a_published_die_changes_the_comparison() -> None:
    document = die(Path())
    cases = {
        "name": "other", "basis": "fitted", "chip": "a100-80gb", "total": 999.0,
        "total_is_upper_bound": True,
        "components": {"hbm_interface": 99.0},
    }  # fmt: skip
    assert set(keys_of(Die)) - set(cases) == {"title", "sources"}

    def rows(raw: dict[str, Any]) -> list[Any]:
        return _compare_die(Die.model_validate(raw))

    assert [
        key for key, value in cases.items() if rows(changed(document, key, value)) == rows(document)
    ] == []


def _csv(rows: list[dict[str, Any]], columns: tuple[str, ...]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


RUN_ROW = {
    "id": "one", "model": "llama", "hidden": 64, "layers": 4, "heads": 4, "kv_heads": 2,
    "head_dim": 16, "mlp": 96,
    "vocabulary": 512, "sequence": 32, "tied": "no", "gated": "yes", "chip": "h100",
    "cluster": "dgx-h100",
    "stack": "megatron-core", "attention": "eager", "precision": "bf16", "optimizer": "adam",
    "devices": 16,
    "batch": 64, "tensor": 2, "context": 1, "pipeline": 2, "data": 4, "microbatch": 1, "chunks": 1,
    "zero": 1,
    "recompute": "none", "sequence_parallel": "no", "seconds": 0.5, "memory_gib": 4, "fits_gib": 80,
    "source": "here",
}  # fmt: skip
# A mixture of experts: its sizes, and who shares them out.
MIXTURE_ROW = {name: value for name,
value in RUN_ROW.items() if name not in ("gated", "context")} | {
    "model": "moe", "experts": 8, "active": 2, "expert_mlp": 48, "shared_mlp": 16,
    "dense_layers": 1, "expert": 2,
    "expert_tensor": 1, "zero": 0, "data": 8, "tensor": 1, "attention": "fused",
}  # fmt: skip
RUN_CHANGES = {
    "id": "two", "model": "gpt", "hidden": 128, "layers": 8, "heads": 8, "kv_heads": 4,
    "head_dim": 32, "mlp": 192,
    "vocabulary": 2048, "sequence": 64, "tied": "yes", "gated": "no", "chip": "h200",
    "cluster": "nvl72",
    "stack": "nanotron", "attention": "fused", "precision": "fp8", "optimizer": "sgd", "devices": 8,
    "batch": 128,
    "tensor": 1, "context": 2, "pipeline": 1, "data": 2, "microbatch": 2, "chunks": 2, "zero": 0,
    "shard": 2,
    "recompute": "full", "sequence_parallel": "yes", "seconds": 0.7, "memory_gib": 8, "fits_gib": 1,
    "source": "there",
}  # fmt: skip
MIXTURE_CHANGES = {
    "experts": 4, "active": 1, "expert_mlp": 96, "shared_mlp": 32, "dense_layers": 2, "expert": 4,
    "expert_tensor": 2,
}  # fmt: skip


def test_every_column_of_measured_runs_changes_the_comparison(folder: Path) -> None:
    def answer(row: dict[str, Any]) -> Any:
        (folder / "rows.csv").write_text(_csv([row], MEASURED))
        return told("validate", folder / "rows.csv")

    assert set(RUN_CHANGES) | set(MIXTURE_CHANGES) == set(MEASURED)
    missed: list[str] = []
    for row, changes in ((RUN_ROW, RUN_CHANGES), (MIXTURE_ROW, MIXTURE_CHANGES)):
        before = answer(row)
        for column, value in changes.items():
            try:
                missed += [column] if answer(row | {column: value}) == before else []
            except Refused:
                continue
    assert missed == []


def test_every_column_of_measured_operators_changes_what_is_fitted() -> None:
    products = [
        {"operator": "gemm", "batch": 1, "m": 2**at, "n": 512, "k": 512, "seconds": 1e-6 * 2**at}
        for at in range(6, 12)
    ]
    vectors = [
        {"operator": "softmax", "elements": 2**at, "rows": 256, "seconds": 1e-9 * 2**at}
        for at in range(16, 22)
    ]
    rows: list[dict[str, Any]] = [*products, *vectors]

    def answer(at: int, **cells: Any) -> Any:
        text = _csv([*rows[:at], rows[at] | cells, *rows[at + 1 :]], CALIBRATED)
        return [(one.work, one.seconds) for one in measurements(text, "fit.csv")]

    cases: dict[str, tuple[int, Any]] = {
        "operator": (8, "gelu"), "batch": (3, 64), "m": (3, 2**14), "n": (3, 2**14),
        "k": (3, 2**14),
        "elements": (8, 2**26), "rows": (8, 1), "seconds": (3, 0.5),
    }  # fmt: skip
    assert set(cases) == set(CALIBRATED)
    before = answer(0)
    assert [
        column for column, (at, value) in cases.items() if answer(at, **{column: value}) == before
    ] == []
