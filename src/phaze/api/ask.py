"""The commands as functions."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from phaze.api.values import (
    Placed,
    Planned,
    Searched,
    searched,
)
from phaze.documents import notation_of, parse
from phaze.errors import InfeasibleError
from phaze.evaluate.answer import fixed_document
from phaze.evaluate.fixed import fixed_plan
from phaze.evaluate.job_file import reopened, run_job
from phaze.evaluate.plan_file import require_shown_plan
from phaze.evaluate.run_file import job_of as run_job_of
from phaze.evaluate.run_file import read_run, with_tensor_plan
from phaze.export.opened import read_plan
from phaze.files import read_text
from phaze.hardware.calibration import Basis
from phaze.placement.answer import document_of
from phaze.placement.answer import place as place_problem
from phaze.placement.profile import problem_of
from phaze.placement.shortage import Shortage
from phaze.report.alternatives_sheet import show_alternatives
from phaze.report.plan_sheet import show_answer
from phaze.report.run_sheet import show_run
from phaze.search.result_file import read_result

Source = str | Path | Mapping[str, Any]
T = TypeVar("T")


def _raw(source: Source, name: str) -> tuple[Mapping[str, Any], str]:
    """Plain values of a file or of a mapping, and what to call them."""
    if isinstance(source, Mapping):
        return source, name
    text, where = read_text(str(source))
    return parse(text, notation_of(str(source), text), where), where


def _planned(document: Mapping[str, Any], hbm_bytes: int) -> Planned:
    def draw(console: Any) -> None:
        show_run(console, document, hbm_bytes)
        if document.get("alternatives"):
            show_alternatives(console, document)

    return Planned(document, draw)


def price(run: Source, basis: Basis = "calibrated") -> Planned:
    """What a given plan takes, whether it fits or not, as ``phaze plan --fixed``.

    Args:
        run: A run (``phaze.run/1``): a file, or its values.
        basis: ``"calibrated"`` or ``"datasheet"`` constants.

    Returns:
        The plan priced: seconds, memory of every stage in bytes, and ``shortage`` where it does not fit.

    Examples:
        >>> import phaze
        >>> gpt = {"hidden": 1024, "layers": 8, "heads": 16, "vocabulary": 51200, "sequence": 512}
        >>> split = {"tensor": 1, "pipeline": 2, "data": 4, "microbatch": 2}
        >>> run = {"schema": "phaze.run/1", "gpt": gpt, "chip": "a100-80gb", "cluster": "selene"}
        >>> priced = phaze.price({**run, "devices": 8, "batch": 32, "plan": split})
        >>> priced["feasible"], priced.batch_s > 0
        (True, True)
    """
    raw, where = (with_tensor_plan(dict(run)), "run") if isinstance(run, Mapping) else read_run(str(run))
    job = run_job_of(raw, where)
    problem, found = fixed_plan(job, basis)
    document = {**fixed_document(job, problem, found, basis), "job": run_job(raw, job, basis)}
    return _planned(document, job.chip.hbm.size_bytes)


def place(profile: Source) -> Placed:
    """The fastest split of measured layers over devices, proved, as ``phaze place``.

    Args:
        profile: Layers and devices (``phaze.profile/1``): a file, or its values.

    Returns:
        The placement: ``batch_s`` in seconds, and its stages.

    Raises:
        InfeasibleError: No split fits into memory.

    Examples:
        >>> import phaze
        >>> layer = {"forward_s": 1.0, "backward_s": 2.0, "parameter_bytes": 8, "activation_bytes": 4, "sharded": False}
        >>> width = {"layers": [{"id": 0, **layer}, {"id": 1, **layer}], "edges": [{"from": 0, "to": 1, "bytes": 1}]}
        >>> machine = {"devices": 2, "hbm_bytes": 1000, "link_bytes_per_s": 1e9, "microbatches": 4}
        >>> values = {"schema": "phaze.profile/1", "rules": "icml24", "optimizer": "adam", "recompute": False}
        >>> placed = phaze.place({**values, **machine, "widths": {"1": width}})
        >>> len(placed["stages"]), placed.batch_s > 0
        (1, True)
    """
    raw, where = _raw(profile, "profile")
    problem = problem_of(dict(raw), where)
    found = place_problem(problem)
    if isinstance(found, Shortage):
        raise InfeasibleError(found.sentence, dict(document_of(found)))
    return Placed(document_of(found), lambda console: show_answer(console, where, problem, found))


def load(path: str | Path) -> Searched | Planned:
    """A finished search from its folder, or a plan from what ``phaze plan ... --json`` printed.

    Args:
        path: The folder of a run, or the file of a plan.

    Returns:
        What :func:`phaze.search` or :func:`phaze.plan` returned.

    Examples:
        >>> import json, pathlib, tempfile
        >>> import phaze
        >>> plan = phaze.plan("bert-large", chip="a100-80gb", devices=8, batch=64, tensor=[1], microbatch=[4])
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "plan.json"
        >>> _ = path.write_text(json.dumps(plan.document))
        >>> phaze.load(path).batch_s == plan.batch_s
        True
    """
    if Path(path).is_dir():
        return searched(read_result(Path(path)), Path(path))
    document, where = read_plan(str(path))
    require_shown_plan(document, where)
    return _planned(document, reopened(document, where).setting.chip.hbm.size_bytes)
