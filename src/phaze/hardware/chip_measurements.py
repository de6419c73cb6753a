"""What a maker publishes of a chip, and what was measured of it: tables of its file."""

from typing import Annotated

from pydantic import Field, model_validator

from phaze.documents import Bytes, Document, FlopPerSecond, Hertz, Mm2, Seconds, Share, Watts
from phaze.hardware.attention import ChipKernel, known_family
from phaze.hardware.calibration import Calibration, require_measured
from phaze.hardware.keys import Text, Units
from phaze.values import Listed, replace


class Published(Document):
    """The maker's own figures, or those of a die photo, to hold ours against."""

    peak_flops: Annotated[FlopPerSecond | None, Field(alias="peak")] = None
    die_mm2: Annotated[Mm2 | None, Field(alias="die")] = None
    die_is_upper_bound: bool = False
    tdp_w: Annotated[Watts | None, Field(alias="tdp")] = None
    process: Text | None = None


class ChipMeasurements(Document):
    """What was measured, used by plans and never by a search: the rate of a long run of one product
    and its m, n, k, else the clock, of which single products are priced at any rate; power;
    start-ups, shares of HBM, rows kept.

    ``rate_fp8_flops``: the greatest in 8 bits. ``clock_hz``: held by single products, and in
    training where no rate is stated. ``power_w``: the mean of a load that keeps the arrays busy.
    ``kernels``: rates of attention kernels. The rest as in :mod:`phaze.hardware.calibration`.
    """

    rate_flops: Annotated[FlopPerSecond | None, Field(alias="rate")] = None
    rate_shape: Annotated[
        Annotated[tuple[Units, Units, Units], Field(strict=False)] | None, Field(alias="shape")
    ] = None
    power_w: Annotated[Watts | None, Field(alias="power")] = None
    clock_hz: Annotated[Hertz | None, Field(alias="clock")] = None
    start_up_s: Annotated[Seconds | None, Field(alias="start_up")] = None
    vector_start_up_s: Annotated[Seconds | None, Field(alias="vector_start_up")] = None
    hbm_share: Share | None = None
    vector_hbm_share: Share | None = None
    kept_row_bytes: Annotated[Bytes | None, Field(alias="kept_row")] = None
    attention: Annotated[
        str | None, Field(description="the family whose measured attention kernels it runs")
    ] = None
    rate_fp8_flops: Annotated[FlopPerSecond | None, Field(alias="rate_fp8")] = None
    kernels: Annotated[
        Listed[ChipKernel] | None,
        Field(description="attention kernels measured on it, instead of its family's"),
    ] = None

    @model_validator(mode="after")
    def _of_a_product(self) -> "ChipMeasurements":
        if (self.rate_flops is None) != (self.rate_shape is None):
            raise ValueError("give rate and shape together")
        if self.rate_fp8_flops is not None and self.rate_flops is None:
            raise ValueError("give rate with rate_fp8, which is relative to it")
        for name in CALIBRATED:
            require_measured("calibration", name, getattr(self, name))
        if self.attention is not None:
            known_family(self.attention, "measured.attention")
        return self

    @property
    def calibration(self) -> Calibration | None:
        """Its shares and start-ups, None where none was measured: arrays have no share of their own
        here."""
        gain = (
            None
            if not self.rate_flops or not self.rate_fp8_flops
            else self.rate_fp8_flops / self.rate_flops
        )
        measured = {name: getattr(self, name) for name in (*CALIBRATED, "attention")}
        calibration = replace(Calibration(), **measured, fp8_gain=gain)
        return None if calibration == Calibration() else calibration


CALIBRATED = ("hbm_share", "vector_hbm_share", "start_up_s", "vector_start_up_s", "kept_row_bytes")
UNPUBLISHED, UNMEASURED = Published(), ChipMeasurements()
