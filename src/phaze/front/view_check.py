"""Whether ``front.json`` is the view of a certificate that was proved: written anew from its designs and compared.

Of its tables of the proof, counts and gaps must agree with each other and with the designs; how many units the search
evaluated, and how many rivals it left to each design, say what it did, which nothing depends on.
"""

from collections.abc import Mapping
from typing import Any

from phaze.front.answer import StatedDesign, front_view, shown_value
from phaze.front.measures import Measures
from phaze.front.reference import PlainFront
from phaze.front.verify import regenerated_designs
from phaze.search.result import code_digest
from phaze.search.state import TIE
from phaze.search.verify_answer import check_text
from phaze.search.witness import chip_of, seconds_score

PROVED = "python -m phaze.check says whether its certificate holds"


def _same_designs(
    front: PlainFront, designs: list[StatedDesign], document: Mapping[str, Any], certificate: Mapping[str, Any]
) -> list[str]:
    """What of the designs of front.json is not in certificate.json, design by design."""
    rows, job, opened = certificate["front"], front.plain.job, front.plain.opened
    if len(rows) != len(designs):
        return [f"points: {len(designs)} designs, and certificate.json has {len(rows)}"]
    for at, (row, design) in enumerate(zip(rows, designs, strict=True)):
        if row["chip"] != chip_of(opened, design.chip) or row["hbm_bytes"] != job.hbm_bytes[design.hbm]:
            return [f"points[{at}].chip: certificate.json names another one"]
        seconds = [float(model["batch_s"]) for model in document["points"][at]["models"]]
        for place, metric in enumerate(front.asked.of):
            value, own = row["values"][place], float(design.values[place])
            if metric.kind == "throughput":
                own = seconds_score(front.scales[front.asked.runs.index(metric)], seconds)
            if abs(value - own) > TIE * own:
                return [f"points[{at}].metrics.{metric.name}: {own!r} as a score, and certificate.json has {value!r}"]
    return []


def _proof_tables(measures: Measures, designs: list[StatedDesign], document: Mapping[str, Any]) -> list[str]:
    """What of the tables of the proof contradicts the designs, the space, or itself."""
    said, units, gap = document["certificate"], measures.chips * len(measures.memories), measures.job.gap
    if said["asked_gap"] != gap or said["units"] != units or not 0 <= said["gap"] <= 1:
        return ["certificate: its units, asked_gap or gap are not those of the study"]
    counts = [said["closed"][key] for key in said["closed"]]
    if any(type(count) is not int or count < 0 for count in counts) or sum(counts) < units:
        return [f"certificate.closed: it does not count {units} units"]
    first = next((at for at, metric in enumerate(measures.asked.of) if metric.kind is not None), 0)
    metric = measures.asked.of[first]
    for at, (point, design) in enumerate(zip(document["points"], designs, strict=True)):
        own, value, where = point["certificate"], float(design.values[first]), f"points[{at}].certificate"
        if own is None:
            continue
        lower = shown_value(measures.job, metric, float(own["bound"]))
        proved = own["metric"] == metric.name and type(own["rivals"]) is int and 0 <= own["rivals"] <= units
        if not proved or not 0 < lower <= value * (1 + TIE) or abs(own["gap"] - max(0.0, 1 - lower / value)) > TIE:
            return [f"{where}: its metric, rivals, bound and gap do not go together"]
    return []


def check_front_view(
    front: PlainFront, measures: Measures, text: str, document: Mapping[str, Any], certificate: Mapping[str, Any]
) -> list[str]:
    """What of ``front.json`` is not the view of a certificate that was proved."""
    designs, wrong = regenerated_designs(front, measures, document["points"])
    wrong = wrong or _same_designs(front, designs, document, certificate) or _proof_tables(measures, designs, document)
    if wrong:
        return wrong
    if document["code_digest"] != code_digest():
        return [f"front.json was made by another version of phaze; {PROVED}"]
    true = front_view(measures, front.plain.opened, designs, None, ([], [], code_digest()))
    points = [
        {**own, "certificate": said["certificate"]}
        for own, said in zip(true["points"], document["points"], strict=True)
    ]
    return check_text(text, document, {**true, "points": points, "certificate": document["certificate"]}, "front.json")
