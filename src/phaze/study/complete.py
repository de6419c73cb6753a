"""A study as one text that needs nothing beside it: every file that it names stands in its table
``files``.

Copied into an empty folder it asks the same question, so that its run has the same answer to the
byte.
"""

import json
import tomllib
from collections.abc import Mapping
from typing import Any

from phaze.hardware.write import toml_text


def _text(text: str) -> str:
    """A text as TOML has it: as it stands between triple quotes where it can, else escaped."""
    plain = all(character in "\n\t" or character.isprintable() for character in text)
    if plain and "'''" not in text and not text.endswith("'"):
        return f"'''\n{text}'''"
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _with_short_names(
    raw: dict[str, Any], files: dict[str, str]
) -> tuple[dict[str, Any], dict[str, str]]:
    """Graphs named after their model: where they were kept says nothing to whoever reads a copy."""
    models = []
    for entry in raw["models"]:
        if not isinstance(entry, dict) or "graphs" not in entry:
            models.append(entry)
            continue
        names = [
            f"{entry['name']}-{number}.graph.json" for number, _ in enumerate(entry["graphs"], 1)
        ]
        texts = [files.get(path) for path in entry["graphs"]]
        if any(text is None for text in texts) or set(names) & set(files):
            models.append(entry)
            continue
        files = {**files, **dict(zip(names, map(str, texts), strict=True))}
        models.append({**entry, "graphs": names})
    named = {
        path for entry in models if isinstance(entry, dict) for path in entry.get("graphs", ())
    }
    before = {
        path
        for entry in raw["models"]
        if isinstance(entry, dict)
        for path in entry.get("graphs", ())
    }
    return {**raw, "models": models}, {
        path: text for path, text in files.items() if path not in before - named
    }


def complete_text(study: str, files: Mapping[str, str]) -> str:
    """The text of a run's study (TOML) with ``files``, the texts of all that it names, in it."""
    raw = tomllib.loads(study)
    texts = {**raw.pop("files", {}), **files}
    if not texts:
        return study
    raw, texts = _with_short_names(raw, texts)
    lines = [
        f"{json.dumps(path, ensure_ascii=False)} = {_text(text)}" for path, text in texts.items()
    ]
    return f"{toml_text(raw)}\n[files]\n" + "\n".join(lines) + "\n"
