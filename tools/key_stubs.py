"""``python -m tools.key_stubs`` writes ``phaze/options/keys.pyi``: what type checkers and editors
see of the keys that follow from the tables of options."""

from pathlib import Path

from phaze.options import keys
from phaze.options.key_fields import KeyField
from phaze.options.option import REQUIRED

STUB = Path(keys.__file__).with_suffix(".pyi")
HEAD = """# Written by python -m tools.key_stubs: the documents of keys.py with their fields.
from collections.abc import Mapping, Sequence

from phaze.documents import Document
from phaze.options import values
from phaze.options.key_fields import KeyField

FIELDS: Mapping[str, Sequence[KeyField]]
"""


def _line(field: KeyField) -> str:
    kind = f"values.{field.kind}"
    if field.unstated is REQUIRED:
        return f"    {field.name}: {kind}"
    if field.unstated is None:
        return f"    {field.name}: {kind} | None = None"
    # What a stub says of a list is that there is a default.
    plain = str(field.unstated) if not isinstance(field.unstated, list) else "..."
    unstated = f'"{field.unstated}"' if isinstance(field.unstated, str) else plain
    return f"    {field.name}: {kind} = {unstated}"


def stub() -> str:
    """The text of the stub."""
    classes = [
        "\n".join([f"class {name}(Document):", *(_line(field) for field in fields)]) + "\n"
        for name, fields in keys.FIELDS.items()
    ]
    return "\n".join([HEAD, *classes])


if __name__ == "__main__":
    STUB.write_text(stub(), encoding="utf-8")
