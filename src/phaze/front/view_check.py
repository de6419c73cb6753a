"""Whether ``front.json`` is the view of a certificate that was proved: written anew from its
designs and compared.

Of its tables of the proof, counts and gaps must agree with each other and with the designs; how
many units the search evaluated, and how many rivals it left to each design, say what it did, which
nothing depends on.
"""

from collections.abc import Mapping, Sequence
from math import isclose
from typing import Any

import numpy as np

from phaze.front.answer import StatedDesign, design_order, front_view, model_table, shown_value
from phaze.front.measures import Measures
from phaze.front.order import undominated
from phaze.front.reference import ReferenceFront
from phaze.front.witness import proved_limits
from phaze.search.chips import SpaceChips
from phaze.search.code import code_digest
from phaze.search.configurations import ConfigurationPlan
from phaze.search.reference import way_of
from phaze.search.reference_path import NEAR
from phaze.search.state import TIE
from phaze.search.view_check import check_text
from phaze.search.witness import chip_of, proved_score

PROVED = "python -m phaze.check says whether its certificate holds"


def _design(
    front: ReferenceFront, measures: Measures, point: Mapping[str, Any]
) -> StatedDesign | str:
    """A design recomputed from the chip, memory and configurations that it names, or what is wrong
    with it."""
    plain, job = front.plain, front.plain.job
    called, size = point["chip"]["number"], point["chip"]["hbm_bytes"]
    number = plain.chips.index_of(called) if type(called) is int else None
    if number is None or size not in job.hbm_bytes:
        return "chip: no chip and memory of the study"
    hbm = job.hbm_bytes.index(size)
    if not float(plain.rates(number, hbm).rate) < np.inf:
        return "chip: it is too expensive with that memory"
    static_w = float(plain.chips.static_w()[number])
    tables, seconds, joules, leaner = [], [], [], [hbm > 0 and len(front.memories) == 1]
    for on_chip, stated in zip(front.configurations(number), point["models"], strict=True):
        configuration = way_of(on_chip.task, stated)
        if configuration is None:
            return (
                f"models[{on_chip.task.name}]: the study knows no such microbatch, width, "
                "recompute and ZeRO"
            )
        plan = on_chip.plan(configuration, size)
        if plan is None:
            return f"models[{on_chip.task.name}]: the plan does not fit"
        less = on_chip.plan(configuration, job.hbm_bytes[hbm - 1]) if hbm else None
        leaner.append(less is not None and _alike(less, plan))
        seconds.append(plan.plan.batch_s)
        joules.append(plan.dynamic_j)
        tables.append(model_table(on_chip.task, configuration, plan, static_w))
    if all(leaner):
        return f"chip.hbm_bytes: {job.hbm_bytes[hbm - 1]} are enough"
    values, single = (
        measures.values(number, hbm, seconds, joules),
        front.values(number, hbm, seconds, joules),
    )
    if not all(
        isclose(a, b, rel_tol=NEAR) for a, b in zip(values.tolist(), single.tolist(), strict=True)
    ):
        return f"metrics: {values.tolist()}, but {single.tolist()} by the formulas for one chip"
    return (
        StatedDesign(number, hbm, tables, values)
        if front.inside(number, hbm, values)
        else "metrics: not within the limits"
    )


def _alike(less: ConfigurationPlan, than: ConfigurationPlan) -> bool:
    seconds, joules = (less.plan.batch_s, than.plan.batch_s), (less.dynamic_j, than.dynamic_j)
    return all(abs(value - other) <= other * TIE / 2 for value, other in (seconds, joules))


def regenerated_designs(
    front: ReferenceFront, measures: Measures, points: Sequence[Mapping[str, Any]]
) -> tuple[list[StatedDesign], list[str]]:
    """All designs recomputed, in their order, and what is wrong with them."""
    designs, wrong = [], []
    for index, point in enumerate(points):
        design = _design(front, measures, point)
        if isinstance(design, str):
            wrong.append(f"points[{index}].{design}")
        else:
            designs.append(design)
    if wrong or not designs:
        return designs, wrong or ["points: there is none"]
    weighed = len(front.metrics.of)
    values = np.stack([regenerated.values for regenerated in designs], axis=1)[:weighed]
    numbers = [measures.unit(regenerated.chip, regenerated.hbm) for regenerated in designs]
    unbeaten = set(undominated(values, np.arange(len(designs))).tolist())
    wrong += [
        f"points[{index}] is beaten by another"
        for index in range(len(designs))
        if index not in unbeaten
    ]
    if design_order(front.metrics, numbers, values) != list(range(len(designs))):
        wrong.append("points: not in the order of their metrics")
    return designs, wrong


