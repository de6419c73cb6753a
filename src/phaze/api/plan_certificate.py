"""The folder that proves a plan: its question, its certificate, and the plan itself as a view of
them."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from phaze.check.space_proof import Solver
    from phaze.check.verdict import Verdict
    from phaze.evaluate.plan import Candidate, PlanRequest
    from phaze.report.progress import Progress

PLAN = "plan.json"
NEAR = 1e-9
"""Times are sums in another order than the checker has them."""


def write_certificate(
    folder: str, request: "PlanRequest", name: str, best: "Candidate", document: dict[str, Any]
) -> None:
    """Write ``problem.json``, ``graphs.json``, ``certificate.json`` and ``plan.json``."""
    from phaze.documents import dumps
    from phaze.errors import InputError
    from phaze.files import folder_for, write_whole
    from phaze.search.plan_certificate import plan_papers

    place = Path(folder)
    if any((place / other).exists() for other in ("result.json", "front.json")):
        raise InputError(
            folder, "this folder holds a search or a front", "give another --certificate"
        )
    texts = plan_papers(request, name, best, document["job"].get("restricted") or {}).texts
    folder_for(place)
    for path, text in {**texts, PLAN: dumps(document, pretty=True) + "\n"}.items():
        write_whole(place / path, text)


def _unlike(document: dict[str, Any], folder: Path) -> list[str]:
    """What of plan.json is not what the certificate proves."""
    from phaze.search.question_files import read_problem

    certificate = json.loads((folder / "certificate.json").read_text())
    problem = read_problem(folder)
    (plan,), training = certificate["answer"]["models"], problem["models"][0]["training"]
    graph = problem["models"][0]["graphs"][plan["graph"]]
    pairs = [
        ("batch_s", document["batch_s"], certificate["best"]),
        ("data", document["data"], plan["data"]),
        ("pipeline", document["pipeline"], len(plan["stages"])),
        ("zero", document["zero"], plan.get("zero", 0)),
        ("chunks", document.get("chunks", 1), plan.get("chunks", 1)),
        ("order", document.get("order", ""), plan.get("order", "")),
        ("stages", [[stage["layers"], stage["recompute"]] for stage in document["stages"]],
        plan["stages"]),
        ("model", _model_of(document["job"]) or problem["models"][0]["name"],
        problem["models"][0]["name"]),
        ("devices", document["job"]["devices"], training["devices"]),
        ("batch", document["job"]["batch"], training["batch"]),
        ("job.restricted", document["job"].get("restricted") or {}, problem.get("restricted", {})),
        *((key, document[key], graph[key]) for key in ("tensor", "microbatch", "sequence_parallel",
        "attention")),
    ]  # fmt: skip

    def same(stated: Any, proved: Any) -> bool:
        close = isinstance(stated, float) and isinstance(proved, float)
        return abs(stated - proved) <= NEAR * abs(proved) if close else bool(stated == proved)

    return [(
        f"{PLAN}: {key} is {stated!r}, and the "
        f"certificate has {proved!r}"
    ) for key, stated, proved in pairs
            if not same(stated, proved)]  # fmt: skip


def _model_of(job: Mapping[str, Any]) -> str | None:
    """The model that a plan names; None where it has a graph of its own."""
    return job.get("model") or job.get("family")


def _is_bundled(job: Mapping[str, Any]) -> bool:
    from phaze.graph.zoo import ZOO

    return job.get("model") in ZOO or "family" in job


def _untraced(document: dict[str, Any], folder: Path) -> list[str]:
    """What of graphs.json is not what phaze has of the bundled model that the plan names."""
    from phaze.evaluate.parallel_rank import Parallel, parallel_rank, supply_at
    from phaze.graph import store
    from phaze.graph.split_context import way_named
    from phaze.graph.supply.point import RankPoint
    from phaze.graph.supply.supply import GraphFamily, supply_of

    job = document["job"]
    supply = (
        GraphFamily(job["family"], job["sizes"])
        if "family" in job
        else supply_of(job["model"], traced_before=True)
    )
    length = supply.facts.length(job["sequence"])
    for index, graph in enumerate(json.loads((folder / "graphs.json").read_text())["models"][0]):
        shared = {key: graph[key] for key in ("context", "expert", "expert_tensor") if key in graph}
        shared = {"expert_tensor": 1, **shared} if shared.get("expert", 1) > 1 else shared
        rows = float(job.get("rows", 1.0)) if shared.get("expert", 1) > 1 else 1.0
        parallel = Parallel(
            graph["tensor"], **shared, way=way_named(graph.get("context_way", "ring")), rows=rows
        )
        load = supply_at(
            supply, RankPoint(graph["tensor"], graph["microbatch"], length, graph["attention"])
        )
        if store.plain(parallel_rank(load, parallel, length, graph["sequence_parallel"])) != graph:
            return [
                (
                    f"graphs.json: graph {index} is not one of "
                    f"{job.get('model') or job['family']} as phaze has it"
                )
            ]
    return []


def _unsearched(document: dict[str, Any], folder: Path) -> list[str]:
    """What of the plans that the job of a bundled model allows, with the restrictions that it
    states, is not in problem.json: a claim that is silent on a restriction."""
    from phaze.errors import PhazeError
    from phaze.evaluate.request import request_of
    from phaze.evaluate.restrictions import restated_job
    from phaze.graph import store
    from phaze.search.plan_certificate import ranks
    from phaze.search.problem_file import head_of
    from phaze.search.question_files import read_problem

    try:
        request = request_of(restated_job(document["job"]))
    except PhazeError as fault:
        gone = _missing(document["job"])
        return [f"{PLAN}: its job cannot be planned anew ({fault})"] if gone is None else []
    model = read_problem(folder)["models"][0]
    training = model["training"]
    pairs = [
        (
            "plans",
            [head_of(store.plain(rank)) for rank in ranks(request)],
            [head_of(row) for row in model["graphs"]],
        ),
        (
            "families",
            list(request.setting.stack.families),
            training["machine"]["stack"]["families"],
        ),
        ("headroom", request.job.headroom, training["headroom"]),
    ]
    stated = (
        "with the restrictions that it states"
        if document["job"].get("restricted")
        else "without restrictions"
    )
    return [(
        f"{PLAN}: its job {stated} allows other {key} "
        "than problem.json has"
    ) for key, allowed, searched in pairs
            if allowed != searched]  # fmt: skip


def _missing(job: Mapping[str, Any]) -> str | None:
    """A file of a plan's job that is not here, or a model whose graphs are not kept; None where all
    is at hand."""
    from phaze.errors import InputError
    from phaze.files import is_path
    from phaze.graph.supply.supply import supply_of
    from phaze.graph.tensor_plan import is_place

    files = [str(job[key]) for key in ("graph", "chip", "cluster", "stack") if job.get(key)]
    gone = next((path for path in files if is_path(path) and not Path(path).is_file()), None)
    model = str(job.get("model") or "")
    if gone is not None or not is_place(model):
        return gone
    try:
        return None if supply_of(model, traced_before=True).facts else model
    except InputError:
        return model


def _figures(document: dict[str, Any], folder: Path) -> tuple[list[str], str]:
    """What of plan.json's figures is not so when its plan is priced anew, and what was not
    compared, in words."""
    from phaze.documents import digest, plain_value
    from phaze.errors import PhazeError
    from phaze.evaluate.job_file import reopened
    from phaze.evaluate.repriced import UNPRICED, repriced, unlike
    from phaze.search.question_files import read_problem

    problem = read_problem(folder)
    try:
        chip = digest(plain_value(reopened(document, PLAN).setting.chip))
        true = repriced(document, problem["models"][0]["training"]["headroom"], PLAN)
    except PhazeError as fault:
        if (gone := _missing(document["job"])) is None:
            return [f"{PLAN}: its plan cannot be priced anew ({fault})"], ""
        return (
            [],
            (
                f"Not checked, as {gone} is not here: restrictions and figures of {PLAN} "
                "beside the step time."
            ),
        )
    wrong = (
        []
        if chip == digest(problem["chip"])
        else ["job.chip is another chip than that of problem.json"]
    )
    wrong += unlike(document, true, document["batch_s"])
    left = ", ".join(key for key in UNPRICED if document.get(key))
    return [
        f"{PLAN}: {figure}" for figure in wrong
    ], f"Not checked: what {PLAN} says beside its plan ({left})."


def _solver(folder: Path) -> "Solver":
    """phaze's own planner, where the independent checker searches schedules to no end."""

    def values(_chip: int, _memory: int) -> list[list[list[float]]]:
        from phaze.evaluate.plan_order import planned
        from phaze.evaluate.request import request_of
        from phaze.evaluate.restrictions import restated_job

        job = json.loads((folder / PLAN).read_text())["job"]
        best = planned(request_of(restated_job(job))).best.plan
        return [[[float("inf") if best is None else best.batch_s]]]

    return values


