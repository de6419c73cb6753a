"""The page of a search: answer, chip, time, pipeline, memory, operators, all chips, proof, study."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from phaze.hardware.chip import Chip
from phaze.report.answer_words import (
    basis_words,
    density_words,
    job_words,
    near_words,
    network_words,
    shipped_words,
    warning_words,
)
from phaze.report.page.certificate import better_words, certificate, proved_words
from phaze.report.page.cloud import Cloud, cloud_part, numbers
from phaze.report.page.die import die
from phaze.report.page.frame import copyable, counted, facts, framed, section, table
from phaze.report.page.operators import operators
from phaze.report.page.stages import memory
from phaze.report.page.survey import cloud_of
from phaze.report.page.times import pipeline, waterfall
from phaze.report.run_sheet import batch_text, flops_text, mfu_text, rate_text, training_rows
from phaze.report.view_model import Story, searched
from phaze.search.evaluation import Evaluated
from phaze.search.journal import Closed
from phaze.search.plan_words import recompute_words
from phaze.search.spaces import OpenedSpace, open_space
from phaze.search.task import Job, ModelTask, networks_of
from phaze.units import show


@dataclass(frozen=True, slots=True)
class Run:
    """A finished run: its job, its documents, and what its journal holds. ``where`` is what to call it."""

    job: Job
    result: Mapping[str, Any]
    closed: Sequence[Closed]
    evaluated: Sequence[Evaluated]
    study: str
    where: str


def tasks_on(job: Job, opened: OpenedSpace, number: int) -> tuple[ModelTask, ...]:
    """The models of a job on the links of one chip of its space."""
    return networks_of(job.models, job.space, opened.link_bytes_per_s).tasks_of(number)


def answer_sentence(result: Mapping[str, Any], devices: int) -> str:
    """The answer and its certificate in one sentence."""
    chip, proof = result["chip"], result["certificate"]
    models = result["models"]
    if len(models) == 1:
        what = f"trains {models[0]['name']} at {models[0]['throughput_per_s']:,.5g} sequences a second"
    else:
        what = f"serves {len(models)} models best together"
    space = f"the {proof['chips']:,} chips of its space"
    return f"On {devices:,} devices the chip {chip['name']} {what}, and none of {space} {better_words(proof['gap'])}."


def plan_words(plan: Mapping[str, Any], microbatch: int, zero: int = 0) -> str:
    """A split in a few words; of a plan that states its stage of ZeRO apart, without it."""
    replicas, chunks = counted(plan["data"], "replica", "replicas"), int(plan.get("chunks", 1))
    stages = counted(plan["pipeline"], "stage") + (f" of {chunks} chunks" if chunks > 1 else "")
    shared = f", ZeRO {zero}" if zero else ""
    return f"{stages} x {replicas}, tensor width {plan['tensor']}, microbatch {microbatch}{shared}"


def shared_parts(story: Story, key: str, label: str) -> list[tuple[str, str, str]]:
    """The parts that a search and a plan have in common, for one model."""
    plan, at_peak = story.plan, story.steps[0].seconds
    reached = f"{at_peak / plan['batch_s']:.1%} of the peak of all {story.split.devices:,} devices is reached."
    name = f": {story.name}" if label else ""
    return [
        (
            f"time{key}",
            f"time{label}",
            section(
                f"time{key}",
                f"Where the time goes{name}",
                waterfall(story.steps, plan["batch_s"]),
                f"From peak to what is reached, mean over a replica's devices; the steps sum to the batch. {reached}",
            ),
        ),
        (
            f"pipeline{key}",
            f"pipeline{label}",
            section(f"pipeline{key}", f"The pipeline{name}", pipeline(story)),
        ),
        (f"memory{key}", f"memory{label}", section(f"memory{key}", f"Memory of each stage{name}", memory(story))),
        (
            f"operators{key}",
            f"operators{label}",
            section(f"operators{key}", f"The operators of a layer on their cores{name}", operators(story)),
        ),
    ]


def _models_table(models: Sequence[Mapping[str, Any]], batches: Sequence[int]) -> str:
    """Several models side by side."""
    heads = (
        "model",
        "sequences/s",
        "batch",
        "stages x replicas x width",
        "microbatch",
        "recompute",
        "a sequence",
        "a chip",
    )
    rows = []
    for model, batch in zip(models, batches, strict=True):
        plan = model["plan"]
        cells = (
            model["name"],
            f"{model['throughput_per_s']:,.5g}",
            show(model["batch_s"], "s"),
            f"{plan['pipeline']} x {plan['data']} x {plan['tensor']}",
            str(model["microbatch"]),
            recompute_words(model["plan"], model["recompute"]),
            show(model["energy_j"] / batch, "J"),
            show(model["power_w"], "W"),
        )
        rows.append([escape(cell) for cell in cells])
    return table(heads, rows)


def _holds(result: Mapping[str, Any]) -> str:
    """Under what the answer holds, in sentences."""
    return (
        f"Process: {result['setting']['process']}. Density: {density_words(result)}; densest shipped: "
        f"{shipped_words(result)}. Network: "
        f"{network_words(result)}. Job: {job_words(result)}. Times: {basis_words(result)}."
    )


def _head(run: Run, chip: Chip, stories: Sequence[Story]) -> str:
    result = run.result
    tiles = [
        ("chip area", show(result["chip"]["area_mm2"], "mm2")),
        ("peak", show(chip.peak_flops, "FLOP/s")),
        ("HBM", show(chip.hbm.size_bytes, "B")),
        ("design power, estimate", show(result["chip"]["design_power_w"], "W")),
        ("price of making, estimate", f"{result['chip']['making_usd']:,.0f} USD"),
        ("carbon of making, estimate", f"{result['chip']['making_kgco2e']:,.0f} kgCO2e"),
        ("proved", proved_words(result["certificate"]["gap"])),
    ]
    of_models = [
        [
            ("model", model["name"]),
            ("throughput", f"{model['throughput_per_s']:,.5g} sequences/s"),
            ("tokens", rate_text(model)),
            ("MFU, HFU", mfu_text(model)),
            ("batch", f"{batch_text(model)} in {show(model['batch_s'], 's')}"),
            ("plan", plan_words(model["plan"], model["microbatch"], model["zero"])),
            ("recompute", recompute_words(model["plan"], model["recompute"])),
            ("energy", f"{show(model['energy_j'] / story.batch, 'J')} a sequence"),
            ("power in use", f"{show(model['power_w'], 'W')} a chip"),
            *training_rows(model.get("training_run")),
        ]
        for model, story in zip(result["models"], stories, strict=True)
    ]
    if len(of_models) == 1:
        tiles_of = facts([*of_models[0], *tiles])
    else:
        tiles_of = facts(tiles) + _models_table(result["models"], [story.batch for story in stories])
    name = escape(str(result["name"]))
    objective = escape(str(result["objective"]["kind"]).replace("_", " "))
    links = (result.get("cluster") or {}).get("links")
    warned = f'<p class="warning">{escape(warning_words(result))}</p>' if warning_words(result) else ""
    counted_as = [f"{m['name']}: {flops_text(m)}" if len(of_models) > 1 else flops_text(m) for m in result["models"]]
    said = [*counted_as, *([str(links)] if links else [])]
    notes = [*said, *dict.fromkeys(n for m in run.job.models for n in m.graphs[0].notes)]
    noted = "".join(f'<p class="soft">Note: {escape(note)}.</p>' for note in notes)
    return (
        f'<h1>{escape(answer_sentence(result, run.job.models[0].training.devices))}</h1><p class="soft">Study {name}, '
        f"objective {objective}. {escape(near_words(result))}</p>{warned}{tiles_of}"
        f'<p class="soft">{escape(_holds(result))}</p>{noted}'
    )


def _sections(run: Run, chip: Chip, stories: Sequence[Story], cloud: Cloud) -> list[tuple[str, str, str]]:
    known = {
        "clock": show(chip.clock_hz, "Hz"),
        "technology": str(chip.technology),
        "varied from": str(run.job.space.file.base),
    }
    found = [("chip", "chip", section("chip", "The chip, to scale", die(chip, known), escape(chip.name)))]
    for at, story in enumerate(stories):
        several = len(stories) > 1
        parts = shared_parts(story, f"-{at}" if several else "", f" {story.name}" if several else "")
        if several:  # one way in for each model
            parts = [(key, "" if place else story.name, body) for place, (key, _, body) in enumerate(parts)]
        found += parts
    proof = certificate(run.result["certificate"], run.where)
    found += [
        ("space", "all chips", section("space", "All chips", cloud_part(cloud))),
        ("certificate", "certificate", section("certificate", "How chips were excluded", proof)),
        ("study", "study", section("study", "The study, to copy", copyable("study-text", run.study))),
    ]
    return found


def search_page(run: Run) -> str:
    """The whole page."""
    opened = open_space(run.job.space)
    number, hbm_bytes = int(run.result["chip"]["number"]), int(run.result["chip"]["hbm_bytes"])
    chip = opened.chip(number, hbm_bytes)
    stories = [
        searched(task, found, chip, run.where, "list" if run.result.get("provisional") else "exact")
        for task, found in zip(tasks_on(run.job, opened, number), run.result["models"], strict=True)
    ]
    cloud = cloud_of(run.job, opened, run.result, run.closed, run.evaluated)
    result = run.result
    foot = (
        f"phaze {escape(str(result['version']))}; study {escape(str(result['study_digest'])[:12])}, code "
        f"{escape(str(result['code_digest'])[:12])}. Times under rules {run.job.rules}; area, power and cost are "
        "estimates."
    )
    title = f"phaze: {result['name']}"
    return framed(title, _head(run, chip, stories), _sections(run, chip, stories, cloud), foot, numbers(cloud))