def _same_designs(
    front: ReferenceFront,
    designs: list[StatedDesign],
    document: Mapping[str, Any],
    certificate: Mapping[str, Any],
) -> list[str]:
    """What of the designs of front.json is not in certificate.json, design by design."""
    rows, job, chips = certificate["front"], front.plain.job, front.plain.chips
    if rows is None:  # a kind of front that nobody checks yet has no witnesses
        return []
    if len(rows) != len(designs):
        return [f"points: {len(designs)} designs, and certificate.json has {len(rows)}"]
    limits, stated = proved_limits(job, front.metrics, front.scales), certificate.get("limits", {})
    if stated != limits:
        return [f"limits: {limits} are proved, and certificate.json has {stated}"]
    for number, (row, design) in enumerate(zip(rows, designs, strict=True)):
        point = document["points"][number]
        size = job.hbm_bytes[design.hbm]
        if row["chip"] != chip_of(chips, design.chip) or row["hbm_bytes"] != size:
            return [f"points[{number}].chip: certificate.json names another one"]
        seconds = [float(model["batch_s"]) for model in point["models"]]
        for place, metric in enumerate(front.metrics.of):
            stated, value = row["values"][place], float(design.values[place])
            if metric.kind is not None:
                value = proved_score(front.scales[front.metrics.runs.index(metric)], value, seconds)
            if abs(stated - value) > TIE * value:
                where = f"points[{number}].metrics.{metric.name}"
                return [f"{where}: {value!r} as a score, and certificate.json has {stated!r}"]
    return []


def _proof_tables(
    measures: Measures, designs: list[StatedDesign], document: Mapping[str, Any], chips: SpaceChips
) -> list[str]:
    """What of the tables of the proof contradicts the designs, the space, or itself."""
    stated, units, gap = (
        document["certificate"],
        chips.total * len(measures.memories),
        measures.job.gap,
    )
    if stated["asked_gap"] != gap or stated["units"] != units or not 0 <= stated["gap"] <= 1:
        return ["certificate: its units, asked_gap or gap are not those of the study"]
    counts = [stated["closed"][key] for key in stated["closed"]]
    if any(type(count) is not int or count < 0 for count in counts) or sum(counts) != units + sum(
        chips.left_out.values()
    ):
        return [f"certificate.closed: it does not count {units} units"]
    first = next(
        (index for index, metric in enumerate(measures.metrics.of) if metric.kind is not None), 0
    )
    metric = measures.metrics.of[first]
    for index, (point, design) in enumerate(zip(document["points"], designs, strict=True)):
        design_proof, value, where = (
            point["certificate"],
            float(design.values[first]),
            f"points[{index}].certificate",
        )
        if design_proof is None:
            continue
        if design_proof["bound"] == 0:
            return [f"{where}: its bound is 0"]
        lower = shown_value(measures.job, metric, float(design_proof["bound"]))
        proved = (
            design_proof["metric"] == metric.name
            and type(design_proof["rivals"]) is int
            and 0 <= design_proof["rivals"] <= units
        )
        if (
            not proved
            or not 0 < lower <= value * (1 + TIE)
            or abs(design_proof["gap"] - max(0.0, 1 - lower / value)) > TIE
        ):
            return [f"{where}: its metric, rivals, bound and gap do not go together"]
    return []


def check_front_view(
    front: ReferenceFront,
    measures: Measures,
    text: str,
    document: Mapping[str, Any],
    certificate: Mapping[str, Any],
) -> list[str]:
    """What of ``front.json`` is not the view of a certificate that was proved."""
    designs, wrong = regenerated_designs(front, measures, document["points"])
    wrong = (
        wrong
        or _same_designs(front, designs, document, certificate)
        or _proof_tables(measures, designs, document, front.plain.chips)
    )
    if wrong:
        return wrong
    if document["code_digest"] != code_digest():
        return [f"front.json was made by another version of phaze; {PROVED}"]
    true = front_view(measures, front.plain.chips, designs, None, ([], [], code_digest()))
    points = [
        {**point, "certificate": stated["certificate"]}
        for point, stated in zip(true["points"], document["points"], strict=True)
    ]
    return check_text(
        text,
        document,
        {**true, "points": points, "certificate": document["certificate"]},
        "front.json",
    )
