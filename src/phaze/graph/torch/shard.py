"""Surgery: a model becomes the part of it that one tensor-parallel rank holds.

A width of ``units`` (heads, channels, tokens) is cut into pieces of ceil(units / t); rank r holds

    owned(units, t, r) = min(ceil(units / t), units - r ceil(units / t))

so rank 0 is the fullest, and it is the one that is traced. Works alike on tensors without memory
and on real ones.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor, nn

from phaze.errors import InputError
from phaze.graph.torch.blocks import find_blocks
from phaze.graph.torch.cuts import cut_weights
from phaze.graph.torch.parallel import (
    ColumnLinear,
    GatheredLinear,
    RankGroup,
    RowLinear,
    Takes,
    copy_inputs,
    copy_tail,
    copy_weights,
    gather_inputs,
    reduce_outputs,
)
from phaze.graph.torch.partition import Partition
from phaze.graph.torch.plans import Divide, ShardingPlan, TensorSplit
from phaze.graph.torch.program import Source
from phaze.graph.torch.regions import Borders
from phaze.graph.torch.vocabulary import ParallelEmbedding, Vocabulary, split_lookups

HEAD_WIDTHS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"head_dim": ("attention_head_size", "head_size")}
)


@dataclass(frozen=True, slots=True)
class Sharding:
    """What the surgery left behind: identities of split parameters, borders of blocks, and what is
    not exact."""

    split: frozenset[int] = frozenset()
    notes: tuple[str, ...] = ()
    vocabulary: Vocabulary | None = None
    borders: Borders | None = None
    rules: Partition | None = None


def owned(units: int, width: int, rank: int) -> tuple[int, int]:
    """First and number of the units that ``rank`` holds."""
    piece = math.ceil(units / width)
    return rank * piece, max(0, min(piece, units - rank * piece))


class Surgery:
    """One rank of ``model``: the weights named by the plan are cut, the maps around them
    communicate."""

    def __init__(self, model: nn.Module, plan: ShardingPlan, group: RankGroup) -> None:
        self.model, self.plan, self.group = model, plan, group
        self.modules = dict(model.named_modules())
        self.blocks = {id(module) for module in find_blocks(model).values()}
        self.split: set[int] = set()
        self.notes: dict[str, None] = {}
        self._is_inner: list[nn.Parameter] = []
        self._gathering: set[int] = set()
        self._units: dict[str, dict[str, int]] = {}

    def run(self) -> None:
        """Cut every module that a pattern names; refuse a plan that fits nothing."""
        fitted = False
        for path, module in list(self.modules.items()):
            for split in self.plan.splits:
                if fnmatchcase(path, split.pattern):
                    self._cut(path, module, split)
                    fitted = True
        for path, module in self.modules.items():
            for divide in self.plan.divide:
                if fnmatchcase(path, divide.pattern) and isinstance(
                    getattr(module, divide.attribute, None), int
                ):
                    self._divide(module, divide)
        if not fitted:
            patterns = ", ".join(split.pattern for split in self.plan.splits)
            raise InputError(
                "the tensor-parallel plan", f"no module of the model has a path like {patterns}"
            )
        self._check_ratios()

    def _cut(self, path: str, module: nn.Module, split: TensorSplit) -> None:
        cuts: dict[str, Callable[[str, Any, TensorSplit], None]] = {
            "column": self._column,
            "packed": self._column,
            "row": self._row,
            "table": self._table,
            "experts": self._experts,
            "gather": self._column,
            "split": self._row,
            "summed": lambda path, module, split: copy_weights(module, self.group),
            "tail": lambda path, module, split: copy_tail(
                module, self.group, self._unit(path, split)
            ),
        }
        cuts[split.style](path, module, split)

    def _parent(self, path: str) -> nn.Module:
        parent: nn.Module = self.modules[path.rpartition(".")[0]]
        return parent

    def _unit(self, path: str, split: TensorSplit) -> int:
        """The width that must not be cut: an attribute of the nearest module around, or of a
        neighbour."""
        unit = self._part_of_unit(path, split)
        heads = getattr(getattr(self.model, "config", None), "num_attention_heads", 0)
        together = split.unit == "head_dim" and split.style == "column" and isinstance(heads, int)
        if together and self.modules[path].weight.shape[0] == 3 * heads * unit:
            return 3 * unit  # query, key and value of a head stand together
        return unit

    def _part_of_unit(self, path: str, split: TensorSplit) -> int:
        """The width of a head, or of what else ``split`` names; 1 where it names nothing."""
        if not split.unit:
            return 1
        parent = path.rpartition(".")[0]
        while parent:
            for module in (self.modules[parent], *self.modules[parent].children()):
                for name in (split.unit, *HEAD_WIDTHS.get(split.unit, ())):
                    if isinstance(getattr(module, name, None), int):
                        return int(getattr(module, name))
            parent = parent.rpartition(".")[0]
        heads = getattr(getattr(self.model, "config", None), "num_attention_heads", 0)
        rows = self.modules[path].weight.shape[0 if split.style != "row" else 1]
        if split.unit == "head_dim" and isinstance(heads, int) and heads and rows % heads == 0:
            return int(rows // heads)
        raise InputError(
            path, f"the plan asks for an attribute '{split.unit}' and no module around has it"
        )

    def _slice(self, weight: Tensor, dim: int, unit: int, parts: int, path: str) -> Tensor:
        """This rank's piece of ``weight`` along ``dim``, of each of ``parts`` stacked matrices."""
        units = weight.shape[dim] // unit // parts
        first, count = owned(units, self.group.width, self.group.rank)
        if units % self.group.width:
            self._note(f"{_role(path)}: {units} pieces", owned(units, self.group.width, 0)[1])
        pieces = [part.narrow(dim, first * unit, count * unit) for part in weight.chunk(parts, dim)]
        return pieces[0] if parts == 1 else torch.cat(pieces, dim)

    def _note(self, what: str, fullest: int) -> None:
        text = (
            f"{what} do not divide by {self.group.width}; the trace is of the fullest rank, "
            f"which holds {fullest}"
        )
        self.notes[text] = None

    def _piece(self, whole: Tensor, value: Tensor) -> nn.Parameter:
        piece = nn.Parameter(value.detach().clone(), requires_grad=whole.requires_grad)
        self.split.add(id(piece))
        self._is_inner.append(piece)
        return piece

    def _replace(self, path: str, module: nn.Module) -> None:
        parent, _, name = path.rpartition(".")
        setattr(self.modules[parent], name, module)

    def _replace_tied(self, whole: nn.Parameter, piece: nn.Parameter) -> None:
        """Put ``piece`` wherever the model holds ``whole``."""
        for module in self.model.modules():
            for name, parameter in module.named_parameters(recurse=False, remove_duplicate=False):
                if parameter is whole:
                    setattr(module, name, piece)

    def _column(self, path: str, module: nn.Linear, split: TensorSplit) -> None:
        unit = self._unit(path, split)
        parent = self._parent(path)
        weight = self._piece(module.weight, self._slice(module.weight, 0, unit, split.parts, path))
        bias = module.bias
        if bias is not None:
            bias = self._piece(bias, self._slice(bias, 0, unit, split.parts, path))
        gathers = self.group.sequence_parallel and id(parent) not in self.blocks
        takes: Takes = (
            "gathered" if gathers else "shard" if self.group.sequence_parallel else "same"
        )
        linear = ColumnLinear(weight, bias, self.group, takes)
        if split.style == "gather":
            linear = GatheredLinear(weight, bias, self.group, takes, module.out_features)
        self._replace(path, linear)
        if gathers:
            self._gather_at(parent)
        if split.unit:
            units = module.out_features // unit // split.parts
            self._units.setdefault(path.rpartition(".")[0], {})[path] = units

    def _gather_at(self, parent: nn.Module) -> None:
        if id(parent) not in self._gathering:
            self._gathering.add(id(parent))
            gather_inputs(parent, self.group)

    def _row(self, path: str, module: nn.Linear, split: TensorSplit) -> None:
        weight = self._slice(module.weight, 1, self._unit(path, split), 1, path)
        piece = self._piece(module.weight, weight)
        self._replace(path, RowLinear(piece, module.bias, self.group, split.style == "split"))

    def _table(self, path: str, module: nn.Embedding, split: TensorSplit) -> None:
        module.weight = self._piece(module.weight, self._slice(module.weight, 1, 1, 1, path))
        module.embedding_dim = module.weight.shape[1]

    def _experts(self, path: str, module: Any, split: TensorSplit) -> None:
        """Weights (expert, out, in): the first map by outputs, the second by inputs."""
        for name, dim, parts in split.weights:
            whole = getattr(module, name)
            setattr(
                module,
                name,
                self._piece(whole, self._slice(whole, dim, 1, parts, f"{path}.{name}")),
            )
        if self.group.sequence_parallel:
            parent = self._parent(path)
            self._refuse_neighbours(path)
            self._gather_at(parent)
            reduce_outputs(parent, self.group)
        else:
            copy_inputs(module, self.group)
            reduce_outputs(module, self.group)

    def _refuse_neighbours(self, path: str) -> None:
        """Experts whose parent sums other maps too (shared experts) are summed in two places."""
        around = path.rpartition(".")[0] + "."
        rows = [split.pattern for split in self.plan.splits if split.style in ("row", "split")]
        for other in self.modules:
            if other.startswith(around) and any(fnmatchcase(other, pattern) for pattern in rows):
                raise InputError(
                    other,
                    "experts with other split maps do not support sequence parallelism",
                    "leave it out",
                )

    def _divide(self, module: nn.Module, divide: Divide) -> None:
        unit = int(getattr(module, divide.unit)) if divide.unit else 1
        units = int(getattr(module, divide.attribute)) // unit
        setattr(module, divide.attribute, owned(units, self.group.width, self.group.rank)[1] * unit)

    def _check_ratios(self) -> None:
        """Grouped queries: heads that share a key must stay on its rank, so unequal numbers must
        all divide."""
        for units in self._units.values():
            counts = set(units.values())
            if len(counts) > 1 and any(count % self.group.width for count in counts):
                least = math.gcd(*counts)
                fits = ", ".join(str(width) for width in range(1, least + 1) if least % width == 0)
                raise InputError(
                    next(iter(units)),
                    f"{min(counts)} heads do not divide by {self.group.width}",
                    f"TP degrees: {fits}",
                )

    def vocabulary(self, size: int, tokens: Sequence[nn.Module | None]) -> Vocabulary | None:
        """Split embedding and head (``tokens``, and what shares their weight) over the vocabulary;
        a tied weight is cut once. Returns what the loss has to know: nothing, where no head was
        split."""
        weights = {
            id(p)
            for module in tokens
            if module is not None
            for p in module.parameters()
            if p.shape[0] == size
        }
        holders = {
            p: m for p, m in self.model.named_modules() if id(getattr(m, "weight", None)) in weights
        }
        special = next(
            (
                m
                for m in holders.values()
                if type(m) is not nn.Linear and not isinstance(m, nn.Embedding)
            ),
            None,
        )
        if special is not None:
            self.notes[
                f"the vocabulary is not split: {type(special).__name__} is not an embedding or head"
            ] = None
        if special is not None or not holders:
            return None
        vocabulary = Vocabulary(size, self.group.width, self.group.rank)
        for path, module in holders.items():
            assert isinstance(module, nn.Embedding | nn.Linear)
            for whole in list(module.parameters()):
                if id(whole) not in self.split:
                    self._replace_tied(
                        whole,
                        self._piece(whole, whole.narrow(0, vocabulary.first, vocabulary.owned)),
                    )
            if type(module) is nn.Embedding:
                self._replace(path, ParallelEmbedding(module, vocabulary))
            elif isinstance(module, nn.Embedding):
                split_lookups(module, vocabulary)
            else:
                self._replace(path, ColumnLinear(module.weight, module.bias, self.group, "same"))
        if size % self.group.width:
            self._note(f"the vocabulary's {size} tokens", vocabulary.local)
        _rename_vocabulary(self.model, size, vocabulary.owned)
        return (
            vocabulary
            if any(isinstance(module, nn.Linear) for module in holders.values())
            else None
        )


