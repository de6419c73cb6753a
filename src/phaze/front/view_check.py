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
from phaze.front.reference import PlainFront
from phaze.search.chips import SpaceChips
from phaze.search.code import code_digest
from phaze.search.configurations import ConfigurationPlan
from phaze.search.reference import way_of
from phaze.search.reference_path import NEAR
from phaze.search.state import TIE
from phaze.search.view_check import check_text
from phaze.search.witness import chip_of, seconds_score

PROVED = "python -m phaze.check says whether its certificate holds"


def _design(front: PlainFront, measures: Measures, point: Mapping[str, Any]) -> StatedDesign | str:
    """A design recomputed from the chip, memory and configurations that it names, or what is wrong
    with it."""
    plain, job = front.plain, front.plain.job
    called, size = point["chip"]["number"], point["chip"]["hbm_bytes"]
    number = plain.opened.index_of(called) if type(called) is int else None
    if number is None or size not in job.hbm_bytes:
        return "chip: no chip and memory of the study"
    hbm = job.hbm_bytes.index(size)
    if not float(plain.rates(number, hbm).rate) < np.inf:
        return "chip: it is too expensive with that memory"
    static_w = float(plain.opened.static_w()[number])
    tables, seconds, joules, leaner = [], [], [], [hbm > 0 and len(front.memories) == 1]
    for own, said in zip(front.configurations(number), point["models"], strict=True):
        configuration = way_of(own.task, said)
        if configuration is None:
            return (
                f"models[{own.task.name}]: the study knows no such microbatch, width, "
                "recompute and ZeRO"
            )
        plan = own.plan(configuration, size)
        if plan is None:
            return f"models[{own.task.name}]: the plan does not fit"
        less = own.plan(configuration, job.hbm_bytes[hbm - 1]) if hbm else None
        leaner.append(less is not None and _alike(less, plan))
        seconds.append(plan.plan.batch_s)
        joules.append(plan.dynamic_j)
        tables.append(model_table(own.task, configuration, plan, static_w))
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
    return all(abs(own - other) <= other * TIE / 2 for own, other in (seconds, joules))


def regenerated_designs(
    front: PlainFront, measures: Measures, points: Sequence[Mapping[str, Any]]
) -> tuple[list[StatedDesign], list[str]]:
    """All designs recomputed, in their order, and what is wrong with them."""
    designs, wrong = [], []
    for at, point in enumerate(points):
        design = _design(front, measures, point)
        if isinstance(design, str):
            wrong.append(f"points[{at}].{design}")
        else:
            designs.append(design)
    if wrong or not designs:
        return designs, wrong or ["points: there is none"]
    weighed = len(front.asked.of)
    values = np.stack([one.values for one in designs], axis=1)[:weighed]
    numbers = [measures.unit(one.chip, one.hbm) for one in designs]
    kept = set(undominated(values, np.arange(len(designs))).tolist())
    wrong += [f"points[{at}] is beaten by another" for at in range(len(designs)) if at not in kept]
    if design_order(front.asked, numbers, values) != list(range(len(designs))):
        wrong.append("points: not in the order of their metrics")
    return designs, wrong


def _same_designs(
    front: PlainFront,
    designs: list[StatedDesign],
    document: Mapping[str, Any],
    certificate: Mapping[str, Any],
) -> list[str]:
    """What of the designs of front.json is not in certificate.json, design by design."""
    rows, job, opened = certificate["front"], front.plain.job, front.plain.opened
    if rows is None:  # a kind of front that nobody checks yet has no witnesses
        return []
    if len(rows) != len(designs):
        return [f"points: {len(designs)} designs, and certificate.json has {len(rows)}"]
    for at, (row, design) in enumerate(zip(rows, designs, strict=True)):
        if (
            row["chip"] != chip_of(opened, design.chip)
            or row["hbm_bytes"] != job.hbm_bytes[design.hbm]
        ):
            return [f"points[{at}].chip: certificate.json names another one"]
        seconds = [float(model["batch_s"]) for model in document["points"][at]["models"]]
        for place, metric in enumerate(front.asked.of):
            value, own = row["values"][place], float(design.values[place])
            if metric.kind == "throughput":
                own = seconds_score(front.scales[front.asked.runs.index(metric)], seconds)
            if abs(value - own) > TIE * own:
                return [
                    (
                        f"points[{at}].metrics.{metric.name}: {own!r} as a score, and "
                        f"certificate.json has {value!r}"
                    )
                ]
    return []


def _proof_tables(
    measures: Measures, designs: list[StatedDesign], document: Mapping[str, Any], opened: SpaceChips
) -> list[str]:
    """What of the tables of the proof contradicts the designs, the space, or itself."""
    said, units, gap = (
        document["certificate"],
        opened.total * len(measures.memories),
        measures.job.gap,
    )
    if said["asked_gap"] != gap or said["units"] != units or not 0 <= said["gap"] <= 1:
        return ["certificate: its units, asked_gap or gap are not those of the study"]
    counts = [said["closed"][key] for key in said["closed"]]
    if any(type(count) is not int or count < 0 for count in counts) or sum(counts) != units + sum(
        opened.left_out.values()
    ):
        return [f"certificate.closed: it does not count {units} units"]
    first = next((at for at, metric in enumerate(measures.asked.of) if metric.kind is not None), 0)
    metric = measures.asked.of[first]
    for at, (point, design) in enumerate(zip(document["points"], designs, strict=True)):
        own, value, where = (
            point["certificate"],
            float(design.values[first]),
            f"points[{at}].certificate",
        )
        if own is None:
            continue
        if own["bound"] == 0:
            return [f"{where}: its bound is 0"]
        lower = shown_value(measures.job, metric, float(own["bound"]))
        proved = (
            own["metric"] == metric.name
            and type(own["rivals"]) is int
            and 0 <= own["rivals"] <= units
        )
        if (
            not proved
            or not 0 < lower <= value * (1 + TIE)
            or abs(own["gap"] - max(0.0, 1 - lower / value)) > TIE
        ):
            return [f"{where}: its metric, rivals, bound and gap do not go together"]
    return []


def check_front_view(
    front: PlainFront,
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
        or _proof_tables(measures, designs, document, front.plain.opened)
    )
    if wrong:
        return wrong
    if document["code_digest"] != code_digest():
        return [f"front.json was made by another version of phaze; {PROVED}"]
    true = front_view(measures, front.plain.opened, designs, None, ([], [], code_digest()))
    points = [
        {**own, "certificate": said["certificate"]}
        for own, said in zip(true["points"], document["points"], strict=True)
    ]
    return check_text(
        text,
        document,
        {**true, "points": points, "certificate": document["certificate"]},
        "front.json",
    )
