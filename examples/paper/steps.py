"""From the paper's setting to today's hardware, one rule at a time: every step changes one rule of
the study before it.

    python -m examples.paper.reproduce --only steps

Space, area, batch, 1024 devices and recompute (none or full) stay as they are.
"""

from collections.abc import Sequence

from examples.paper.cases import Found
from examples.paper.sheets import markdown

# One that a device holds whole, and one whose tensors must be split.
STEP_MODELS = ("bert-large", "gpt3-175b")
FIRST = "the paper's setting"
# What each step sets. On several levels transfers must stand apart from stages: which level one
# inside a stage takes is not said, and a study that changes the cluster alone is refused.
STEPS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("network levels", ('training.cluster="dgx-h100"', 'stack.stages="layers"')),
    ("synchronisation of every stage", ('stack.synchronisation="pieces"',)),
    ("1F1B", ('stack.pipeline="1f1b"',)),
    ("Adam", ('training.optimizer="adam"',)),
    ("its step through HBM", ("stack.optimizer_traffic_bytes=30.0",)),
    ("host time", ('stack.host_time="10 us"',)),
    ("links schedule", ('stack.schedule="links"',)),
    ("fused attention", ('training.attention="fused"',)),
    ("80 % of every peak", ('cost.basis="datasheet"',)),
)


def steps() -> list[tuple[str, tuple[str, ...]]]:
    """Every step with all settings up to it, the paper's own first."""
    found: list[tuple[str, tuple[str, ...]]] = [(FIRST, ())]
    for name, settings in STEPS:
        found.append((name, found[-1][1] + settings))
    return found


def _row(name: str, found: Found, before_per_s: float | None, first_per_s: float) -> list[str]:
    chip, (model,) = found.document["chip"], found.document["models"]
    plan, rate = model["plan"], model["throughput_per_s"]
    modes = " and ".join(sorted({stage["recompute"] for stage in plan["stages"]}))
    return [
        name,
        f"{chip['tensor_cores']} of {chip['rows']} x {chip['columns']}",
        f"{chip['vector_cores']} of {chip['lanes']}",
        f"{chip['hbm_bytes'] // 2**30} GiB",
        f"{plan['pipeline']} x {plan['data']} x {plan['tensor']}",
        f"{model['microbatch']}, {modes}",
        f"{rate:,.4g}",
        "" if before_per_s is None else f"{rate / before_per_s - 1:+.1%}",
        f"{rate / first_per_s:.2f}",
    ]


def step_table(found: Sequence[tuple[str, Found]]) -> str:
    """Chip, plan and throughput of every step of one model."""
    rates = [one.document["models"][0]["throughput_per_s"] for _, one in found]
    rows = [
        _row(name, one, rates[at - 1] if at else None, rates[0])
        for at, (name, one) in enumerate(found)
    ]
    heads = (
        "rule",
        "tensor cores",
        "vector cores",
        "HBM",
        "p x d x t",
        "microbatch, recompute",
        "sequences/s",
    )
    return markdown((*heads, "this rule", "all so far"), rows)
