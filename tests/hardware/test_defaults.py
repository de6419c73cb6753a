"""The defaults of chips and links that nobody measured, beside the medians of those that were
(docs/accuracy.md)."""

from statistics import median

import pytest

from phaze.hardware.calibration import DATASHEET, DATASHEET_LINK
from phaze.hardware.library import load_chip, load_cluster

MEASURED_CHIPS = ("a100-80gb", "h100", "h800", "b200")
MEASURED_NODES = ("selene", "dgx-h100", "dgx-b200", "nvl72")


def test_the_default_share_of_hbm_is_near_the_median_of_measured_chips() -> None:
    shares = [load_chip(name).measured.hbm_share for name in MEASURED_CHIPS]
    assert len(shares) == len(MEASURED_CHIPS) and None not in shares
    known = [share for share in shares if share is not None]
    assert median(known) == pytest.approx(0.81, abs=0.005)
    assert DATASHEET.hbm_share == pytest.approx(median(known), abs=0.02)


def test_the_default_share_of_a_link_is_near_the_median_of_measured_nodes_and_its_start_below() -> (
    None
):
    levels = [load_cluster(name).levels[0] for name in MEASURED_NODES]
    shares = [one.share for one in levels if one.share is not None]
    starts = [one.start_s for one in levels if one.start_s is not None]
    assert len(shares) == len(starts) == len(MEASURED_NODES)
    assert DATASHEET_LINK.share == pytest.approx(median(shares), abs=0.02)
    assert median(starts) == pytest.approx(39e-6, rel=0.02)
    assert DATASHEET_LINK.start_s == 20e-6
