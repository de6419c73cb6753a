"""The locked list: every package that phaze is tested with, each with the hashes of all its files.

    python -m tools.lock                    writes requirements.lock anew, from constraints.txt
                                            (make lock)
    python tools/lock.py --for dev,torch    prints what of it some extras need, for pip
                                            --require-hashes

The first asks pip what every extra needs (a dry run), and the registry that pip is set up with for
the files of each version, those for Python 3.11 and later on any platform. torch stands apart: its
build without CUDA is in no registry, so it has a version (constraints.txt) and no hash. The second
needs no package at all.
"""

import argparse
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).parents[1]
LOCK, PINS = ROOT / "requirements.lock", ROOT / "constraints.txt"
HEAD = (
    "# Every package with the hashes of its files, and the extras that need it. Written by: "
    "python -m tools.lock\n"
)
# What builds phaze and sdists; what every command needs; what has no hash in any registry.
BUILD, BASE, APART, PROJECT = "build", "base", "torch", "phaze-codesign"
# Wheels for Python 3.11 and later: their own tag, a stable interface of an older one, or any
# Python.
FITTING = re.compile(r"-(cp31[1-9]-|cp3\d+-abi3|(py2\.)?py3[0-9]*-|cp3[0-9.cp]*-none)")


def plain(name: str) -> str:
    """A package's name as registries compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def pins() -> dict[str, str]:
    """The version of every package, by its plain name."""
    lines = (line.strip() for line in PINS.read_text(encoding="utf-8").splitlines())
    pairs = (line.partition("==") for line in lines if line and not line.startswith("#"))
    return {plain(name): version for name, _, version in pairs}


def reported(extras: Iterable[str]) -> dict[str, dict[str, Any]]:
    """The metadata of every package that phaze would be installed with, by its plain name; nothing
    is installed."""
    with TemporaryDirectory() as made:
        report, project = Path(made) / "report.json", f"{ROOT}[{','.join(extras)}]"
        dry = [
            "--dry-run",
            "--ignore-installed",
            "--quiet",
            "--report",
            str(report),
            "--constraint",
            str(PINS),
        ]
        subprocess.run([sys.executable, "-m", "pip", "install", *dry, project], check=True)
        rows = json.loads(report.read_text(encoding="utf-8"))["install"]
    return {plain(row["metadata"]["name"]): row["metadata"] for row in rows}


def _requirements(
    table: Mapping[str, Any], extras: Iterable[str]
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """What a package needs here, each with its extras."""
    from pip._vendor.packaging.requirements import Requirement

    for line in table.get("requires_dist", ()):
        asked = Requirement(line)
        if asked.marker is None or any(
            asked.marker.evaluate({"extra": extra}) for extra in (*extras, "")
        ):
            yield plain(asked.name), tuple(sorted(asked.extras))


def closure(tables: Mapping[str, Mapping[str, Any]], extra: str) -> set[str]:
    """Every package that phaze needs with an extra, itself left out."""
    first: tuple[str, tuple[str, ...]] = (PROJECT, () if extra == BASE else (extra,))
    waiting, seen = [first], {first}
    while waiting:
        name, extras = waiting.pop()
        for found in _requirements(tables[name], extras):
            if found not in seen:
                seen.add(found)
                waiting.append(found)
    return {name for name, _ in seen} - {PROJECT, APART}


def _hashes(names: Iterable[str]) -> dict[str, list[str]]:
    """The SHA-256 of every file of the pinned versions, from the registry that pip is set up
    with."""
    from pip._internal.commands import create_command
    from pip._internal.index.collector import parse_links
    from pip._internal.models.link import Link

    command, versions, found = create_command("download"), pins(), dict[str, list[str]]()
    options, _ = command.parse_args(["phaze"])
    with command.main_context():
        session = command.get_default_session(options)  # type: ignore[attr-defined]
        finder = command._build_package_finder(options=options, session=session)  # type: ignore[attr-defined]
        for name in names:
            own = set[str]()
            for place in finder.search_scope.get_index_urls_locations(name):
                page = finder._link_collector.fetch_response(Link(place))
                links = [] if page is None else list(parse_links(page))
                own |= {
                    link.hash
                    for link in links
                    if link.hash and _is_of(link.filename, name, versions[name])
                }
            if not own:
                raise SystemExit(f"{name}=={versions[name]}: the registry has no file of it")
            found[name] = sorted(own)
    return found


def _is_of(file: str, name: str, version: str) -> bool:
    """Whether a file is one of a version of a package, for a Python that phaze runs on."""
    head = f"{name.replace('-', '_')}-{version}".lower()
    said = re.sub(r"[-_.]+", "_", file[: len(head)].lower()) == re.sub(r"[-_.]+", "_", head)
    rest = file[len(head) :]
    return said and (
        rest in (".tar.gz", ".zip") or (rest.endswith(".whl") and FITTING.search(rest) is not None)
    )


def extras() -> list[str]:
    """The extras of phaze."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return sorted(project["optional-dependencies"])


def write() -> None:
    """Write the locked list anew."""
    tables = reported(extras())
    needed = {
        BUILD: {"setuptools"},
        **{extra: closure(tables, extra) for extra in (BASE, *extras())},
    }
    versions, names = pins(), sorted(set.union(*needed.values()))
    if missing := [name for name in names if name not in versions]:
        raise SystemExit(f"constraints.txt: {', '.join(missing)} are needed and not pinned")
    hashes, lines = _hashes(names), [HEAD]
    for name in names:
        lines.append(f"# {', '.join(extra for extra, own in needed.items() if name in own)}")
        lines.append(
            " \\\n    ".join(
                [f"{name}=={versions[name]}", *(f"--hash=sha256:{one}" for one in hashes[name])]
            )
        )
    LOCK.write_text("\n".join(lines) + "\n", encoding="utf-8")


def blocks() -> Iterator[tuple[str, set[str], str]]:
    """Every package of the list: its name, the extras that need it, and its lines."""
    for block in re.split(r"^# ", LOCK.read_text(encoding="utf-8"), flags=re.MULTILINE)[2:]:
        of, _, text = block.partition("\n")
        yield text.partition("==")[0], set(of.split(", ")), text


def selected(asked: Iterable[str]) -> str:
    """What some extras need, as a list for pip."""
    wanted = set(asked)
    return "".join(text for _, needed, text in blocks() if needed & wanted)


def main() -> None:
    """Write the list, or print a part of it."""
    parser = argparse.ArgumentParser(
        description="The locked list of packages, with the hashes of their files."
    )
    parser.add_argument(
        "--for",
        dest="extras",
        help="print what these extras need, with the base: dev,torch; or build",
    )
    asked = parser.parse_args().extras
    if asked is None:
        write()
        return
    names = {BUILD} if asked == BUILD else {BASE, *filter(None, asked.split(","))}
    if unknown := names - {BUILD, BASE}.union(*(needed for _, needed, _ in blocks())):
        raise SystemExit(f"--for: there is no extra '{min(unknown)}'")
    sys.stdout.write(selected(names))


if __name__ == "__main__":
    main()
