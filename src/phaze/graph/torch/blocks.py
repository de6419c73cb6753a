"""Which modules are the blocks of a model: the repeated members of its outermost lists.

1. outermost ``ModuleList``s in which a class repeats; all members are blocks (a changed one too, it will not fold)
2. else outermost ``Sequential``s in which a class that has children repeats
3. else none: the whole model is one layer
"""

from collections import Counter
from collections.abc import Iterator

from torch import nn


def _repeats(members: list[nn.Module], with_children: bool) -> bool:
    classes = Counter(type(m) for m in members if not with_children or any(True for _ in m.children()))
    return any(count > 1 for count in classes.values())


def _outermost(
    root: nn.Module, prefix: str, kind: type[nn.Module], with_children: bool
) -> Iterator[tuple[str, nn.Module]]:
    for name, child in root.named_children():
        path = f"{prefix}.{name}" if prefix else name
        if isinstance(child, kind) and _repeats(list(child.children()), with_children):
            for key, member in child.named_children():
                yield f"{path}.{key}", member
        else:
            yield from _outermost(child, path, kind, with_children)


def find_blocks(model: nn.Module) -> dict[str, nn.Module]:
    """The blocks by their path in the model, in order of their registration; one module is listed once."""
    for kind, with_children in ((nn.ModuleList, False), (nn.Sequential, True)):
        found: dict[str, nn.Module] = {}
        for path, module in _outermost(model, "", kind, with_children):
            if all(module is not other for other in found.values()):
                found[path] = module
        if found:
            return found
    return {}
