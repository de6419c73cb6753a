"""Folders that commands left behind, runs, fronts, sweeps and the cache, with the commands that
read them."""

from pathlib import Path

from tests.cli.fuzz_own import rows_of_models
from tests.cli.fuzz_rows import Row, answer_of

ONE = ("--workers", "1")


def _documents(folder: Path, *others: str) -> list[str]:
    suffixes = (".json", ".toml", *others)
    return [str(path) for path in sorted(folder.rglob("*")) if path.suffix in suffixes]


def _of_run(folder: Path, study: str) -> list[Row]:
    run = folder / "run"
    answer_of("search", study, "--out", str(run), *ONE)
    answer_of("explain", str(run), *ONE)
    readers = (
        (f"report {run} --out {folder}/page.html", 5), (f"export {run} --to csv", 5),
        (f"export {run} --to perfetto", 4), (f"verify {run}", 3), (f"compare --run {run}", 2),
        (f"explain {run} --workers 1", 1),
    )  # fmt: skip
    found = [
        Row(command, file, weight)
        for file in _documents(run, ".sqlite")
        for command, weight in readers
    ]
    found.append(Row(f"api load {run}", f"{run}/result.json", 5))
    # The same command goes on with what it finds: a folder of another run, or a damaged one.
    again = folder / "resumed"
    for file in _documents(run, ".sqlite"):
        there = str(again / Path(file).relative_to(run))
        weight = 20 if file.endswith(".sqlite") else 3
        found.append(
            Row(f"search {study} --out {again} --workers 1", there, weight, str(again), str(run))
        )
    return found


def _of_front(folder: Path, study: str) -> list[Row]:
    front, again = folder / "front", folder / "front-resumed"
    answer_of("front", study, "--of", "throughput,area", "--out", str(front), *ONE)
    found = [Row(f"verify {front}", file, 2) for file in _documents(front, ".sqlite", ".csv")]
    found.append(Row(f"report {front} --out {folder}/page.html", f"{front}/front.json", 15))
    for file in _documents(front, ".sqlite"):
        there = str(again / Path(file).relative_to(front))
        command = f"front {study} --of throughput,area --out {again} --workers 1"
        found.append(
            Row(command, there, 5 if file.endswith(".sqlite") else 1, str(again), str(front))
        )
    return found


def _of_sweep(folder: Path, study: str) -> list[Row]:
    swept, again = folder / "swept", folder / "swept-again"
    over = "--over training.devices=4,8"
    answer_of(*f"sweep {study} {over} --out {swept} --workers 1".split())
    found = [Row(f"report {swept} --out {folder}/page.html", f"{swept}/sweep.json", 15)]
    found += [Row(f"verify {swept}", file, 1) for file in _documents(swept)]
    for file in _documents(swept, ".sqlite"):
        there = str(again / Path(file).relative_to(swept))
        found.append(
            Row(f"sweep {study} {over} --out {again} --workers 1", there, 1, str(again), str(swept))
        )
    return found


def rows_of_folders(folder: Path) -> list[Row]:
    """A search, a front, a sweep and a traced model that have ended, and what reads their files."""
    study = str(folder / "study.toml")
    return [
        *_of_run(folder, study),
        *_of_front(folder, study),
        *_of_sweep(folder, study),
        *rows_of_models(folder),
    ]
