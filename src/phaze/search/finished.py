"""A run that has ended answers from its folder: nothing is searched again where question and files
are the same.

The journal of a run keeps the SHA-256 of its question and of what the search wrote. Where the
question of the folder (``problem.json``, ``graphs.json``) is the one that is asked, journal and
code are of it, and ``result.json`` and ``certificate.json`` are as they were written and say the
same, the answer is the one that is there. A study that names no file depends on its text and on the
code alone: where both are those of the folder, its question need not be built to know that it is
the same. Anything else is searched. Whether the answer is true is for ``phaze verify`` to say, here
as after a search.
"""

import json
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import Any

from phaze.errors import InputError
from phaze.files import is_path, read_text
from phaze.search.code import code_digest
from phaze.search.journal import read_about
from phaze.search.question_files import GRAPHS, PROBLEM, STUDY, Papers

JOURNAL, RESULT, CERTIFICATE = "journal.sqlite", "result.json", "certificate.json"
ANSWERS = (RESULT, "front.json", "plan.json")
"""The views of a certificate, of which a folder has one."""
AXES = MappingProxyType(
    {
        **{name: name for name in ("tensor_cores", "rows", "columns", "vector_cores", "lanes")},
        **{f"{name}_buffer": f"{name}_buffer_bytes" for name in ("global", "tensor", "vector")},
        "hbm_bandwidth": "hbm_bytes_per_s",
        "clock": "clock_hz",
    }
)
"""The axes of a chip of cores, and what result.json calls each."""
NEAR = 1e-9
"""Times are sums in another order than the certificate has them."""


def digests_of(texts: dict[str, str]) -> dict[str, str]:
    """What a journal keeps of the files that a search wrote."""
    return {name: sha256(text.encode()).hexdigest() for name, text in texts.items()}


def finished_in(folder: Path, papers: Papers, study: str) -> dict[str, Any] | None:
    """The answer of a run that has ended with this question, ``study`` being its digest; None where
    there is none."""
    wanted = {PROBLEM: papers.problem, GRAPHS: papers.graphs}
    names = (*wanted, RESULT, CERTIFICATE, JOURNAL)
    if not papers.problem or not all((folder / name).is_file() for name in names):
        return None
    try:
        if any(read_text(str(folder / name))[0] != text for name, text in wanted.items()):
            return None
        about = read_about(folder / JOURNAL)
        texts = {name: read_text(str(folder / name))[0] for name in (RESULT, CERTIFICATE)}
    except InputError:
        return None
    expected = {"study": study, "code": code_digest(), **digests_of(texts)}
    if any(about.get(key) != value for key, value in expected.items()):
        return None
    return _ended(texts)


def names_files(value: Any) -> bool:
    """Whether plain values have anything that may lead to a file or to code: a path,
    ``file.py:function``, a module."""
    if isinstance(value, Mapping):
        entries = {key: entry for key, entry in value.items() if key != "schema"}
        return any(names_files(entry) for entry in (*entries.keys(), *entries.values()))
    if isinstance(value, list | tuple):
        return any(names_files(entry) for entry in value)
    if isinstance(value, str):
        return is_path(value) or ":" in value or "@" in value
    return not isinstance(value, bool | int | float)


def finished_as(folder: Path, study_text: str) -> dict[str, Any] | None:
    """The answer of a run that has ended with this study, which names no file; None where there is
    none."""
    names = (STUDY, PROBLEM, GRAPHS, RESULT, CERTIFICATE)
    if not all((folder / name).is_file() for name in (*names, JOURNAL)):
        return None
    try:
        texts = {name: read_text(str(folder / name))[0] for name in names}
        about = read_about(folder / JOURNAL)
    except InputError:
        return None
    expected = {
        "code": code_digest(),
        **digests_of({name: texts[name] for name in names if name != STUDY}),
    }
    if texts[STUDY] != study_text or any(
        about.get(key) != value for key, value in expected.items()
    ):
        return None
    return _ended(texts)


def _ended(texts: Mapping[str, str]) -> dict[str, Any] | None:
    result: dict[str, Any] = json.loads(texts[RESULT])
    if result["certificate"]["closed"]["open"] or unlike_certificate(
        result, json.loads(texts[CERTIFICATE])
    ):
        return None
    return result


def unlike_certificate(result: Mapping[str, Any], certificate: Mapping[str, Any]) -> str | None:
    """Where an answer is not the one that its certificate proves; None where they agree. The rest
    of an answer follows from what the certificate names, which ``phaze verify`` computes anew."""
    proved, chip, models = certificate["answer"], result["chip"], result["models"]
    if proved is None:
        return None
    stated = result["certificate"]
    pairs: dict[str, tuple[Any, Any]] = {"chip.hbm_bytes": (chip["hbm_bytes"], proved["hbm_bytes"])}
    pairs |= {
        f"chip.{key}": (chip[key], proved["chip"][axis])
        for axis, key in AXES.items()
        if axis in proved["chip"] and key in chip and chip.get("clusters") is None
    }
    for index, (model, proved_model) in enumerate(zip(models, proved["models"], strict=True)):
        stages = [[stage["layers"], stage["recompute"]] for stage in model["plan"]["stages"]]
        pairs |= {
            f"models[{index}].plan.stages": (stages, proved_model["stages"]),
            f"models[{index}].plan.data": (model["plan"]["data"], proved_model["data"]),
        }
    # A search that was stopped, or left schedules unproved, proves less than was asked; one of gap 0
    # proves what rounding leaves of it.
    shown = max(stated["asked_gap"], stated["gap"])
    if not stated["closed"]["open"] and abs(shown - certificate["gap"]) > NEAR:
        return "certificate.asked_gap"
    unlike = next(
        (key for key, (stated_value, true) in pairs.items() if stated_value != true), None
    )
    alone = len(models) == 1 and result["objective"]["kind"] == "throughput"
    if (
        unlike is None
        and alone
        and abs(models[0]["batch_s"] - certificate["best"]) > NEAR * certificate["best"]
    ):
        return "models[0].batch_s"
    return unlike


def _answer_digest(text: str) -> str:
    """The digest of what an answer says, but for the code that wrote it; of what is no document,
    that of its text."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        return sha256(text.encode()).hexdigest()
    values = {
        key: value for key, value in document.items() if key not in ("code_digest", "version")
    }
    plain = json.dumps(values, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return sha256(plain.encode()).hexdigest()


def run_id_in(folder: Path) -> str | None:
    """The id of a run: SHA-256 over the digests of its question, its certificate and the answer
    that its folder shows; None where it has no certificate."""
    paths = [folder / name for name in (PROBLEM, GRAPHS, CERTIFICATE)]
    if not all(path.is_file() for path in paths):
        return None
    each = [sha256(read_text(str(path))[0].encode()).hexdigest() for path in paths]
    shown = [folder / name for name in ANSWERS if (folder / name).is_file()]
    each += [_answer_digest(read_text(str(path))[0]) for path in shown]
    return sha256("".join(each).encode()).hexdigest()
