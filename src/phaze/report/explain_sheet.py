"""An explanation: why this chip, how flat the optimum is, what more would buy, and how sure it
is."""

from collections.abc import Mapping, Sequence
from typing import Any

from phaze.report.axis_text import amount
from phaze.report.drawings import Bar, Bars
from phaze.report.sections import Figures, Notes, Section, Table
from phaze.units import digits

NOTHING = 0.0005
"""Gains below it are none that a reader could see."""
NOT_VARIED = (
    "The constants of this space's process are not varied: its chips are not made of clusters."
)


def _gain(gain: float) -> str:
    return "does not fit" if gain <= -1 else f"{gain:+.2%}"


def neighbours_table(document: Mapping[str, Any]) -> Table:
    """Chips one step away along each axis: what each gains, why the space does not have it, and
    near misses."""
    cells = [
        (
            chip["axis"].replace("_", " "),
            _step(chip),
            "" if "area_mm2" not in chip else f"{chip['area_mm2']:.1f}",
            _gain(chip["gain"]),
            "" if chip["refused"] is None else f"not in the space: {chip['refused']}",
        )
        for chip in document["neighbours"]
    ]
    misses = [_near_miss(chip) for chip in document["near_misses"]]
    columns = ("axis", "here → there", "mm2", document.get("objective", "gain"), "")
    return Table(
        columns, cells, "Why not its neighbours", "one axis one step, all else equal", misses
    )


def _step(chip: Mapping[str, Any]) -> str:
    there = amount(chip["axis"], chip["value"])
    return there if chip.get("here") is None else f"{amount(chip['axis'], chip['here'])} → {there}"


def _near_miss(chip: Mapping[str, Any]) -> str:
    step = f"{chip['axis'].replace('_', ' ')} {amount(chip['axis'], chip['value'])}"
    gain = (
        f"Near miss: {step} would give {_gain(chip['gain'])} and is refused for {chip['refused']}"
    )
    return f"{gain}, {chip['over']:.1%} over."


