"""The page of a plan on hardware that exists: the same parts as a search's, without a space and its proof."""

from collections.abc import Mapping
from html import escape
from typing import Any

from phaze import __version__
from phaze.documents import dumps
from phaze.evaluate.headroom import memory_left
from phaze.evaluate.job_file import Reopened, reopened
from phaze.hardware.chip import Chip
from phaze.hardware.cluster import cluster_document
from phaze.report.page.die import die
from phaze.report.page.frame import copyable, facts, framed, section, table
from phaze.report.page.search_page import plan_words, shared_parts
from phaze.report.run_sheet import (
    PROOF,
    batch_text,
    flops_text,
    left_text,
    lever_rows,
    mfu_text,
    rate_text,
    training_rows,
)
from phaze.report.view_model import Story, planned
from phaze.units import show


def sentence(document: Mapping[str, Any], opened: Reopened) -> str:
    """The plan in one sentence, with what is proved of it."""
    job, found = opened.job, show(document["batch_s"], "s")
    what = f"{opened.model.name} on {job.devices:,} {opened.setting.chip.name}"
    rate = f"{document['tokens_per_s']:,.0f} tokens a second, {document['mfu']:.1%} MFU"
    if document.get("shortage") is not None:
        lacking = show(document["shortage"]["missing_bytes"], "B")
        return f"{what}: this plan does not fit; stage {document['shortage']['stage']} lacks {lacking}."
    said = f"{what}: a batch of {job.batch:,} in {found}, {rate}."
    return f"{said} No split of the job is faster." if document.get("proved") is True else said


def _alternatives(document: Mapping[str, Any]) -> str:
    rows = [
        (
            f"tensor {row['tensor']}, pipeline {row['pipeline']}, data {row['data']}, microbatch {row['microbatch']}"
            + (f", {row['chunks']} chunks" if row.get("chunks", 1) > 1 else "")
            + (f", ZeRO {row['zero']}" if row.get("zero") else "")
            + (", sequence parallel" if row["sequence_parallel"] else ""),
            ", ".join(row["recompute"]),
            row["loses_by"] or "the best",
            show(row["batch_s"], "s"),
            f"{row['slower']:+.1%}",
        )
        for row in document["alternatives"]
    ]
    usual = document.get("rule_of_thumb")
    if usual:
        split = f"rule of thumb: tensor {usual['tensor']}, pipeline {usual['pipeline']}, data {usual['data']}"
        slower = f"{usual['batch_s'] / document['batch_s'] - 1:+.1%}"
        rows.append((split, "", "", show(usual["batch_s"], "s"), slower))
    cells = [[escape(cell) for cell in row] for row in rows]
    return table(("plan", "recompute", "loses by", "batch", "slower"), cells, left=3)


def _chip_rows(chip: Chip) -> dict[str, str]:
    return {
        "tensor cores": f"{chip.tensor_cores} of {chip.tensor_core.rows} x {chip.tensor_core.columns}",
        "vector cores": f"{chip.vector_cores} of {chip.vector_core.lanes} lanes",
        "global buffer": show(chip.global_buffer.size_bytes, "B"),
        "HBM": f"{show(chip.hbm.size_bytes, 'B')} at {show(chip.hbm.bandwidth_bytes_per_s, 'B/s')}",
        "peak": show(chip.peak_flops, "FLOP/s"),
        "technology": chip.technology or "none named: no area",
    }


def _notes(document: Mapping[str, Any], story: Story) -> str:
    trust = document["constants"]
    band = f"within about {trust['band']:.0%}" if trust["band"] else "as they stand"
    notes = [f"Times are from {trust['basis']} constants, {band}.", flops_text(document), *document["approximations"]]
    if document.get("chunks", 1) > 1:
        notes.append(f"Each stage has {document['chunks']} chunks: interleaved 1F1B.")
    if document.get("proved") is True:
        notes.append(PROOF)
    return "".join(f'<p class="soft">{escape(_sentence(note))}</p>' for note in notes)


def _sentence(note: str) -> str:
    """A note with a capital and a full stop."""
    return f"{note[:1].upper()}{note[1:]}{'' if note.endswith('.') else '.'}"


def _shortage(document: Mapping[str, Any]) -> str:
    """What the fullest stage holds, and what would make it fit."""
    short = document["shortage"]
    holds = [(escape(k.replace("_", " ")), show(v, "B")) for k, v in short["terms"].items() if v]
    holds.append(("<b>in all</b>", f"<b>{show(short['needed_bytes'], 'B')}</b>"))
    holds.append(("there is", show(short["available_bytes"], "B")))
    levers = [(escape(name), escape(text)) for name, text in lever_rows(short.get("levers") or {})]
    found = f"<p>Stage {int(short['stage'])} is the fullest.</p>{table(('it holds', 'bytes'), holds)}"
    return found + (
        f"<h3>What would make it fit, each alone</h3>{table(('change', 'to'), levers, 2)}" if levers else ""
    )


def plan_page(document: Mapping[str, Any], where: str) -> str:
    """The page of a document ``phaze.plan/1`` that carries its job."""
    opened = reopened(document, where)
    job, chip = opened.job, opened.setting.chip
    story = planned(opened.model, opened.setting, document, job.devices, job.batch, where)
    tiles = facts(
        [
            ("batch", f"{batch_text(document)} in {show(document['batch_s'], 's')}"),
            ("tokens", rate_text(document)),
            ("MFU, HFU", mfu_text(document)),
            ("plan", plan_words(document, document["microbatch"])),
            ("cluster, stack", f"{opened.setting.cluster.label}; {opened.setting.stack.name}"),
            ("precision, state", f"{job.precision}, {job.optimizer}{f', ZeRO {job.zero}' if job.zero else ''}"),
            ("attention", opened.model.attention),
            ("memory left", left_text(memory_left(document["stages"], chip.hbm.size_bytes, 0.0))),
            *training_rows(document.get("training_run")),
        ]
    )
    links = cluster_document(opened.setting.cluster, chip)["links"]
    noted = f'<p class="soft">{escape(_sentence(links))}</p>' if links else ""
    head = f"<h1>{escape(sentence(document, opened))}</h1>{tiles}{_notes(document, story)}{noted}"
    known = _chip_rows(chip) if chip.technology is None else {"peak": show(chip.peak_flops, "FLOP/s")}
    title = "The chip, to scale" if chip.technology else "The chip"
    sections = [("chip", "chip", section("chip", title, die(chip, known), escape(chip.title)))]
    if document.get("shortage") is not None:
        sections.insert(0, ("shortage", "shortage", section("shortage", "What is short", _shortage(document))))
    sections += shared_parts(story, "", "")
    if document.get("alternatives"):
        others = section("plans", "The best different plans", _alternatives(document))
        sections.append(("plans", "other plans", others))
    asked = dumps({key: value for key, value in document["job"].items() if value is not None}, pretty=True)
    sections.append(("study", "job", section("study", "The job, to copy", copyable("study-text", asked))))
    foot = f"phaze {escape(__version__)}. Times under rules cluster; area, power and cost are estimates."
    return framed(f"phaze: {opened.model.name} on {chip.name}", head, sections, foot)
