"""Traced graphs, kept between commands by content in the user's cache folder: a second command
needs no torch.

    models/<digest of the place>.json     what a model is made from (files with their digests,
                                          versions) and its facts; of the place are also the file
                                          that it stands for here, and the import path
    graphs/<key>.json                     phaze.graph/1, key = digest of (model, point), model =
                                          digest of all of that; or why the model has none there
    graphs/<key>.sum                      SHA-256 of that file, as it was written: it then needs no
                                          second check

An entry of ``models`` counts while every file that it names has the digest it names. What cannot be
read is traced anew. What code reads besides (data files, the environment) is not seen: ``--fresh``
traces anew.
"""

import hashlib
import json
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from phaze import documents
from phaze.errors import InputError, PhazeError, one_line
from phaze.files import read_bytes, read_text, write_whole
from phaze.graph import store
from phaze.graph.ir import Model
from phaze.graph.supply.import_path import resolved
from phaze.graph.supply.point import Facts, RankPoint, facts_of
from phaze.graph.tensor_plan import place_and_plan, plan_of

SCHEMA, REFUSED, SUM = "phaze.cached-model/1", "phaze.refused/1", ".sum"
MAKERS = ("torch", "transformers")
# The longest sequence or widest split that facts may state, and how many widths: far above any
# model's.
MOST, MOST_WIDTHS = 1 << 30, 64
# How much of a model's place is shown: a path of the file system has at most this many characters.
LONGEST = 4096


def cache_folder() -> Path:
    """``PHAZE_CACHE``, else the user's usual cache folder."""
    chosen = os.environ.get("PHAZE_CACHE")
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "phaze"


