"""What an operator is: one table from kinds to core, shape rule and vector work, one from PyTorch's
names to kinds.

To teach phaze a new PyTorch operator add its name without overload to the row of a kind in ``_ROWS``;
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

from collections.abc import Iterator, Mapping
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


_ROWS = """
product              mm bmm addmm baddbmm _grouped_mm mv dot vdot addmv addbmm
convolution          convolution convolution_backward
attention            phaze.attention _scaled_dot_product_flash_attention_for_cpu
attention_backward   phaze.attention_backward _scaled_dot_product_flash_attention_for_cpu_backward
add                  add add_ sub sub_ rsub addcmul addcdiv lerp abs neg sign maximum minimum
add                  clamp clamp_ clamp_min clamp_max floor ceil round remainder fmod hardtanh
add                  floor_divide nll_loss_backward nll_loss2d_backward mse_loss_backward
add                  smooth_l1_loss_backward huber_loss_backward binary_cross_entropy_backward
add                  hypot copysign trunc frac sgn clamp_min_ clamp_max_ neg_ abs_ addcmul_
add                  addcdiv_ lerp_ isin nan_to_num hardsigmoid hardsigmoid_backward square_
add                  floor_ round_ rsub_ signbit
accumulate           phaze.accumulate
multiply             mul mul_ square
divide               div div_ reciprocal
compare              eq ne lt le gt ge logical_and logical_or logical_not logical_xor bitwise_and
compare              bitwise_or bitwise_not bitwise_xor isnan isinf isneginf isfinite __and__
compare              __or__ bitwise_and_ bitwise_or_ logical_and_ logical_or_
select               where masked_fill masked_fill_ tril triu tril_ triu_
cast                 _to_copy
power                pow pow_ float_power
root                 sqrt rsqrt sqrt_ rsqrt_
exp                  exp expm1 exp2 exp_
log                  log log1p log2 binary_cross_entropy binary_cross_entropy_with_logits xlogy
log                  logit logaddexp log10
tanh                 tanh erf erfc tanh_ celu selu
sigmoid              sigmoid softplus log_sigmoid_forward sigmoid_ glu
trigonometric        sin cos tan atan atan2 asin acos sinh cosh atanh asinh acosh polar angle
trigonometric        erfinv
relu                 relu relu_ threshold_backward leaky_relu leaky_relu_backward leaky_relu_
relu                 threshold _prelu_kernel relu6 hardtanh_ softshrink hardshrink
relu                 rrelu_with_noise
gelu                 gelu
gelu_backward        gelu_backward
silu                 silu mish elu hardswish silu_ elu_ hardswish_ mish_
silu_backward        silu_backward mish_backward elu_backward hardswish_backward
activation_backward  tanh_backward sigmoid_backward softplus_backward hardtanh_backward
activation_backward  log_sigmoid_backward glu_backward softshrink_backward _prelu_kernel_backward
dropout              native_dropout
dropout_backward     native_dropout_backward
random               rand rand_like randn randn_like bernoulli bernoulli_ uniform_ normal_ randint
random               randperm
reduce               sum mean amax amin max min any all prod var var_mean std argmax argmin norm
reduce               linalg_vector_norm logsumexp nll_loss_forward nll_loss2d_forward mse_loss
reduce               histc bincount smooth_l1_loss huber_loss median nanmedian mode aminmax
reduce               std_mean count_nonzero kthvalue
scan                 cumsum cumprod cumsum_ cummax cummin logcumsumexp _cummax_helper
sort                 sort topk argsort
softmax              _softmax _log_softmax _safe_softmax
softmax_backward     _softmax_backward_data _log_softmax_backward_data
layer_norm           native_layer_norm _fused_rms_norm native_group_norm
layer_norm_backward  native_layer_norm_backward _fused_rms_norm_backward
layer_norm_backward  native_group_norm_backward
batch_norm           native_batch_norm _native_batch_norm_legit _batch_norm_with_update
batch_norm           cudnn_batch_norm
batch_norm_backward  native_batch_norm_backward batch_norm_backward
pool                 max_pool2d_with_indices max_pool2d_with_indices_backward avg_pool2d
pool                 avg_pool2d_backward _adaptive_avg_pool2d _adaptive_avg_pool2d_backward
pool                 adaptive_max_pool2d avg_pool3d adaptive_max_pool2d_backward
pool                 avg_pool3d_backward max_pool3d_with_indices max_pool3d_with_indices_backward
pool                 _adaptive_avg_pool3d _adaptive_avg_pool3d_backward
embedding            embedding
embedding_backward   embedding_dense_backward
gather               gather index index_select take_along_dim bucketize searchsorted one_hot
gather               grid_sampler_2d take masked_select
scatter              index_put index_put_ _index_put_impl_ scatter scatter_ scatter_add
scatter              scatter_add_ index_add index_add_ index_fill index_fill_ scatter_reduce
scatter              grid_sampler_2d_backward masked_scatter masked_scatter_backward index_copy
scatter              index_copy_
copy                 clone copy copy_ cat stack repeat flip roll constant_pad_nd repeat_interleave
copy                 select_backward slice_backward select_scatter slice_scatter
copy                 as_strided_scatter upsample_nearest2d upsample_nearest2d_backward
copy                 upsample_bilinear2d diagonal_backward unfold_backward im2col col2im
copy                 reflection_pad2d expand_copy pixel_shuffle pixel_unshuffle reflection_pad1d
copy                 reflection_pad1d_backward reflection_pad2d_backward replication_pad1d
copy                 replication_pad2d replication_pad1d_backward replication_pad2d_backward
copy                 complex tile upsample_bicubic2d upsample_bicubic2d_backward
copy                 upsample_bilinear2d_backward rot90 upsample_linear1d
copy                 upsample_linear1d_backward upsample_nearest1d view_as_complex_copy
copy                 upsample_nearest1d_backward _upsample_bicubic2d_aa _upsample_bilinear2d_aa
copy                 block_diag phaze.shard
fill                 zeros zeros_like ones ones_like full full_like fill fill_ zero_ new_zeros
fill                 new_full new_ones arange linspace eye scalar_tensor
all_reduce           phaze.all_reduce phaze.all_reduce_max
all_gather           phaze.all_gather
reduce_scatter       phaze.reduce_scatter
all_to_all           phaze.dispatch phaze.combine
free                 empty empty_like empty_strided new_empty new_empty_strided lift_fresh_copy
free                 resize_ _local_scalar_dense lift_fresh
"""


def _names() -> Iterator[tuple[str, str]]:
    """Every name of a row and the row's kind; one without a library is of ``aten``."""
    for row in _ROWS.split("\n"):
        kind, *names = row.split() or [""]
        yield from ((name if "." in name else f"aten.{name}", kind) for name in names)


NAMES: Mapping[str, str] = MappingProxyType(dict(_names()))
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
