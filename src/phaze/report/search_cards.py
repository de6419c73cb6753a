"""The answer of a search as it is told first: better than what, could it be built, how flat,
how sure."""

from collections.abc import Mapping, Sequence
from typing import Any

from phaze.hardware.shipped import shipped_beside
from phaze.report.answer_text import BELIEF, network_words
from phaze.report.drawings import Bar, Bars
from phaze.report.explanation_file import ExplanationTable
from phaze.report.numbers import EXACT, counted, gap_text, ratio_text
from phaze.report.page.baseline_comparison import BaselineComparison
from phaze.report.plan_cards import percent
from phaze.report.sections import Card, Figures, Notes, Section
from phaze.units import digits, show

# The largest area that one exposure prints, 26 mm x 33 mm.
RETICLE_MM2 = 858.0
# A figure so near to its limit is what the limit stops.
BINDING = 0.99
SHOWN_SHIPPED = 3


def chip_words(result: Mapping[str, Any]) -> str:
    """The chip in one sentence."""
    chip, clusters = result["chip"], result["chip"].get("clusters")
    lanes = f"{int(chip['lanes']):,} lanes"
    shape = f"{chip['rows']} × {chip['columns']}"
    if clusters:
        cores = (
            f"{clusters['count']} clusters of {clusters['arrays']} systolic arrays of "
            f"{shape} and {lanes}"
        )
    else:
        arrays = counted(int(chip["tensor_cores"]), "systolic array")
        cores = (
            f"{arrays} of {shape} and {counted(int(chip['vector_cores']), 'vector core')} of "
            f"{lanes}"
        )
    memory = f"{show(chip['hbm_bytes'], 'B')} of HBM at {show(chip['hbm_bytes_per_s'], 'B/s')}"
    peak, buffer = (
        f"{digits(chip['peak_flops'] / 1e12)} TFLOP/s",
        show(chip["global_buffer_bytes"], "B"),
    )
    sustained, rated = (
        f"{chip['clock_hz'] / 1e9:.3g}",
        f"{(clusters or chip)['clock_hz'] / 1e9:.3g}",
    )
    clock = (
        f"{rated} GHz ({peak})"
        if sustained == rated
        else f"{rated} GHz ({peak}), of which {sustained} GHz are held"
    )
    return f"{chip['name']}: {cores} at {clock}, {buffer} global buffer, {memory}."


def title_of(result: Mapping[str, Any], comparison: BaselineComparison | None) -> str:
    """The answer in one sentence."""
    chip, models, setting = result["chip"], result["models"], result["setting"]
    size = (
        f"{chip['area_mm2']:.0f} mm², {chip['design_power_w']:.0f} W chip in {setting['process']}"
    )
    what = models[0]["name"] if len(models) == 1 else f"these {len(models)} models"
    if comparison is None or comparison.mean is None:
        if len(models) > 1:
            return f"A {size} serves {what} best together."
        return (
            f"A {size} trains {what} at {digits(models[0]['throughput_per_s'])} sequences a second."
        )
    return f"A {size} trains {what} {ratio_text(comparison.mean)} as fast as {comparison.name}."


def _binding(result: Mapping[str, Any], limits: Mapping[str, float | None]) -> list[str]:
    """The limits of the space that the chip stands at."""
    chip = result["chip"]
    die = float((chip.get("clusters") or {}).get("die_mm2") or chip["area_mm2"])
    figures = {
        "area": ("area", die),
        "power": ("TDP", float(chip["design_power_w"])),
        "usd": ("manufacturing cost", float(chip["making_usd"])),
    }
    return [
        name
        for key, (name, value) in figures.items()
        if limits.get(key) is not None and value >= BINDING * float(limits[key] or 0.0)
    ]


