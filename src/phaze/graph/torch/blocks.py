"""Which modules are the blocks of a model: the repeated members of its outermost lists.

1. outermost ``ModuleList``s in which a class repeats; all members are blocks (a changed one too, it
   will not fold)
2. else outermost ``Sequential``s in which a class that has children repeats
3. else the members of outermost ``ModuleList``s of one (it may be called many times, or the model
   has one block)
4. else none: the whole model is one layer

Lists of lists are gone through: a list is never called.
"""

from collections import Counter
from collections.abc import Callable, Iterator

from torch import nn

LISTS = (nn.ModuleList, nn.ModuleDict)


def _has_children(module: nn.Module) -> bool:
    return any(True for _ in module.children())


def _repeated(members: list[nn.Module]) -> bool:
    """Whether two members are of one class."""
    return any(count > 1 for count in Counter(map(type, members)).values())


def _repeated_with_children(members: list[nn.Module]) -> bool:
    return _repeated([member for member in members if _has_children(member)])


def _only_one(members: list[nn.Module]) -> bool:
    return len(members) == 1 and _has_children(members[0])


def _outermost(
    root: nn.Module, prefix: str, kind: type[nn.Module], fits: Callable[[list[nn.Module]], bool]
) -> Iterator[tuple[str, nn.Module]]:
    for name, child in root.named_children():
        path = f"{prefix}.{name}" if prefix else name
        members = list(child.children())
        called = not any(isinstance(member, LISTS) for member in members)
        if isinstance(child, kind) and called and fits(members):
            for key, member in child.named_children():
                yield f"{path}.{key}", member
        else:
            yield from _outermost(child, path, kind, fits)


RULES: tuple[tuple[type[nn.Module], Callable[[list[nn.Module]], bool]], ...] = (
    (nn.ModuleList, _repeated),
    (nn.Sequential, _repeated_with_children),
    (nn.ModuleList, _only_one),
)


def find_blocks(model: nn.Module) -> dict[str, nn.Module]:
    """The blocks by their path in the model, in order of their registration; one module is listed
    once."""
    for kind, fits in RULES:
        blocks: dict[str, nn.Module] = {}
        for path, module in _outermost(model, "", kind, fits):
            if all(module is not other for other in blocks.values()):
                blocks[path] = module
        if blocks:
            return blocks
    return {}
