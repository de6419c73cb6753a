"""What an operator is: one table from kinds to core, shape rule and vector work, one from PyTorch's
names to kinds.

To teach phaze a new PyTorch operator add a row to ``NAMES`` (its name without overload -> a kind);
a kind that is not there yet needs a row in ``KINDS``. The rule says which sizes the operator gets:

    product       batch, m, n, k: 2 batch m n k FLOP on the tensor cores
    convolution   the same, per group: m output positions, n output channels, k input channels x
                  window
    attention     batch, queries, keys, width, value_width: both products and the softmax between,
                  scores on chip; causal, window: what its mask leaves (:mod:`phaze.graph.pairs`)
    map           elements (of the largest operand): ``operations`` elementary steps on the vector
                  cores for each
    reduce        elements (read), rows (results): ``operations`` for each element
    normalize     elements, rows: ``operations`` for each element, in several passes over a row
    move          elements (written): bytes through memory, no arithmetic
    collective    bytes (of the whole tensor), group: over the network, among neighbours
    exchange      bytes (of the rank's part), group, stride, copies: over the network, among every
                  ``stride``-th rank
    free          nothing runs: allocation, metadata
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from phaze.graph.ir import Core, Operator
from phaze.graph.pairs import attention_pairs

Rule = Literal[
    "product",
    "convolution",
    "attention",
    "map",
    "reduce",
    "normalize",
    "move",
    "collective",
    "exchange",
    "free",
]


@dataclass(frozen=True, slots=True)
class OperatorKind:
    """A row: the core that runs it, the sizes it has, and elementary vector operations for each
    element."""

    core: Core
    rule: Rule
    operations: int = 0


_PRODUCT = OperatorKind("tensor", "product")
_MOVE = OperatorKind("vector", "move")
_NETWORK = OperatorKind("network", "collective")
_EXCHANGE = OperatorKind("network", "exchange")

KINDS: Mapping[str, OperatorKind] = MappingProxyType(
    {
        "product": _PRODUCT,
        "convolution": OperatorKind("tensor", "convolution"),
        "attention": OperatorKind("both", "attention", 8),
        "attention_backward": OperatorKind("both", "attention", 10),
        "fused": OperatorKind("vector", "map"),
        "add": OperatorKind("vector", "map", 1),
        "accumulate": OperatorKind("vector", "map", 1),
        "multiply": OperatorKind("vector", "map", 1),
        "divide": OperatorKind("vector", "map", 4),
        "compare": OperatorKind("vector", "map", 1),
        "select": OperatorKind("vector", "map", 1),
        "cast": OperatorKind("vector", "map", 1),
        "power": OperatorKind("vector", "map", 2),
        "root": OperatorKind("vector", "map", 4),
        "exp": OperatorKind("vector", "map", 4),
        "log": OperatorKind("vector", "map", 4),
        "tanh": OperatorKind("vector", "map", 6),
        "sigmoid": OperatorKind("vector", "map", 6),
        "trigonometric": OperatorKind("vector", "map", 8),
        "relu": OperatorKind("vector", "map", 1),
        "gelu": OperatorKind("vector", "map", 10),
        "gelu_backward": OperatorKind("vector", "map", 14),
        "silu": OperatorKind("vector", "map", 7),
        "silu_backward": OperatorKind("vector", "map", 10),
        "activation_backward": OperatorKind("vector", "map", 4),
        "dropout": OperatorKind("vector", "map", 6),
        "dropout_backward": OperatorKind("vector", "map", 2),
        "random": OperatorKind("vector", "map", 4),
        "reduce": OperatorKind("vector", "reduce", 1),
        "scan": OperatorKind("vector", "reduce", 2),
        "sort": OperatorKind("vector", "reduce", 16),
        "softmax": OperatorKind("vector", "normalize", 8),
        "softmax_backward": OperatorKind("vector", "normalize", 4),
        "layer_norm": OperatorKind("vector", "normalize", 7),
        "layer_norm_backward": OperatorKind("vector", "normalize", 11),
        "batch_norm": OperatorKind("vector", "normalize", 7),
        "batch_norm_backward": OperatorKind("vector", "normalize", 11),
        "pool": OperatorKind("vector", "reduce", 1),
        "embedding": _MOVE,
        "embedding_backward": OperatorKind("vector", "move", 1),
        "gather": _MOVE,
        "scatter": OperatorKind("vector", "move", 1),
        "copy": _MOVE,
        "fill": _MOVE,
        "all_reduce": _NETWORK,
        "all_gather": _NETWORK,
        "reduce_scatter": _NETWORK,
        "all_to_all": _EXCHANGE,
        "ring": _EXCHANGE,
        "context_gather": _EXCHANGE,
        "context_scatter": _EXCHANGE,
        "free": OperatorKind("none", "free"),
    }
)


def _rows(kind: str, names: str) -> Iterable[tuple[str, str]]:
    return ((name if "." in name else f"aten.{name}", kind) for name in names.split())


NAMES: Mapping[str, str] = MappingProxyType(
    dict(
        [
            *_rows("product", "mm bmm addmm baddbmm _grouped_mm mv dot vdot addmv addbmm"),
            *_rows("convolution", "convolution convolution_backward"),
            *_rows("attention", "phaze.attention _scaled_dot_product_flash_attention_for_cpu"),
            *_rows(
                "attention_backward",
                "phaze.attention_backward _scaled_dot_product_flash_attention_for_cpu_backward",
            ),
            *_rows(
                "add",
                (
                    "add add_ sub sub_ rsub addcmul addcdiv lerp abs neg sign maximum "
                    "minimum clamp clamp_"
                ),
            ),
            *_rows(
                "add", "clamp_min clamp_max floor ceil round remainder fmod hardtanh floor_divide"
            ),
            *_rows("accumulate", "phaze.accumulate"),
            *_rows("multiply", "mul mul_ square"),
            *_rows("divide", "div div_ reciprocal"),
            *_rows("compare", "eq ne lt le gt ge logical_and logical_or logical_not logical_xor"),
            *_rows(
                "compare",
                "bitwise_and bitwise_or bitwise_not bitwise_xor isnan isinf isneginf isfinite",
            ),
            *_rows("compare", "__and__ __or__ bitwise_and_ bitwise_or_ logical_and_ logical_or_"),
            *_rows("select", "where masked_fill masked_fill_ tril triu tril_ triu_"),
            *_rows("cast", "_to_copy"),
            *_rows("power", "pow pow_ float_power"),
            *_rows("root", "sqrt rsqrt sqrt_ rsqrt_"),
            *_rows("exp", "exp expm1 exp2 exp_"),
            *_rows("log", "log log1p log2"),
            *_rows("tanh", "tanh erf erfc tanh_ celu selu"),
            *_rows("sigmoid", "sigmoid softplus log_sigmoid_forward sigmoid_ glu"),
            *_rows(
                "trigonometric",
                "sin cos tan atan atan2 asin acos sinh cosh atanh asinh acosh polar angle erfinv",
            ),
            *_rows(
                "relu",
                (
                    "relu relu_ threshold_backward leaky_relu leaky_relu_backward "
                    "leaky_relu_ threshold"
                ),
            ),
            *_rows("relu", "_prelu_kernel relu6 hardtanh_ softshrink hardshrink rrelu_with_noise"),
            *_rows("gelu", "gelu"),
            *_rows("gelu_backward", "gelu_backward"),
            *_rows("silu", "silu mish elu hardswish silu_ elu_ hardswish_ mish_"),
            *_rows("silu_backward", "silu_backward mish_backward elu_backward hardswish_backward"),
            *_rows(
                "activation_backward",
                "tanh_backward sigmoid_backward softplus_backward hardtanh_backward",
            ),
            *_rows(
                "activation_backward",
                "log_sigmoid_backward glu_backward softshrink_backward _prelu_kernel_backward",
            ),
            *_rows("dropout", "native_dropout"),
            *_rows("dropout_backward", "native_dropout_backward"),
            *_rows(
                "random",
                (
                    "rand rand_like randn randn_like bernoulli bernoulli_ uniform_ normal_ "
                    "randint randperm"
                ),
            ),
            *_rows(
                "reduce",
                "sum mean amax amin max min any all prod var var_mean std argmax argmin norm",
            ),
            *_rows(
                "reduce",
                (
                    "linalg_vector_norm logsumexp nll_loss_forward nll_loss2d_forward "
                    "mse_loss histc bincount"
                ),
            ),
            *_rows("add", "nll_loss_backward nll_loss2d_backward mse_loss_backward"),
            *_rows(
                "reduce",
                (
                    "smooth_l1_loss huber_loss median nanmedian mode aminmax std_mean "
                    "count_nonzero kthvalue"
                ),
            ),
            *_rows(
                "add", "smooth_l1_loss_backward huber_loss_backward binary_cross_entropy_backward"
            ),
            *_rows(
                "log",
                "binary_cross_entropy binary_cross_entropy_with_logits xlogy logit logaddexp log10",
            ),
            *_rows(
                "add",
                (
                    "hypot copysign trunc frac sgn clamp_min_ clamp_max_ neg_ abs_ addcmul_ "
                    "addcdiv_ lerp_"
                ),
            ),
            *_rows(
                "add",
                (
                    "isin nan_to_num hardsigmoid hardsigmoid_backward square_ floor_ round_ "
                    "rsub_ signbit"
                ),
            ),
            *_rows("scan", "cumsum cumprod cumsum_ cummax cummin logcumsumexp _cummax_helper"),
            *_rows("sort", "sort topk argsort"),
            *_rows("softmax", "_softmax _log_softmax _safe_softmax"),
            *_rows("softmax_backward", "_softmax_backward_data _log_softmax_backward_data"),
            *_rows("layer_norm", "native_layer_norm _fused_rms_norm native_group_norm"),
            *_rows(
                "layer_norm_backward",
                "native_layer_norm_backward _fused_rms_norm_backward native_group_norm_backward",
            ),
            *_rows(
                "batch_norm",
                (
                    "native_batch_norm _native_batch_norm_legit _batch_norm_with_update "
                    "cudnn_batch_norm"
                ),
            ),
            *_rows("batch_norm_backward", "native_batch_norm_backward batch_norm_backward"),
            *_rows(
                "pool",
                (
                    "max_pool2d_with_indices max_pool2d_with_indices_backward avg_pool2d "
                    "avg_pool2d_backward"
                ),
            ),
            *_rows(
                "pool",
                "_adaptive_avg_pool2d _adaptive_avg_pool2d_backward adaptive_max_pool2d avg_pool3d",
            ),
            *_rows(
                "pool", "adaptive_max_pool2d_backward avg_pool3d_backward max_pool3d_with_indices"
            ),
            *_rows(
                "pool",
                (
                    "max_pool3d_with_indices_backward _adaptive_avg_pool3d "
                    "_adaptive_avg_pool3d_backward"
                ),
            ),
            *_rows("embedding", "embedding"),
            *_rows("embedding_backward", "embedding_dense_backward"),
            *_rows(
                "gather", "gather index index_select take_along_dim bucketize searchsorted one_hot"
            ),
            *_rows(
                "scatter",
                "index_put index_put_ _index_put_impl_ scatter scatter_ scatter_add scatter_add_",
            ),
            *_rows("scatter", "index_add index_add_ index_fill index_fill_ scatter_reduce"),
            *_rows(
                "copy",
                "clone copy copy_ cat stack repeat flip roll constant_pad_nd repeat_interleave",
            ),
            *_rows(
                "copy",
                "select_backward slice_backward select_scatter slice_scatter as_strided_scatter",
            ),
            *_rows(
                "copy",
                (
                    "upsample_nearest2d upsample_nearest2d_backward upsample_bilinear2d "
                    "diagonal_backward"
                ),
            ),
            *_rows(
                "copy",
                (
                    "unfold_backward im2col col2im reflection_pad2d expand_copy "
                    "pixel_shuffle pixel_unshuffle"
                ),
            ),
            *_rows(
                "copy",
                (
                    "reflection_pad1d reflection_pad1d_backward reflection_pad2d_backward "
                    "replication_pad1d"
                ),
            ),
            *_rows(
                "copy",
                (
                    "replication_pad2d replication_pad1d_backward replication_pad2d_backward "
                    "complex tile"
                ),
            ),
            *_rows(
                "copy",
                "upsample_bicubic2d upsample_bicubic2d_backward upsample_bilinear2d_backward rot90",
            ),
            *_rows(
                "copy",
                (
                    "upsample_linear1d upsample_linear1d_backward upsample_nearest1d "
                    "view_as_complex_copy"
                ),
            ),
            *_rows(
                "copy",
                (
                    "upsample_nearest1d_backward _upsample_bicubic2d_aa "
                    "_upsample_bilinear2d_aa block_diag"
                ),
            ),
            *_rows("gather", "grid_sampler_2d take masked_select"),
            *_rows(
                "scatter",
                (
                    "grid_sampler_2d_backward masked_scatter masked_scatter_backward "
                    "index_copy index_copy_"
                ),
            ),
            *_rows(
                "fill",
                (
                    "zeros zeros_like ones ones_like full full_like fill fill_ zero_ "
                    "new_zeros new_full new_ones"
                ),
            ),
            *_rows("fill", "arange linspace eye scalar_tensor"),
            *_rows("all_reduce", "phaze.all_reduce phaze.all_reduce_max"),
            *_rows("all_gather", "phaze.all_gather"),
            *_rows("reduce_scatter", "phaze.reduce_scatter"),
            *_rows("all_to_all", "phaze.dispatch phaze.combine"),
            *_rows("copy", "phaze.shard"),
            *_rows(
                "free",
                (
                    "empty empty_like empty_strided new_empty new_empty_strided "
                    "lift_fresh_copy resize_"
                ),
            ),
            *_rows("free", "_local_scalar_dense lift_fresh"),
        ]
    )
)
"""PyTorch's operators by name without overload; ``free`` ones and views leave no trace in the
graph."""


def kind_of(name: str) -> str | None:
    """The kind of a PyTorch operator such as ``aten.addmm.default``, or None where the table has no
    row."""
    packet = name.rsplit(".", 1)[0] if name.count(".") == 2 else name
    return NAMES.get(packet)


def flops(operator: Operator, masked: bool = False) -> int:
    """Floating-point operations of matrix products: twice the multiply-accumulates; parts of a
    fused one are summed.

    Fused attention over P pairs of a head: forward 2 b P (w + v); backward makes the scores again:
    2 b P (3 w + 2 v). P is all q k pairs, or with ``masked`` those that the kernel's mask leaves.
    """
    if operator.parts:
        return sum(flops(part, masked) for part in operator.parts)
    if operator.kind in ("product", "convolution"):
        return (
            2
            * operator.size("batch")
            * operator.size("m")
            * operator.size("n")
            * operator.size("k")
        )
    if operator.kind in ("attention", "attention_backward"):
        seen = (
            attention_pairs(operator)
            if masked
            else operator.size("queries") * operator.size("keys")
        )
        width, value_width = operator.size("width"), operator.size("value_width")
        back = operator.kind == "attention_backward"
        return (
            2
            * operator.size("batch")
            * seen
            * (3 * width + 2 * value_width if back else width + value_width)
        )
    return 0


def vector_operations(operator: Operator) -> int:
    """Elementary operations on the vector cores: elements times the ``operations`` of the kind."""
    if operator.parts:
        return sum(vector_operations(part) for part in operator.parts)
    row = KINDS[operator.kind]
    if row.rule == "attention":
        return operator.size("batch") * attention_pairs(operator) * row.operations
    return operator.size("elements") * row.operations if row.core == "vector" else 0
