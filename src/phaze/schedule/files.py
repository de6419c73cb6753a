"""``phaze.operators/1``: a scheduling problem as a file, from times that may have been measured
elsewhere."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from phaze.documents import Document, Format, Seconds, check, notation_of, parse
from phaze.errors import InputError, nearest
from phaze.files import read_text
from phaze.schedule.problem import Core, ScheduledOperator, ScheduleProblem
from phaze.schedule.rules import Rules


def _pair(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


Id = Annotated[str, Field(min_length=1, max_length=200)]
Edge = Annotated[tuple[Id, Id], BeforeValidator(_pair)]
CoreCount = Annotated[int, Field(ge=0, le=2**20)]


class OperatorTable(Document):
    """One operator: ``core`` is tensor, vector, both or none; a ``none`` that takes time is a
    collective.

    ``network``: it holds the network beside its cores. ``hbm_s``: what its bytes take at the full
    HBM bandwidth. ``beside``: of a collective, the operators that it may run beside under rules
    companions.
    """

    id: Id
    core: Core
    one_core_s: Seconds
    all_cores_s: Seconds
    network: bool = False
    hbm_s: Seconds = 0.0
    beside: list[Id] = Field(default_factory=list)


class OperatorsFile(Document):
    """Operators with their times, the edges between them, and the cores that they run on."""

    format: Literal["phaze.operators/1"] = Field(alias="schema")
    rules: Rules = "icml24"
    tensor_cores: CoreCount
    vector_cores: CoreCount
    operators: list[OperatorTable]
    edges: list[Edge]

    def value(self) -> ScheduleProblem:
        """The file as a problem; an edge must name operators of the file."""
        place = {table.id: index for index, table in reversed(list(enumerate(self.operators)))}
        for index, edge in enumerate(self.edges):
            for end in edge:
                if end not in place:
                    close = nearest(end, list(place)[:20])
                    raise InputError(f"edges[{index}]", f"there is no operator '{end}'", close)
        for index, table in enumerate(self.operators):
            for other in table.beside:
                if other not in place:
                    close = nearest(other, list(place)[:20])
                    raise InputError(
                        f"operators[{index}].beside", f"there is no operator '{other}'", close
                    )
        operators = tuple(
            ScheduledOperator(t.id, t.core, t.one_core_s, t.all_cores_s, t.network, t.hbm_s)
            for t in self.operators
        )
        edges = tuple((place[first], place[then]) for first, then in self.edges)
        beside = tuple(
            (index, place[other]) for index, t in enumerate(self.operators) for other in t.beside
        )
        return ScheduleProblem(
            self.rules, self.tensor_cores, self.vector_cores, operators, edges, beside
        )


OPERATORS = Format(
    "phaze.operators/1",
    OperatorsFile,
    "operators with times and edges, to be scheduled on one chip",
)


def operators_document(problem: ScheduleProblem) -> dict[str, Any]:
    """A problem as ``phaze.operators/1``."""
    names = [operator.id for operator in problem.operators]
    beside: dict[int, list[str]] = {}
    for collective, other in problem.beside:
        beside.setdefault(collective, []).append(names[other])
    return {
        "schema": OPERATORS.name,
        "rules": problem.rules,
        "tensor_cores": problem.tensor_cores,
        "vector_cores": problem.vector_cores,
        "operators": [
            {
                "id": operator.id,
                "core": operator.core,
                "one_core_s": operator.one_core_s,
                "all_cores_s": operator.all_cores_s,
                "network": operator.network,
                "hbm_s": operator.hbm_s,
                "beside": beside.get(index, []),
            }
            for index, operator in enumerate(problem.operators)
        ],
        "edges": [[names[first], names[then]] for first, then in problem.edges],
    }


def load_problem(path: str) -> ScheduleProblem:
    """The problem in the file at ``path`` (``-``: standard input), or an InputError that names the
    file."""
    text, where = read_text(path)
    file = check(OperatorsFile, parse(text, notation_of(path, text), where), where)
    try:
        return file.value()
    except InputError as fault:
        raise InputError(f"{where}: {fault.where}", fault.problem, fault.remedy) from None
