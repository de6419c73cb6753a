"""The chips of a comparison, each with the constants that it is priced with.

A search gives every chip of a space the constants of the space's base chip; a chip that was
measured has its own. Side by side the two would not be like for like (H100 reaches 0.56 of its peak
in training, a data sheet says 0.80), so by default all chips of a comparison have those that the
search used:

    space       the constants of the space's base chip for every chip: what a search prices its
                chips with
    baseline    those of the first chip for every chip
    own         those of each chip, where it was measured, the data sheet's elsewhere
    datasheet, ideal    the same shares for all: a study whose ``cost.basis`` says so

Constants borrowed from another chip are as far off as a data sheet's. A study whose times are ideal
has no others. How far off that is are the held-back runs of the kind (:mod:`phaze.evaluate.bands`),
over all layouts; of a chip that was not measured at least 20 %, for most of a space was never
built.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from phaze.errors import InputError, unknown_name
from phaze.evaluate.bands import band_document
from phaze.hardware.calibration import BANDS, Provenance, Trusted, provenance_of
from phaze.hardware.chip import Chip
from phaze.hardware.converted import without_measurements
from phaze.hardware.provenance import chip_provenance
from phaze.search.task import ModelTask, SearchJob
from phaze.values import replace

Common = Literal["space", "baseline", "own", "datasheet", "ideal"]
COMMON: tuple[Common, ...] = get_args(Common)
MEASURED: tuple[Trusted, ...] = ("calibrated", "fitted")


@dataclass(frozen=True, slots=True)
class ComparedChip:
    """A chip to be compared; ``own_links``: it is priced on its own links, as the search that found
    it did."""

    chip: Chip
    trust: Provenance
    constants_of: str
    own_links: bool = False


@dataclass(frozen=True, slots=True)
class ChipToCompare:
    """A chip that someone wants compared, and whether its links were an axis of the space it was
    found in."""

    chip: Chip
    own_links: bool = False


def require_basis(job: SearchJob, basis: str) -> Common:
    """The basis of a comparison, or an InputError."""
    for choice in COMMON:
        if basis == choice:
            ideal = job.models[0].training.machine.basis == "ideal"
            if ideal and choice in ("baseline", "own", "datasheet"):
                raise InputError(
                    "--basis",
                    f"the study's times are ideal and know no {basis!r}",
                    "search with another",
                )
            return choice
    raise unknown_name("--basis", "basis", basis, COMMON)


def with_constants(chip: Chip, owner: Chip) -> Chip:
    """The chip with another one's measured constants, and what software leaves of its rate as on
    that one; a clock that was measured is of its own chip alone."""
    plain = without_measurements(chip)
    return replace(
        plain,
        calibration=owner.calibration,
        software_of=None if chip.lumped_share else owner.technology,
    )


def _band(basis: Trusted, task: ModelTask) -> float:
    training = task.training
    band = float(band_document(basis, training.machine.stack.name, training.precision)["band"])
    return band if basis in MEASURED else max(band, BANDS[basis])


def candidates_of(
    job: SearchJob, chips: Sequence[ChipToCompare], basis: Common = "space"
) -> list[ComparedChip]:
    """The chips as they are priced; the first is the baseline."""
    task = job.models[0]
    if task.training.machine.basis == "ideal":
        return [
            ComparedChip(entry.chip, provenance_of(None, "ideal"), entry.chip.name, entry.own_links)
            for entry in chips
        ]
    base, candidates = job.space.base, []
    for entry in chips:
        owner = {"space": base, "baseline": chips[0].chip}.get(basis, entry.chip)
        chip = (
            entry.chip
            if owner is entry.chip and basis == "own"
            else with_constants(entry.chip, owner)
        )
        trust = chip_provenance(chip, task.training.machine.basis)
        borrowed = owner.name != entry.chip.name and trust.basis in MEASURED
        trust = replace(trust, band=_band("datasheet" if borrowed else trust.basis, task))
        candidates.append(ComparedChip(chip, trust, owner.name, entry.own_links))
    return candidates


def plain_candidates(job: SearchJob, chips: Sequence[Chip]) -> list[ComparedChip]:
    """Chips as the search of a job prices them."""
    return candidates_of(job, [ChipToCompare(chip) for chip in chips])