def versions() -> dict[str, str | None]:
    """The installed versions of what a trace depends on; None where there is none."""
    installed: dict[str, str | None] = {}
    for name in MAKERS:
        try:
            installed[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            installed[name] = None
    return installed


@cache
def tracer_digest() -> str:
    """SHA-256 over the code that traces."""
    room = Path(store.__file__).parent
    digest = hashlib.sha256()
    for file in sorted(room.rglob("*.py")):
        digest.update(file.relative_to(room).as_posix().encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()


def file_digest(path: str) -> str | None:
    """SHA-256 of a file; None where there is none, or none of a size that can be read."""
    try:
        return hashlib.sha256(read_bytes(path)).hexdigest()
    except (OSError, InputError):
        return None


def _sound(facts: Facts) -> bool:
    """Whether facts that a file states can be those of a model."""
    longest = facts.sequence if facts.longest is None else facts.longest
    sizes = (facts.sequence, longest, *facts.widths)
    if facts.plan is not None:
        try:
            plan_of(facts.plan, "plan")
        except InputError:
            return False
    return (
        bool(facts.widths)
        and len(facts.widths) <= MOST_WIDTHS
        and all(0 < size <= MOST for size in sizes)
    )


@dataclass(frozen=True, slots=True)
class CachedModel:
    """A model that was opened before: what names it among graphs, and its facts."""

    digest: str
    facts: Facts


@dataclass(frozen=True, slots=True)
class CacheEntry:
    """An entry of the cache, for people: a model's place, and how many graphs and bytes are kept of
    it."""

    place: str
    graphs: int
    bytes: int


@dataclass(frozen=True, slots=True)
class GraphCache:
    """The cache in a folder; None of its files is needed, all can be made again."""

    folder: Path

    def _model_file(self, place: str) -> Path:
        key = [place, str(Path.cwd()), *resolved(place_and_plan(place)[0])]
        return self.folder / "models" / f"{documents.digest(key)[:40]}.json"

    def path(self, cached: CachedModel, point: RankPoint) -> Path:
        """Where the graph of a model at a point is kept."""
        return (
            self.folder
            / "graphs"
            / f"{documents.digest([cached.digest, point.document()])[:40]}.json"
        )

    def _read(self, path: Path) -> dict[str, Any] | None:
        if not path.is_file():
            return None
        try:
            text, where = read_text(str(path))
            return documents.parse(text, "json", where)
        except InputError:
            return None

    def cached_model(self, place: str) -> CachedModel | None:
        """The model at ``place``, if nothing that it was made from has changed."""
        raw = self._read(self._model_file(place))
        if raw is None or raw.get("schema") != SCHEMA or raw.get("tracer") != tracer_digest():
            return None
        try:
            here = versions()
            if any(here[name] not in (None, raw["versions"][name]) for name in MAKERS):
                return None
            if any(file_digest(path) != digest for path, digest in raw["files"].items()):
                return None
            facts = facts_of(raw["facts"])
            return CachedModel(documents.digest(raw), facts) if _sound(facts) else None
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
            return None

    def remember(self, place: str, facts: Facts, files: Sequence[str]) -> CachedModel:
        """Keep what a model is made from."""
        raw: Mapping[str, Any] = {
            "schema": SCHEMA,
            "place": place,
            "folder": str(Path.cwd()),
            "versions": versions(),
            "tracer": tracer_digest(),
            "files": {path: file_digest(path) for path in sorted(files)},
            "facts": facts.document(),
        }
        self._write(self._model_file(place), raw)
        return CachedModel(documents.digest(raw), facts)

    def _write(self, path: Path, content: Mapping[str, Any], summed: bool = False) -> None:
        """Keep a file, ``summed`` with its digest beside it; a cache that cannot be written is no
        reason to stop."""
        try:
            text = documents.dumps(content) + "\n"
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, text)
            if summed:
                write_whole(path.with_suffix(SUM), hashlib.sha256(text.encode()).hexdigest())
        except (OSError, PhazeError):
            return

    def _unchanged(self, path: Path) -> Model | None:
        """The graph of a file that is as it was written: it was checked then."""
        try:
            content, digest = path.read_bytes(), path.with_suffix(SUM).read_text(encoding="ascii")
            if hashlib.sha256(content).hexdigest() != digest:
                return None
            raw = json.loads(content)
            return store.from_plain(raw) if raw["schema"] == store.SCHEMA else None
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def load(self, cached: CachedModel, point: RankPoint) -> Model | None:
        """The graph of a model at a point, if it was kept."""
        path = self.path(cached, point)
        model = self._unchanged(path)
        if model is None:
            raw = self._read(path)
            if raw is None:
                return None
            try:
                model = store.model_of(raw, "a cached graph")
            except PhazeError:
                return None
        same = (
            model.tensor,
            model.microbatch,
            model.sequence,
            model.attention,
            model.sequence_parallel,
        )
        return model if same == tuple(point.document().values()) else None

    def save(self, cached: CachedModel, point: RankPoint, graph: Mapping[str, Any]) -> None:
        """Keep the graph of a model at a point."""
        self._write(self.path(cached, point), graph, summed=True)

    def refused(self, cached: CachedModel, point: RankPoint) -> InputError | None:
        """Why a model has no graph at a point, if that was kept."""
        raw = self._read(self.path(cached, point)) or {}
        stated = [raw.get(key) for key in ("where", "problem", "remedy")]
        return (
            InputError(*map(str, stated))
            if raw.get("schema") == REFUSED and None not in stated
            else None
        )

    def save_refused(self, cached: CachedModel, point: RankPoint, fault: InputError) -> None:
        """Keep why a model has no graph at a point: to find out again takes a trace."""
        reason = {"where": fault.where, "problem": fault.problem, "remedy": fault.remedy}
        self._write(
            self.path(cached, point), {"schema": REFUSED, "name": cached.facts.name, **reason}
        )

    def _files(self) -> Iterator[tuple[Path, int]]:
        """Every file that is kept, and its bytes; what is no file was put there by somebody
        else."""
        for part in ("models", "graphs"):
            for path in sorted((self.folder / part).glob("*.*")):
                status = path.lstat()
                if path.suffix in (".json", SUM) and stat.S_ISREG(status.st_mode):
                    yield path, status.st_size

    def entries(self) -> list[CacheEntry]:
        """What is kept, by the place of its model, most bytes first."""
        count: dict[str, int] = {}
        size: dict[str, int] = {}
        for path, length in self._files():
            if path.suffix == SUM:
                continue
            raw = self._read(path) or {}
            is_graph = path.parent.name == "graphs"
            place = one_line(str(raw.get("name" if is_graph else "place", "what cannot be read")))[
                :LONGEST
            ]
            count[place] = count.get(place, 0) + is_graph
            size[place] = size.get(place, 0) + length
        return sorted(
            (CacheEntry(place, count[place], size[place]) for place in size),
            key=lambda entry: (-entry.bytes, entry.place),
        )

    def clear(self) -> int:
        """Remove everything that is kept; the number of files."""
        files = list(self._files())
        for path, _ in files:
            path.unlink(missing_ok=True)
        return len(files)
