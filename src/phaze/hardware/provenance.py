"""What the times of a chip rest on, and by how much they may be off.

Where one measured share stands for all losses, :func:`phaze.hardware.calibration.provenance_of`
says it. Any other chip is ``calibrated`` where arrays (a clock or rate), memory and start-up were
measured, ``fitted`` where only one of them was, and else ``held``: at the clock that its power
limit allows.
"""

from phaze.hardware.calibration import BANDS, Basis, Provenance, Trusted, provenance_of
from phaze.hardware.chip import Chip


def chip_provenance(chip: Chip, basis: Basis = "calibrated") -> Provenance:
    """The trust in a chip's times on a basis."""
    if chip.lumped_share or basis == "ideal":
        return provenance_of(chip.calibration, basis)
    said = chip.measured
    arrays = said.rate_flops is not None or said.clock_hz is not None
    if basis == "datasheet" or (chip.calibration is None and not arrays):
        return Provenance("held", BANDS["held"])
    rest = (said.hbm_share, said.vector_hbm_share, said.start_up_s)
    found: Trusted = (
        "calibrated" if arrays and all(value is not None for value in rest) else "fitted"
    )
    return Provenance(found, BANDS[found])
