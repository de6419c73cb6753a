"""The documents of a run: problem, graphs, certificate, and what is shown as its answer; and how
they are checked."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .energy import KINDS, Objectives
from .fronts import RUNS, kinds_of
from .model import Model, model_of
from .question import known, of_graphs
from .reading import cover, digest_of, listed, only, parsed, require, sha256, text_of, whole
from .space_proof import Solver, Watch
from .technology import technology_of
from .works import COST_MODEL

FILES = ("problem.json", "graphs.json", "certificate.json")
ANSWERS = ("result.json", "front.json", "plan.json")
"""The views of a certificate, of which a folder has one: what is shown as its answer."""
KEYS = (
    "schema", "problem", "graphs", "cost_model", "best", "bound", "gap", "answer", "fusion",
    "multipliers",
)  # fmt: skip
FRONT_KEYS = ("schema", "problem", "graphs", "cost_model", "gap", "front", "fusion", "multipliers")


def silent(_: str) -> None:
    """Say nothing of what is done."""


def run_id(folder: Path, texts: dict[str, str]) -> str:
    """SHA-256 over the digests of problem, graphs, certificate and the answer that is shown; of
    that one the digest of its values, but for the code that wrote it."""
    shown = [parsed(text_of(folder / name), name) for name in ANSWERS if (folder / name).exists()]
    code = ("code_digest", "version")
    values = [{key: view[key] for key in view if key not in code} for view in shown]
    return sha256("".join([*(sha256(texts[name]) for name in FILES), *map(digest_of, values)]))


@dataclass(frozen=True, slots=True)
class Options:
    """How a run is checked: ``quick``, ``sharper``: a bound above the certificate's that may hold
    as well; a solver of the caller's own for chips that nothing here closes; ``wider``: a gap;
    ``larger``: a space in place of the run's own."""

    quick: bool = False
    sharper: float = 0.0
    watch: Watch = silent
    solver: Solver | None = None
    wider: float = 0.0
    larger: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Documents:
    """Problem, graphs and certificate of a run, and how they are checked."""

    problem: dict[str, Any]
    graphs: dict[str, Any]
    certificate: dict[str, Any]
    options: Options

    @property
    def front(self) -> bool:
        """Whether they are of a front."""
        return "front" in self.problem

    @property
    def memories(self) -> list[int]:
        return [whole(size, "hbm_bytes", 1) for size in self.problem["hbm_bytes"]]

    def models(self) -> list[Model]:
        """Every model of the problem."""
        count = len(self.problem["models"])
        for name in ("fusion", "multipliers"):
            require(len(self.certificate[name]) == count, "certificate.json: other models")
        return [
            model_at(self.problem, self.graphs, self.certificate, number) for number in range(count)
        ]

    def designs(self) -> list[Any]:
        """The designs of a front, or the answer of a search."""
        if not self.front:
            return [self.certificate["answer"]]
        rows = (
            [None]
            if self.certificate["front"] is None
            else listed(self.certificate["front"], "front")
        )
        require(bool(rows), "front: it has no design")
        return list(rows)

    def covered(self) -> None:
        """What this checker has no rules for is not covered."""
        known(self.problem, self.graphs)
        of_graphs(self.problem, self.graphs)
        cover(self.designs()[0] is not None, "the certificate has no witness of its answer")
        for kind in kinds_of(self.problem):
            require(kind in KINDS, f"objective.kind: {str(kind)[:40]} is none")


def model_at(
    problem: dict[str, Any], graphs: dict[str, Any], certificate: dict[str, Any], number: int
) -> Model:
    """A model of the problem."""
    devices = whole(problem["models"][0]["training"]["devices"], "devices", 1)
    objectives = Objectives(kinds_of(problem), devices, problem["space"], problem["ownership"])
    return model_of(
        problem["models"][number],
        graphs["models"][number],
        certificate["fusion"][number],
        certificate["multipliers"][number],
        problem["residency"] is True,
        problem["hbm_bytes"],
        technology_of(problem["space"]["base"]).fan_out,
        objectives=objectives,
        own_links="links" in problem["space"]["axes"],
    )


def texts_of(folder: Path) -> dict[str, str]:
    """The texts of the documents that a checker reads."""
    return {name: text_of(folder / name) for name in FILES}


def _keys(problem: dict[str, Any]) -> list[str]:
    """The keys of a certificate: the limits of a front as they are proved, where these do not
    follow from the problem, and where models count relative to their own bests these."""
    keys = [*(FRONT_KEYS if "front" in problem else KEYS)]
    several = len(problem["models"]) > 1
    if several and problem["objective"]["mean"] == "regret":
        keys.append("bests")
    if several and "front" in problem and problem["objective"]["mean"] == "geometric":
        keys += ["limits"] if set(problem["front"]["within"]) & set(RUNS) else []
    return keys


def documents_of(texts: dict[str, str], options: Options) -> Documents:
    """The documents of a run, which are about one question."""
    problem, graphs, stated = (parsed(texts[name], name) for name in FILES)
    certificate = only(stated, "certificate.json", _keys(problem))
    schemas = (problem.get("schema"), graphs.get("schema"), certificate["schema"])
    require(
        schemas == ("phaze.problem/1", "phaze.graphs/1", "phaze.certificate/1"),
        "a document has another schema",
    )
    for name in ("problem", "graphs"):
        require(
            certificate[name] == sha256(texts[f"{name}.json"]),
            f"certificate.json: it is of another {name}.json",
        )
    require(
        certificate["cost_model"] == COST_MODEL, "certificate.json: it is of another cost model"
    )
    return Documents(problem, graphs, certificate, options)
