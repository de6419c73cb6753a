"""The locked list: every package that phaze needs, at the version that is pinned, with the hashes
of its files."""

import re

import pytest

from tools import lock


def test_every_pinned_package_but_torch_has_hashes() -> None:
    listed = {name: text for name, _, text in lock.blocks()}
    assert set(listed) == set(lock.pins()) - {lock.APART}
    for name, text in listed.items():
        first, *hashes = text.split(" \\\n    ")
        assert first == f"{name}=={lock.pins()[name]}" and hashes, name
        assert all(re.fullmatch(r"--hash=sha256:[0-9a-f]{64}\s*", one) for one in hashes), name


def test_every_extra_can_be_installed_from_the_list() -> None:
    everywhere = set.intersection(
        *(needed for name, needed, _ in lock.blocks() if name in ("numpy", "pydantic"))
    )
    assert everywhere == {lock.BASE, *lock.extras()}, (
        "what every command needs is part of every extra"
    )
    assert lock.selected([lock.BUILD]).startswith("setuptools==")
    alone, more = lock.selected([lock.BASE]), lock.selected([lock.BASE, "torch"])
    assert "transformers==" in more and "transformers==" not in alone and "torch==" not in more


@pytest.mark.parametrize(
    ("file", "fits"),
    [
        ("numpy-2.4.6-cp311-cp311-manylinux_2_27_x86_64.whl", True),
        ("numpy-2.4.6-cp314-cp314t-macosx_14_0_arm64.whl", True),
        ("numpy-2.4.6-cp310-cp310-win_amd64.whl", False),
        ("numpy-2.4.6-pp311-pypy311_pp73-win_amd64.whl", False),
        ("numpy-2.4.6.tar.gz", True),
        ("numpy-2.4.60.tar.gz", False),
    ],
)
def test_files_for_the_pythons_that_phaze_runs_on_are_listed(file: str, fits: bool) -> None:
    assert lock._is_of(file, "numpy", "2.4.6") is fits
