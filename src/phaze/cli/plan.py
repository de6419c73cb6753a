"""``phaze plan``: how to split a training job over devices, or what a given split takes."""

from phaze.api import plans
from phaze.cli.answer import asking
from phaze.cli.place import Perfetto
from phaze.cli.plan_options import (
    Against,
    Attention,
    Batch,
    Capacity,
    Certificate,
    ChipName,
    Chunks,
    ClusterName,
    Context,
    ContextWay,
    Datasheet,
    Devices,
    Expert,
    Family,
    Fixed,
    Fresh,
    Gpt,
    Headroom,
    Html,
    Imbalance,
    Llama,
    Microbatch,
    ModelName,
    Over,
    Precision,
    Recompute,
    Sequence,
    Shard,
    StackName,
    Tensor,
    Terms,
    Tokens,
    WhatIf,
    Zero,
)
from phaze.cli.search import AllowCode
from phaze.cli.tensor_plan import TpPlan


@asking(plans.plan)
def plan(
    *, model: ModelName, gpt: Gpt, llama: Llama, chip: ChipName, devices: Devices, batch: Batch, cluster: ClusterName,
    stack: StackName, sequence: Sequence, microbatch: Microbatch, tensor: Tensor, expert: Expert, context: Context,
    context_way: ContextWay, imbalance: Imbalance, capacity: Capacity, chunks: Chunks, family: Family, zero: Zero,
    shard: Shard, recompute: Recompute, attention: Attention, precision: Precision, headroom: Headroom,
    tokens: Tokens, terms: Terms, datasheet: Datasheet, fresh: Fresh, fixed: Fixed, against: Against, what_if: WhatIf,
    over: Over, html: Html, certificate: Certificate, perfetto: Perfetto, tp_plan: TpPlan,
    allow_code: AllowCode,
) -> None:  # fmt: skip
    """Plan a training job on given devices: TP, PP, DP, CP, EP, VPP, ZeRO, microbatch, recompute. Will it fit?

    Examples: phaze plan --model llama2-7b --chip a100-80gb --devices 64 --batch 4M-tokens --tokens 2T ·
    phaze plan --model my_model.py:build --chip h100 --devices 64 --batch 512 · phaze plan --fixed run.json ·
    phaze plan --model mixtral-8x7b --chip h100 --devices 64 --batch 512 --expert 1,8 --context 1,2 ·
    phaze plan --model llama3-8b --chip h100 --devices 64 --batch 256 --stack torchtitan-eager --family 1f1b,zb-v ·
    phaze plan --against launch.sh --model llama3-8b --chip h100 --devices 64 ·
    phaze plan --model llama3-8b --chip h100 --devices 64 --batch 512 --over devices=64..256 --over chip=h200,b200 ·
    phaze plan --model llama2-7b --chip a100-80gb --devices 64 --batch 512 --certificate runs/proof
    """
