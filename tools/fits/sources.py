"""Where measured runs come from, and which of them speak: for bands, and for constants of their
stack.

A source is a laboratory's repository or paper, the first word of a row's ``source``. Left out, with
a reason (:func:`left_out`): runs that leave choices open, the times of runs over a network that
broke down, and runs in a recipe that is priced as another. A software share was ``fitted`` on runs
if its source in the stack's file says so.
"""

import re

from phaze.evaluate.run_file import RunJob
from phaze.hardware.library import load_stack
from phaze.validate.rows import MeasuredRun

# nanotron's sweep ran pipelines, and more than 8 nodes, over a network that broke down
# (docs/accuracy.md).
BROKEN, BROKEN_DEVICES = "github.com/vinjn/nanotron-ultrascale-playbook", 64
# torchtitan's float8 with a scale for each row: no product of that kind was measured, so none is
# priced.
ROWWISE = "fp8-rowwise"
FITTED = re.compile(r"fitted", re.IGNORECASE)
NO_RUN = "no run was used"
OPEN = "it leaves choices open"


def source_of(row: MeasuredRun) -> str:
    """The laboratory's repository or paper."""
    return re.split(r"[@ :]", row.source, maxsplit=1)[0] or row.id


def left_out(row: MeasuredRun) -> str:
    """Why the time of a run speaks for no band; empty if it does."""
    if row.free:
        return OPEN
    plan = row.run["plan"]
    if source_of(row) == BROKEN and (plan["pipeline"] > 1 or row.run["devices"] > BROKEN_DEVICES):
        return "its network broke down"
    if ROWWISE in row.id:
        return "its recipe is priced as another"
    return "" if row.seconds is not None else "no time was measured"


def usual_generation(job: RunJob) -> str | None:
    """The name by which the stack's share on the job's chip is known."""
    known = dict(job.stack.software_share)
    return next((name for name in (*job.chip.generation, "any") if name in known), None)


def share_is_fitted(stack: str, generation: str) -> bool:
    """Whether a bundled stack's share on a generation of chips was fitted on runs."""
    said = load_stack(stack).sources.get(f"software_share.{generation}", "")
    return bool(FITTED.match(said)) and NO_RUN not in said
