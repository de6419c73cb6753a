"""Under what an answer was found: process, optimizer, software, and what its times rest on."""

from typing import Any

from phaze.hardware.chip import Chip
from phaze.hardware.stack import Stack
from phaze.search.candidates import plain_candidates
from phaze.search.chips import SpaceChips
from phaze.search.task import SearchJob, tasks_for


def _families(stack: Stack) -> dict[str, list[str]]:
    """The pipeline families that plans were chosen from, where they are not 1F1B alone, interleaved
    or not."""
    return (
        {} if set(stack.families) <= {"1f1b", "interleaved"} else {"families": list(stack.families)}
    )


def setting_document(job: SearchJob, chips: SpaceChips, chip: Chip) -> dict[str, Any]:
    """What a reader must know to compare the answer with another one; the attention stands with
    each model.

    ``zero`` and ``chunks`` are what the study states, "best" where they are chosen, as each model
    says."""
    task = tasks_for(job, chip)[0]
    training = task.training
    (candidate,) = plain_candidates(job, [chip])
    document: dict[str, Any] = {
        "rules": job.rules,
        "devices": training.devices,
        "batch": training.batch,
        "levels": len(training.machine.cluster.levels),
        "links": "chip" if job.space.own_links else "cluster",
        "link_bytes_per_s": training.link_bytes_per_s,
        "process": chips.process,
        "optimizer": training.optimizer,
        "constants": {
            "basis": candidate.trust.basis,
            "of": candidate.constants_of,
            "band": candidate.trust.band,
        },
        "stack": training.machine.stack.name,
        "precision": training.precision,
        "zero": training.zeros[0] if len(training.zeros) == 1 else "best",
        "chunks": "best" if training.chunks is None else list(training.chunks),
        **_families(training.machine.stack),
        **(
            {}
            if training.shards == (0,)
            else {"shard": [shard or "all" for shard in training.shards]}
        ),
    }
    if not chip.lumped_share:
        document["constants"]["software_share"] = task.constants.software_share
    return document
