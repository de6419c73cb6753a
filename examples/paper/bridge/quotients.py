"""The quotients of the paper's headline under faults put back, one at a time and in groups.

    own / experts        the model's own chip with the searched placement over the stand-in under
                         the experts' split
    own / searched       both with the searched placement
    chip alone           both under the experts' split
    common / experts     the common chip of all eight with the searched placement over the stand-in
                         under the experts'
    common / searched    both with the searched placement

All but the last were fixed before any was worked out; the last was added when the others were seen.
The paper reports 3.6 for chips of one model and 2.9 for the common chip, "on average"; which of
these quotients and which mean it took is not said, so both means of all of them are shown.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import geometric_mean, mean

from examples.paper.bridge.faults import Faults
from examples.paper.bridge.inputs import faulty_study
from examples.paper.cases import MODELS, Found, Question, rows, searched
from examples.paper.sheets import markdown
from phaze.hardware.library import load_chip
from phaze.values import replace

# Enough for two decimals of a quotient, and a quarter of the work of the tables' 1e-4.
GAP = "search.gap=0.001"
QUOTIENTS = (
    "own / experts",
    "own / searched",
    "chip alone",
    "common / experts",
    "common / searched",
)
COUNTING = Faults(microbatch=True, weight_gradients=True, attention_products=True, head="lost")
MEMORY = Faults(memory_rates=True, vector_memory=True, epilogues=True)


@dataclass(frozen=True, slots=True)
class Case:
    """A set of faults; ``common``: whether the common chip is searched too, which takes as long as
    all others."""

    name: str
    faults: Faults
    common: bool = False

    @property
    def folder(self) -> str:
        """Where its searches lie."""
        return "".join(c if c.isalnum() else "-" for c in self.name)


def _with(base: Faults, more: Faults) -> Faults:
    """Both."""
    plain, changed = Faults(), {name: getattr(more, name) for name in Faults.__dataclass_fields__}
    return replace(
        base, **{name: value for name, value in changed.items() if value != getattr(plain, name)}
    )


CASES = (
    Case("none (corrected)", Faults(), True),
    Case("units", Faults(units=True)),
    Case("microbatch", Faults(microbatch=True)),
    Case("weight gradients", Faults(weight_gradients=True)),
    Case("attention products", Faults(attention_products=True)),
    Case("head lost", Faults(head="lost")),
    Case("head repeated", Faults(head="repeated")),
    Case("memory rates", Faults(memory_rates=True)),
    Case("vector memory", Faults(vector_memory=True)),
    Case("epilogues", Faults(epilogues=True)),
    Case("all of counting", COUNTING, True),
    Case("all of memory", MEMORY, True),
    Case("all, head lost", _with(_with(COUNTING, MEMORY), Faults(units=True)), True),
    Case(
        "all, head repeated",
        replace(_with(_with(COUNTING, MEMORY), Faults(units=True)), head="repeated"),
        True,
    ),
)


@dataclass(frozen=True, slots=True)
class Quotients:
    """The quotients of every model, None where a placement does not fit."""

    case: Case
    by_model: Mapping[str, tuple[float | None, ...]]

    def mean(
        self, at: int, kind: Callable[[Sequence[float]], float] = geometric_mean
    ) -> float | None:
        """Of the models where it is there."""
        there = [value for values in self.by_model.values() if (value := values[at]) is not None]
        return kind(there) if there else None


def _one(out: Path, case: Case, model: str) -> tuple[Path, Question]:
    folder = out / "bridge" / case.folder / model
    study, _ = faulty_study(folder / "inputs", [model], case.faults)
    return study, Question(folder / "run", str(study), (GAP,))


def _common(out: Path, case: Case) -> Question:
    folder = out / "bridge" / case.folder / "common"
    study, _ = faulty_study(folder / "inputs", MODELS, case.faults)
    return Question(folder / "run", str(study), (GAP, "search.round_size=16"))


def questions(out: Path) -> list[Question]:
    """Every search of the bridge."""
    found = [_one(out, case, model)[1] for case in CASES for model in MODELS]
    return found + [_common(out, case) for case in CASES if case.common]


def quotients(out: Path, case: Case) -> Quotients:
    """Those of one case, from its searches."""
    common: Found | None = None
    if case.common:
        common = searched(*_common(out, case))
    found: dict[str, tuple[float | None, ...]] = {}
    for model in MODELS:
        study, question = _one(out, case, model)
        _, name = faulty_study(study.parent, [model], case.faults)
        base, own = load_chip(name, form="cores"), replace(searched(*question).chip, name="own")
        chips = [base, own] + ([] if common is None else [replace(common.chip, name="common")])
        seen = rows(model, chips, (), str(study))
        keys = [
            (base.name, "experts"),
            (base.name, "searched"),
            ("own", "experts"),
            ("own", "searched"),
        ]
        rates = [
            seen[key].throughput_per_s if key in seen else None
            for key in [*keys, ("common", "searched")]
        ]
        stand_in, stand_in_best, chip_alone, own_best, shared = rates
        found[model] = (
            _over(own_best, stand_in),
            _over(own_best, stand_in_best),
            _over(chip_alone, stand_in),
            _over(shared, stand_in),
            _over(shared, stand_in_best),
        )
    return Quotients(case, found)


def _over(rate: float | None, unit: float | None) -> float | None:
    return None if rate is None or unit is None else rate / unit


def _cell(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def bridge_table(done: Sequence[Quotients]) -> str:
    """Geometric and arithmetic means over the eight models, by case."""
    heads = ["faults put back"] + [
        f"{name}{kind}" for kind in ("", ", arithmetic") for name in QUOTIENTS
    ]
    cells = [
        [one.case.name]
        + [_cell(one.mean(at)) for at in range(len(QUOTIENTS))]
        + [_cell(one.mean(at, mean)) for at in range(len(QUOTIENTS))]
        for one in done
    ]
    return markdown(heads, cells)
