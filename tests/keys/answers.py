"""What commands answer to a document, without what they only repeat from it."""

import io
import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

from phaze.cli.answer import exit_code_of
from phaze.cli.main import app
from phaze.search.answer import best_of
from phaze.search.baseline import scale_for
from phaze.search.chips import enumerate_space
from phaze.search.result import answer_of
from phaze.search.run import search
from phaze.search.shortage import nothing_found
from phaze.study.load import job_of, study_of
from tests.keys.small import LLAMA, run, written
from tests.search.made import core_space

Answer = Callable[[dict[str, Any], Path], Iterable[Any]]
REPEATED = ("job", "cluster", "name", "title", "chip", "file", "id", "source")
JUDGED = (
    "area_mm2",
    "area_by_component_mm2",
    "design_power_w",
    "full_rate_power_by_component_w",
    "ownership",
)
TINY = (
    "--gpt", "hidden=64,layers=4,heads=4,vocabulary=512,sequence=32", "--devices", "16", "--batch",
    "64",
    "--tensor", "1", "--microbatch", "1", "--zero", "0", "--chunks", "1",
)  # fmt: skip


class Refused(Exception):
    """A command that ended with exit code 2 or 3 and one sentence."""


def phaze(*arguments: object) -> str:
    """What a command prints, or Refused; a fault of phaze is an error."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = exit_code_of(app, [str(argument) for argument in arguments])
    if code in (2, 3) and not out.getvalue().startswith('{"schema"'):
        assert len(err.getvalue().strip().splitlines()) == 1, err.getvalue()
        raise Refused(err.getvalue())
    assert code in (0, 3), err.getvalue()
    return out.getvalue()


def told(*arguments: object) -> Any:
    """The JSON that a command prints, without what it repeats of its input."""
    found = json.loads(phaze(*arguments, "--json"))
    return {key: value for key, value in found.items() if key not in REPEATED}


def of_chip(chip: dict[str, Any], folder: Path) -> Iterator[Any]:
    """A product, vector operators, area, power and cost, and a run on a chip."""
    path = written(folder, "chip.json", chip)
    yield told("estimate", "--gemm", "1x512x512x512", "--chip", path)
    yield told("estimate", "--vector", "softmax:1048576:256", "--chip", path)
    yield told("estimate", "--vector", "softmax:1048576:2", "--chip", path)
    sheet = told("chips", path)
    yield {key: sheet[key] for key in JUDGED}
    own = str(folder / "own.json")
    yield told("plan", "--fixed", written(folder, "run.json", run(chip=path, cluster=own)))
    large = {"hidden": 2048, "layers": 2, "heads": 16, "vocabulary": 512, "sequence": 2048}
    whole = run()["plan"] | {"tensor": 1, "pipeline": 1, "data": 16}
    formats = {None: "fp8", "fp8": "fp8", "mxfp8": "mxfp8", "nvfp4": "fp4", "fp32": "fp32"}
    for precision, form in formats.items():
        if precision is None or form in chip.get("formats", ()):
            made = run(
                chip=path,
                cluster=own,
                stack="megatron-core",
                precision=precision,
                gpt=large,
                plan=whole,
            )
            yield told("plan", "--fixed", written(folder, "run.json", made))
    if "host" in chip:
        hosted = run(
            chip=path, cluster=own, stack="megatron-core", gpt=large, plan=whole | {"offload": True}
        )
        yield told("plan", "--fixed", written(folder, "run.json", hosted))


def of_usual_cluster(chip: dict[str, Any], folder: Path) -> list[Any]:
    """The plan of a job that names no cluster."""
    return [told("plan", *TINY, "--chip", written(folder, "chip.json", chip))]


def of_cluster(cluster: dict[str, Any], folder: Path) -> Iterator[Any]:
    """Collectives on a cluster, large and small, and a run that takes its stack from it."""
    path = written(folder, "cluster.json", cluster)
    sizes = [f"all_reduce:{size}:{ranks}" for size in ("64MiB", "16KiB") for ranks in (4, 16)]
    for kind in (*sizes, "all_gather:64MiB:16"):
        yield told("estimate", "--collective", kind, "--cluster", path)
    yield told(
        "plan", "--fixed", written(folder, "run.json", run(chip="h100", cluster=path, stack=None))
    )


def of_stack(stack: dict[str, Any], folder: Path) -> Iterator[Any]:
    """A run with every kind of split, recompute and ZeRO."""
    path = written(folder, "stack.json", stack)
    plan = run()["plan"] | {"recompute": "full", "sequence_parallel": True, "zero": 2}
    whole = plan | {"sequence_parallel": False, "zero": 0}
    gpt = {"hidden": 64, "layers": 4, "heads": 4, "vocabulary": 4096, "sequence": 32}
    some = whole | {"recompute": "selective"}
    runs = (
        run(stack=path, plan=plan, gpt=gpt),
        run(stack=path, plan=whole, gpt=gpt, optimizer="adam"),
        run(stack=path, plan=some, gpt=gpt),
        run(stack=path, plan=whole, gpt=None, llama=LLAMA | {"tied": False}),
    )
    for one in runs:
        yield told("plan", "--fixed", written(folder, "run.json", one))


def of_shared_state(stack: dict[str, Any], folder: Path) -> Iterator[Any]:
    """Runs whose state is shared out, over all replicas and some, and one whose activations the
    host keeps."""
    path = written(folder, "stack.json", stack)
    plan = run()["plan"] | {"tensor": 1, "pipeline": 1, "data": 16}
    kinds = ({"zero": 0, "offload": True}, {"zero": 1}, {"zero": 3}, {"zero": 3, "shard": 8})
    for kind in kinds:
        own = run(stack=path, chip="h100", cluster="dgx-h100", optimizer="adam", plan=plan | kind)
        yield told("plan", "--fixed", written(folder, "run.json", own))


def of_modules(stack: dict[str, Any], folder: Path) -> Iterator[Any]:
    """A run that recomputes a module."""
    path = written(folder, "stack.json", stack)
    gpt = {"hidden": 64, "layers": 4, "heads": 4, "vocabulary": 4096, "sequence": 32}
    one = run(stack=path, plan=run()["plan"] | {"recompute": ["mlp"]}, gpt=gpt)
    yield told("plan", "--fixed", written(folder, "run.json", one))


def of_kernel(stack: dict[str, Any], folder: Path) -> Iterator[Any]:
    """A run on a chip whose attention kernels were measured."""
    path = written(folder, "stack.json", stack)
    for chunks in (1, 2):
        own = run(
            stack=path, chip="h100", cluster="dgx-h100", plan=run()["plan"] | {"chunks": chunks}
        )
        yield told("plan", "--fixed", written(folder, "run.json", own))


def of_experts(stack: dict[str, Any], folder: Path) -> Iterator[Any]:
    """Experts that ranks of two nodes share out, with and without a shared one."""
    sizes = {**LLAMA, "experts": 32, "active": 4, "expert_mlp": 64}
    plan = {"tensor": 1, "pipeline": 1, "data": 16, "microbatch": 1, "expert": 16}
    for shared in (0, 64):
        moe = {**sizes, "shared_mlp": shared}
        own = run(
            gpt=None,
            moe=moe,
            chip="h100",
            cluster="dgx-h100",
            devices=16,
            attention="fused",
            plan=plan,
        )
        own["stack"] = written(folder, "stack.json", stack)
        yield told("plan", "--fixed", written(folder, "run.json", own))


def of_sought(stack: dict[str, Any], folder: Path) -> Iterator[Any]:
    """A plan that is sought where a pipeline is needed and few microbatches make its bubbles
    long."""
    path = written(folder, "stack.json", stack)
    sizes = "hidden=4096,layers=8,heads=32,vocabulary=4096,sequence=512"
    job = (
        "--chip",
        "a100-80gb",
        "--devices",
        4,
        "--batch",
        8,
        "--tensor",
        1,
        "--microbatch",
        1,
        "--zero",
        0,
    )
    yield told("plan", "--gpt", sizes, *job, "--headroom", "75%", "--stack", path)


def of_technology(technology: dict[str, Any], folder: Path) -> Iterator[Any]:
    """Area, power, cost and energy of a chip with a cache and of one with a scratchpad."""
    written(folder, "technology.json", technology)
    for name in ("cached.json", "plain.json"):
        sheet = told("chips", folder / name)
        yield [sheet[key] for key in JUDGED]
        yield told("estimate", "--gemm", "512x512x512", "--chip", folder / name)


def of_terms(terms: dict[str, Any], folder: Path) -> list[Any]:
    """What a chip costs to make and to own, and what a whole training run takes."""
    path = written(folder, "terms.json", terms)
    job = written(folder, "run.json", run(chip="h100", cluster="dgx-h100", tokens="1B", terms=path))
    return [
        told("chips", "h100", "--terms", path)["ownership"],
        told("plan", "--fixed", job)["training_run"],
    ]


def of_core_terms(terms: dict[str, Any], folder: Path) -> list[Any]:
    """What a chip of cores (``phaze.chip/1`` with a technology) costs to make and to own: HBM by
    the GB."""
    return [
        told("chips", "tpu-v4-paper", "--terms", written(folder, "terms.json", terms))["ownership"]
    ]


def of_space(space: dict[str, Any], folder: Path) -> list[Any]:
    """The chips of a space, field by field."""
    chips = enumerate_space(core_space(written(folder, "space.json", space)))
    return [values.tolist() for values in (*chips.fields().values(), chips.area_mm2)]


def of_study(study: dict[str, Any], folder: Path) -> list[Any]:
    """The best chip, its memory, its score, how its models run on it, and how many chips were
    opened."""
    job = job_of(study_of(study, "study"))
    state = search(job, scale_for(job))
    best = best_of(state)
    if best is None:
        raise Refused(str(nothing_found(state)))
    ran = [(one.configuration, one.batch_s, one.dynamic_j, one.value) for one in best.ran]
    split = [[(graph.width, graph.microbatch) for graph in task.graphs] for task in job.models]
    return [
        best.chip,
        job.hbm_bytes[best.hbm],
        best.score,
        ran,
        split,
        len(state.evaluated),
        job.rules,
    ]


def of_priced(study: dict[str, Any], folder: Path) -> list[Any]:
    """What training each model of a study on so many tokens takes."""
    job = job_of(study_of(study, "study"))
    state = search(job, scale_for(job))
    best = best_of(state)
    assert best is not None
    return [model.get("training_run") for model in answer_of(state, best).document["models"]]


def of_run(document: dict[str, Any], folder: Path) -> list[Any]:
    """What a given plan takes."""
    return [told("plan", "--fixed", written(folder, "run.json", document))]


def of_profile(document: dict[str, Any], folder: Path) -> list[Any]:
    """The fastest placement."""
    return [told("place", written(folder, "profile.json", document))]


def of_operators(document: dict[str, Any], folder: Path) -> list[Any]:
    """The best schedule."""
    return [told("schedule", written(folder, "operators.json", document))]


def of_graph(document: dict[str, Any], folder: Path) -> Iterator[Any]:
    """What a graph holds, and what runs of it take under every mode of recompute."""
    path = written(folder, "graph.json", document)
    yield told("graph", "--model", path)["summary"]
    for mode in ("none", "selective", "full"):
        plan = run()["plan"] | {"recompute": mode}
        one = run(gpt=None, graph=path, plan=plan, attention="eager")
        yield told("plan", "--fixed", written(folder, "run.json", one))
