"""From what a person asks (names, counts) to a job that can be planned."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from phaze.errors import InputError, unknown_name
from phaze.evaluate.layers import Setting
from phaze.evaluate.plan import Request
from phaze.graph.family import FAMILIES, check_sizes
from phaze.graph.ir import Attention, Model
from phaze.graph.zoo import entry_of, load_family, load_model
from phaze.hardware.calibration import Basis
from phaze.hardware.cluster import grown
from phaze.hardware.library import load_built_stack, load_chip, load_cluster
from phaze.hardware.stack import require_priced
from phaze.placement.cluster_problem import MODES, ZEROS, Choice

MOST_MICROBATCH = 16
WIDTHS = (1, 2, 4, 8)
RECOMPUTES = (*MODES, "best")


@dataclass(frozen=True, slots=True)
class Asked:
    """What was asked for; None stands for what is usual."""

    model: str
    sizes: Mapping[str, Any] | None
    chip: str
    devices: int
    batch: int
    cluster: str | None = None
    stack: str | None = None
    sequence: int | None = None
    microbatches: tuple[int, ...] | None = None
    widths: tuple[int, ...] | None = None
    zero: int | None = None
    recompute: Choice = "best"
    attention: Attention = "eager"
    basis: Basis = "calibrated"
    chunks: tuple[int, ...] | None = None


def _usual_widths(asked: Asked) -> tuple[int, ...]:
    if asked.sizes is not None:
        values = check_sizes(asked.model, asked.sizes)
        divided = FAMILIES[asked.model].divided
        return tuple(width for width in WIDTHS if all(values[key] % width == 0 for key in divided))
    return entry_of(asked.model).shipped


def usual_microbatches(batch: int) -> tuple[int, ...]:
    """Powers of two that divide the batch."""
    return tuple(size for size in (1, 2, 4, 8, MOST_MICROBATCH) if size <= batch and batch % size == 0)


def request_of(asked: Asked) -> Request:
    """The request with every name looked up."""
    chip = load_chip(asked.chip)
    name = asked.cluster or chip.cluster
    if name is None:
        raise InputError("--cluster", f"the chip '{chip.name}' names no usual cluster", "name one: phaze clusters")
    for what, count in (("--devices", asked.devices), ("--batch", asked.batch)):
        if count < 1:
            raise InputError(what, f"{count} is out of range", "it must be at least 1")
    if asked.zero is not None and asked.zero not in ZEROS:
        raise InputError("--zero", f"{asked.zero} is out of range", "use 0, 1, 2 or 3")
    if asked.recompute not in RECOMPUTES:
        raise unknown_name("--recompute", "way to recompute", asked.recompute, RECOMPUTES)
    cluster = grown(load_cluster(name), asked.devices, "--devices")
    stack = load_built_stack(asked.stack or cluster.stack)
    widths = asked.widths or _usual_widths(asked)
    fitting = tuple(width for width in widths if width <= asked.devices)
    if not fitting:
        raise InputError("--tensor", f"none of {list(widths)} fits {asked.devices} devices", "give a smaller width")

    def model_at(width: int, microbatch: int, spread: bool) -> Model:
        split: dict[str, Any] = {
            "tensor": width,
            "microbatch": microbatch,
            "sequence": asked.sequence,
            "attention": asked.attention,
            "sequence_parallel": spread,
        }
        if asked.sizes is not None:
            return load_family(asked.model, asked.sizes, **split)
        return load_model(asked.model, **split)

    return Request(
        model_at=model_at,
        setting=Setting(chip, cluster, stack, asked.basis),
        devices=asked.devices,
        batch=asked.batch,
        widths=fitting,
        microbatches=asked.microbatches or usual_microbatches(asked.batch),
        sequence_parallel=(False, True),
        precision=require_priced(stack.precision, f"the stack {stack.name}: precision"),
        optimizer=stack.optimizer,
        zero=asked.zero or 0,
        zeros=ZEROS[1:] if asked.zero is None else (),
        wider=tuple(width for width in widths if width > asked.devices),
        recompute=asked.recompute,
        experts=None if asked.sizes is not None else entry_of(asked.model).experts,
        chunks=asked.chunks,
    )
