"""The parts of a layer that a stack can recompute, found by what they do (docs/plan.md, Recompute by modules).

core_attn        fused attention, or the paths of its scores and the products behind them
layernorm        norms that make the operand of products; dropped
mlp              products around an activation, with it; beside experts that is the shared one: shared_experts
moe_act          activations between products of experts; dropped
moe              all of the module that holds products of experts
mla_up_proj      products of a normalised result of a product (a latent), and vector operators behind them; dropped

Of a part whose results are *dropped* nothing is kept; of others what the rest of the layer reads.
"""

from collections.abc import Mapping

from .saving import Flow, is_kernel
from .traced import Traced

MODULES = frozenset({
    "core_attn", "layernorm", "mlp", "shared_experts", "moe_act", "moe", "mla_up_proj", "alternate",
})  # fmt: skip
NORMS = frozenset({"layer_norm", "batch_norm", "root"})
ACTIVATIONS = frozenset({"silu", "gelu", "relu", "sigmoid", "tanh"})


def _kernel(flow: Flow, tensor: int) -> tuple[set[int], set[int]]:
    """The vector operators that make a tensor from what other kernels wrote, and what that is."""
    found, entering, stack = set[int](), set[int](), [tensor]
    while stack:
        last = stack.pop()
        one = flow.writer.get(last)
        if one is None or is_kernel(one):
            entering.add(last)
        elif one.number not in found:
            found.add(one.number)
            stack.extend(flow.made_from(last))
    return found, entering


def _norm(flow: Flow, tensor: int, by_number: Mapping[int, Traced]) -> tuple[set[int], set[int]] | None:
    """The operators of the norm that makes a tensor, and what it starts from."""
    made = flow.writer.get(tensor)
    if made is None:
        return None
    if made.op.kind in NORMS:
        return {made.number}, set(flow.made_from(tensor))
    if is_kernel(made):
        return None
    found, entering = _kernel(flow, tensor)
    if not any(by_number[number].op.kind == "root" for number in found):
        return None
    written = {t for number in found for t in by_number[number].writes} - {tensor}
    # What others read of the kernel as well is where the norm starts.
    starts = {t for t in written if any(one.number not in found for one in flow.readers.get(t, ()))}
    inside, stack = set[int](), [tensor]
    while stack:
        last = stack.pop()
        one = flow.writer.get(last)
        if one is not None and one.number in found and one.number not in inside and last not in starts:
            inside.add(one.number)
            stack.extend(flow.made_from(last))
    return inside, starts or entering


def score_paths(flow: Flow) -> set[int]:
    """Operators from a product of two activations through a softmax to just before another one."""
    reached: dict[int, tuple[set[int], bool]] = {}
    found = set[int]()
    for one in flow.layer.forward.operators:
        own = [reached[t] for t in one.reads if t in reached]
        path, normal = set().union(*(numbers for numbers, _ in own)), any(seen for _, seen in own)
        if one.op.kind == "product":
            if flow.weighted(one):
                continue
            if normal:
                found |= path
                continue
            path, normal = {one.number}, False
        elif not path or one.op.core != "vector":
            continue
        else:
            path, normal = path | {one.number}, normal or one.op.kind == "softmax"
        reached.update(dict.fromkeys(one.writes, (path, normal)))
    return found


def _operands(flow: Flow) -> list[tuple[Traced, int]]:
    """Every product with a parameter and what it reads beside that, before it was gathered."""
    found = []
    for one in filter(flow.weighted, flow.layer.forward.operators):
        for tensor in sorted(set(one.reads) - flow.free):
            made = flow.writer.get(tensor)
            found.append((one, made.reads[0] if made is not None and made.op.kind == "all_gather" else tensor))
    return found


def _normalised(flow: Flow, by_number: Mapping[int, Traced]) -> tuple[set[int], set[int]]:
    """Norms before products, without those of a product's result (a latent); and the products that read a latent, with
    the vector operators behind them."""
    norms, latent = set[int](), set[int]()
    for one, operand in _operands(flow):
        norm = _norm(flow, operand, by_number)
        if norm is not None:
            products = [t for t in norm[1] if t in flow.writer and flow.weighted(flow.writer[t])]
            norms |= set() if products else norm[0]
            latent |= {one.number} if norm[1] and len(products) == len(norm[1]) else set()
    made = {tensor for number in latent for tensor in by_number[number].writes}
    for one in flow.layer.forward.operators:
        if made & set(one.reads) and not is_kernel(one):
            latent.add(one.number)
            made |= set(one.writes)
    return norms, latent


def _activated(flow: Flow, by_number: Mapping[int, Traced]) -> tuple[set[int], set[int]]:
    """Products around an activation with it and what they gather; and activations between the products of experts."""
    dense, between = set[int](), set[int]()
    for one, operand in _operands(flow):
        own, entering = _kernel(flow, operand)
        before = [flow.writer[t] for t in entering if t in flow.writer and flow.weighted(flow.writer[t])]
        if not before or not any(by_number[number].op.kind in ACTIVATIONS for number in own):
            continue
        if flow.grouped(one):
            between |= own
            continue
        read = [flow.writer[t] for product in before for t in product.reads if t in flow.writer]
        gathers = {other.number for other in read if other.op.kind == "all_gather"}
        dense |= own | {product.number for product in before} | gathers | {one.number}
    return dense, between


def regions_of(flow: Flow) -> dict[str, tuple[frozenset[int], bool]]:
    """The parts that a layer has: operators, and whether their results are dropped."""
    operators = flow.layer.forward.operators
    by_number = {one.number: one for one in operators}
    path, (norms, latent), (dense, between) = (
        score_paths(flow),
        _normalised(flow, by_number),
        _activated(flow, by_number),
    )
    written = {t for number in path for t in by_number[number].writes}
    attention = {
        one.number
        for one in operators
        if one.op.kind == "attention" or one.number in path or (one.op.kind == "product" and written & set(one.reads))
    }
    holders = {one.module.rpartition(".")[0] or one.module for one in operators if flow.grouped(one) and one.module}
    experts = {one.number for one in operators if any(f"{one.module}.".startswith(f"{own}.") for own in holders)}
    found = {
        "core_attn": (attention, False), "layernorm": (norms, True),
        "shared_experts" if experts else "mlp": (dense, False), "moe_act": (between, True), "moe": (experts, False),
        "mla_up_proj": (latent, True),
    }  # fmt: skip
    return {name: (frozenset(own), drops) for name, (own, drops) in found.items() if own}
