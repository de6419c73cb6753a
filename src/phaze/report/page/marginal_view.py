"""What more of each resource buys, and what one step along each axis does, as phaze explain computed them."""

from phaze.report.axis_words import amount, axis_name
from phaze.report.explanation_file import ExplanationTable, MarginalTable
from phaze.report.page.search_view import BarRow

# Gains below it are none that a reader could see.
NOTHING = 0.0005
SHOWN_MISSES = 3


def gain_words(gain: float) -> str:
    """A gain as a person reads it."""
    return "does not fit" if gain <= -1 else "0" if abs(gain) < NOTHING else f"{100 * gain:+.1f} %"


def _largest(said: ExplanationTable) -> list[MarginalTable]:
    """Of every resource the step that adds most, the best gain first."""
    found: dict[str, MarginalTable] = {}
    for one in said.marginals:
        if one.resource not in found or one.more > found[one.resource].more:
            found[one.resource] = one
    return sorted(found.values(), key=lambda one: -one.gain)


def gain_bars(said: ExplanationTable) -> list[BarRow]:
    """What a tenth more of each resource buys, as bars; those that buy nothing last."""
    rows = _largest(said)
    most = max((abs(one.gain) for one in rows), default=1.0) or 1.0
    return [
        BarRow(
            f"{one.resource}: {one.now:,.4g} → {one.now + one.more:,.4g} {one.unit}".strip(),
            max(0.0, one.gain) / most,
            gain_words(one.gain),
            "" if one.chip == said.chip else "another chip",
            one is rows[0],
        )
        for one in rows
    ]


def marginals_lead(said: ExplanationTable) -> str:
    """What is worth most and what buys nothing, in a sentence."""
    rows = _largest(said)
    worth, nothing = [one for one in rows if one.gain >= NOTHING], [one for one in rows if abs(one.gain) < NOTHING]
    if not worth:
        return "More of no single resource buys anything."
    first = worth[0]
    words = f"More {first.resource} is worth most: {first.more:,.3g} {first.unit} more buy {gain_words(first.gain)}"
    names = [one.resource for one in nothing]
    listed = " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
    return f"{words}; {listed} buy{'s' if len(names) == 1 else ''} nothing." if names else f"{words}."


def neighbour_rows(said: ExplanationTable) -> list[tuple[str, str, str, str]]:
    """One step along each axis: from here to there, what it gains, and why the space does not have it."""
    found = []
    for one in said.neighbours:
        there = amount(one.axis, one.value)
        step = there if one.here is None else f"{amount(one.axis, one.here)} → {there}"
        found.append(
            (axis_name(one.axis), step, gain_words(one.gain), one.refused or ("slower" if one.gain < 0 else ""))
        )
    return found


def near_miss_words(said: ExplanationTable) -> list[str]:
    """Better chips one step away that a limit of the space refuses by little."""
    return [
        f"{axis_name(one.axis)} {amount(one.axis, one.value)} would give {gain_words(one.gain)} and is refused for "
        f"{one.refused}: {100 * one.over:.1f} % over."
        for one in said.near_misses[:SHOWN_MISSES]
    ]