def plan_independently(
    run: str, quick: bool, progress: "Progress"
) -> "tuple[Verdict, list[str], str]":
    """The verdict of the independent checker on a plan, what of plan.json does not follow from it,
    and what of it was not compared."""
    from phaze.api.verify_certificate import READING
    from phaze.api.verify_models import say_compared
    from phaze.check.verdict import check
    from phaze.documents import parse
    from phaze.files import read_text
    from phaze.search.question_files import read_problem

    folder = Path(run)
    verdict = check(folder, quick, 0.0, progress.step, _solver(folder))
    if verdict.missing or verdict.wrong:
        return verdict, [verdict.wrong] if verdict.wrong else [], ""
    text, where = read_text(str(folder / PLAN))
    try:
        document = parse(text, "json", where)
        if wrong := _unlike(document, folder):
            return verdict, wrong, ""
        if quick:
            return (
                verdict,
                [],
                (
                    f"Not checked (quick): graphs, and figures of {PLAN} beside its plan and "
                    "step time."
                ),
            )
        bundled = _is_bundled(document["job"])
        if (
            wrong := (_untraced(document, folder) or _unsearched(document, folder))
            if bundled
            else []
        ):
            return verdict, wrong, ""
        say_compared(verdict, read_problem(folder)["models"], [bundled])
        progress.step("pricing the plan anew")
        return verdict, *_figures(document, folder)
    except READING as fault:
        return verdict, [f"{PLAN}: it cannot be read ({type(fault).__name__}: {fault})"], ""
