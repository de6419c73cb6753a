"""One point of a search method of one's own: a plan, given or the best, on a chip and a cluster."""

from collections.abc import Mapping
from typing import Any

from phaze.api.module import Model
from phaze.api.plans import plan as best_plan
from phaze.api.pricing import price
from phaze.api.values import Planned
from phaze.errors import InputError


def evaluate(
    model: str | Model,
    chip: str,
    cluster: str,
    plan: Mapping[str, Any] | None = None,
    *,
    devices: int,
    batch: int,
    **options: Any,
) -> Planned:
    """One point for your own search method: a model on a chip and a cluster, with a given plan or
    the best one.

    Args:
        model: A built-in name, ``"own.py:build"`` or a ``config.json``; with no plan also a
            :class:`phaze.Model`.
        chip: A preset or the path of a chip file.
        cluster: A preset or the path of a cluster file.
        plan: Degrees as in ``phaze.run/1``: ``tensor``, ``pipeline``, ``data``, ``microbatch``,
            ...; without it the fastest plan, proved.
        devices: Number of devices.
        batch: Global batch in sequences.
        options: Other keys of ``phaze.run/1`` with a plan, other arguments of :func:`phaze.plan`
            without one.

    Returns:
        The plan evaluated: ``batch_s`` in seconds, ``document["feasible"]``, memory of every stage
        in bytes.

    Examples:
        >>> import phaze
        >>> split = {"tensor": 2, "pipeline": 1, "data": 8, "microbatch": 2}
        >>> job = {"devices": 16, "batch": 64, "sequence": 4096}
        >>> mine = phaze.evaluate("llama2-7b", "h100", "dgx-h100", split, **job)
        >>> best = phaze.evaluate("llama2-7b", "h100", "dgx-h100", **job)
        >>> best.batch_s <= mine.batch_s
        True
    """
    if plan is None:
        return best_plan(model, chip=chip, cluster=cluster, devices=devices, batch=batch, **options)
    if isinstance(model, Model):
        raise InputError(
            "model",
            "a given plan is priced for models by name or place",
            "write the model to a file",
        )
    run = {
        "schema": "phaze.run/1",
        "model": model,
        "chip": chip,
        "cluster": cluster,
        "devices": devices,
    }
    return price({**run, "batch": batch, "plan": dict(plan), **options}, allow_code=True)
