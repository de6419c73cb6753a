"""``phaze verify SWEEP``: every point of a sweep is a run, proved as one, or a question of which it
is proved that nothing fits, and ``sweep.json`` is a view of them."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from phaze.api.values import Answer, sheet
from phaze.api.verify_certificate import NOT_COVERED, READING, independently

if TYPE_CHECKING:
    from phaze.check.verdict import Verdict
    from phaze.report.progress import Progress

RESULT, STUDY = "result.json", "study.toml"


def _without(study: Mapping[str, Any], key: str) -> tuple[Any, dict[str, Any]]:
    """What a study says of a key, and all that it says beside."""
    rest: dict[str, Any] = dict(study)
    place, (*above, last) = rest, key.split(".")
    for step in above:
        place[step] = dict(place.get(step, {}))
        place = place[step]
    return place.pop(last, None), rest


def _studies(folder: Path, document: Mapping[str, Any]) -> list[str]:
    """What of the points' studies is not one study with one value changed, the one that each point
    shows."""
    from phaze.files import read_text
    from phaze.sweep.over import shown_value

    key, first = document["over"], None
    for index, point in enumerate(document["points"]):
        path = folder / "points" / f"{index:03d}" / STUDY
        value, rest = _without(tomllib.loads(read_text(str(path))[0]), key)
        true = shown_value(value)
        if true is None:
            return [f"points[{index}]: its study states no value of {key}"]
        if true[0] != point["value"]:
            return [f"points[{index}].value: {point['value']!r}, and its study has {value!r}"]
        if true[1] != point["shown"]:
            return [f"points[{index}].shown: {point['shown']!r}, and its study has {true[1]!r}"]
        if first is not None and rest != first:
            return [f"points[{index}]: its study differs from the first one in more than {key}"]
        if rest.get("name", document["name"]) != document["name"]:
            return [f"name: {document['name']!r}, and its studies are called {rest['name']!r}"]
        first = rest
    return []


def _folders(folder: Path, document: Mapping[str, Any]) -> list[str]:
    """Answers in the folder that sweep.json does not show."""
    answers = {
        path.name: path for path in (folder / "points").glob("*") if (path / RESULT).is_file()
    }
    shown = {f"{index:03d}": point for index, point in enumerate(document["points"])}
    for name in sorted(answers):
        if name not in shown:
            return [f"points/{name}: it holds an answer, and sweep.json has no such point"]
        if shown[name]["chip"] is None:
            return [f"points[{int(name)}]: it is called infeasible, and its folder holds an answer"]
    return []


def _view(
    folder: Path, document: Mapping[str, Any], results: Mapping[int, Mapping[str, Any]]
) -> list[str]:
    """What of sweep.json is not what the results of its points say."""
    from phaze.documents import dumps
    from phaze.files import read_text
    from phaze.sweep.run import SWEEP, Best, best_of, document_of

    points = []
    for index, point in enumerate(document["points"]):
        if index in results:
            points.append(best_of(point["value"], point["shown"], results[index]))
        else:
            points.append(
                Best(
                    point["value"],
                    point["shown"],
                    None,
                    None,
                    None,
                    None,
                    None,
                    (),
                    point["problem"],
                )
            )
    true = dumps(document_of(document["name"], document["over"], points), pretty=True) + "\n"
    return (
        []
        if read_text(str(folder / SWEEP))[0] == true
        else [f"{SWEEP}: it is not what its points say"]
    )


@dataclass(frozen=True, slots=True)
class _Point:
    """What was shown of a point: its run, what is wrong with it and what is not covered, and the
    verdict in words."""

    index: int
    run_id: str
    holds: bool
    gap: float
    wrong: str
    missing: str
    sentence: str


def _of_run(index: int, verdict: "Verdict") -> _Point:
    return _Point(
        index,
        verdict.run_id,
        verdict.holds,
        verdict.proved_gap,
        verdict.wrong,
        verdict.missing,
        verdict.sentence(),
    )


def _restated(folder: Path) -> str:
    """Why the question of a folder has no answer, as a search says; empty where it has one."""
    from phaze.errors import PhazeError
    from phaze.search.baseline import scale_for
    from phaze.search.question_files import unlike
    from phaze.search.run import search
    from phaze.search.shortage import nothing_found
    from phaze.study.load import question_in

    question = question_in(folder)
    if wrong := unlike(folder, question.papers("")):
        return wrong[0]
    try:
        state = search(question.job, scale_for(question.job))
    except PhazeError as fault:
        return str(fault)
    answered = any(evaluated.ran for evaluated in state.evaluated.values())
    return "" if answered else str(nothing_found(state))


def _infeasible(folder: Path, index: int, problem: str, quick: bool) -> _Point:
    """A point of which it is said that nothing fits: the checker shows that, and a search says the
    same of it."""
    from phaze.check.infeasible import question_id, require_nothing_fits
    from phaze.check.reading import NotCoveredError, RefusedError

    wrong, missing, sentence = "", "", "not checked (quick)"
    try:
        if not quick:
            shown = require_nothing_fits(folder)
            sentence = f"holds: {shown}"
            if (true := _restated(folder)) != problem:
                wrong = f"problem: {problem!r}, and a search says {true!r}"
        run_id = question_id(folder)
    except RefusedError as fault:
        run_id, wrong = "", str(fault)
    except NotCoveredError as fault:
        run_id, missing = "", str(fault)
    except READING as fault:
        run_id, wrong = "", f"it cannot be read ({type(fault).__name__}: {str(fault)[:80]})"
    if wrong or missing:
        sentence = f"does not hold: {wrong}" if wrong else missing
    return _Point(index, run_id, not (wrong or missing or quick), 0.0, wrong, missing, sentence)


def _points(
    run: str, quick: bool, document: Mapping[str, Any], progress: "Progress"
) -> list[_Point]:
    """Every point, proved."""
    from phaze.documents import read_answer

    points = []
    for index, point in enumerate(document["points"]):
        place = Path(run) / "points" / f"{index:03d}"
        progress.step(f"checking the certificate of point {index + 1} of {len(document['points'])}")
        if point["chip"] is None:
            points.append(_infeasible(place, index, str(point["problem"]), quick))
            continue
        result, text, _ = read_answer(str(place / RESULT))
        verdict, wrong = independently(str(place), quick, result, text, progress)
        verdict.wrong = wrong[0] if wrong else verdict.wrong
        points.append(_of_run(index, verdict))
    return points


def sweep_verified(run: str, quick: bool, progress: "Progress") -> Answer:
    """The verdict on every point, and on the sweep."""
    from phaze.documents import read_answer
    from phaze.report.run_id import id_in
    from phaze.sweep.schema import sweep_in

    folder, document = Path(run), sweep_in(Path(run))
    verdicts = _points(run, quick, document, progress)
    wrong = _folders(folder, document)
    wrong += [f"point {point.index + 1}: {point.wrong}" for point in verdicts if point.wrong]
    missing = [f"point {point.index + 1}: {point.missing}" for point in verdicts if point.missing]
    try:
        results = {
            index: read_answer(str(folder / "points" / f"{index:03d}" / RESULT))[0]
            for index, point in enumerate(document["points"])
            if point["chip"] is not None
        }
        wrong = wrong or _studies(folder, document) or _view(folder, document, results)
    except (*READING, tomllib.TOMLDecodeError) as fault:
        wrong = wrong or [f"the sweep cannot be read ({type(fault).__name__}: {fault})"]
    holds = not wrong and not missing and not quick
    answer = {
        "run": run,
        "run_id": id_in(folder),
        "checker": "independent",
        "holds": holds,
        "points": [
            {
                "point": point.index,
                "run_id": point.run_id,
                "holds": point.holds,
                "gap": point.gap,
            }
            for point in verdicts
        ],
        "not_covered": missing,
        "objections": wrong,
    }

    points = [
        (f"{document['over']} = {document['points'][point.index]['shown']}", point.sentence)
        for point in verdicts
    ]
    shown = sheet("phaze.report.verify_sheet", "sweep_verdict_sections", answer, points)
    return Answer(answer, shown, exit_code=1 if wrong else NOT_COVERED if missing else 0)
