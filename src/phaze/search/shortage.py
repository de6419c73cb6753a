"""Why a search has no answer: no chip, no memory within the price, too little memory, or chips that
failed."""

import numpy as np

from phaze.errors import InfeasibleError, PhazeError
from phaze.placement.shortage import Shortage
from phaze.search.chips import SpaceChips
from phaze.search.reference import least_shortage
from phaze.search.result import SCHEMA
from phaze.search.state import SearchState
from phaze.search.task import SearchJob


def nothing_found(state: SearchState) -> PhazeError:
    """What to say when no chip of the space was found feasible."""
    if not len(state.chips):
        return no_chip(state.chips)
    faults = [result.error for result in state.evaluated.values() if result.error]
    if faults:
        return PhazeError(f"every chip that was evaluated failed, the first with {faults[0]}")
    if not np.isfinite(state.rates.rate).any():
        return _too_dear(state)
    return _no_room(state.job)


def no_chip(chips: SpaceChips) -> InfeasibleError:
    """A space of which its rules leave nothing: what each left out, and what the nearest chip
    needs."""
    out, name = chips.left_out, chips.space.name
    counts = ", ".join(f"{rule} {count:,}" for rule, count in out.items() if count)
    need = chips.need()
    sentence = (
        f"The space {name} has no chip: its rules leave out every combination ({counts}); "
        f"{need.sentence}."
    )
    document = {
        "rule": need.rule,
        "needed": need.needed,
        "available": need.available,
        "unit": need.unit,
    }
    return InfeasibleError(
        sentence,
        {
            "schema": SCHEMA,
            "feasible": False,
            "left_out": out,
            "shortage": {**document, "sentence": sentence},
        },
    )


def _too_dear(state: SearchState) -> InfeasibleError:
    most = state.job.space.limits["usd"]
    least = float(state.chips.making_usd(state.job.hbm_bytes[0]).min())
    sentence = (
        f"No chip with its HBM costs at most {most:g} USD; the cheapest costs {least:.2f} "
        "USD with the least HBM."
    )
    return InfeasibleError(
        sentence, {"schema": SCHEMA, "feasible": False, "needed_usd": least, "available_usd": most}
    )


def _no_room(job: SearchJob) -> InfeasibleError:
    """The least shortage over all configurations and the most HBM; memory depends on no chip."""
    shortages: list[tuple[float, str, Shortage]] = []
    for task in job.models:
        least = least_shortage(task, job.hbm_bytes[-1])
        shortages += [] if least is None else [(least[0], task.name, least[1])]
    if not shortages:
        return InfeasibleError("Nothing fits.", {"schema": SCHEMA, "feasible": False})
    need, name, shortage = min(shortages, key=lambda entry: entry[0])
    document = {
        "schema": SCHEMA,
        "feasible": False,
        "model": name,
        "needed_bytes": need if need < 1e30 else None,
    }
    return InfeasibleError(
        f"{name}: {shortage.sentence}", {**document, "available_bytes": job.hbm_bytes[-1]}
    )
