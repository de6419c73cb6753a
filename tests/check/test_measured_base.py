"""A space whose base chip has measured attention kernels: its chips run them at the measured shares
of their own peaks, and no other figure holds."""

from collections.abc import Callable
from pathlib import Path

from phaze.check.verdict import check
from tests.check.forge import Papers
from tests.conftest import Ran
from tests.search.test_study import SPACE

PRESETS = Path(__file__).parents[2] / "src" / "phaze" / "hardware" / "presets" / "chips"
STUDY = """schema = "phaze.study/1"
name = "measured"
space = "{folder}/space.toml"
models = [{{name = "bert-large", sequence = 128}}]
hbm = ["32 GiB"]
[training]
devices = 8
batch = 16
microbatches = [1, 2]
cluster = "selene"
stack = "megatron-core"
attention = "fused"
"""
KERNELS = ("training", "constants", "attention")
THRIFTY = """[stack]
schedule = "overlap"
[objective]
kind = "throughput_per_watt"
[search]
gap = 0.0
"""


def _searched(folder: Path, phaze: Callable[..., Ran], more: str = "") -> Path:
    """The run of a study whose base chip is a file with measured figures."""
    chip = folder / "base.toml"
    chip.write_text((PRESETS / "a100-80gb.toml").read_text())
    space = SPACE.replace('base = "tpu-v4-paper"', f'base = "{chip}"')
    (folder / "space.toml").write_text(space.replace('area_of = "tpu-v4-paper"', "most_area = 800"))
    (folder / "study.toml").write_text(STUDY.format(folder=folder) + more)
    ran = phaze("search", folder / "study.toml", "--out", folder / "run", "--workers", 1)
    assert ran.code == 0, ran.err
    return folder / "run"


def test_a_space_of_a_measured_base_chip_holds_and_no_other_kernel_does(
    tmp_path: Path, phaze: Callable[..., Ran]
) -> None:
    run = _searched(tmp_path, phaze)
    assert phaze("verify", run).code == 0
    papers = Papers(run)
    assert papers.training["constants"]["attention"] is not None
    for rate in papers.training["constants"]["attention"]["forward"]:
        rate[1]["share"] *= 0.9
        rate[1]["most"] *= 0.9
    assert check(papers.write(tmp_path)).wrong.startswith("best:")
    papers = Papers(run)
    papers.training["constants"]["clock_hz"] = 2e9
    assert "no chip of a space was measured" in check(papers.write(tmp_path)).wrong
    papers = Papers(run)
    papers.claim(papers.certificate["best"] * 0.99)
    assert check(papers.write(tmp_path)).wrong.startswith("best:")


def test_a_search_that_leaves_schedules_unproved_has_the_gap_that_it_shows(
    tmp_path: Path, phaze: Callable[..., Ran]
) -> None:
    run = _searched(tmp_path, phaze, THRIFTY)
    papers = Papers(run)
    assert papers.certificate["gap"] > papers.problem["gap"]
    assert phaze("verify", run).code == 0
    papers.certificate["gap"] = papers.problem["gap"]
    papers.claim(papers.certificate["best"])
    assert not check(papers.write(tmp_path)).holds
