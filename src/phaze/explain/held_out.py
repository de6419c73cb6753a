"""The chip on models that its search did not know: does it serve others too?

A held-out model is trained as the study trains its own: the same devices, global batch, network,
stack, microbatches. It is placed anew on the chip that was found, by the reference path:

    throughput of a held-out model = its batch / the least step time over all its configurations on
    that chip
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from phaze.errors import InputError
from phaze.explain.question import ExplainedRun
from phaze.graph.supply.tracing import Watch, silent
from phaze.search.compare import best_offers
from phaze.search.model_figures import with_figures
from phaze.search.plan_words import plan_words
from phaze.search.question_files import STUDY
from phaze.search.result import model_document
from phaze.search.task import ModelTask, SearchJob, tasks_for
from phaze.study.load import question_of, study_of
from phaze.study.own_models import with_own_models, with_tables
from phaze.study.raw import read_study

WHERE = "--held-out"


@dataclass(frozen=True, slots=True)
class HeldOut:
    """A model that was not searched for, on the chip that was found; None where it does not fit."""

    name: str
    throughput_per_s: float | None
    tokens_per_s_per_device: float | None
    mfu: float | None
    batch_s: float | None
    energy_j: float | None
    power_w: float | None
    batch: int
    sequence: int
    plan: str | None


def held_out_job(
    folder: str, question: ExplainedRun, models: Sequence[str], watch: Watch = silent
) -> SearchJob:
    """The run's job with other models in place of its own: built-in names, or places in the working
    folder."""
    names = {task.name for task in question.job.models}
    raw, origin = read_study(str(Path(folder) / STUDY))
    stated = with_tables({**raw, "models": list(models)})
    here = replace(origin, where=WHERE, folder=Path(), allow_code=True)
    values = with_own_models(stated, here, watch)
    study = study_of(values, WHERE)
    for table in study.tables():
        if table.name in names:
            raise InputError(
                f"{WHERE} {table.name}",
                "it was searched for",
                "name a model that the study does not",
            )
    graphs = {path for table in study.tables() for path in table.graphs or ()}
    return question_of(study, reader=here.trusting(graphs).reader).job


def _held_out(question: ExplainedRun, task: ModelTask, job: SearchJob) -> HeldOut:
    chip, sequence = question.chip, task.graphs[0].model.sequence
    offer = best_offers(task, chip, ("searched",), None, job.objective)["searched"]
    if offer is None:
        return HeldOut(task.name, *(None,) * 6, task.training.batch, sequence, None)
    table = with_figures(
        model_document(task, offer.configuration, chip), task, offer.configuration, chip, None
    )
    return HeldOut(
        task.name,
        table["throughput_per_s"],
        table["tokens_per_s_per_device"],
        table["mfu"],
        table["batch_s"],
        table["energy_j"],
        table["power_w"],
        task.training.batch,
        sequence,
        plan_words(table, table["plan"]),
    )


def held_out(question: ExplainedRun, job: SearchJob) -> list[HeldOut]:
    """Every held-out model of ``job`` on the chip of the run."""
    return [_held_out(question, task, job) for task in tasks_for(job, question.chip)]
