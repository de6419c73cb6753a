"""``phaze search``: the best chip of a space and the best placement on it, together, with a certificate."""

import os
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any

import typer

from phaze.cli.answer import Answer, answering
from phaze.cli.plan_options import shards_of
from phaze.cli.tensor_plan import TpPlan, announce, with_plan
from phaze.report.progress import Progress

if TYPE_CHECKING:
    from rich.console import Console

    from phaze.study.places import Origin

Study = Annotated[str | None, typer.Argument(help="A study (phaze.study/1).")]
Model = Annotated[
    list[str] | None,
    typer.Option("--model", help="Instead of a study: a built-in name, file.py:function, a config.json or its folder."),
]
Out = Annotated[str | None, typer.Option("--out", help="The folder of the run; runs/<name> if not given.")]
Gap = Annotated[float | None, typer.Option("--gap", help="How near to the best the proof must come: 0.0001.")]
Time = Annotated[float | None, typer.Option("--time", help="Stop after so many seconds; the gap says how far it came.")]
Workers = Annotated[int, typer.Option("--workers", help="Processes; 0 takes one for each core.")]
Rules = Annotated[
    str | None, typer.Option("--rules", help="Whose defaults hold: cluster, today's hardware (default), or icml24.")
]
Engine = Annotated[str, typer.Option("--engine", help="local: processes of this machine; ray: a Ray cluster.")]
Address = Annotated[str | None, typer.Option("--address", help="With ray: auto (what runs here), local, or HOST:PORT.")]
Attention = Annotated[
    str | None,
    typer.Option("--attention", help="eager, fused, or best of both; without it as the stack runs it."),
]
Precision = Annotated[
    str | None,
    typer.Option("--precision", help="bf16, fp8 or a recipe that stack and space have; without it the stack's."),
]
Shard = Annotated[
    str | None,
    typer.Option(
        "--shard", help="Hybrid sharding: ranks with the same weights that share out state, 8,16 or 8,all; else all."
    ),
]
Headroom = Annotated[
    str | None,
    typer.Option("--headroom", help="Share of memory to leave free; without it 6% under rules cluster, else 0."),
]
Devices = Annotated[int | None, typer.Option("--devices", help="How many devices there are.")]
Batch = Annotated[
    str | None, typer.Option("--batch", help="Global batch in sequences, 1024, or tokens, 4M-tokens (M = 10^6).")
]
Sequence = Annotated[
    str | None, typer.Option("--sequence", help="Sequence length in tokens, such as 4096 or 32k (k = 1024).")
]
Tokens = Annotated[
    str | None,
    typer.Option("--tokens", help="Tokens to train on, 15T: days, device hours, USD, kWh and kg CO2e of the run."),
]
Terms = Annotated[
    str | None, typer.Option("--terms", help="With --tokens: prices, PUE and carbon (phaze.ownership/1).")
]
Fresh = Annotated[bool, typer.Option("--fresh", help="Trace models of your own again, whatever the cache holds.")]
Settings = Annotated[list[str] | None, typer.Option("--set", help="a.b=c: change a value of the study.")]


def ruled(settings: list[str] | None, rules: str | None) -> list[str]:
    """Changes of a study with the setting that ``--rules`` names."""
    return [*(settings or []), *([] if rules is None else [f'rules="{rules}"'])]


def _name(models: list[str]) -> str:
    """What a search of these models is called: their names, or how many there are."""
    from phaze.graph.tensor_plan import is_place
    from phaze.study.places import name_of

    called = [name_of(model) if is_place(model) else model for model in models]
    return "-".join(called) if len(models) < 4 else f"{len(models)}-models"


def asked_study(study: str | None, models: list[str] | None, settings: list[str]) -> "tuple[dict[str, Any], Origin]":
    """The plain values of the study that was asked for, its own models not traced yet, and where it comes from."""
    from phaze.errors import InputError
    from phaze.graph.zoo import ZOO
    from phaze.study.load import default_study, given_paths, read_study, with_settings
    from phaze.study.own import with_tables
    from phaze.study.places import Origin

    if (study is None) == (not models):
        raise InputError("search", "give either a study or --model", "e.g. phaze search --model llama3-8b")
    if study is not None:
        if study in ZOO and not Path(study).exists():
            raise InputError(study, "a study is a file, and this is a model's name", f"give it as --model {study}")
        raw, origin = read_study(study)
    else:
        raw, origin = default_study(_name(models or [])), Origin("--model")
        raw["models"] = list(models or [])
    return with_tables(with_settings(raw, settings)), origin.given(given_paths(settings))


