"""What the tests of boxes have in common."""

from collections.abc import Iterator

import pytest

from phaze.search.boxes import opening, walk


@pytest.fixture
def small_boxes() -> Iterator[None]:
    """Every space is looked at in boxes, and those are few at a time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(opening, "BOXED", 0)
        patch.setattr(opening, "SPREAD", 2)
        patch.setattr(opening, "SAMPLE", 3)
        for name, value in (("FIRST", 3), ("BEAM", 2), ("BATCH", 5)):
            patch.setattr(walk, name, value)
        yield
