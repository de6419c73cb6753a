"""A tensor-parallel plan as a file, ``phaze.tensor-plan/1``: which weights of a model are cut, and
how.

A path may have a ``*`` for one step, as the number of a block. Where ranks communicate is not
stated: it follows from the model's code (:mod:`phaze.graph.torch.partition`).
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from phaze import documents
from phaze.documents import Count, Document, Format
from phaze.errors import InputError
from phaze.files import beside, read_text
from phaze.graph.torch.plans import ShardCut, ShardingPlan

SCHEMA = "phaze.tensor-plan/1"
INFERRED = "inferred, proved on two ranks"
Text = Annotated[str, Field(min_length=1, max_length=4096)]


class CutTable(Document):
    """A weight that is cut along ``dim``: ``unit`` elements of it stay together (the width of a
    head), ``parts`` are the sizes of matrices stacked along it (query, key, value), each cut on its
    own; ``tokens``: by rows of the vocabulary."""

    weight: Text
    dim: Annotated[int, Field(ge=0, le=8)]
    unit: Count = 1
    parts: Annotated[list[Count], Field(min_length=2, max_length=64)] | None = None
    tokens: bool = False


class WholeTable(Document):
    """A module that every rank holds whole, and why."""

    module: Text
    why: Text


class TensorPlanFile(Document):
    """A tensor-parallel plan (``phaze.tensor-plan/1``); ``tokens_first``: blocks exchange
    (sequence, batch, width)."""

    schema_: Annotated[Literal["phaze.tensor-plan/1"], Field(alias="schema")]
    model: Text | None = None
    basis: Text | None = None
    sequence_parallel: bool = True
    tokens_first: bool = False
    cut: Annotated[list[CutTable], Field(min_length=1, max_length=4096)]
    whole: Annotated[list[WholeTable], Field(default_factory=list)]


FORMAT = Format(SCHEMA, TensorPlanFile, "which weights tensor-parallel ranks share, and how")


def plan_document(
    model: str, basis: str, plan: ShardingPlan, whole: Sequence[tuple[str, str]]
) -> dict[str, Any]:
    """A plan as plain values."""
    cuts: list[dict[str, Any]] = []
    for cut in plan.cuts:
        row: dict[str, Any] = {"weight": cut.pattern, "dim": cut.dim}
        row |= {"unit": cut.unit} if cut.unit > 1 else {}
        row |= {"parts": list(cut.parts)} if cut.parts else {}
        cuts.append(row | ({"tokens": True} if cut.tokens else {}))
    return {
        "schema": SCHEMA,
        "model": model,
        "basis": basis,
        "sequence_parallel": plan.shards,
        "tokens_first": plan.sequence_dim == 0,
        "cut": cuts,
        "whole": [{"module": module, "why": why} for module, why in whole],
    }


def plan_of(raw: Mapping[str, Any], where: str) -> ShardingPlan:
    """The plan that plain values state, checked."""
    table = documents.check(TensorPlanFile, raw, where)
    cuts = tuple(
        ShardCut(row.weight, row.dim, row.unit, tuple(row.parts or ()), row.tokens)
        for row in table.cut
    )
    return ShardingPlan(
        cuts=cuts, sequence_dim=0 if table.tokens_first else 1, shards=table.sequence_parallel
    )


def read_plan(path: str) -> ShardingPlan:
    """The plan in a file, TOML or JSON."""
    text, where = read_text(path)
    return plan_of(documents.parse(text, documents.notation_of(path, text), where), where)


def plan_text(document: Mapping[str, Any]) -> str:
    """A plan's document as TOML, to be edited and given back."""
    lines = [f"{key} = {json.dumps(document[key])}" for key in ("schema", "model", "basis")]
    lines += [
        f"{key} = {json.dumps(document[key])}" for key in ("sequence_parallel", "tokens_first")
    ]
    for name in ("cut", "whole"):
        for row in document[name]:
            lines += [
                "",
                f"[[{name}]]",
                *(f"{key} = {json.dumps(value)}" for key, value in row.items()),
            ]
    return "\n".join(lines) + "\n"


def is_place(text: str) -> bool:
    """Whether a model's name leads to code, a configuration, a folder or a graph."""
    return ":" in text or "/" in text or text.endswith(".json")


def place_and_plan(model: str) -> tuple[str, str | None]:
    """``my.py:build@plan.toml`` is the model ``my.py:build`` with the tensor-parallel plan of a
    file."""
    place, mark, plan = model.rpartition("@")
    if not mark or not plan.endswith((".toml", ".json")):
        return model, None
    if not place:
        raise InputError(model, "there is no model before '@'", "e.g. my.py:build@plan.toml")
    return place, plan


def place_beside(folder: Path, model: str) -> str:
    """A model that a document in ``folder`` names, as it is opened: ``own.py:build`` lies beside
    the document, with the plan after ``@``; a package is looked up as ever."""
    place, plan = place_and_plan(model)
    path, mark, function = place.rpartition(":") if ":" in place else (place, "", "")
    if not mark or "/" in path or path.endswith(".py"):
        place = f"{beside(folder, path)}{mark}{function}"
    return place if plan is None else f"{place}@{beside(folder, plan)}"
