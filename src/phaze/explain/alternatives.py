"""Why not another value of an axis: the certified best of the space among the chips that have
it."""

from dataclasses import dataclass, replace

import numpy as np

from phaze import units
from phaze.errors import InfeasibleError, InputError
from phaze.explain.question import ExplainedRun, best_with, gain
from phaze.hardware.chip_estimates import estimates_of


@dataclass(frozen=True, slots=True)
class Instead:
    """The best chip that has a value of an axis, all else free; None where no chip of the space has
    it or fits."""

    axis: str
    value: float
    chip: str | None
    area_mm2: float | None
    gain: float
    gap: float | None


def _value(text: str, where: str) -> float:
    for base in ("", "B", "B/s", "Hz"):
        try:
            return float(text) if not base else units.parse(text, base)  # type: ignore[arg-type]
        except ValueError:
            continue
    raise InputError(
        where, f"'{text}' is not a number", "e.g. vector_cores=64 or global_buffer=64 MiB"
    )


def value_instead(question: ExplainedRun, text: str) -> tuple[str, float]:
    """The axis and the value of ``vector_cores=64``, checked against the space."""
    where, points = f"--instead {text}", question.job.space.axis_points()
    name, equals, value_text = (part.strip() for part in text.partition("="))
    if not equals or name not in points:
        raise InputError(
            where, "this names no axis of the space and a value", f"axes: {', '.join(points)}"
        )
    value, axis = _value(value_text, where), points[name]
    if not np.isclose(axis.astype(float), value, rtol=1e-9).any():
        allowed = ", ".join(
            f"{allowed_value:.9g}" for allowed_value in axis.astype(float)[:20].tolist()
        )
        raise InputError(
            where,
            f"{value_text} is not a value of that axis",
            f"it has {allowed}" + (" ..." * (len(axis) > 20)),
        )
    return name, value


def instead(question: ExplainedRun, text: str, processes: int) -> Instead:
    """The best of the chips with another value of an axis, searched and certified."""
    name, value = value_instead(question, text)
    if question.boxed:
        return _of_boxes(question, name, value, processes)
    column = question.chips.axis_values()[name].astype(float)
    chips = question.chips.taken(np.flatnonzero(np.isclose(column, value, rtol=1e-9)))
    if not len(chips):
        return Instead(name, value, None, None, -1.0, None)
    try:
        best = best_with(question.job, question.scale, processes, chips)
    except InfeasibleError:
        return Instead(name, value, None, None, -1.0, None)
    number = [chips.name(index) for index in range(len(chips))].index(best.name)
    return Instead(
        name,
        value,
        best.name,
        float(chips.area_mm2[number]),
        gain(question.score, best.score),
        best.gap,
    )


def _of_boxes(question: ExplainedRun, name: str, value: float, processes: int) -> Instead:
    """The same where the space is searched in boxes: a space whose axis has that value alone."""
    points = question.job.space.axis_points()[name]
    near = points[np.isclose(points.astype(float), value, rtol=1e-9)][:1].tolist()
    values = [int(nearest) if float(nearest).is_integer() else nearest for nearest in near]
    job = replace(question.job, space=question.job.space.with_axis(name, values))
    try:
        best = best_with(job, question.scale, processes)
    except InfeasibleError:
        return Instead(name, value, None, None, -1.0, None)
    area = estimates_of(best.chip)
    area_mm2 = None if area is None else area.area_mm2
    return Instead(name, value, best.name, area_mm2, gain(question.score, best.score), best.gap)