def _largest(document: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Of every resource the step that adds most, the best gain first."""
    steps: dict[str, Mapping[str, Any]] = {}
    for step in document["marginals"]:
        if step["resource"] not in steps or step["more"] > steps[step["resource"]]["more"]:
            steps[step["resource"]] = step
    return sorted(steps.values(), key=lambda step: -step["gain"])


def _worth(steps: Sequence[Mapping[str, Any]]) -> str:
    """What is worth most and what buys nothing, in a sentence."""
    if not steps or steps[0]["gain"] < NOTHING:
        return "More of no single resource buys anything."
    first = steps[0]
    most = f"{first['more']:,.3g} {first['unit']}".strip()
    useless = [step["resource"] for step in steps if abs(step["gain"]) < NOTHING]
    listed = " and ".join([", ".join(useless[:-1]), useless[-1]] if len(useless) > 1 else useless)
    rest = f"; {listed} buy{'s' if len(useless) == 1 else ''} nothing" if useless else ""
    return f"More {first['resource']} is worth most: {most} more buy {_gain(first['gain'])}{rest}."


def marginal_bars(document: Mapping[str, Any]) -> Bars:
    """What a tenth more of each resource buys, everything else equal."""
    steps, rows = _largest(document), []
    for step in steps:
        name = (
            f"{step['resource']}: {step['now']:,.4g} → {step['now'] + step['more']:,.4g} "
            f"{step['unit']}"
        ).strip()
        other = "" if step["chip"] == document["chip"] else "another chip"
        rows.append(Bar(name, max(0.0, step["gain"]), _gain(step["gain"]), other))
    notes = []
    if document.get("not_limited"):
        notes.append(
            f"The study does not limit {' and '.join(document['not_limited'])}: more buys nothing."
        )
    return Bars(rows, _worth(steps), "a tenth more of each resource, everything else equal", notes)


def _least(document: Mapping[str, Any], chip: Mapping[str, Any], least: str, size: str) -> str:
    same = chip["chip"] == document["chip"]
    name = "the answer itself" if same else f"{chip['chip']}, which loses {chip['loss']:.2%}"
    return f"{least} of them: {size}, {name}."


def _flatness(document: Mapping[str, Any]) -> list[Section]:
    flat = document["flatness"]
    count = (
        f"{flat['count']:,} of the {flat['chips']:,} chips are within "
        f"{100 * flat['within']:.3g} % of the answer"
    )
    rest = f"; {flat['failed']:,} more could not be evaluated" if flat["failed"] else ""
    small, cool, cheap = flat["smallest"], flat["coolest"], flat["cheapest"]
    lines = [
        f"{count}, itself among them{rest}.",
        flat["words"],
        _least(document, small, "The smallest", f"{small['area_mm2']:.1f} mm2"),
        _least(document, cool, "The least power", f"{cool['power_w']:.0f} W"),
        _least(document, cheap, "The cheapest", f"{digits(cheap['usd'])} USD"),
    ]
    ends = [
        f"the {end['end']} {end['axis'].replace('_', ' ')}" for end in document["at_the_end_of"]
    ]
    if ends:
        lines.append(
            f"Of its space the answer has {', '.join(ends)}: wider axes may hold a better one."
        )
    notes = Notes(lines, "How flat the optimum is", "every chip counted, none estimated")
    rows = []
    for axis in flat["axes"]:
        values = [
            f"{amount(axis['axis'], value['value'])} ({value['chips']:,})"
            for value in axis["values"]
        ]
        if len(values) > 1:
            rows.append((axis["axis"].replace("_", " "), ", ".join(values)))
    title = "What the chips that are as good have"
    return [notes, *([Figures(rows, title, "chips of each value")] if rows else [])]


def _moved(side: Mapping[str, Any]) -> str:
    if side["changes"] is None:
        return f"stays at {side['keeps']:+.0%}"
    return (
        f"{side['keeps']:+.0%} to {side['changes']:+.0%}"
        if side["keeps"]
        else f"at {side['changes']:+.0%}"
    )


def _sensitivity(document: Mapping[str, Any]) -> list[Section]:
    title, sides = "Sensitivity to constants", ("less", "more")
    if not document["deciding"]:
        return [Notes([NOT_VARIED], title)]
    cells, notes = [], []
    for row in document["deciding"]:
        moves = [_moved(row[side]) for side in sides]
        gains = [_gain(row[side]["gain"]) for side in sides]
        cells.append((row["constant"], *moves, *gains))
    for row in document["deciding"][:3]:
        notes.append(f"{row['constant']}: {row['basis']}.")
        notes += [f"with {side} of it: {row[side]['chip']}" for side in sides if row[side]["chip"]]
    columns = ("constant", "less", "more", f"{document['objective']} at -10%", "at +10%")
    caption = "another chip wins where the constant changes so far"
    return [Table(columns, cells, title, caption), Notes(notes)]


def _instead(document: Mapping[str, Any]) -> Table:
    cells = [
        (
            value["axis"].replace("_", " "),
            amount(value["axis"], value["value"]),
            "" if value["area_mm2"] is None else f"{value['area_mm2']:.1f}",
            "no chip" if value["chip"] is None else _gain(value["gain"]),
            value["chip"] or "",
        )
        for value in document["instead"]
    ]
    columns = ("axis", "value", "mm2", document["objective"], "best then")
    return Table(
        columns,
        cells,
        "What if it had to be otherwise",
        "the best chip with that value, all else free",
    )


def _held_out(document: Mapping[str, Any]) -> Table:
    baseline = document["beside"][0]
    rates = {model["name"]: model["throughput_per_s"] for model in baseline["models"]}
    cells = []
    for model in document["held_out"]:
        if model["throughput_per_s"] is None:
            cells.append((model["name"], "does not fit", "", "", ""))
            continue
        rate, mfu = f"{model['tokens_per_s_per_device']:,.0f}", f"{model['mfu']:.1%}"
        base = rates[model["name"]]
        ratio = "-" if base is None else f"{model['throughput_per_s'] / base:.2f} x"
        cells.append((model["name"], rate, mfu, ratio, model["plan"]))
    columns = ("model", "tokens/s a device", "MFU", f"vs {baseline['chip']}", "plan")
    return Table(
        columns, cells, "Models that were not searched for", "the same chip, devices and batch"
    )


def _existing_chips(document: Mapping[str, Any]) -> Table:
    names = [model["name"] for model in document["beside"][0]["models"]]
    cells = []
    for chip in document["beside"]:
        rates = [model["throughput_per_s"] for model in chip["models"]]
        cells.append(
            (chip["chip"], *("does not fit" if rate is None else f"{rate:,.4g}" for rate in rates))
        )
    caption = "sequences a second, each model with its best plan there"
    return Table(("chip", *names), cells, "Chips that exist", caption)


def _alone(document: Mapping[str, Any]) -> Table:
    cells = [
        (
            model["name"],
            f"{model['regret']:.2%}",
            "the answer" if model["chip"] == document["chip"] else model["chip"],
        )
        for model in document["alone"]
    ]
    caption = "against the best chip of the space for each model alone"
    return Table(("model", "regret", "its own best chip"), cells, "One chip for all", caption)


def _ranges(document: Mapping[str, Any]) -> list[Section]:
    cells, plans = [], []
    for rate in document["ranges"]:
        low = f"{rate['low']:.3g}" + ("" if rate["below"] else " or less")
        high = f"{rate['high']:.3g}" + ("" if rate["above"] else " or more")
        cells.append((rate["constant"], low, high, rate["below"] or "", rate["above"] or ""))
        low = f"{rate['plan_low']:.3g}" + ("" if rate["plan_below"] else " or less")
        high = f"{rate['plan_high']:.3g}" + ("" if rate["plan_above"] else " or more")
        others = [
            (side, rate[f"plan_{side}"]) for side in ("below", "above") if rate[f"plan_{side}"]
        ]
        named = "".join(f"; {side}: {plan}" for side, plan in others)
        plans.append(f"{rate['constant']}: from {low} to {high}{named}")
    columns = ("constant", "from", "to times", "below", "above")
    return [
        Table(columns, cells, "How wrong constants may be", "before another chip is best"),
        Notes(
            plans, "The same for the plan", "before another plan is best, be it on the same chip"
        ),
    ]


def _worst_case(document: Mapping[str, Any]) -> Notes:
    worst = document["worst_case"]
    sentence = (
        f"With every constant {worst['error']:.0%} lower, {worst['chip']} is best, "
        f"proved to {worst['gap']:.1e}; "
        f"the answer of this run reaches {worst['relative']:.2%} of it."
    )
    return Notes([sentence, *(f"its plan: {plan}" for plan in worst["plans"])])


def explanation_sections(document: Mapping[str, Any]) -> list[Section]:
    """A ``phaze.explanation/1``."""
    title = f"{document['chip']} is the best chip of {document['name']} for {document['objective']}"
    sections: list[Section] = [
        Notes([], title),
        neighbours_table(document),
        *_flatness(document),
        marginal_bars(document),
    ]
    tables = {
        "beside": _existing_chips,
        "held_out": _held_out,
        "alone": _alone,
        "instead": _instead,
    }
    sections += [made(document) for key, made in tables.items() if key in document]
    if "deciding" in document:
        sections += _sensitivity(document)
    if "ranges" in document:
        sections += _ranges(document)
    if "worst_case" in document:
        sections.append(_worst_case(document))
    return sections
