"""``phaze.plan/1`` and the plans inside ``phaze.result/1`` as they are read back: what pages and
exports need.

A document that was cut off, edited or written by something else is refused with the path of its
first fault, before anything is reckoned from it. Keys that nothing here reads are let pass.
"""

from collections.abc import Mapping
from typing import Any

from pydantic import model_validator

from phaze.documents import Count, check
from phaze.evaluate.plan_tables import (
    TERMS,
    AgainstTable,
    AlternativeTable,
    ChoicesTable,
    FiguresTable,
    LaunchTable,
    LeftTable,
    Loose,
    Number,
    PlanConstantsTable,
    PlanTable,
    ShortageTable,
    SplitTable,
    WhatIfTable,
)
from phaze.hardware.formats import Precision
from phaze.options.keys import AnswerPlanKeys

# What is printed of every plan; documents of older releases may lack it.
PRINTED = ("zero", "attention", "chunks")


class JobPlanTable(PlanTable, FiguresTable):
    """A plan of a job on hardware that exists."""

    microbatch: Count
    constants: PlanConstantsTable
    approximations: list[str]
    sequence_parallel: bool = False
    alternatives: list[AlternativeTable] | None = None
    rule_of_thumb: SplitTable | None = None
    experts: SplitTable | None = None
    shortage: ShortageTable | None = None
    launch: dict[str, LaunchTable] | None = None
    against: AgainstTable | None = None
    what_if: list[WhatIfTable] | None = None
    memory_left: LeftTable | None = None
    choices: ChoicesTable | None = None
    job: dict[str, Any]

    @model_validator(mode="after")
    def _rates(self) -> "JobPlanTable":
        self.require_rates(self.batch_s)
        return self


class ShownSplit(SplitTable):
    """A split beside a plan that is printed."""

    slower: Number


def _require_printed(table: AnswerPlanKeys) -> None:
    """Refuse a plan that lacks what is printed of every plan."""
    missing = [key for key in PRINTED if key not in table.model_fields_set]
    if missing:
        raise ValueError(f"the key '{missing[0]}' is missing")


class ShownCluster(Loose):
    """The network of a plan that is printed."""

    label: str
    links: str | None


class ShownShortage(ShortageTable):
    """A shortage that is printed: every term of it."""

    @model_validator(mode="after")
    def _terms(self) -> "ShownShortage":
        missing = [name for name in TERMS if name not in self.terms]
        if missing:
            raise ValueError(f"the term {missing[0]} is missing")
        return self


class SensitivityTable(Loose):
    """What a plan takes at a load of the fullest rank of experts."""

    rows: Number
    slower: Number


class ShownPlanTable(JobPlanTable):
    """A plan of a job with everything that the terminal shows of it."""

    precision: Precision | None = None
    offloaded_bytes: Number = 0.0
    exchange_s: Number = 0.0
    exchange_hidden_s: Number = 0.0
    expert_nodes: Count = 1
    imbalance_sensitivity: list[SensitivityTable] | None = None
    sequence_parallel: bool
    cluster: ShownCluster
    memory_left: LeftTable  # a plan that is printed always says it
    rule_of_thumb: ShownSplit | None = None
    experts: ShownSplit | None = None
    shortage: ShownShortage | None = None
    feasible: bool

    @model_validator(mode="after")
    def _printed(self) -> "ShownPlanTable":
        for table in (self, *(self.alternatives or ())):
            _require_printed(table)
        return self

    @model_validator(mode="after")
    def _exchanged(self) -> "ShownPlanTable":
        together = {"exchange_s", "expert_nodes", "expert"}
        if "exchange_s" in self.model_fields_set and not together <= self.model_fields_set:
            raise ValueError("give expert and expert_nodes with exchange_s")
        return self

    @model_validator(mode="after")
    def _counted(self) -> "ShownPlanTable":
        if self.alternatives and self.choices is None:
            raise ValueError("there are alternatives and no choices")
        return self


def require_plan(document: Mapping[str, Any], where: str) -> None:
    """Refuse what is no plan."""
    check(PlanTable, document, where)


def require_job_plan(document: Mapping[str, Any], where: str) -> None:
    """Refuse what is no plan of a job."""
    check(JobPlanTable, document, where)


def require_shown_plan(document: Mapping[str, Any], where: str) -> None:
    """Refuse what cannot be printed as a plan of a job."""
    check(ShownPlanTable, document, where)
