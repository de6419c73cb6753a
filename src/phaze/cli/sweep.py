"""``phaze sweep``: the certified best along a range of one value of a study."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from phaze.cli.answer import Answer, answering, identified
from phaze.cli.search import Address, Engine, Fresh, Model, Rules, Settings, Study, asked_study, ruled, traced

if TYPE_CHECKING:
    from rich.console import Console

    from phaze.report.progress import Progress

Range = Annotated[str, typer.Option("--over", help="key=low..high or key=a,b,c: a value of the study, and its range.")]
Points = Annotated[int, typer.Option("--points", help="How many values of a range, evenly spaced by ratio.")]
Out = Annotated[str | None, typer.Option("--out", help="The folder of the sweep; runs/<name>-sweep if not given.")]
Workers = Annotated[int, typer.Option("--workers", help="Processes; 0 takes one for each core.")]


@answering
def sweep(
    over: Range,
    study: Study = None,
    model: Model = None,
    points: Points = 9,
    out: Out = None,
    workers: Workers = 0,
    engine: Engine = "local",
    address: Address = None,
    rules: Rules = None,
    settings: Settings = None,
    fresh: Fresh = False,
    *,
    progress: "Progress",
) -> Answer:
    """Search along a range: the best chip and placement, certified, for each value of one key of a study.

    A sweep that was stopped goes on with the same command; phaze plan --over sweeps plans on a given chip. Examples:
    phaze sweep --model llama3-8b --over budget.power=400..700 · phaze sweep study.toml --over
    training.devices=64,256,1024 · phaze sweep --model bert-large --rules icml24 --over
    cluster.link_bytes_per_s=1e9..1e12 --points 4
    """
    from phaze.files import write_whole
    from phaze.report.sweep_page import sweep_page
    from phaze.report.sweep_sheet import show_sweep
    from phaze.search.engines import engine_of
    from phaze.study.load import with_settings
    from phaze.sweep.over import over_of
    from phaze.sweep.run import sweep as sweep_points

    raw, origin = asked_study(study, model, ruled(settings, rules))
    axis = over_of(over, raw, origin.where, points)
    traced(with_settings(raw, [axis.points[0].setting]), origin, fresh, progress)
    folder = Path(out) if out is not None else Path("runs") / f"{raw['name']}-sweep"

    def tell(at: int, of: int, value: str) -> None:
        progress.count(at, of, f"searching at {axis.key} = {value}, points done")

    with engine_of(engine, address, workers, os.cpu_count() or 1) as crew:
        document = sweep_points(folder, raw, origin, axis, crew, tell)
    progress.step("writing the page")
    write_whole(folder / "sweep.html", sweep_page(document))

    def show(console: "Console") -> None:
        show_sweep(console, document, str(folder))

    return identified(Answer((document,), show), folder)
