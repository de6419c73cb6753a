"""What a kernel or operator of a profile does, by its name.

The first rule whose pattern the name contains (letters of any case) holds; a name that none knows
is ``unknown`` and its share is reported. GEMM libraries, attention kernels and NCCL's collectives
have names of their own; of the rest those that PyTorch, Apex, Transformer Engine and compilers give
to element-wise work, norms, reductions and optimizers are vector work.
"""

import re
from typing import Literal

from phaze.cost.collective import Kind

KernelClass = Literal["gemm", "attention", "vector", "optimizer", "collective", "copy", "unknown"]
COLLECTIVES = ("c10d::", "record_param_comms")
RULES: tuple[tuple[KernelClass, str], ...] = (
    (
        "collective",
        r"nccl|rccl|gloo:|c10d::|allreduce|all_reduce|reduce_scatter|reducescatter|all_gather|allgather|alltoall|all_to_all|sendrecv",
    ),
    ("attention", r"flash|fmha|attention|attn|cudnn.*sdpa|mha_"),
    ("optimizer", r"adam|multi_tensor_apply|multi_tensor|lamb|sgd_|addcdiv|addcmul|lerp"),
    (
        "gemm",
        r"gemm|cutlass|cublas|nvjet|wgmma|xmma|hgemm|sm\d+_.*(mma|tensorop)|matmul|::addmm|::mm$|::bmm|baddbmm|linear_|convolution|conv2d|cijk_",
    ),
    ("copy", r"memcpy|memset|^aten::copy_|::zero_|::fill_"),
    (
        "vector",
        r"elementwise|vectorized|norm|softmax|gelu|silu|relu|swiglu|dropout|reduce_kernel|reduce|triton|embedding|rope|rotary|"
        r"bias|cross_entropy|nll_loss|index|gather|scatter|cat|transpose|cast|fused|unrolled|cumsum|where|"
        r"^aten::(add|mul|div|sub|sqrt|exp|tanh|sum|mean|pow|neg|max|clone|native_)|backward",
    ),
)
COMPILED = tuple((what, re.compile(pattern, re.IGNORECASE)) for what, pattern in RULES)
KINDS: tuple[tuple[Kind, str], ...] = (
    ("reduce_scatter", r"reduce_?scatter"),
    ("all_gather", r"all_?gather"),
    ("all_reduce", r"all_?reduce"),
    ("all_to_all", r"all_?to_?all"),
    ("point_to_point", r"send|recv"),
)


def class_of(name: str) -> KernelClass:
    """What a kernel does."""
    return next((what for what, pattern in COMPILED if pattern.search(name)), "unknown")


def collective_of(name: str) -> Kind | None:
    """Which collective a name means, None if none."""
    if class_of(name) != "collective":
        return None
    return next((kind for kind, pattern in KINDS if re.search(pattern, name, re.IGNORECASE)), None)