def _role(path: str) -> str:
    """The path without the number of the block, so that all blocks say the same."""
    return ".".join("*" if part.isdigit() else part for part in path.split("."))


def _rename_vocabulary(model: nn.Module, size: int, local: int) -> None:
    """Models reshape logits by their own ``vocab_size``."""
    for module in model.modules():
        for holder in (module, getattr(module, "config", None)):
            if holder is not None and getattr(holder, "vocab_size", None) == size:
                holder.vocab_size = local


def _cut_model(model: nn.Module, plan: ShardingPlan, group: RankGroup) -> Sharding:
    """One rank of a model of whose plan only the cut weights are known."""
    if group.sequence_parallel and not plan.shards:
        raise InputError(
            "the tensor-parallel plan", "sequence parallelism was not proved for it", "leave it out"
        )
    done = cut_weights(model, plan.cuts, group.width, group.rank)
    rules = Partition(group, done.vocabulary, done.stacked)
    return Sharding(frozenset(done.split), done.notes, done.vocabulary, _borders(group), rules)


def _borders(group: RankGroup) -> Borders:
    return Borders(
        group.region,
        group.shard,
        group.whole,
        group.sequence_parallel,
        group.is_whole,
        group.is_shard,
    )


def shard_model(
    model: nn.Module,
    source: Source,
    *,
    width: int,
    sequence: int,
    sequence_parallel: bool,
    rank: int = 0,
) -> Sharding:
    """Turn ``model`` into one rank of ``width``."""
    if width == 1:
        return Sharding()
    if source.plan_fault is not None:
        raise source.plan_fault
    if width < 1 or source.plan is None:
        problem = (
            "the width is not positive"
            if width < 1
            else "there is no tensor-parallel plan for this model"
        )
        raise InputError(
            source.name, f"{problem}, and TP {width} was requested", "use tensor 1, or give a plan"
        )
    plan = source.plan
    if sequence_parallel and sequence % width and not plan.pads:
        raise InputError(
            source.name, f"a sequence of {sequence} cannot be sharded over {width} ranks evenly"
        )
    group = RankGroup(width, rank, sequence_parallel, plan.sequence_dim, sequence)
    if plan.cuts:
        return _cut_model(model, plan, group)
    surgery = Surgery(model, plan, group)
    surgery.run()
    vocabulary = (
        surgery.vocabulary(source.vocabulary, source.token_modules(model))
        if source.vocabulary
        else None
    )
    notes = tuple(surgery.notes)
    if sequence_parallel:
        notes += ("outside the blocks every rank holds the whole sequence",)
    if sequence_parallel and sequence % width:
        notes += (f"the sequence of {sequence} is padded to {math.ceil(sequence / width) * width}",)
    return Sharding(frozenset(surgery.split), notes, vocabulary, _borders(group))
