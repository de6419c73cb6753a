"""Every key that a file format knows has its meaning in its schema, which docs/keys.md shows, or is
named in docs/formats.md or on the page that its section links to."""

import re
from pathlib import Path
from typing import Any

import pytest
from tools.format_keys import PAGE, meaning, page

from phaze.cli.schema import formats

DOCS = Path(__file__).parent.parent / "docs"
# Sections whose keys are on another page.
ELSEWHERE = {
    "phaze.study/1": ["search.md"],
    "phaze.front/1": ["front.md"],
    "phaze.sweep/1": ["sweep.md"],
}
# Terms of ownership are listed by the file that the section links to.
LINKED = {"phaze.ownership/1": "src/phaze/hardware/presets/ownership/default.toml"}
# A file of version 1 has keys of the format that is described; a die has a chip, a study a stack, a
# profile the levels of a cluster.
SHARED = {
    "phaze.chip/1": ("phaze.chip/2",),
    "phaze.technology/1": ("phaze.technology/2",),
    "phaze.space/1": ("phaze.space/2",),
    "phaze.die/1": ("phaze.chip/1", "phaze.chip/2"),
    "phaze.study/1": ("phaze.stack/1",),
    "phaze.profile/1": ("phaze.cluster/1",),
}


def _section(name: str) -> str:
    text = (DOCS / "formats.md").read_text(encoding="utf-8")
    sections = re.split(r"^## ", text, flags=re.MULTILINE)
    return "".join(section for section in sections if name in section.split("\n")[0])


def _keys(schema: dict[str, Any]) -> set[str]:
    """Every property of a schema and of what it is made of that has no meaning of its own there."""
    tables = [schema, *schema.get("$defs", {}).values()]
    return {
        key
        for table in tables
        for key, field in table.get("properties", {}).items()
        if not meaning(field, schema.get("$defs", {}))
    }


@pytest.mark.parametrize("name", sorted(formats()))
def test_every_key_of_a_format_is_documented(name: str) -> None:
    text = _section(name) + "".join(
        (DOCS / page).read_text(encoding="utf-8") for page in ELSEWHERE.get(name, [])
    )
    assert text, name
    text += "".join(_section(other) for other in SHARED.get(name, ()))
    text += (DOCS.parent / LINKED[name]).read_text(encoding="utf-8") if name in LINKED else ""
    known = set(re.findall(r"[A-Za-z_][A-Za-z0-9_]*", text)) | {
        "schema",
        "name",
        "title",
        "notes",
        "sources",
    }
    assert sorted(_keys(formats()[name].model.model_json_schema(by_alias=True)) - known) == []


def test_the_page_of_all_keys_is_that_of_the_schemas() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "python -m tools.format_keys writes it anew"