def _memory_rows(chip: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Memory off the die and, of a chip of clusters, of each of them."""
    clusters = chip.get("clusters") or {}
    stacks = f" in {counted(int(clusters['hbm_stacks']), 'stack')}" if clusters else ""
    size, rate = show(chip["hbm_bytes"], "B"), show(chip["hbm_bytes_per_s"], "B/s")
    rows = [("HBM", f"{size}{stacks}, {rate}")]
    if clusters:
        registers, operands = clusters["register_bytes"], clusters["operand_bytes"]
        rows.append(("registers a cluster", show(registers, "B")))
        rows.append(("operand buffers a cluster", show(operands, "B")))
    return rows


def physical_card(result: Mapping[str, Any], limits: Mapping[str, float | None]) -> Card:
    """Which of the ``limits`` of its space binds, and process, area, TDP, memory, links, network
    and cost."""
    chip = result["chip"]
    most = {
        key: "" if limits.get(key) is None else f" of {limits[key]:,.4g} allowed"
        for key in ("area", "power", "usd")
    }
    clusters = chip.get("clusters") or {}
    edge = float(
        clusters.get("die_mm2") or 0.0
    )  # HBM stacks along its edges may ask for a larger die
    die = f"{chip['area_mm2']:.0f} mm²" + (
        f", die {edge:.0f}" if edge > 1.005 * chip["area_mm2"] else ""
    )
    spare = f"{clusters['built']} clusters built, {clusters['count']} used" if clusters else ""
    rows = [
        ("process", str(result["setting"]["process"])),
        ("area", die + most["area"]),
        ("TDP, estimate", f"{chip['design_power_w']:.0f} W{most['power']}"),
        ("manufacturing cost, estimate", f"{digits(chip['making_usd'])} USD{most['usd']}"),
        *_memory_rows(chip),
        ("links", f"{show(chip['link_bytes_per_s'], 'B/s')} one way"),
        ("peak", f"{digits(chip['peak_flops'] / 1e12)} TFLOP/s"),
        ("network", network_words(result)),
    ]
    rows += [("yield", spare)] if spare else []
    binding = _binding(result, limits)
    words = (
        f"{' and '.join(binding)} {'bind' if len(binding) > 1 else 'binds'}"
        if binding
        else "no limit binds"
        if limits
        else ""
    )
    return Card("Physical design", [Figures(rows, paired=True)], words, "warn")


def _dense(
    result: Mapping[str, Any],
    key: str,
    scale: float,
    unit: str,
    shipped: Sequence[tuple[str, float]],
) -> Bars:
    density = float(result["plausibility"][key]["value"])
    nearest = sorted(shipped, key=lambda chip: -chip[1])[:SHOWN_SHIPPED]
    bars = [Bar(name, value, f"{value / scale:.2f}") for name, value in nearest]
    bars.append(Bar("this chip", density, f"{density / scale:.2f}", marked=True))
    return Bars(sorted(bars, key=lambda bar: -bar.length), unit, look="thin")


def plausible_card(result: Mapping[str, Any]) -> Card:
    """Peak and TDP a mm2 beside the densest shipped chips."""
    figures = result["plausibility"]
    near = shipped_beside(str(figures["process"])).near
    flops, watts = (
        [(c.title, c.flops_per_mm2) for c in near],
        [(c.title, c.watts_per_mm2) for c in near],
    )
    sections: list[Section] = [
        _dense(result, "peak_flops_per_mm2", 1e12, "peak, TFLOP/s a mm²", flops),
        _dense(result, "design_w_per_mm2", 1.0, "TDP, W a mm²", watts),
    ]
    if figures.get("peak_flops_per_w") is not None:
        frugal = [(c.title, c.flops_per_w) for c in near]
        sections.append(
            _dense(result, "peak_flops_per_w", 1e12, "peak, TFLOP/s a W of TDP", frugal)
        )
    if not figures["warnings"]:
        return Card(
            "Is it plausible?",
            [*sections, _small(figures["note"])],
            "Within what was shipped",
            "good",
        )
    worst = max(
        float(figure["ratio"]) for figure in figures.values() if isinstance(figure, Mapping)
    )
    note = f"{'; '.join(figures['warnings'])}. {BELIEF}: {figures['reason']}."
    verdict = f"{worst:.1f} × the densest shipped"
    return Card(
        "Is it plausible?", [*sections, _small(note)], verdict, "warn" if worst < 1.5 else "bad"
    )


def _small(*lines: str) -> Notes:
    return Notes([line for line in lines if line], look="small")


# Constants on which an answer hangs that a page names: the rest stands in explanation.json.
SHOWN_CONSTANTS = 3


def _sensitive(explanation: ExplanationTable | None) -> str:
    """The constants that must move least before another chip wins, in words."""
    constants = []
    for constant in [] if explanation is None else explanation.deciding[:SHOWN_CONSTANTS]:
        sides = [side for side in (constant.less, constant.more) if side.changes is not None]
        moved = [
            f"at {100 * (side.changes or 0.0):+.0f} % {side.chip or 'nothing'} wins"
            for side in sides
        ]
        constants.append(
            f"{constant.constant}: {', '.join(moved) or 'within 25 % the answer stays'}"
        )
    return f"Most sensitive to: {'; '.join(constants)}." if constants else ""


def _proof(proof: Mapping[str, Any]) -> str:
    """What is proved, in a sentence."""
    closed, gap = proof["closed"], float(proof["gap"])
    outside = sum(int(closed.get(key, 0)) for key in ("area", "power", "cost"))
    better = (
        "No chip is better" if gap <= EXACT else f"No chip is better by more than {gap_text(gap)}"
    )
    parts = [
        f"{better}, of {proof['chips']:,}: {closed['evaluated']:,} evaluated exactly, "
        f"{closed['bound']:,} ruled out by "
        "a lower bound on step time"
    ]
    parts += [f"{closed['memory']:,} by memory"] if closed.get("memory") else []
    parts += [f"{outside:,} more combinations exceed a limit of the space"] if outside else []
    parts += (
        [f"{closed['open']:,} were not considered: the search was stopped"]
        if closed.get("open")
        else []
    )
    return f"{'; '.join(parts)}. By phaze's cost model, not of silicon."


def _near_rows(
    proof: Mapping[str, Any], best: float, exact: Sequence[float]
) -> list[tuple[str, str]]:
    """How many chips are within a share of the answer: of those that were evaluated, and the
    bounds of how many of all."""
    near = proof["near"]
    rows = []
    for share in (0.01, 0.02, 0.05) if exact else ():
        count = sum(score <= best * (1 + share) for score in exact)
        rows.append((f"within {percent(share)}, exact", f"{count:,}"))
    least, most = f"{near['at_least']:,}", f"{near['at_most']:,}"
    within = f"within {percent(near['within'])}"
    if exact:
        return [*rows, (f"{within}, at most", most)]
    return [(within, most if least == most else f"{least} to {most} of {proof['chips']:,}")]


def flat_card(
    result: Mapping[str, Any],
    exact: Sequence[float] = (),
    explanation: ExplanationTable | None = None,
) -> Card:
    """How many chips are as good, and the proof; ``exact`` are the scores of those that were
    evaluated, where they are at hand."""
    proof, best = result["certificate"], float(result["objective"]["score"])
    flat = None if explanation is None else explanation.flatness
    words = ""
    if flat is None:
        rows = _near_rows(proof, best, exact)
        if exact:
            words = (
                "Exact: evaluated chips alone; the last counts every chip that a lower bound does "
                "not rule out."
            )
    else:
        counts = [(count.within, count.count) for count in flat.counts] or [
            (flat.within, flat.count)
        ]
        smallest = f"{flat.smallest.area_mm2:.0f} mm2, loses {100 * flat.smallest.loss:.1f} %"
        rows = [
            *((f"within {percent(share)}, exact", f"{count:,}") for share, count in counts),
            ("the smallest of them", smallest),
        ]
        words = f"{flat.words} Every chip that may be as good was evaluated (phaze explain)."
    verdict = "Proved best" if proof["gap"] <= EXACT else f"Proved to {gap_text(proof['gap'])}"
    sections: list[Section] = [
        Figures(rows, paired=True),
        _small(words, ends_words(result), _sensitive(explanation), _proof(proof)),
    ]
    return Card("How flat is the optimum?", sections, verdict, "good")


def ends_words(result: Mapping[str, Any]) -> str:
    """The axes of the space at whose end the answer lies; empty where there are none."""
    ends = [f"{end['axis'].replace('_', ' ')} ({end['end']})" for end in result.get("at_ends", ())]
    if not ends:
        return ""
    return (
        f"The answer lies at the end of the axes {', '.join(ends)}: a wider space may hold better."
    )


def subject_of(result: Mapping[str, Any], space: str = "") -> tuple[str, ...]:
    """What was asked, in a line."""
    models = ", ".join(
        f"{model['name']}, {model['sequence']:,} tokens" for model in result["models"]
    )
    kind = str(result["objective"]["kind"]).replace("_", " ")
    return (
        models,
        f"{result['setting']['devices']:,} devices",
        f"global batch {result['models'][0]['batch']:,}",
        f"objective {kind}",
        *([f"space {space}"] if space else []),
    )
