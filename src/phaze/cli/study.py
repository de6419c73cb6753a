"""``phaze study``: what can be said of a study before it is searched."""

from typing import TYPE_CHECKING, Annotated, Unpack

import typer

from phaze.api.load_study import traced_study
from phaze.api.values import Answer
from phaze.cli.command import command
from phaze.options.option import Option
from phaze.options.studies import CheckOptions
from phaze.report.sections import Notes

if TYPE_CHECKING:
    from phaze.report.progress import Progress

app = typer.Typer(no_args_is_help=True, help="Check a study without searching it.")
File = Annotated[
    str, Option("A study (phaze.study/1); - reads it from standard input.", argument=True)
]


@app.command("check")
@command
def check(file: File, *, progress: "Progress", **options: Unpack[CheckOptions]) -> Answer:
    """Check a study: its file, every name in it, and the size of the search.

    Example: phaze study check examples/quickstart.toml --set objective.kind=energy_delay
    """
    from phaze.search.chips import enumerate_space
    from phaze.search.shortage import no_chip
    from phaze.study.load import job_of, study_of

    raw, origin = traced_study(
        file,
        None,
        options["settings"],
        options["fresh"],
        progress,
        allow_code=options["allow_code"],
    )
    progress.step("counting the chips of the space")
    checked = study_of(raw, origin.where)
    job = job_of(checked, reader=origin.reader)
    space_chips = enumerate_space(job.space)
    if not len(space_chips):
        raise no_chip(space_chips)
    document = {
        "study": job.name,
        "title": checked.title,
        "digest": job.digest,
        "chips": len(space_chips),
        "hbm_bytes": list(job.hbm_bytes),
        "models": [
            {
                "name": task.name,
                "graphs": [
                    {"tensor": graph.width, "microbatch": graph.microbatch} for graph in task.graphs
                ],
                "ways": len(task.configurations),
            }
            for task in job.models
        ],
    }

    configurations = sum(len(task.configurations) for task in job.models)
    chips = (
        f"{document['chips']:,} chips x {len(job.hbm_bytes)} memories x {configurations} "
        "configurations"
    )
    sentence = f"{job.name} is a good study: {chips}"
    return Answer(document, lambda: [Notes([sentence], checked.title or "")])
