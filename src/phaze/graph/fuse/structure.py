"""Graphs that differ in sizes alone are fused alike: their groups are searched once, and then
taken.

The rules ``chains`` and ``clusters`` ask for kinds, operands and outputs, and of a scatter whether
it writes all of what a fill made; for no other size (:class:`Structures` holds all of that). So a
*recipe*, the operators of the fused graph by places in the graph before, serves every graph of a
structure (:class:`Fusions`).
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

from phaze.graph.fuse.contract import joined
from phaze.graph.ir import Core, Operator, OperatorGraph


@dataclass(frozen=True, slots=True)
class FusionGroup:
    """A fused operator without its sizes: the places of its members in order, and which tensors
    leave it."""

    id: int
    core: Core
    module: str
    places: tuple[int, ...]
    outside: frozenset[int]


# A fused operator, or the place of one that stays as it is.
Recipe = tuple[FusionGroup | int, ...]


def _cleared(graph: OperatorGraph) -> tuple[bool, ...]:
    """Of every scatter into what a fill made, whether it writes all of it."""
    if not any(op.kind == "scatter" for op in graph.operators):
        return ()
    filled = {
        a.tensor: sum(w.bytes for w in op.writes)
        for op in graph.operators
        if op.kind == "fill"
        for a in op.writes
    }
    return tuple(
        sum(a.bytes for a in op.writes) >= filled[op.reads[0].tensor]
        for op in graph.operators
        if op.kind == "scatter" and op.reads and op.reads[0].tensor in filled
    )


@dataclass(frozen=True, slots=True)
class Structures:
    """Structures of graphs as values that are quick to compare: operators that are equal but for
    their sizes have one number. ``seen`` has the number of an operator by identity; it is kept, so
    that no other takes its place."""

    numbers: dict[Hashable, int] = field(default_factory=dict)
    seen: dict[int, tuple[int, Operator]] = field(default_factory=dict)

    def of(self, graph: OperatorGraph) -> Hashable:
        """All of a graph but its sizes, and which scatters write all of what a fill made for
        them."""
        return graph.outputs, _cleared(graph), tuple([self._number(op) for op in graph.operators])

    def _number(self, op: Operator) -> int:
        numbered = self.seen.get(id(op))
        if numbered is None:
            reads, writes = [a.tensor for a in op.reads], [a.tensor for a in op.writes]
            parts = [self._number(part) for part in op.parts]
            bare = op.id, op.kind, op.core, op.module, *reads, "makes", *writes, "of", *parts
            numbered = self.seen[id(op)] = self.numbers.setdefault(bare, len(self.numbers)), op
        return numbered[0]


def recipe_of(before: OperatorGraph, after: OperatorGraph) -> Recipe:
    """How a graph was fused."""
    place = {op.id: index for index, op in enumerate(before.operators)}
    return tuple(
        FusionGroup(
            op.id,
            op.core,
            op.module,
            tuple(place[part.id] for part in op.parts),
            frozenset(a.tensor for a in op.writes),
        )
        if op.parts
        else place[op.id]
        for op in after.operators
    )


# Fused operators by their members, which they keep, and by which tensors leave them.
KnownGroups = dict[tuple[frozenset[int], tuple[int, ...]], Operator]


def regrouped(graph: OperatorGraph, recipe: Recipe, fused_groups: KnownGroups) -> OperatorGraph:
    """A graph of the recipe's structure, fused; ``fused_groups`` are fused operators of graphs with
    members in common."""
    if len(recipe) == len(graph.operators):
        return graph
    bytes_of: dict[int, int] = {}
    operators = []
    for group in recipe:
        if isinstance(group, int):
            operators.append(graph.operators[group])
            continue
        parts = [graph.operators[index] for index in group.places]
        key = group.outside, tuple(map(id, parts))
        if key not in fused_groups:
            bytes_of = bytes_of or {tensor.id: tensor.bytes for tensor in graph.tensors}
            fused_groups[key] = joined(
                group.id, group.core, group.module, parts, group.outside, bytes_of
            )
        operators.append(fused_groups[key])
    return OperatorGraph(graph.tensors, tuple(operators), graph.inputs, graph.outputs)


@dataclass(frozen=True, slots=True)
class Fusions:
    """Recipes that are known, by rules and structure, and fused operators that are."""

    structures: Structures = field(default_factory=Structures)
    recipes: dict[Hashable, Recipe] = field(default_factory=dict)
    groups: KnownGroups = field(default_factory=dict)

    def fused(
        self, graph: OperatorGraph, name: str, fuse: Callable[[OperatorGraph], OperatorGraph]
    ) -> OperatorGraph:
        """The graph after rules of a ``name`` that ask for no more than its structure."""
        if any(op.parts for op in graph.operators):
            return fuse(graph)
        key = name, self.structures.of(graph)
        recipe = self.recipes.get(key)
        if recipe is None:
            recipe = self.recipes[key] = recipe_of(graph, fuse(graph))
        return regrouped(graph, recipe, self.groups)
