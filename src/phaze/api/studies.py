"""The commands that read a study, as functions: search, front, sweep and compare."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from phaze.api.module import Model
from phaze.api.values import Compared, Fronted, Searched, Swept, compared_value, fronted, searched, swept
from phaze.front.folder import front_in
from phaze.front.metrics import asked_of
from phaze.graph.tensor_plan import is_place
from phaze.hardware.library import is_path
from phaze.hardware.write import toml_text
from phaze.report.progress import Progress, on_standard_error
from phaze.report.search_sheet import shown_on
from phaze.search.folder import run_in
from phaze.study.compared import compared
from phaze.study.load import default_study, given_paths, question_of, read_study, study_of, with_settings
from phaze.study.own import with_own_models, with_tables
from phaze.study.places import Origin, name_of, plain_name
from phaze.sweep.over import over_of
from phaze.sweep.run import sweep as sweep_points

Study = str | Path | Mapping[str, Any] | Model


def _asked(study: Study, settings: Sequence[str]) -> tuple[dict[str, Any], Origin]:
    """Plain values of a study: of a file, as they are, or of a model; and where they come from. A model of one's own
    may still be an object among them."""
    if isinstance(study, Model):
        raw, origin = {**default_study(plain_name(study.name)), "models": [study]}, Origin(study.name)
    elif isinstance(study, Mapping):
        raw, origin = dict(study), Origin("study")
    elif isinstance(study, str) and (is_place(study) or not is_path(study)) and not study.endswith((".toml", ".json")):
        raw = {**default_study(name_of(study) if is_place(study) else study), "models": [study]}
        origin = Origin(study)
    else:
        raw, origin = read_study(str(study))
    return with_settings(raw, settings), origin.given(given_paths(settings))


def _traced(raw: Mapping[str, Any], origin: Origin, progress: Progress) -> dict[str, Any]:
    progress.step("opening the models")
    return with_own_models(raw, origin, progress.counting("tracing"))


def _folder(out: str | Path | None, name: str) -> tuple[Path, "TemporaryDirectory[str] | None"]:
    """The folder of an answer; without ``out`` one that goes with the value."""
    if out is not None:
        return Path(out), None
    kept = TemporaryDirectory(prefix="phaze-")
    return Path(kept.name) / name, kept


def search(
    study: Study,
    *,
    out: str | Path | None = None,
    settings: Sequence[str] = (),
    workers: int = 1,
    time_s: float | None = None,
) -> Searched:
    """Search a study: a file, its values, or a model (a name, ``own.py:build``, a :class:`phaze.Model`) with everything
    at its default. Among a study's values a model may be a :class:`phaze.Model` too.

    Without ``out`` the run lies in a folder that goes with the value. ``settings`` are ``"training.batch=2048"``.
    """
    asked, origin = _asked(study, settings)
    with on_standard_error() as progress:
        plain = _traced(asked, origin, progress)
        question = question_of(study_of(plain, origin.where), time_s, origin.reader)
        folder, kept = _folder(out, question.job.name)
        progress.step("bounding every chip of the space")
        done = run_in(folder, question.papers(toml_text(plain)), question.job, workers, shown_on(progress))
    return searched(done.document, folder, kept)


def front(
    study: Study,
    *,
    of: str | Sequence[str],
    within: Sequence[str] = (),
    gap: float = 0.0,
    out: str | Path | None = None,
    settings: Sequence[str] = (),
    workers: int = 1,
) -> Fronted:
    """Every design of a study that none beats in the metrics ``of``, such as ``("throughput", "area")``.

    ``study`` is as for :func:`search`. ``within`` are limits such as ``"power=300"``. Without ``out`` the front lies in
    a folder that goes with the value.
    """
    raw, origin = _asked(study, [*settings, f"search.gap={gap!r}"])
    with on_standard_error() as progress:
        plain = _traced(raw, origin, progress)
        question = question_of(study_of(plain, origin.where), reader=origin.reader)
        asked = asked_of(of, within)
        question = question.fronted(asked.document())
        folder, kept = _folder(out, question.job.name)
        progress.step("looking for designs that none beats")
        found = front_in(folder, question.papers(toml_text(plain)), question.job, asked, workers)
    return fronted(found.document, folder, kept)


def sweep(
    study: Study,
    *,
    over: str,
    points: int = 9,
    out: str | Path | None = None,
    settings: Sequence[str] = (),
    workers: int = 1,
) -> Swept:
    """The certified best at every value of one key of a study: ``over="training.devices=64,256"``, or a range such as
    ``"cluster.link_bytes_per_s=1e9..1e12"`` of so many ``points``. ``study`` is as for :func:`search`."""
    raw, origin = _asked(study, settings)
    axis = over_of(over, with_tables(raw), origin.where, points)
    folder, kept = _folder(out, f"{raw.get('name', 'study')}-sweep")
    with on_standard_error() as progress:

        def tell(at: int, of: int, value: str) -> None:
            progress.count(at, of, f"searching at {axis.key} = {value}, points done")

        document = sweep_points(folder, raw, origin, axis, workers, tell)
    return swept(document, folder, kept)


def compare(
    study: Study,
    *,
    chips: Sequence[str] = (),
    runs: Sequence[str | Path] = (),
    basis: str = "space",
    settings: Sequence[str] = (),
) -> Compared:
    """Throughput of every model of a study on ``chips`` and on the chips that ``runs`` found, against its baseline.

    ``study`` is as for :func:`search`; ``basis`` says which constants count: space, baseline, own, datasheet, ideal.
    """
    raw, origin = _asked(study, settings)
    with on_standard_error() as progress:
        plain = _traced(raw, origin, progress)
        progress.step("placing the models on each chip")
        return compared_value(compared(plain, origin, chips, [str(run) for run in runs], basis))
