"""The commands that read a study, as functions: search, front, sweep and compare."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from phaze.api.module import Model
from phaze.api.renamed import renamed
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
from phaze.study.options import study_settings
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


def _traced(raw: Mapping[str, Any], origin: Origin, progress: Progress, fresh: bool = False) -> dict[str, Any]:
    progress.step("opening the models")
    return with_own_models(raw, origin, progress.counting("tracing"), fresh)


def traced_study(study: Study, settings: Sequence[str]) -> tuple[dict[str, Any], Origin]:
    """Plain values of a study whose models are all traced, and where they come from."""
    raw, origin = _asked(study, settings)
    with on_standard_error() as progress:
        return _traced(raw, origin, progress), origin


def _folder(out: str | Path | None, name: str) -> tuple[Path, "TemporaryDirectory[str] | None"]:
    """The folder of an answer; without ``out`` one that goes with the value."""
    if out is not None:
        return Path(out), None
    kept = TemporaryDirectory(prefix="phaze-")
    return Path(kept.name) / name, kept


@renamed(time_s="time")
def search(
    study: Study,
    *,
    out: str | Path | None = None,
    settings: Sequence[str] = (),
    workers: int = 1,
    time: float | None = None,
    gap: float | None = None,
    rules: str | None = None,
    attention: str | None = None,
    precision: str | None = None,
    shard: Sequence[int] | None = None,
    headroom: str | float | None = None,
    devices: int | None = None,
    batch: int | str | None = None,
    sequence: int | str | None = None,
    tokens: int | str | None = None,
    terms: str | None = None,
    fresh: bool = False,
) -> Searched:
    """The best chip and placement together, with a certificate, as ``phaze search``.

    Args:
        study: A file (``phaze.study/1``), its values, or a model with everything at its default: a name,
            ``"own.py:build"`` or a :class:`phaze.Model`, which may also stand among a study's values.
        out: The folder; without it one that goes with the value.
        settings: Changes to the study, such as ``"training.batch=2048"``.
        workers: Processes that evaluate chips.
        time: Seconds after which the best so far is the answer, with the gap that is proved of it.
        gap: Relative gap to which the answer is proved; without it the study's.
        rules: Whose defaults hold: ``"cluster"`` or ``"icml24"``; without it the study's.
        attention: ``"eager"``, ``"fused"`` or ``"best"``; without it as the stack runs it.
        precision: ``"bf16"``, ``"fp8"`` or a recipe that stack and space have; without it the stack's.
        shard: Hybrid sharding: ranks with the same weights that share out state, 0 for all of them.
        headroom: Share of memory that is left free, ``0.06`` or ``"6%"``.
        devices: How many devices there are.
        batch: Sequences of a global batch, or ``"4M-tokens"``.
        sequence: Tokens of a sequence, or ``"32k"``.
        tokens: Tokens to train on, or ``"15T"``: adds days, cost, energy and carbon.
        terms: A file ``phaze.ownership/1`` with the prices for ``tokens``.
        fresh: Trace models of your own again, whatever the cache holds.

    Returns:
        The run: ``chip``, ``models``, ``gap``, ``frame()`` of every chip, ``page()``.

    Raises:
        InfeasibleError: No chip of the space fits the models.

    Examples:
        >>> import phaze
        >>> study = {"schema": "phaze.study/1", "name": "small", "rules": "icml24", "models": ["bert-large"],
        ...          "training": {"devices": 64, "batch": 512, "microbatches": [2]}}
        >>> run = phaze.search(study, settings=["search.gap=0.01"])
        >>> run.gap <= 0.01, run.chip["tensor_cores"] > 0
        (True, True)
    """
    chosen = study_settings(
        settings, rules=rules, gap=gap, attention=attention, precision=precision, shard=shard, headroom=headroom,
        devices=devices, batch=batch, sequence=sequence, tokens=tokens, terms=terms,
    )  # fmt: skip
    asked, origin = _asked(study, chosen)
    with on_standard_error() as progress:
        plain = _traced(asked, origin, progress, fresh)
        question = question_of(study_of(plain, origin.where), time, origin.reader)
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
    time: float | None = None,
    rules: str | None = None,
    fresh: bool = False,
) -> Fronted:
    """The Pareto front of two or three metrics, each design with a certificate, as ``phaze front``.

    Args:
        study: A file (``phaze.study/1``), its values, or a model with everything at its default: a name,
            ``"own.py:build"`` or a :class:`phaze.Model`, which may also stand among a study's values.
        of: Two or three of throughput, area, power, price, embodied, energy, cost, carbon.
        within: Limits on metrics, such as ``"power=300"`` (W).
        gap: Relative gap to which each design is proved.
        out: The folder; without it one that goes with the value.
        settings: Changes to the study, such as ``"training.batch=2048"``.
        workers: Processes that evaluate chips.
        time: Seconds after which the designs so far are the answer.
        rules: Whose defaults hold: ``"cluster"`` or ``"icml24"``; without it the study's.
        fresh: Trace models of your own again, whatever the cache holds.

    Returns:
        The front: ``points``, ``frame()``, ``page()``.

    Examples:
        >>> import phaze
        >>> study = {"schema": "phaze.study/1", "name": "small", "rules": "icml24", "models": ["bert-large"],
        ...          "training": {"devices": 64, "batch": 512, "microbatches": [2]}}
        >>> front = phaze.front(study, of=("throughput", "area"), within=["area=200"], gap=0.01)
        >>> len(front.points) > 1
        True
    """
    raw, origin = _asked(study, study_settings(settings, rules=rules, gap=gap))
    with on_standard_error() as progress:
        plain = _traced(raw, origin, progress, fresh)
        question = question_of(study_of(plain, origin.where), time, origin.reader)
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
    rules: str | None = None,
    fresh: bool = False,
) -> Swept:
    """The certified best at every value of one key of a study, as ``phaze sweep``.

    Args:
        study: A file (``phaze.study/1``), its values, or a model with everything at its default: a name,
            ``"own.py:build"`` or a :class:`phaze.Model`, which may also stand among a study's values.
        over: A key and its values, ``"training.devices=64,256"``, or a range, ``"training.devices=64..4096"``.
        points: How many values of a range, evenly spaced by ratio.
        out: The folder; without it one that goes with the value.
        settings: Changes to the study, such as ``"training.batch=2048"``.
        workers: Processes that evaluate chips.
        rules: Whose defaults hold: ``"cluster"`` or ``"icml24"``; without it the study's.
        fresh: Trace models of your own again, whatever the cache holds.

    Returns:
        The sweep: ``points`` and ``page()``.

    Examples:
        >>> import phaze
        >>> study = {"schema": "phaze.study/1", "name": "small", "rules": "icml24", "models": ["bert-large"],
        ...          "training": {"devices": 64, "batch": 512, "microbatches": [2]}}
        >>> sweep = phaze.sweep(study, over="training.devices=32,64", settings=["search.gap=0.01"])
        >>> [point["value"] for point in sweep.points]
        [32, 64]
    """
    raw, origin = _asked(study, study_settings(settings, rules=rules))
    axis = over_of(over, with_tables(raw), origin.where, points)
    folder, kept = _folder(out, f"{raw.get('name', 'study')}-sweep")
    with on_standard_error() as progress:
        if fresh:
            _traced(raw, origin, progress, fresh)

        def tell(at: int, of: int, value: str) -> None:
            progress.count(at, of, f"searching at {axis.key} = {value}, points done")

        document = sweep_points(folder, raw, origin, axis, workers, tell)
    return swept(document, folder, kept)


def compare(
    study: Study,
    *,
    chips: Sequence[str] = (),
    runs: Sequence[str | Path] = (),
    rows: str | Path | None = None,
    basis: str = "space",
    settings: Sequence[str] = (),
    rules: str | None = None,
    fresh: bool = False,
) -> Compared:
    """Throughput of every model of a study on several chips, against its baseline, as ``phaze compare``.

    Args:
        study: A file (``phaze.study/1``), its values, or a model with everything at its default: a name,
            ``"own.py:build"`` or a :class:`phaze.Model`, which may also stand among a study's values.
        chips: Presets or paths of chip files.
        runs: Folders of searches whose chips are compared too.
        rows: A CSV of chips and plans of others: ``chip``, keys of its file that are other, ``name``; for a plan
            ``model``, ``tensor``, ``pipeline`` and ``microbatch``.
        basis: Whose constants count: ``"space"``, ``"baseline"``, ``"own"``, ``"datasheet"`` or ``"ideal"``.
        settings: Changes to the study, such as ``"training.batch=2048"``.
        rules: Whose defaults hold: ``"cluster"`` or ``"icml24"``; without it the study's.
        fresh: Trace models of your own again, whatever the cache holds.

    Returns:
        The comparison: ``rows``, one for each chip, model and placement.

    Examples:
        >>> import phaze
        >>> study = {"schema": "phaze.study/1", "name": "small", "rules": "icml24", "models": ["bert-large"],
        ...          "training": {"devices": 64, "batch": 512, "microbatches": [2]}}
        >>> compared = phaze.compare(study, chips=["tpu-v4-paper"])
        >>> {row["model"] for row in compared.rows}
        {'bert-large'}
    """
    raw, origin = _asked(study, study_settings(settings, rules=rules))
    with on_standard_error() as progress:
        plain = _traced(raw, origin, progress, fresh)
        progress.step("placing the models on each chip")
        others = None if rows is None else str(rows)
        return compared_value(compared(plain, origin, chips, [str(run) for run in runs], basis, others))
