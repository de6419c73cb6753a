"""What a question says beside its study, as changes of the study: one table for the command line and for Python."""

from collections.abc import Sequence
from typing import Any

from phaze.documents import dumps


def study_settings(
    settings: Sequence[str] = (),
    *,
    rules: str | None = None,
    gap: float | None = None,
    attention: str | None = None,
    precision: str | None = None,
    shard: Sequence[int] | None = None,
    headroom: str | float | None = None,
    devices: int | None = None,
    batch: int | str | None = None,
    sequence: int | str | None = None,
    tokens: int | str | None = None,
    terms: str | None = None,
) -> list[str]:
    """Changes of a study, ``settings`` first; what is None changes nothing. Of ``shard`` 0 means all ranks."""
    given: dict[str, Any] = {
        "search.gap": gap,
        "rules": rules,
        "training.attention": attention,
        "training.precision": precision,
        "training.shard": None if shard is None else [own or "all" for own in shard],
        "training.headroom": headroom,
        "training.devices": devices,
        "training.batch": int(batch) if isinstance(batch, str) and batch.isdecimal() else batch,
        "training.sequence": sequence,
        "training.tokens": tokens,
        "training.terms": terms,
    }
    return [*settings, *(f"{key}={dumps(value)}" for key, value in given.items() if value is not None)]
