"""An explanation for the terminal."""

from collections.abc import Mapping
from typing import Any

from rich.console import Console

from phaze.report.axis_words import amount
from phaze.report.terminal import paragraph, table
from phaze.units import digits


def _gain(gain: float) -> str:
    return "does not fit" if gain <= -1 else f"{gain:+.2%}"


def _neighbours(console: Console, said: Mapping[str, Any]) -> None:
    console.print("\n[bold]Why not its neighbours[/bold] (one axis one step, all else equal)")
    cells = [
        (
            one["axis"].replace("_", " "),
            amount(one["axis"], one["value"]),
            f"{one['area_mm2']:.1f}",
            _gain(one["gain"]),
            "" if one["refused"] is None else f"not in the space: {one['refused']}",
        )
        for one in said["neighbours"]
    ]
    console.print(table(("axis", "value", "mm2", said["objective"], ""), cells, left=1))


def _marginals(console: Console, said: Mapping[str, Any]) -> None:
    console.print("\n[bold]What more would buy[/bold]")
    cells = [
        (
            one["resource"],
            f"{one['now']:.5g} {one['unit']}".strip(),
            f"+{one['more']:.4g}",
            _gain(one["gain"]),
            "" if one["chip"] == said["chip"] else one["chip"],
        )
        for one in said["marginals"]
    ]
    console.print(table(("resource", "there is", "more", said["objective"], "then best"), cells, left=1))
    if said["not_limited"]:
        names = " and ".join(said["not_limited"])
        console.print(f"The study does not limit {names}: more buys nothing.", markup=False)


def _least(said: Mapping[str, Any], one: Mapping[str, Any], what: str, amount: str) -> str:
    name = "the answer itself" if one["chip"] == said["chip"] else f"{one['chip']}, which loses {one['loss']:.2%}"
    return f"{what} of them: {amount}, {name}."


def _flatness(console: Console, said: Mapping[str, Any]) -> None:
    flat = said["flatness"]
    console.print("\n[bold]How flat the optimum is[/bold] (every chip counted, none estimated)")
    count = f"{flat['count']:,} of the {flat['chips']:,} chips are within {100 * flat['within']:.3g} % of the answer"
    rest = f"; {flat['failed']:,} more could not be evaluated" if flat["failed"] else ""
    paragraph(console, f"{count}, itself among them{rest}.", "")
    paragraph(console, flat["words"], "")
    for axis in flat["axes"]:
        values = [f"{amount(axis['axis'], one['value'])} ({one['chips']:,})" for one in axis["values"]]
        if len(values) > 1:
            paragraph(console, f"{axis['axis'].replace('_', ' ')}: {', '.join(values)}", "  ")
    small, cool, cheap = flat["smallest"], flat["coolest"], flat["cheapest"]
    for line in (
        _least(said, small, "The smallest", f"{small['area_mm2']:.1f} mm2"),
        _least(said, cool, "The least power", f"{cool['power_w']:.0f} W"),
        _least(said, cheap, "The cheapest", f"{digits(cheap['usd'])} USD"),
    ):
        paragraph(console, line, "")
    ends = [f"the {end['end']} {end['axis'].replace('_', ' ')}" for end in said["at_the_end_of"]]
    if ends:
        paragraph(console, f"Of its space the answer has {', '.join(ends)}: wider axes may hold a better one.", "")


def _moved(side: Mapping[str, Any]) -> str:
    if side["changes"] is None:
        return f"stays at {side['keeps']:+.0%}"
    return f"{side['keeps']:+.0%} to {side['changes']:+.0%}" if side["keeps"] else f"at {side['changes']:+.0%}"


def _deciding(console: Console, said: Mapping[str, Any]) -> None:
    console.print("\n[bold]Sensitivity to constants[/bold] (another chip wins where the constant changes so far)")
    rows, sides = said["deciding"], ("less", "more")
    if not rows:
        console.print(
            "The constants of this space's process are not varied: its chips are not made of clusters.", markup=False
        )
        return
    cells = [
        (row["constant"], *(_moved(row[side]) for side in sides), *(_gain(row[side]["gain"]) for side in sides))
        for row in rows
    ]
    heads = ("constant", "less", "more", f"{said['objective']} at -10%", "at +10%")
    console.print(table(heads, cells, left=1))
    for row in rows[:3]:
        paragraph(console, f"{row['constant']}: {row['basis']}.", "")
        for side in sides:
            if row[side]["chip"]:
                paragraph(console, f"with {side} of it: {row[side]['chip']}", "  ")


