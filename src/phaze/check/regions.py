"""The parts of a layer that a stack can recompute, found by what they do (docs/plan.md, Recompute
by modules).

core_attn        fused attention, or the paths of its scores and the products behind them
layernorm        norms that make the operand of products; dropped
mlp              products around an activation, with it; beside experts that is the shared one:
                 shared_experts
moe_act          activations between products of experts; dropped
moe              all of the module that holds products of experts
mla_up_proj      products of a normalised result of a product (a latent), and vector operators
                 behind them; dropped

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
        operator = flow.writer.get(last)
        if operator is None or is_kernel(operator):
            entering.add(last)
        elif operator.number not in found:
            found.add(operator.number)
            stack.extend(flow.made_from(last))
    return found, entering


def _norm(
    flow: Flow, tensor: int, by_number: Mapping[int, Traced]
) -> tuple[set[int], set[int]] | None:
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
    starts = {
        t
        for t in written
        if any(operator.number not in found for operator in flow.readers.get(t, ()))
    }
    inside, stack = set[int](), [tensor]
    while stack:
        last = stack.pop()
        operator = flow.writer.get(last)
        if (
            operator is not None
            and operator.number in found
            and operator.number not in inside
            and last not in starts
        ):
            inside.add(operator.number)
            stack.extend(flow.made_from(last))
    return inside, starts or entering


def score_paths(flow: Flow) -> set[int]:
    """Operators from a product of two activations through a softmax to just before another one."""
    reached: dict[int, tuple[set[int], bool]] = {}
    found = set[int]()
    for operator in flow.layer.forward.operators:
        own = [reached[t] for t in operator.reads if t in reached]
        path, normal = set().union(*(numbers for numbers, _ in own)), any(seen for _, seen in own)
        if operator.op.kind == "product":
            if flow.weighted(operator):
                continue
            if normal:
                found |= path
                continue
            path, normal = {operator.number}, False
        elif not path or operator.op.core != "vector":
            continue
        else:
            path, normal = path | {operator.number}, normal or operator.op.kind == "softmax"
        reached.update(dict.fromkeys(operator.writes, (path, normal)))
    return found


def _operands(flow: Flow) -> list[tuple[Traced, int]]:
    """Every product with a parameter and what it reads beside that, before it was gathered."""
    found = []
    for operator in filter(flow.weighted, flow.layer.forward.operators):
        for tensor in sorted(set(operator.reads) - flow.free):
            made = flow.writer.get(tensor)
            found.append(
                (
                    operator,
                    made.reads[0] if made is not None and made.op.kind == "all_gather" else tensor,
                )
            )
    return found


def _normalised(flow: Flow, by_number: Mapping[int, Traced]) -> tuple[set[int], set[int]]:
    """Norms before products, without those of a product's result (a latent); and the products that
    read a latent, with the vector operators behind them."""
    norms, latent = set[int](), set[int]()
    for operator, operand in _operands(flow):
        norm = _norm(flow, operand, by_number)
        if norm is not None:
            products = [t for t in norm[1] if t in flow.writer and flow.weighted(flow.writer[t])]
            norms |= set() if products else norm[0]
            latent |= {operator.number} if norm[1] and len(products) == len(norm[1]) else set()
    made = {tensor for number in latent for tensor in by_number[number].writes}
    for operator in flow.layer.forward.operators:
        if made & set(operator.reads) and not is_kernel(operator):
            latent.add(operator.number)
            made |= set(operator.writes)
    return norms, latent


def _activated(flow: Flow, by_number: Mapping[int, Traced]) -> tuple[set[int], set[int]]:
    """Products around an activation with it and what they gather; and activations between the
    products of experts."""
    dense, between = set[int](), set[int]()
    for operator, operand in _operands(flow):
        own, entering = _kernel(flow, operand)
        before = [
            flow.writer[t] for t in entering if t in flow.writer and flow.weighted(flow.writer[t])
        ]
        if not before or not any(by_number[number].op.kind in ACTIVATIONS for number in own):
            continue
        if flow.grouped(operator):
            between |= own
            continue
        read = [flow.writer[t] for product in before for t in product.reads if t in flow.writer]
        gathers = {other.number for other in read if other.op.kind == "all_gather"}
        dense |= own | {product.number for product in before} | gathers | {operator.number}
    return dense, between


def _attention(flow: Flow) -> set[int]:
    """Attention operators, or the products around a softmax of scores with all that lies between
    them."""
    path, attention, scores = score_paths(flow), set[int](), set[int]()
    for operator in flow.layer.forward.operators:
        if operator.number in path:
            scores |= set(operator.writes)
    for operator in flow.layer.forward.operators:
        reads_scores = operator.op.kind == "product" and not scores.isdisjoint(operator.reads)
        if operator.op.kind == "attention" or operator.number in path or reads_scores:
            attention.add(operator.number)
    return attention


def _experts(flow: Flow) -> set[int]:
    """Operators of the modules that hold products of several experts."""
    holders, experts = set[str](), set[int]()
    for operator in flow.layer.forward.operators:
        if flow.grouped(operator) and operator.module:
            holders.add(operator.module.rpartition(".")[0] or operator.module)
    for operator in flow.layer.forward.operators:
        if any(f"{operator.module}.".startswith(f"{holder}.") for holder in holders):
            experts.add(operator.number)
    return experts


def regions_of(flow: Flow) -> dict[str, tuple[frozenset[int], bool]]:
    """The parts that a layer has: operators, and whether their results are dropped."""
    by_number = {operator.number: operator for operator in flow.layer.forward.operators}
    norms, latent = _normalised(flow, by_number)
    dense, between = _activated(flow, by_number)
    experts = _experts(flow)
    regions = {
        "core_attn": (_attention(flow), False),
        "layernorm": (norms, True),
        "shared_experts" if experts else "mlp": (dense, False),
        "moe_act": (between, True),
        "moe": (experts, False),
        "mla_up_proj": (latent, True),
    }
    return {
        name: (frozenset(numbers), drops) for name, (numbers, drops) in regions.items() if numbers
    }
