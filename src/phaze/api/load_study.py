"""The study that a question is about: a file, plain values or models, its own models traced."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from phaze.errors import InputError
from phaze.options.option import table_parameters

if TYPE_CHECKING:
    from phaze.graph.supply.module import ModuleSupply as Model
    from phaze.report.progress import Progress
    from phaze.study.places import Origin

    Study = str | Path | Mapping[str, Any] | Model
    Models = str | Model | Sequence[str | Model]


def with_plan(model: str, plan: str | None) -> str:
    """The model with the tensor-parallel plan of a file, if one is given."""
    if plan is None:
        return model
    if ":" not in model and "/" not in model and not model.endswith(".json"):
        raise InputError(
            "--tp-plan", f"{model or 'this model'} has a plan of its own", "leave it out"
        )
    if not plan.endswith((".toml", ".json")):
        raise InputError(
            "--tp-plan", f"'{plan}' is not a file of a plan", "its name ends in .toml or .json"
        )
    return f"{model}@{plan}"


def announce(model: str, sequence: int | None) -> None:
    """What a model that was traced is run as; built-in models and graph files have nothing to
    say."""
    from phaze.graph.supply.supply import TracedSupply, supply_of

    try:
        supply = supply_of(model, traced_before=True)
        if not isinstance(supply, TracedSupply):
            return
        facts = supply.facts
        length = facts.length(sequence)
    except InputError:  # nothing was kept: the cache cannot be written
        return
    widths = ", ".join(map(str, facts.widths))
    sys.stderr.write(
        f"{model}: sequence {length}, TP degrees {widths}; tensor-parallel plan: {facts.basis}\n"
    )
    for row in facts.plan["whole"] if facts.plan is not None else ():
        sys.stderr.write(f"  {row['module']} is not split: {row['why']}\n")
    for width, why in facts.refused if facts.plan is not None else ():
        sys.stderr.write(f"  not TP {width}: {why}\n")


def study_settings(options: Mapping[str, Any], table: type) -> list[str]:
    """Changes of a study: ``settings`` first, then options of a table by the key that each stands
    for; what is None changes nothing. Of ``shard`` 0 means all ranks."""
    from phaze.documents import dumps

    keys = {
        parameter.name: parameter.option.key
        for parameter in table_parameters(table)
        if parameter.option.key
    }
    changes = {key: options[name] for name, key in keys.items() if options[name] is not None}
    if "training.shard" in changes:
        changes["training.shard"] = [ranks or "all" for ranks in changes["training.shard"]]
    if str(changes.get("training.batch", "")).isdecimal():
        changes["training.batch"] = int(changes["training.batch"])
    return [*options["settings"], *(f"{key}={dumps(value)}" for key, value in changes.items())]


def _is_model(study: "Study") -> bool:
    """Whether a model stands where a study could."""
    from phaze.files import STANDARD_INPUT, is_path
    from phaze.graph.supply.module import ModuleSupply
    from phaze.graph.tensor_plan import is_place

    if (
        isinstance(study, str)
        and study not in STANDARD_INPUT
        and not study.endswith((".toml", ".json"))
    ):
        return not Path(study).is_file() and (is_place(study) or not is_path(study))
    return isinstance(study, ModuleSupply)


def _name(models: Sequence[Any]) -> str:
    """What a search of these models is called: their names, or how many there are."""
    from phaze.graph.tensor_plan import is_place
    from phaze.study.places import name_of, plain_name

    called = [
        plain_name(model.name)
        if not isinstance(model, str)
        else name_of(model)
        if is_place(model)
        else model
        for model in models
    ]
    return "-".join(called) if len(models) < 4 else f"{len(models)}-models"


def requested_study(
    study: "Study | None",
    models: "Models | None",
    settings: Sequence[str],
    tp_plan: str | None = None,
    allow_code: bool = False,
) -> "tuple[dict[str, Any], Origin]":
    """The plain values of the study that was asked for, its own models not traced yet, and where it
    comes from. Models that stand in place of a study are named by the caller, so that their code
    may run; a study's with ``allow_code``.
    """
    from dataclasses import replace

    from phaze.study.places import Origin
    from phaze.study.raw import default_study, given_paths, read_study, with_settings

    named: list[Any] = (
        [] if models is None else list(models) if isinstance(models, list | tuple) else [models]
    )
    if (study is None) == (not named):
        seen = (
            "there is no study and no --model"
            if study is None
            else "a study and --model are given together"
        )
        raise InputError("", seen, "give one of them, such as --model llama3-8b")
    if study is not None and _is_model(study):
        named, study = [study], None
    if study is None:
        named = [
            with_plan(place_named, tp_plan) if isinstance(place_named, str) else place_named
            for place_named in named
        ]
        raw, origin = (
            {**default_study(_name(named)), "models": named},
            Origin("--model", allow_code=True),
        )
    elif isinstance(study, Mapping):
        raw, origin = dict(study), Origin("study", allow_code=allow_code)
    else:
        raw, origin = read_study(str(study))
        origin = replace(origin, allow_code=allow_code)
    return with_settings(raw, settings), origin.trusting(given_paths(settings))


def traced(
    raw: Mapping[str, Any], origin: "Origin", fresh: bool, progress: "Progress"
) -> dict[str, Any]:
    """A study with its own models traced; standard error says what each is run as."""
    from phaze.study.own_models import own_places, with_own_models

    progress.step("opening the models")
    traced_values = with_own_models(raw, origin, progress.counting("tracing"), fresh)
    progress.clear()
    for place, length in own_places(raw, origin):
        announce(place, length)
    return traced_values


def traced_study(
    study: "Study | None",
    models: "Models | None",
    settings: Sequence[str],
    fresh: bool = False,
    progress: "Progress | None" = None,
    tp_plan: str | None = None,
    allow_code: bool = False,
) -> "tuple[dict[str, Any], Origin]":
    """The plain values of the study that was asked for, its models graphs or built in, and where it
    comes from."""
    from phaze.report.progress import Progress

    raw, origin = requested_study(study, models, settings, tp_plan, allow_code)
    return traced(raw, origin, fresh, progress or Progress()), origin