def _instead(console: Console, said: Mapping[str, Any]) -> None:
    console.print("\n[bold]What if it had to be otherwise[/bold] (the best chip with that value, all else free)")
    cells = [
        (
            one["axis"].replace("_", " "),
            amount(one["axis"], one["value"]),
            "" if one["area_mm2"] is None else f"{one['area_mm2']:.1f}",
            "no chip" if one["chip"] is None else _gain(one["gain"]),
            one["chip"] or "",
        )
        for one in said["instead"]
    ]
    console.print(table(("axis", "value", "mm2", said["objective"], "best then"), cells, left=1))


def _near_misses(console: Console, said: Mapping[str, Any]) -> None:
    for one in said["near_misses"]:
        what = f"{one['axis'].replace('_', ' ')} {amount(one['axis'], one['value'])}"
        words = f"Near miss: {what} would give {_gain(one['gain'])} and is refused for {one['refused']}"
        paragraph(console, f"{words}, {one['over']:.1%} over.", "")


def _held_out(console: Console, said: Mapping[str, Any]) -> None:
    console.print("\n[bold]Models that were not searched for[/bold] (the same chip, devices and batch)")
    cells = []
    for one in said["held_out"]:
        if one["throughput_per_s"] is None:
            cells.append((one["name"], "does not fit", "", "", ""))
            continue
        rate, mfu = f"{one['tokens_per_s_per_device']:,.0f}", f"{one['mfu']:.1%}"
        cells.append((one["name"], rate, mfu, _ratio(said, one), one["plan"]))
    base = said["beside"][0]["chip"]
    console.print(table(("model", "tokens/s a device", "MFU", f"vs {base}", "plan"), cells, left=1))


def _ratio(said: Mapping[str, Any], model: Mapping[str, Any]) -> str:
    base = {one["name"]: one["throughput_per_s"] for one in said["beside"][0]["models"]}[model["name"]]
    return "-" if base is None else f"{model['throughput_per_s'] / base:.2f} x"


def _beside(console: Console, said: Mapping[str, Any]) -> None:
    console.print("\n[bold]Chips that exist[/bold] (sequences a second, each model with its best plan there)")
    names = [model["name"] for model in said["beside"][0]["models"]]
    cells = []
    for one in said["beside"]:
        rates = [model["throughput_per_s"] for model in one["models"]]
        cells.append((one["chip"], *("does not fit" if rate is None else f"{rate:,.4g}" for rate in rates)))
    console.print(table(("chip", *names), cells, left=1))


def _alone(console: Console, said: Mapping[str, Any]) -> None:
    console.print("\n[bold]One chip for all[/bold] (against the best chip of the space for each model alone)")
    cells = [
        (one["name"], f"{one['regret']:.2%}", "the answer" if one["chip"] == said["chip"] else one["chip"])
        for one in said["alone"]
    ]
    console.print(table(("model", "regret", "its own best chip"), cells, left=1))


def _ranges(console: Console, said: Mapping[str, Any]) -> None:
    console.print("\n[bold]How wrong constants may be[/bold] before another chip is best")
    cells = [
        (
            one["constant"],
            f"{one['low']:.3g}" + ("" if one["below"] else " or less"),
            f"{one['high']:.3g}" + ("" if one["above"] else " or more"),
            one["below"] or "",
            one["above"] or "",
        )
        for one in said["ranges"]
    ]
    console.print(table(("constant", "from", "to times", "below", "above"), cells, left=1))
    console.print("\n[bold]The same[/bold] before another plan is best, be it on the same chip")
    for one in said["ranges"]:
        low = f"{one['plan_low']:.3g}" + ("" if one["plan_below"] else " or less")
        high = f"{one['plan_high']:.3g}" + ("" if one["plan_above"] else " or more")
        console.print(f"{one['constant']}: from {low} to {high}", markup=False)
        for word, plan in (("below", one["plan_below"]), ("above", one["plan_above"])):
            if plan:
                paragraph(console, f"{word}: {plan}", "  ")


def show_explanation(console: Console, said: Mapping[str, Any]) -> None:
    """Print a ``phaze.explanation/1``."""
    console.print(f"[bold]{said['chip']}[/bold], the best of {said['name']} for {said['objective']}")
    _neighbours(console, said)
    _near_misses(console, said)
    _flatness(console, said)
    _marginals(console, said)
    for key, show in (("beside", _beside), ("held_out", _held_out), ("alone", _alone)):
        if key in said:
            show(console, said)
    if "instead" in said:
        _instead(console, said)
    if "deciding" in said:
        _deciding(console, said)
    if "ranges" in said:
        _ranges(console, said)
    if "worst_case" in said:
        worst = said["worst_case"]
        console.print(
            f"\nWith every constant {worst['error']:.0%} lower, {worst['chip']} is best, proved to {worst['gap']:.1e}; "
            f"the answer of this run reaches {worst['relative']:.2%} of it.",
            markup=False,
        )
        for plan in worst["plans"]:
            console.print(f"  its plan: {plan}", markup=False)
