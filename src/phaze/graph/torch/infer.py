"""A tensor-parallel plan for a model that comes without one, found in its code and proved on two
ranks.

1   the maps of one block of each kind, and which feed which (:mod:`phaze.graph.torch.flow`)
2   every set of columns and the rows that sum over them, in every layout that its views allow,
    tried by shapes alone
3   embedding and head by tokens, if they share a vocabulary and the result is a loss
4   all that is left proved together on real numbers (:mod:`phaze.graph.torch.proof`), else set by
    set
5   the same with tokens split along the sequence
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, product

from torch import nn

from phaze.errors import PhazeError
from phaze.graph.torch.blocks import find_blocks
from phaze.graph.torch.fake import without_weights
from phaze.graph.torch.faults import of_model, quoted
from phaze.graph.torch.flow import Layout, Map, layouts, pairs
from phaze.graph.torch.plans import ShardCut, ShardingPlan
from phaze.graph.torch.program import Source
from phaze.graph.torch.proof import Proof, ShardingProof, dry_run, open_bench, prove

# Layouts of one set of maps that are tried: fused queries, keys and values have two or three.
MOST_LAYOUTS = 8
VOCABULARY = "the vocabulary"


@dataclass(frozen=True, slots=True)
class Inferred:
    """The plan (None: nothing can be split), what stays whole and why, and why tokens are not
    split, if not."""

    plan: ShardingPlan | None
    whole: tuple[tuple[str, str], ...] = ()
    unsharded: str = ""


@dataclass(frozen=True, slots=True)
class InferredPart:
    """Weights that are cut together, by the name of their rows; the layouts that shapes allow, or
    why there is none."""

    name: str
    columns: tuple[Map, ...]
    rows: tuple[Map, ...]
    options: tuple[tuple[ShardCut, ...], ...] = ()
    problem: str = ""


def _roles(model: nn.Module) -> dict[str, str]:
    """By weight, its path with a ``*`` for the number in a list of blocks or of other modules."""
    lists = {path for path, module in model.named_modules() if isinstance(module, nn.ModuleList)}
    lists |= {path.rpartition(".")[0] for path in find_blocks(model)}
    roles = {}
    for name, _ in model.named_parameters(remove_duplicate=False):
        steps = name.split(".")
        roles[name] = ".".join(
            "*" if ".".join(steps[:i]) in lists else step for i, step in enumerate(steps)
        )
    return roles


def _owner(role: str) -> str:
    """The module of a weight: of ``blocks.*.q.weight`` it is ``blocks.*.q``."""
    path, _, name = role.rpartition(".")
    return path if name == "weight" else role


class Search:
    """The sets of maps of a model that may be cut, and how."""

    def __init__(self, bench: ShardingProof) -> None:
        self.bench = bench
        model = bench.copies[0].program.module
        self.roles = _roles(model)
        self.shapes = {
            name: tuple(map(int, weight.shape)) for name, weight in model.named_parameters()
        }

    def _names(self, maps: Sequence[Map]) -> set[str]:
        return {self.roles[linear_map.weight] for linear_map in maps}

    def parts(self) -> list[InferredPart]:
        """Sets of maps that shapes allow to be cut, no map in two of them; and those that they do
        not."""
        used: set[str] = set()
        parts: list[InferredPart] = []
        for columns, rows in self._merged(bool(self.bench.copies[0].blocks)):
            weights = self._names((*columns, *rows))
            if weights & used or self._names(columns) & self._names(rows):
                continue
            part = self._tried(columns, rows)
            parts.append(part)
            used |= self._names((*part.columns, *part.rows)) if part.options else set()
        return [part for part in parts if part.options or not self._names(part.rows) <= used]

    def _merged(self, blocks: bool) -> Iterator[tuple[list[Map], list[Map]]]:
        """Sets of maps with the same role, once: all experts of a block, all kinds of blocks."""
        merged: dict[tuple[str, ...], tuple[list[Map], list[Map]]] = {}
        for pair in pairs(self.bench.maps, lambda block: bool(block) or not blocks):
            columns, rows = (
                [self.bench.maps[n] for n in numbers] for numbers in (pair.columns, pair.rows)
            )
            key = (*sorted(self._names(columns)), "->", *sorted(self._names(rows)))
            merged.setdefault(key, (self._once(columns), self._once(rows)))
        yield from merged.values()

    def _once(self, maps: Sequence[Map]) -> list[Map]:
        return list(
            {self.roles[linear_map.weight]: linear_map for linear_map in reversed(maps)}.values()
        )[::-1]

    def _tried(self, columns: list[Map], rows: list[Map]) -> InferredPart:
        """The layouts of a set that run. Where none does, the widest maps are cut alone: one key
        and value for all."""
        part = self._laid_out(columns, rows)
        widest = max(self.shapes[linear_map.weight][linear_map.outputs] for linear_map in columns)
        wide = [
            linear_map
            for linear_map in columns
            if self.shapes[linear_map.weight][linear_map.outputs] == widest
        ]
        if part.options or len(wide) == len(columns):
            return part
        fewer = self._laid_out(wide, rows)
        return fewer if fewer.options else part

    def _laid_out(self, columns: list[Map], rows: list[Map]) -> InferredPart:
        choices = [
            layouts(linear_map, self.shapes[linear_map.weight][linear_map.outputs])
            for linear_map in columns
        ]
        options, problem = [], ""
        for layout in islice(product(*choices), MOST_LAYOUTS):
            cuts = self._cuts(columns, layout, rows)
            fault = dry_run(self.bench, cuts)
            options += [cuts] if not fault else []
            problem = problem or fault
        name = _owner(self.roles[rows[0].weight])
        return InferredPart(
            name, tuple(columns), tuple(rows), tuple(options), "" if options else problem
        )

    def _cuts(
        self, columns: Sequence[Map], layout: Sequence[Layout], rows: Sequence[Map]
    ) -> tuple[ShardCut, ...]:
        """The cuts of a set of maps: by outputs with their biases, by inputs."""
        cuts: dict[str, ShardCut] = {}
        heads = 0
        for linear_map, how in zip(columns, layout, strict=True):
            role = self.roles[linear_map.weight]
            cuts[role] = ShardCut(role, linear_map.outputs, how.unit, how.parts)
            if linear_map.bias:
                cuts[self.roles[linear_map.bias]] = ShardCut(
                    self.roles[linear_map.bias], 0, how.unit, how.parts
                )
            size = max(how.parts or (self.shapes[linear_map.weight][linear_map.outputs],))
            heads = max(heads, size // how.unit if how.unit > 1 else 0)
        for linear_map in rows:
            role, size = (
                self.roles[linear_map.weight],
                self.shapes[linear_map.weight][linear_map.inputs],
            )
            cuts[role] = ShardCut(
                role, linear_map.inputs, size // heads if heads and size % heads == 0 else 1
            )
        return tuple(cuts.values())

    def tokens(self) -> tuple[tuple[ShardCut, ...], str]:
        """Embedding and head by tokens, or why not."""
        tables = self.bench.flow.tables
        heads = [
            linear_map
            for linear_map in self.bench.maps
            if not linear_map.block and linear_map.outputs == 0
        ]
        heads = [
            linear_map
            for linear_map in heads
            if self.shapes[linear_map.weight][0] in tables.values()
        ]
        if not heads:
            return (), ""
        if not self.bench.is_loss:
            return (), "the function gives no loss, so its logits are handed out whole"
        size = max(self.shapes[linear_map.weight][0] for linear_map in heads)
        names = [name for name, rows in tables.items() if rows == size]
        for head in heads:
            names += [
                name
                for name in (head.weight, head.bias)
                if name and self.shapes[head.weight][0] == size
            ]
        cuts = tuple(ShardCut(self.roles[name], 0, tokens=True) for name in dict.fromkeys(names))
        fault = dry_run(self.bench, cuts)
        return ((), fault) if fault else (cuts, "")


def _chosen(
    proof: Proof, parts: Sequence[InferredPart], tokens: tuple[ShardCut, ...]
) -> tuple[list[ShardCut], dict[str, str]]:
    """The cuts that hold: all together if they do, else those that hold one by one; and why the
    others do not."""
    first = [cut for part in parts for cut in part.options[0]]
    if not proof.fault([*first, *tokens]):
        return [*first, *tokens], {}
    chosen: list[ShardCut] = []
    problems: dict[str, str] = {}
    for part in parts:
        for cuts in part.options:
            fault = proof.fault([*chosen, *cuts])
            if not fault:
                chosen += cuts
                problems.pop(part.name, None)
                break
            problems.setdefault(part.name, fault)
    if tokens:
        fault = proof.fault([*chosen, *tokens])
        chosen += [] if fault else tokens
        problems |= {VOCABULARY: fault} if fault else {}
    return chosen, problems


def infer_plan(source: Source) -> Inferred:
    """The plan of a model, proved; what is not in it is said."""
    try:
        with without_weights(), of_model(source.name):
            bench = open_bench(source)
            search = Search(bench)
            parts = search.parts()
            tokens, problem = search.tokens()
    except PhazeError as fault:
        return Inferred(None, ((source.name, str(fault).rstrip(".")),))
    whole = {part.name: part.problem for part in parts if not part.options}
    whole |= {VOCABULARY: problem} if problem else {}
    good = [part for part in parts if part.options]
    if not good and not tokens:
        return Inferred(
            None, tuple((whole or {source.name: "no linear map of a block feeds another"}).items())
        )
    columns = {linear_map.weight: linear_map for part in good for linear_map in part.columns}
    rows = {linear_map.weight: linear_map for part in good for linear_map in part.rows}
    try:
        proof = prove(bench, columns, rows)
    except Exception as fault:
        proof = quoted(fault)
    if isinstance(proof, str):
        return Inferred(None, tuple((whole | {source.name: proof}).items()))
    cuts, problems = _chosen(proof, good, tokens)
    whole |= problems
    if not cuts:
        return Inferred(None, tuple(whole.items()))
    unsharded = (
        proof.fault(cuts, sequence_parallel=True)
        if bench.sequence % 2 == 0
        else "the sequence is odd"
    )
    plan = ShardingPlan(
        cuts=tuple(cuts), sequence_dim=0 if bench.tokens_first else 1, shards=not unsharded
    )
    return Inferred(plan, tuple(whole.items()), unsharded)


def fault_of(source: Source, plan: ShardingPlan) -> tuple[str, str]:
    """Why two ranks with somebody's plan do not train like the whole model, and why not with tokens
    split; nothing where they do."""
    with without_weights(), of_model(source.name):
        bench = open_bench(source)
        bench.tokens_first = plan.sequence_dim == 0
        if fault := dry_run(bench, plan.cuts):
            return fault, ""
    roles = Search(bench).roles
    columns, rows = dict[str, Map](), dict[str, Map]()
    for linear_map in bench.maps:
        cut = next(
            (
                cut
                for cut in plan.cuts
                if roles[linear_map.weight] == cut.pattern or linear_map.weight == cut.pattern
            ),
            None,
        )
        if cut is not None and not cut.tokens:
            (columns if cut.dim == linear_map.outputs else rows)[linear_map.weight] = linear_map
    proof = prove(bench, columns, rows)
    if isinstance(proof, str):
        return proof, ""
    fault = proof.fault(plan.cuts)
    return fault, "" if fault else proof.fault(plan.cuts, sequence_parallel=True)
