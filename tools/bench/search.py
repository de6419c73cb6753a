"""Search: the paper's whole space for one model, certified, against every chip by the plain path
and the published mapper's time alone."""

import os
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np

from phaze.cost.parts import tensor_parts
from phaze.hardware.calibration import IDEAL
from phaze.search.baseline import scale_for
from phaze.search.bounds.kernels import warm
from phaze.search.folder import Finished, run_in
from phaze.search.question_files import Papers
from phaze.search.reference_path import reference_path_of
from phaze.search.state import TIE
from phaze.search.task import SearchJob
from phaze.study.load import job_of, study_of
from phaze.study.raw import default_study
from tools.bench import clock
from tools.bench.line import Line, Section, Took, took
from tools.bench.memory import grown
from tools.bench.published import MAPPER, SOURCE

MODEL = "bert-large"
SAMPLE = 4
"""Chips that the reference path prices: enough for a time a chip, few enough for a minute."""


def _search(job: SearchJob, workers: int) -> Finished:
    with tempfile.TemporaryDirectory(prefix="phaze-bench-") as folder:
        return run_in(Path(folder), Papers(""), job, workers)


def _plain(job: SearchJob, done: Finished, sample: int) -> tuple[float, Took]:
    """The best score of a few chips, evenly spaced, by the plain path, and what all chips would
    take at that pace."""
    plain = reference_path_of(job, scale_for(job), done.state.chips)
    count = len(done.state.chips)
    chips = np.linspace(0, count - 1, sample).astype(int).tolist()
    best, spent = clock.once(lambda: min(min(plain.exact(chip, plain.memories)) for chip in chips))
    share = count / len(chips)
    return best, took(spent.most_s * share, memory_bytes=spent.memory_bytes)


def distinct_products(job: SearchJob) -> int:
    """Different products among the operators of all graphs of a job."""
    layers = [layer for task in job.models for graph in task.graphs for layer in graph.layers]
    works = [work for layer in layers for one in layer.passes for work in one.works]
    return len({product for work in works for product in work.products})


def notes(
    job: SearchJob, done: Finished, ours: Took, sample: int, mapped: tuple[int, int]
) -> tuple[str, ...]:
    """What the reader must know."""
    closed = done.document["certificate"]["closed"]
    count = len(done.state.chips)
    told = (
        f"{closed['bound'] + closed['memory']:,} excluded by a bound, "
        f"{closed['evaluated']:,} evaluated"
    )
    pace = count / (ours.elapsed_s or ours.most_s)
    return (
        f"Input: the paper's {count:,} chips x {len(job.hbm_bytes)} HBM sizes x "
        "microbatches 1, 2, 4, 8 x recompute on "
        f"and off, {MODEL} on 1024 devices, batch 4096; certified to "
        f"{done.document['certificate']['gap']:.2g}.",
        f"Elapsed {ours.elapsed_s:.1f} s with {os.cpu_count() or 1} workers: {pace:,.0f} "
        f"chips a second; {told}. "
        "Memory is that of a search with one worker.",
        "Reference path: every schedule and placement solved on each chip, without "
        "bounds or caches; measured on "
        f"{sample} chips, evenly spaced, and multiplied. None of them may beat the certified best.",
        f"Published mapper: {mapped[0]} different products x {mapped[1]:,} tensor parts "
        f"x 0.25 s, {SOURCE}; what its "
        "costs alone would take on this space, without schedules and placements; "
        "multiplied, not run.",
    )


def section(sample: int = SAMPLE) -> Section:
    """The search, kernels warm, in a folder that is thrown away."""
    warm()
    job = job_of(study_of(default_study(MODEL, "icml24"), "bench"))
    done, ours = clock.once(lambda: _search(job, os.cpu_count() or 1))
    _, memory_bytes = grown(lambda: _search(job, 1))
    ours = replace(ours, memory_bytes=memory_bytes)
    certified = done.document["certificate"]["gap"] <= job.gap * (1 + TIE)
    best, plain = _plain(job, done, sample)
    beaten = best < done.best.score * (1 - job.gap - TIE)
    parts = len(tensor_parts(done.state.arrays, IDEAL, "all_cores")[0])
    mapped = (distinct_products(job), parts)
    mapper_s = MAPPER.least_s * mapped[0] * mapped[1]
    called = f"{MODEL}, {len(done.state.chips):,} chips"
    answers = "certified" if certified else "no proof"
    lines = (
        Line(called, "reference, all", "estimated", ours, plain, answers, certified and not beaten),
        Line(called, "published mapper", "estimated", ours, took(mapper_s)),
    )
    return Section("search", lines, notes(job, done, ours, sample, mapped))
