"""The folder that proves a plan: its question, its certificate, and the plan itself as a view of them."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from phaze.check.verdict import Verdict
    from phaze.evaluate.plan import Candidate, Request
    from phaze.report.progress import Progress

PLAN = "plan.json"
NEAR = 1e-9
"""Times are sums in another order than the checker has them."""


def write_certificate(folder: str, request: "Request", name: str, best: "Candidate", document: dict[str, Any]) -> None:
    """Write ``problem.json``, ``graphs.json``, ``certificate.json`` and ``plan.json``."""
    from phaze.documents import dumps
    from phaze.errors import InputError
    from phaze.files import folder_for, write_whole
    from phaze.search.plan_certificate import plan_papers

    place = Path(folder)
    if any((place / other).exists() for other in ("result.json", "front.json")):
        raise InputError(folder, "this folder holds a search or a front", "give another --certificate")
    texts = plan_papers(request, name, best).texts
    folder_for(place)
    for path, text in {**texts, PLAN: dumps(document, pretty=True) + "\n"}.items():
        write_whole(place / path, text)


def _unlike(document: dict[str, Any], folder: Path) -> list[str]:
    """What of plan.json is not what the certificate proves."""
    certificate, problem = (json.loads((folder / f"{name}.json").read_text()) for name in ("certificate", "problem"))
    (plan,), training = certificate["answer"]["models"], problem["models"][0]["training"]
    graph = problem["models"][0]["graphs"][plan["graph"]]
    pairs = [
        ("batch_s", document["batch_s"], certificate["best"]), ("data", document["data"], plan["data"]),
        ("pipeline", document["pipeline"], len(plan["stages"])), ("zero", document["zero"], plan["zero"]),
        ("chunks", document.get("chunks", 1), plan["chunks"]), ("order", document["order"], plan["order"]),
        ("stages", [[one["layers"], one["recompute"]] for one in document["stages"]], plan["stages"]),
        ("chip", document["job"]["chip"], problem["chip"]["name"]),
        ("devices", document["job"]["devices"], training["devices"]),
        ("batch", document["job"]["batch"], training["batch"]),
        *((key, document[key], graph[key]) for key in ("tensor", "microbatch", "sequence_parallel", "attention")),
    ]  # fmt: skip

    def same(said: Any, proved: Any) -> bool:
        close = isinstance(said, float) and isinstance(proved, float)
        return abs(said - proved) <= NEAR * abs(proved) if close else bool(said == proved)

    return [f"{PLAN}: {key} is {said!r}, and the certificate has {proved!r}" for key, said, proved in pairs
            if not same(said, proved)]  # fmt: skip


def _untraced(document: dict[str, Any], folder: Path) -> list[str]:
    """What of graphs.json is not what phaze has of the model that the plan names; a model of the user's own is not
    traced again."""
    from phaze.evaluate.parallel_rank import Parallel, family_at, parallel_rank, supply_at
    from phaze.graph import store
    from phaze.graph.split_context import way_named
    from phaze.graph.supply.supply import supply_of
    from phaze.graph.zoo import ZOO

    job = document["job"]
    if job.get("model") not in ZOO and "family" not in job:
        return []
    for at, graph in enumerate(json.loads((folder / "graphs.json").read_text())["models"][0]):
        shared = {key: graph[key] for key in ("context", "expert", "expert_tensor") if key in graph}
        shared = {"expert_tensor": 1, **shared} if shared.get("expert", 1) > 1 else shared
        rows = float(job.get("rows", 1.0)) if shared.get("expert", 1) > 1 else 1.0
        asked = Parallel(graph["tensor"], **shared, way=way_named(graph.get("context_way", "ring")), rows=rows)
        if "family" in job:
            load = family_at(job["family"], job["sizes"], graph["microbatch"], graph["attention"])
            length = job["sequence"] or int(job["sizes"]["sequence"])
        else:
            supply = supply_of(job["model"], runs=False)
            load, length = (
                supply_at(supply, graph["microbatch"], graph["attention"]),
                supply.facts.length(job["sequence"]),
            )
        if store.plain(parallel_rank(load, asked, length, graph["sequence_parallel"])) != graph:
            return [f"graphs.json: graph {at} is not one of {job.get('model') or job['family']} as phaze has it"]
    return []


def plan_independently(run: str, quick: bool, progress: "Progress") -> "tuple[Verdict, list[str]]":
    """The verdict of the independent checker on a plan, and what of plan.json does not follow from it."""
    from phaze.api.verify_certificate import READING
    from phaze.check.verdict import check
    from phaze.documents import parse
    from phaze.files import read_text

    folder = Path(run)
    verdict = check(folder, quick, 0.0, progress.step)
    if verdict.missing or verdict.wrong:
        return verdict, [verdict.wrong] if verdict.wrong else []
    text, where = read_text(str(folder / PLAN))
    try:
        document = parse(text, "json", where)
        return verdict, _unlike(document, folder) or ([] if quick else _untraced(document, folder))
    except READING as fault:
        return verdict, [f"{PLAN}: it cannot be read ({type(fault).__name__}: {fault})"]
