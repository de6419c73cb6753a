"""``phaze sweep``: the certified best along a range of one value of a study."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from phaze.cli.answer import Answer, answering
from phaze.cli.search import Address, Engine, Fresh, Model, Settings, Study, settled

if TYPE_CHECKING:
    from rich.console import Console

    from phaze.report.progress import Progress

Range = Annotated[str, typer.Option("--over", help="key=low..high or key=a,b,c: a value of the study, and its range.")]
Points = Annotated[int, typer.Option("--points", help="How many values of a range, evenly spaced by ratio.")]
Out = Annotated[str | None, typer.Option("--out", help="The folder of the sweep; runs/<name>-sweep if not given.")]
Workers = Annotated[int, typer.Option("--workers", help="Processes; 0 takes one for each core.")]


def _show(console: "Console", document: dict[str, Any], folder: Path) -> None:
    from phaze.report.terminal import table

    chips = {at: region["name"] for region in document["chips"] for at in range(region["first"], region["last"] + 1)}
    cells = []
    for at, point in enumerate(document["points"]):
        if point["chip"] is None:
            cells.append((point["shown"], "", "nothing fits", "", ""))
            continue
        rates = [f"{model['throughput_per_s']:,.4g}" for model in point["models"]]
        first = point["models"][0]
        plan = f"{first['pipeline']} x {first['data']} x {first['tensor']}" if len(rates) == 1 else ""
        cells.append((point["shown"], chips[at], point["chip"], " ".join(rates), plan))
    heads = (document["over"].rpartition(".")[2], "", "best chip", "sequences/s", "p x d x t")
    console.print(table(heads, cells, left=3))
    for point in document["points"]:
        if "enlarged" in (point["cluster"] or ""):
            console.print(f"{point['shown']}: {point['cluster']}", markup=False)
    console.print(f"\nThe sweep: {folder}; its page: {folder / 'sweep.html'}")


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
    settings: Settings = None,
    fresh: Fresh = False,
    *,
    progress: "Progress",
) -> Answer:
    """Search along a range: the best chip and placement, certified, for each value of one key of a study.

    A sweep that was stopped goes on with the same command. Examples: phaze sweep --model bert-large --over
    cluster.link_bytes_per_s=1e9..1e12 · phaze sweep study.toml --over training.devices=64,256,1024 ·
    phaze sweep study.toml --over "hbm=16 GiB..128 GiB" --points 4
    """
    from phaze.files import write_whole
    from phaze.report.sweep_page import sweep_page
    from phaze.search.engines import engine_of
    from phaze.sweep.over import over_of
    from phaze.sweep.run import sweep as sweep_points

    raw, where = settled(study, model, settings or [], fresh, progress)
    axis = over_of(over, raw, where, points)
    folder = Path(out) if out is not None else Path("runs") / f"{raw['name']}-sweep"

    def tell(at: int, of: int, value: str) -> None:
        progress.count(at, of, f"searching at {axis.key} = {value}, points done")

    with engine_of(engine, address, workers, os.cpu_count() or 1) as crew:
        document = sweep_points(folder, raw, where, axis, crew, tell)
    progress.step("writing the page")
    write_whole(folder / "sweep.html", sweep_page(document))

    def show(console: "Console") -> None:
        _show(console, document, folder)

    return Answer((document,), show)