def settled(
    study: str | None,
    models: list[str] | None,
    settings: list[str],
    fresh: bool = False,
    progress: "Progress | None" = None,
) -> "tuple[dict[str, Any], Origin]":
    """The plain values of the study that was asked for, its models graphs or built in, and where it comes from."""
    raw, origin = asked_study(study, models, settings)
    return traced(raw, origin, fresh, progress or Progress()), origin


def traced(raw: dict[str, Any], origin: "Origin", fresh: bool, progress: Progress) -> dict[str, Any]:
    """A study with its own models traced; standard error says what each is run as."""
    from phaze.study.own import own_places, with_own_models

    progress.step("opening the models")
    found = with_own_models(raw, origin, progress.counting("tracing"), fresh)
    progress.clear()
    for place, length in own_places(raw, origin):
        announce(place, length)
    return found


def _stopped(limit_s: float, loaded_s: float, folder: Path) -> str:
    """What a search says whose time was up."""
    said = [f"Stopped after {limit_s:g} s: the same command goes on, phaze report {folder} makes the page."]
    if loaded_s > limit_s:
        said.insert(0, f"Loading the models alone took {loaded_s:.1f} s, longer than the limit.")
    return " ".join(said)


def _known_answer(document: "dict[str, Any]", folder: Path) -> Answer:
    """The answer of a run that had ended."""

    def show(console: "Console") -> None:
        from phaze.report.run_id import show_run_id
        from phaze.report.search_sheet import show_result

        work = "This run had ended: its folder has the answer, and nothing was searched again."
        show_result(console, document, str(folder), work, True)
        show_run_id(console, folder)

    return Answer((document,), show)


@answering
def search(
    study: Study = None,
    model: Model = None,
    out: Out = None,
    gap: Gap = None,
    time: Time = None,
    workers: Workers = 0,
    rules: Rules = None,
    engine: Engine = "local",
    address: Address = None,
    attention: Attention = None,
    precision: Precision = None,
    shard: Shard = None,
    headroom: Headroom = None,
    devices: Devices = None,
    batch: Batch = None,
    sequence: Sequence = None,
    tokens: Tokens = None,
    terms: Terms = None,
    settings: Settings = None,
    tp_plan: TpPlan = None,
    fresh: Fresh = False,
    *,
    progress: "Progress",
) -> Answer:
    """Search the best chip and the best placement on it, together, to a proven gap.

    A run that was stopped goes on with the same command. Examples: phaze search --model llama3-8b ·
    phaze search --model bert-large --rules icml24 · phaze search study.toml --engine ray ·
    phaze search study.toml --batch 4M-tokens --tokens 2T --out runs/priced
    """
    began = monotonic()
    from phaze.cli.report import PAGE, write_search_page
    from phaze.hardware.write import toml_text
    from phaze.search.finished import finished_in
    from phaze.study.load import question_of, study_of
    from phaze.study.options import study_settings

    chosen = study_settings(
        settings or (), rules=rules, gap=gap, attention=attention, precision=precision, shard=shards_of(shard),
        headroom=headroom, devices=devices, batch=batch, sequence=sequence, tokens=tokens, terms=terms,
    )  # fmt: skip
    raw, origin = settled(study, [with_plan(name, tp_plan) for name in model or []], chosen, fresh, progress)
    progress.step("loading the models' graphs")
    checked = study_of(raw, origin.where)
    folder = Path(out) if out is not None else Path("runs") / checked.name
    question = question_of(checked, reader=origin.reader)
    papers = question.papers(toml_text(raw))
    kept_answer = finished_in(folder, papers, question.job.digest)
    if kept_answer is not None and (folder / PAGE).is_file():
        return _known_answer(kept_answer, folder)
    loaded_s = monotonic() - began
    from phaze.report.run_id import show_run_id
    from phaze.report.search_sheet import show_result, shown_on
    from phaze.search.deadline import left_of
    from phaze.search.engines import engine_of
    from phaze.search.folder import run_in
    from phaze.search.progress_file import ProgressFile, both

    job = replace(question.job, limit_s=left_of(time, began))
    progress.step("bounding every chip of the space")
    with engine_of(engine, address, workers, os.cpu_count() or 1) as crew:
        kept = ProgressFile(folder)
        done = run_in(folder, papers, job, crew, both(shown_on(progress), kept.watch))
        kept.end()
    work = done.state.known.sentence
    if time is not None and done.state.stopped:  # the page takes its own time
        work = f"{_stopped(time, loaded_s, folder)} {work}"
    else:
        progress.step("writing the page")
        write_search_page(folder)

    def show(console: "Console") -> None:
        show_result(console, done.document, str(folder), work, not done.state.stopped)
        show_run_id(console, folder)

    return Answer((done.document,), show)
