"""Options as keys of files: documents whose fields follow from the tables of options.

What editors and type checkers see of them stands in ``keys.pyi``, which ``python -m
tools.key_stubs`` writes.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from phaze.options.key_fields import (
    KeyField,
    choice_keys,
    document,
    job_keys,
    plan_keys,
    study_keys,
)

PLAN = ("tensor", "chunks", "family", "zero", "context", "expert", "shard")
RESTRICTED = (
    "tensor",
    "microbatch",
    "context",
    "context_way",
    "expert",
    "zero",
    "family",
    "chunks",
    "headroom",
)
FIELDS: Mapping[str, Sequence[KeyField]] = MappingProxyType(
    {
        "TrainingKeys": study_keys("training"),
        "CostKeys": study_keys("cost"),
        "ObjectiveKeys": study_keys("objective"),
        "SearchKeys": study_keys("search"),
        "RunKeys": job_keys(
            ("devices", "batch"),
            ("sequence", "tokens", "precision", "attention", "imbalance", "capacity"),
        ),
        "RunPlanKeys": plan_keys(*PLAN, "microbatch", "context_way"),
        "AnswerPlanKeys": plan_keys(*PLAN, "attention"),
        "AnswerJobKeys": plan_keys("zero", "attention"),
        "RestrictedKeys": choice_keys(*RESTRICTED),
        "ProfileKeys": job_keys(("devices",), ("zero",)),
        "PointKeys": job_keys(
            ("tensor", "microbatch", "chunks", "zero"),
            ("family", "context", "context_way", "expert", "shard"),
        ),
    }
)

TrainingKeys = document("TrainingKeys", FIELDS["TrainingKeys"])
CostKeys = document("CostKeys", FIELDS["CostKeys"])
ObjectiveKeys = document("ObjectiveKeys", FIELDS["ObjectiveKeys"])
SearchKeys = document("SearchKeys", FIELDS["SearchKeys"])
RunKeys = document("RunKeys", FIELDS["RunKeys"])
RunPlanKeys = document("RunPlanKeys", FIELDS["RunPlanKeys"])
AnswerPlanKeys = document("AnswerPlanKeys", FIELDS["AnswerPlanKeys"])
AnswerJobKeys = document("AnswerJobKeys", FIELDS["AnswerJobKeys"])
RestrictedKeys = document("RestrictedKeys", FIELDS["RestrictedKeys"])
ProfileKeys = document("ProfileKeys", FIELDS["ProfileKeys"])
PointKeys = document("PointKeys", FIELDS["PointKeys"])
