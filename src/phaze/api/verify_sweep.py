"""``phaze verify SWEEP``: every point of a sweep is a run, proved as one, and ``sweep.json`` is a
view of them."""

import tomllib
from collections.abc import Mapping
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
        if point["chip"] is None and not path.is_file():
            continue
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


def _points(
    run: str, quick: bool, document: Mapping[str, Any], progress: "Progress"
) -> "list[tuple[int, Verdict]]":
    """Every point that has an answer, proved."""
    from phaze.documents import read_answer

    verdicts = []
    for index, point in enumerate(document["points"]):
        if point["chip"] is None:
            continue
        place = Path(run) / "points" / f"{index:03d}"
        progress.step(f"checking the certificate of point {index + 1} of {len(document['points'])}")
        result, text, _ = read_answer(str(place / RESULT))
        verdict, wrong = independently(str(place), quick, result, text, progress)
        verdict.wrong = wrong[0] if wrong else verdict.wrong
        verdicts.append((index, verdict))
    return verdicts


def sweep_verified(run: str, quick: bool, progress: "Progress") -> Answer:
    """The verdict on every point, and on the sweep."""
    from phaze.documents import read_answer
    from phaze.report.run_id import id_in
    from phaze.sweep.schema import sweep_in

    folder, document = Path(run), sweep_in(Path(run))
    verdicts = _points(run, quick, document, progress)
    wrong = [f"point {index + 1}: {verdict.wrong}" for index, verdict in verdicts if verdict.wrong]
    missing = [
        f"point {index + 1}: {verdict.missing}" for index, verdict in verdicts if verdict.missing
    ]
    missing += [
        f"point {index + 1}: that nothing is feasible is stated, not proved"
        for index, point in enumerate(document["points"])
        if point["chip"] is None
    ]
    try:
        results = {
            index: read_answer(str(folder / "points" / f"{index:03d}" / RESULT))[0]
            for index, _ in verdicts
        }
        wrong = (
            wrong
            or _folders(folder, document)
            or _studies(folder, document)
            or _view(folder, document, results)
        )
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
                "point": index,
                "run_id": verdict.run_id,
                "holds": verdict.holds,
                "gap": verdict.proved_gap,
            }
            for index, verdict in verdicts
        ],
        "not_covered": missing,
        "objections": wrong,
    }

    points = [
        (f"{document['over']} = {document['points'][index]['shown']}", verdict.sentence())
        for index, verdict in verdicts
    ]
    shown = sheet("phaze.report.verify_sheet", "sweep_verdict_sections", answer, points)
    return Answer(answer, shown, exit_code=1 if wrong else NOT_COVERED if missing else 0)
