"""Make the instances anew: ``python -m examples.instances.make``. Same bytes each time.

Schedules are passes of blocks on the chip of the ICML 2024 paper, placements whole models on
clusters of it.
"""

import json
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from phaze.evaluate.layers import Setting, model_table
from phaze.evaluate.pass_schedule import layer_passes, setting_of
from phaze.graph.zoo import load_model
from phaze.placement.answer import document_of
from phaze.placement.profile import problem_of
from phaze.placement.solve import fastest_plan
from phaze.schedule.problem import ScheduleProblem
from phaze.schedule.solve import solve
from phaze.search.folder import run_in
from phaze.study.load import question_of, study_of
from phaze.study.raw import default_study

HERE = Path(__file__).parent
CHIP, CLUSTER, STACK = "tpu-v4-paper", "paper-flat", "icml24"
SCHEMA = "phaze.instance/1"
# Name, model, pass, tensor cores, vector cores: fewer cores make packing harder. Of a model the
# layer with the most operators.
SCHEDULES = (
    ("schedule-small", "bert-large", "forward", 2, 2),
    ("schedule-middle", "opt-350m", "backward", 4, 4),
    ("schedule-large", "t5-large", "backward", 8, 8),
)
# Name, model, tensor widths, devices, microbatches of a batch.
PLACEMENTS = (
    ("placement-small", "bert-large", (1,), 4, 16),
    ("placement-middle", "llama2-7b", (1,), 64, 256),
    ("placement-large", "gpt3-175b", (1, 4), 1024, 512),
)


def _setting() -> Setting:
    return setting_of(CHIP, CLUSTER, STACK, "ideal", None)


def operators_document(problem: ScheduleProblem) -> dict[str, Any]:
    """A schedule problem as ``phaze.operators/1``."""
    rows = [
        {
            "id": one.id,
            "core": one.core,
            "one_core_s": one.one_core_s,
            "all_cores_s": one.all_cores_s,
        }
        for one in problem.operators
    ]
    return {
        "schema": "phaze.operators/1",
        "rules": problem.rules,
        "tensor_cores": problem.tensor_cores,
        "vector_cores": problem.vector_cores,
        "operators": rows,
        "edges": [[problem.operators[a].id, problem.operators[b].id] for a, b in problem.edges],
    }


def schedule_instance(
    name: str, model: str, which: str, tensor: int, vector: int
) -> dict[str, Any]:
    """A pass of a block on some cores, with an optimal schedule."""
    trace = load_model(model, tensor=1, microbatch=1)
    passes = ("backward",) if which == "backward" else ("forward",)
    repeated = [layer for at, layer in enumerate(trace.layers) if trace.count(at) > 1]
    layer = max(repeated, key=lambda one: len(one.backward.operators)).name
    found = layer_passes(trace, layer, passes, _setting())[0]  # type: ignore[arg-type]
    problem = replace(found.problem, tensor_cores=tensor, vector_cores=vector)
    answer = solve(problem)
    slots = [[slot.start_s, slot.tensor_core, slot.vector_core] for slot in answer.slots]
    return {
        "schema": SCHEMA, "name": name, "kind": "schedule", "of": found.of,
        "problem": operators_document(problem),
        "optimum_s": answer.makespan_s, "bound_s": answer.lower_bound_s,
        "certificate": {"slots": slots},
    }  # fmt: skip


def profile_document(
    model: str, widths: tuple[int, ...], devices: int, microbatches: int
) -> dict[str, Any]:
    """A model as layers to place (``phaze.profile/1``)."""
    setting, tables = _setting(), {}
    for width in widths:
        trace = load_model(model, tensor=width, microbatch=1)
        table = model_table(trace, setting)
        layers = [
            {
                "id": number,
                "forward_s": float(table.forward_s[call.layer, 0]),
                "backward_s": float(table.backward_s[call.layer, 0]),
                "parameter_bytes": 2.0 * table.layers[call.layer].parameters,
                "activation_bytes": float(table.layers[call.layer].saved_bytes),
                "sharded": table.layers[call.layer].sharded,
            }
            for number, call in enumerate(trace.calls)
        ]
        edges = [
            {"from": edge.source, "to": edge.target, "bytes": float(edge.bytes)}
            for edge in trace.edges
        ]
        tables[str(width)] = {"layers": layers, "edges": edges}
    link = setting.cluster.levels[0].bandwidth_bytes_per_s
    return {
        "schema": "phaze.profile/1", "rules": "icml24", "devices": devices, "hbm_bytes": 80 * 2**30,
        "link_bytes_per_s": link, "microbatches": microbatches, "optimizer": "sgd",
        "recompute": "best",
        "widths": tables,
    }  # fmt: skip


def placement_instance(
    name: str, model: str, widths: tuple[int, ...], devices: int, batch: int
) -> dict[str, Any]:
    """A model to place, with an optimal plan."""
    profile = profile_document(model, widths, devices, batch)
    plan = fastest_plan(problem_of(profile, name))
    if plan is None:
        raise AssertionError(f"{name}: nothing fits")
    return {
        "schema": SCHEMA, "name": name, "kind": "placement", "of": {"model": model, "chip": CHIP},
        "problem": profile, "optimum_s": plan.batch_s, "bound_s": plan.batch_s,
        "certificate": {"plan": document_of(plan)},
    }  # fmt: skip


JOINT_SMALL = {
    "schema": "phaze.study/1",
    "rules": "icml24",
    "name": "joint-small",
    "space": "space.json",
    "models": [{"name": "bert-large", "sequence": 64}],
    "training": {"devices": 8, "batch": 16, "microbatches": [1, 2]},
}
SPACE = {
    "schema": "phaze.space/1",
    "name": "sixteen",
    "title": "Sixteen chips",
    "base": "tpu-v4-paper",
    "axes": {
        "tensor_cores": [1, 8], "rows": [32, 128], "columns": [128], "vector_cores": [1, 4],
        "lanes": "columns",
        "global_buffer": ["2 MiB", "32 MiB"],
    },
    "core_buffers": {"least": "1 KiB", "bytes_per_unit": 16},
    "keep": {"area_of": "tpu-v4-paper", "least_share": 0.0, "smaller_with_one_core": True},
}  # fmt: skip
JOINT = {
    "joint-small": JOINT_SMALL,
    "joint-middle": {**default_study("bert-large", "icml24"), "name": "joint-middle"},
}


def joint_instance(name: str) -> None:
    """Chip and placement together: what of a search's folder the checker reads."""
    with tempfile.TemporaryDirectory() as made:
        (Path(made) / "space.json").write_text(json.dumps(SPACE))
        study = {**JOINT[name]}
        if "space" in study:
            study["space"] = str(Path(made) / "space.json")
        question = question_of(study_of(study, name))
        run_in(Path(made) / "run", question.papers(""), question.job)
        (HERE / name).mkdir(exist_ok=True)
        for part in ("problem", "graphs", "certificate"):
            shutil.copy(Path(made) / "run" / f"{part}.json", HERE / name / f"{part}.json")


def main() -> None:
    """Write all of them."""
    for name in JOINT:
        joint_instance(name)
    made = [schedule_instance(*row) for row in SCHEDULES] + [
        placement_instance(*row) for row in PLACEMENTS
    ]
    for one in made:
        (HERE / f"{one['name']}.json").write_text(json.dumps(one, indent=1) + "\n")


if __name__ == "__main__":
    main()
