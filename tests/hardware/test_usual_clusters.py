"""What a chip is titled and where it stands by default agree; a space of one die has a base of
one."""

from pathlib import Path

import pytest

from phaze.errors import InputError
from phaze.hardware.bundled import bundled, preset_names
from phaze.hardware.library import Form, load_chip
from phaze.search.spaces import load_space


@pytest.mark.parametrize("form", ["any", "cores"])
def test_a_b200_of_hgx_boards_stands_in_nodes_of_eight_and_a_gb200_in_racks(form: Form) -> None:
    chip = load_chip("b200", form=form)
    assert "HGX" in chip.title and chip.cluster == "dgx-b200"
    assert load_chip("gb200").cluster == "nvl72"


@pytest.mark.parametrize("base", ["b200", "mi300x"])
def test_a_space_refuses_a_base_of_several_dies(base: str, tmp_path: Path) -> None:
    text = (Path("src/phaze/hardware/presets/silicon/spaces") / "n5-reticle.toml").read_text(
        encoding="utf-8"
    )
    (tmp_path / "two.toml").write_text(text.replace("n5-reticle-base", base), encoding="utf-8")
    with pytest.raises(
        InputError, match=f"the chip '{base}' has [0-9]+ dies; choose one of a single die"
    ):
        load_space(str(tmp_path / "two.toml"))


def test_every_bundled_base_has_one_die() -> None:
    for name in preset_names("silicon/bases"):
        assert bundled(f"presets/silicon/bases/{name}.toml")["silicon"].get("dies", 1) == 1
