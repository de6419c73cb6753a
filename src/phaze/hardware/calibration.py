"""What a chip and a link really sustain: at most ten measured numbers a chip, and the defaults
without them.

The bases, from best to plainest:

    calibrated   the numbers of the chip's ``[calibration]`` table; what it leaves out is as for
                 datasheet
    datasheet    matrix and HBM peaks x 0.8, 4 us to start an operator: good to 10-15 %, in the
                 order of plans better
    ideal        peak rates, no start-up: the rules of the ICML 2024 paper, and bounds

``alone`` is one operator called from the host and waited for; ``training`` is operators queued one
behind the other for hours: they start in 4 us, and the clock is lower because the chip is warm and
at its power limit.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from phaze.documents import Bytes, Document, NonNegative, Seconds, Share
from phaze.errors import InputError
from phaze.hardware.attention import AttentionRates, known_family
from phaze.hardware.formats import WIDE, WIDE_BITS, Ratios, Recipe

Basis = Literal["calibrated", "datasheet", "ideal"]
Load = Literal["alone", "training"]
Trusted = Literal["calibrated", "fitted", "datasheet", "held", "ideal"]


# No hardware reaches less of its peak; what divides by less leaves the numbers of 64 bits.
LEAST_SHARE = 1e-6


def require_measured(where: str, name: str, value: float | None) -> None:
    """Refuse a measured figure that cannot be: a share of nothing, or a negative one."""
    if value is None:
        return
    share = name.endswith("share")
    if not 0 <= value < float("inf") or (share and not LEAST_SHARE <= value <= 1):
        remedy = f"it must be from {LEAST_SHARE:g} to 1" if share else "it must be at least 0"
        raise InputError(f"{where}.{name}", f"{value!r} is out of range", remedy)


class Calibration(Document):
    """What was measured of a chip's operators, None where nothing was.

    ``matrix_share``, ``training_matrix_share``: sustained share of the matrix peak in large
    products. ``hbm_share``: of the HBM bandwidth that products reach, ``vector_hbm_share``: that
    vector operators reach. ``start_up_s``, ``vector_start_up_s``: seconds that a product, a vector
    operator called alone takes beside its work. ``block_cycles``: cycles lost for each array-sized
    block of outputs (filling and emptying it). ``kept_row_bytes``: the longest row, at 4 bytes an
    element, that a vector core keeps between the passes of a normalisation; longer ones are fetched
    again. ``matrix_share_fp8``: as ``matrix_share``, of products in 8 bits.
    """

    matrix_share: Share | None = None
    training_matrix_share: Share | None = None
    hbm_share: Share | None = None
    vector_hbm_share: Share | None = None
    start_up_s: Annotated[Seconds | None, Field(alias="start_up")] = None
    vector_start_up_s: Annotated[Seconds | None, Field(alias="vector_start_up")] = None
    block_cycles: NonNegative | None = None
    kept_row_bytes: Annotated[Bytes | None, Field(alias="kept_row")] = None
    attention: Annotated[
        str | None, Field(description="the family whose measured attention kernels it runs")
    ] = None
    matrix_share_fp8: Share | None = None
    _fp8_gain: float | None = None

    @model_validator(mode="after")
    def _possible(self) -> "Calibration":
        for name, value in self:
            if name != "attention":
                require_measured("calibration", name, value)
        if self.attention is not None:
            known_family(self.attention, "calibration.attention")
        return self

    @property
    def fp8_gain(self) -> float | None:
        """Of chips of clusters, how many times the rate of 16 bits products in 8 bits were measured
        to reach."""
        return self._fp8_gain

    def as_read(self) -> dict[str, Any]:
        """The numbers as answers and certificates state them."""
        return {**dict(self), "fp8_gain": self.fp8_gain}

    @property
    def complete(self) -> bool:
        """Whether arrays, memory and start-up were all measured."""
        known = (self.matrix_share, self.hbm_share, self.vector_hbm_share, self.start_up_s)
        return all(value is not None for value in known)

    @property
    def of_several(self) -> bool:
        """Whether more than one operator was measured: a rate and a start-up cannot be told apart
        by one."""
        rates = (self.matrix_share, self.vector_hbm_share)
        return self.start_up_s is not None and any(value is not None for value in rates)


@dataclass(frozen=True, slots=True)
class Constants:
    """What costs are computed with. ``kept_row_bytes`` None: half of a vector core's buffer.

    ``software_share``: what a stack leaves of the rate that a chip of clusters holds, ``clock_hz``:
    the clock that was measured on it (None: the one it holds by its power limit); ``matrix_share``
    and ``block_cycles`` are of chips of cores. ``attention``: what the stack's attention kernel was
    measured to reach on the chip's family; None: its products are mapped on the arrays as others
    are. ``rates``: by bits of an operand, how many times as many multiply-accumulates a cycle as in
    16 bits products sustain. ``grouped_share``: what grouped products of experts reach of the rate
    of others. ``expert_start_s``: every expert has a kernel of its own, which takes so long beside
    its work; None: one kernel runs all of them.
    """

    basis: Basis
    matrix_share: float
    hbm_share: float
    vector_hbm_share: float
    start_up_s: float
    vector_start_up_s: float
    block_cycles: float
    kept_row_bytes: float | None
    software_share: float = 1.0
    clock_hz: float | None = None
    attention: AttentionRates | None = None
    rates: tuple[tuple[int, float], ...] = ()
    grouped_share: float = 1.0
    expert_start_s: float | None = None


def format_rates(
    said: Calibration | None,
    formats: Ratios,
    basis: Basis,
    recipe: Recipe | None,
    wide: bool = False,
) -> tuple[tuple[int, float], ...]:
    """Multiply-accumulates a cycle in a recipe's format, over those of 16 bits, by its bits: the
    arrays' ratio times what 8 bits were measured to sustain of it (4 bits as 8); never less than in
    16 bits, which is what runs else. Those of 32 bits (``wide``) sustain what those of 16 do of
    their peak."""
    if wide:
        return ((WIDE_BITS, dict(formats).get(WIDE, 1.0)),)
    if recipe is None or recipe.format not in dict(formats):
        return ()
    share = 1.0
    if basis == "calibrated" and said is not None and said.matrix_share_fp8 and said.matrix_share:
        share = said.matrix_share_fp8 / said.matrix_share
    elif basis == "calibrated" and said is not None and said.fp8_gain:
        share = said.fp8_gain / dict(formats).get("fp8", said.fp8_gain)
    return ((recipe.bits, max(1.0, share * dict(formats)[recipe.format])),)


IDEAL = Constants("ideal", 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, None)
"""Peaks, no start-up."""
TRAINING_SHARE = 0.8
"""Matrix share in training over that of a product alone, where only that was measured: 0.88 on
A100, 0.66 on H100."""
DATASHEET = Constants("datasheet", 0.8, 0.8, 0.8, 4e-6, 4e-6, 0.0, None)
"""Of a chip that nobody measured: near what A100 and H100 reach, rounded (docs/cost.md,
Constants)."""


def constants_of(
    calibration: Calibration | None, basis: Basis = "calibrated", load: Load = "alone"
) -> Constants:
    """The constants of a basis; ``calibrated`` without a calibration is the data sheet's, and says
    so."""
    if basis == "ideal":
        return IDEAL
    if basis == "datasheet" or calibration is None:
        return DATASHEET
    training = load == "training"

    def first(*values: float | None) -> float:
        return next(value for value in values if value is not None)

    said = calibration
    alone = first(said.matrix_share, DATASHEET.matrix_share)
    start_up = first(said.start_up_s, DATASHEET.start_up_s)
    hbm = first(said.hbm_share, DATASHEET.hbm_share)
    return Constants(
        "calibrated",
        first(said.training_matrix_share, TRAINING_SHARE * alone) if training else alone,
        hbm,
        first(said.vector_hbm_share, DATASHEET.vector_hbm_share),
        DATASHEET.start_up_s if training else start_up,
        DATASHEET.start_up_s if training else first(said.vector_start_up_s, start_up),
        first(said.block_cycles, DATASHEET.block_cycles),
        said.kept_row_bytes,
    )


@dataclass(frozen=True, slots=True)
class Provenance:
    """What constants rest on, and by how much times may be off (docs/accuracy.md): half the runs
    are nearer."""

    basis: Trusted
    band: float


# 10 % on A100, where arrays, memory and start-up were measured; 15 % where some were; 20 % from
# data sheets. ``held``: a chip of clusters at the clock that its power limit allows, with what
# software leaves of its rate: as far off as a data sheet until more runs are compared. Ideal times
# are bounds: they have no band.
BANDS: Mapping[Trusted, float] = MappingProxyType(
    {"calibrated": 0.10, "fitted": 0.15, "datasheet": 0.20, "held": 0.20, "ideal": 0.0}
)


def provenance_of(calibration: Calibration | None, basis: Basis = "calibrated") -> Provenance:
    """``calibrated`` where more than one operator was measured; one share alone is ``fitted``."""
    if basis == "ideal":
        return Provenance("ideal", BANDS["ideal"])
    if basis == "datasheet" or calibration is None:
        return Provenance("datasheet", BANDS["datasheet"])
    if not calibration.of_several:
        return Provenance("fitted", BANDS["fitted"])
    return Provenance("calibrated", BANDS["calibrated" if calibration.complete else "fitted"])


@dataclass(frozen=True, slots=True)
class LinkConstants:
    """What collectives are computed with; ``small_share`` 0: small messages go no other way than
    large ones, ``small_step_s`` None: a quarter of the level's latency, ``in_switch_share`` 0:
    switches only pass messages on."""

    share: float
    start_s: float
    local_bytes_per_s: float
    small_start_s: float
    small_share: float
    small_step_s: float | None = None
    piece_s: float = 0.0
    in_switch_share: float = 0.0


IDEAL_LINK = LinkConstants(1.0, 0.0, float("inf"), 0.0, 0.0)
"""Links at peak, no start-up."""
DATASHEET_LINK = LinkConstants(0.8, 20e-6, float("inf"), 13e-6, 0.15)
"""Of links that nobody measured: near those of measured clusters, rounded (docs/cost.md,
Constants)."""


LINK_FIELDS = tuple(field.name for field in fields(LinkConstants))
