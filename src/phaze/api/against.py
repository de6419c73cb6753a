"""A plan that runs today beside the best one: ``phaze.plan(against=...)``."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from phaze.api.pricing import planned_value
from phaze.api.values import Planned
from phaze.errors import InputError

if TYPE_CHECKING:
    from phaze.export.launch_run import Launched
    from phaze.hardware.calibration import Basis
    from phaze.report.progress import Progress


def launched_job(path: str, model: Mapping[str, Any], stated: Mapping[str, Any]) -> "Launched":
    """The run of a launch file with the options that are ``stated`` beside it; its optimizer must
    be the stack's. Code that the file names as its model runs only if ``allow_code`` is among
    them."""
    from dataclasses import replace

    from phaze.export.launch_run import LaunchOptions, read_launch
    from phaze.graph.supply.permission import require_allowed
    from phaze.hardware.library import load_built_stack, load_chip, load_cluster

    chip, precision, allow_code = stated.get("chip"), stated.get("precision"), stated["allow_code"]
    usual = None if chip is None else load_chip(chip).cluster
    job = [stated.get(key) for key in ("cluster", "stack", "devices", "batch", "sequence")]
    launched = read_launch(path, LaunchOptions(model, chip, *job), usual)
    run = launched.run
    named = (
        run.get("stack")
        or load_cluster(str(run["cluster"]), chip=load_chip(str(run["chip"]))).stack
    )
    software = load_built_stack(str(named))
    if run.get("optimizer", software.optimizer) != software.optimizer:
        what = (
            f"{run['optimizer']} and plans of the stack {software.name} are sought with "
            f"{software.optimizer}"
        )
        raise InputError(
            f"{launched.where}: optimizer",
            what,
            "name a stack with it (--stack), or change the file",
        )
    if precision is not None and run.get("precision", precision) != precision:
        what = f"{precision} and {launched.where} says {run['precision']}"
        raise InputError("--precision", what, "leave the option out")
    require_allowed(str(run.get("model", "")), allow_code, f"{launched.where}: model")
    run = run if precision is None else {**run, "precision": precision}
    return replace(launched, run=run, allow_code=allow_code)


def with_given(
    value: Planned, launched: "Launched", basis: "Basis", progress: "Progress"
) -> Planned:
    """The best plan with the given one beside it."""
    from phaze.export.against import against_document

    progress.step("pricing your plan and each difference")
    whole = {**value.document, "against": against_document(launched, value.document, basis)}
    return planned_value(whole)


def degrees_tried(launched: "Launched | None", key: str) -> tuple[int, ...] | None:
    """The degrees of ``context`` or ``expert`` that stand to choice beside a given plan: 1 and its
    own."""
    degree = 1 if launched is None else int(launched.run["plan"].get(key, 1))
    return None if degree == 1 else (1, degree)


def named_model(run: dict[str, Any]) -> tuple[str, dict[str, Any] | None]:
    """The model of a run, and its sizes if it is of a family."""
    for family in ("gpt", "llama", "moe"):
        if family in run:
            return family, dict(run[family])
    return str(run.get("model") or run.get("graph")), None
