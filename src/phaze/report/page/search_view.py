"""The answer of a search as its page tells it first: better than what, could it be built, how flat, how sure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from phaze.hardware.chip import Chip
from phaze.hardware.shipped import shipped_beside
from phaze.report.answer_text import network_words
from phaze.report.explanation_file import ExplanationTable
from phaze.report.numbers import EXACT, counted, gap_text, ratio_text
from phaze.report.page.baseline_comparison import BaselineComparison
from phaze.report.page.plan_view import percent
from phaze.search.task import SearchJob
from phaze.units import digits, show

# The largest area that one exposure prints, 26 mm x 33 mm.
RETICLE_MM2 = 858.0
# A figure so near to its limit is what the limit stops.
BINDING = 0.99
SHOWN_SHIPPED = 3


@dataclass(frozen=True, slots=True)
class BarRow:
    """A named bar; ``on`` is the answer's own, ``ends`` its band, if it has one."""

    name: str
    width: float
    value: str
    note: str
    on: bool
    ends: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class Plausible:
    """Densities beside shipped chips."""

    verdict: str
    kind: str
    charts: tuple[tuple[str, tuple[BarRow, ...]], ...]
    note: str


@dataclass(frozen=True, slots=True)
class Flat:
    """How flat the optimum is, and the proof in one sentence."""

    pill: str
    rows: tuple[tuple[str, str], ...]
    words: str
    proof: str
    deciding: tuple[str, ...] = ()


def chip_words(result: Mapping[str, Any]) -> str:
    """The chip in one sentence."""
    chip, clusters = result["chip"], result["chip"].get("clusters")
    lanes = f"{int(chip['lanes']):,} lanes"
    shape = f"{chip['rows']} × {chip['columns']}"
    if clusters:
        cores = f"{clusters['count']} clusters of {clusters['arrays']} systolic arrays of {shape} and {lanes}"
    else:
        arrays = counted(int(chip["tensor_cores"]), "systolic array")
        cores = f"{arrays} of {shape} and {counted(int(chip['vector_cores']), 'vector core')} of {lanes}"
    memory = f"{show(chip['hbm_bytes'], 'B')} of HBM at {show(chip['hbm_bytes_per_s'], 'B/s')}"
    peak, buffer = f"{digits(chip['peak_flops'] / 1e12)} TFLOP/s", show(chip["global_buffer_bytes"], "B")
    held, rated = f"{chip['clock_hz'] / 1e9:.3g}", f"{(clusters or chip)['clock_hz'] / 1e9:.3g}"
    clock = f"{rated} GHz ({peak})" if held == rated else f"{rated} GHz ({peak}), of which {held} GHz are held"
    return f"{cores} at {clock}, {buffer} global buffer, {memory}."


def title_of(result: Mapping[str, Any], comparison: BaselineComparison | None) -> str:
    """The answer in one sentence."""
    chip, models, setting = result["chip"], result["models"], result["setting"]
    size = f"{chip['area_mm2']:.0f} mm², {chip['design_power_w']:.0f} W chip in {setting['process']}"
    what = models[0]["name"] if len(models) == 1 else f"these {len(models)} models"
    if comparison is None or comparison.mean is None:
        if len(models) > 1:
            return f"A {size} serves {what} best together."
        return f"A {size} trains {what} at {digits(models[0]['throughput_per_s'])} sequences a second."
    return f"A {size} trains {what} {ratio_text(comparison.mean)} as fast as {comparison.name}."


def _binding(job: SearchJob, result: Mapping[str, Any]) -> list[str]:
    """The limits of the space that the chip stands at."""
    chip = result["chip"]
    die = float((chip.get("clusters") or {}).get("die_mm2") or chip["area_mm2"])
    own = {
        "area": ("area", die),
        "power": ("TDP", float(chip["design_power_w"])),
        "usd": ("manufacturing cost", float(chip["making_usd"])),
    }
    limits = job.space.limits
    return [
        name
        for key, (name, value) in own.items()
        if limits.get(key) is not None and value >= BINDING * float(limits[key] or 0.0)
    ]


def physical_of(job: SearchJob, result: Mapping[str, Any]) -> tuple[str, tuple[tuple[str, str], ...]]:
    """Which limit binds, and process, area, TDP, memory, links, network and cost."""
    chip, limits = result["chip"], job.space.limits
    most = {
        key: "" if limits.get(key) is None else f" of {limits[key]:,.4g} allowed" for key in ("area", "power", "usd")
    }
    clusters = chip.get("clusters") or {}
    edge = float(clusters.get("die_mm2") or 0.0)  # HBM stacks along its edges may ask for a larger die
    die = f"{chip['area_mm2']:.0f} mm²" + (f", die {edge:.0f}" if edge > 1.005 * chip["area_mm2"] else "")
    spare = f"{clusters['built']} clusters built, {clusters['count']} used" if clusters else ""
    rows = [
        ("process", str(result["setting"]["process"])),
        ("area", die + most["area"]),
        ("TDP, estimate", f"{chip['design_power_w']:.0f} W{most['power']}"),
        ("manufacturing cost, estimate", f"{digits(chip['making_usd'])} USD{most['usd']}"),
        ("HBM", f"{show(chip['hbm_bytes'], 'B')}, {show(chip['hbm_bytes_per_s'], 'B/s')}"),
        ("links", f"{show(chip['link_bytes_per_s'], 'B/s')} one way"),
        ("peak", f"{digits(chip['peak_flops'] / 1e12)} TFLOP/s"),
        ("network", network_words(result)),
    ]
    rows += [("yield", spare)] if spare else []
    binding = _binding(job, result)
    words = f"{' and '.join(binding)} {'bind' if len(binding) > 1 else 'binds'}" if binding else "no limit binds"
    return words, tuple(rows)


def _dense(
    result: Mapping[str, Any], key: str, scale: float, unit: str, shipped: Sequence[tuple[str, float]]
) -> tuple[str, tuple[BarRow, ...]]:
    own = float(result["plausibility"][key]["value"])
    near = sorted(shipped, key=lambda one: -one[1])[:SHOWN_SHIPPED]
    rows = sorted([("this chip", own, True), *((name, value, False) for name, value in near)], key=lambda row: -row[1])
    most = max(rows[0][1], 1e-30)
    return unit, tuple(BarRow(name, value / most, f"{value / scale:.2f}", "", on) for name, value, on in rows)


def plausible_of(result: Mapping[str, Any]) -> Plausible:
    """Peak and TDP a mm2 beside the densest shipped chips."""
    found = result["plausibility"]
    near = shipped_beside(str(found["process"])).near
    charts = [
        _dense(result, "peak_flops_per_mm2", 1e12, "peak, TFLOP/s a mm²", [(c.title, c.flops_per_mm2) for c in near]),
        _dense(result, "design_w_per_mm2", 1.0, "TDP, W a mm²", [(c.title, c.watts_per_mm2) for c in near]),
    ]
    if found.get("peak_flops_per_w") is not None:
        frugal = [(c.title, c.flops_per_w) for c in near]
        charts.append(_dense(result, "peak_flops_per_w", 1e12, "peak, TFLOP/s a W of TDP", frugal))
    worst = max(float(one["ratio"]) for one in found.values() if isinstance(one, Mapping))
    verdict, kind = ("Within what was shipped", "good")
    if found["warnings"]:
        verdict, kind = f"{worst:.1f} × the densest shipped", "warn" if worst < 1.5 else "bad"
    said = f"{'; '.join(found['warnings'])}. " if found["warnings"] else ""
    belief = "Trust the comparison of designs inside this space, not the chip's own figures: " if said else ""
    return Plausible(verdict, kind, tuple(charts), f"{said}{belief}{found['reason'] + '.' if said else found['note']}")


# Constants on which an answer hangs that a page names: the rest stands in explanation.json.
SHOWN_CONSTANTS = 3


def _deciding(said: ExplanationTable | None) -> tuple[str, ...]:
    """The constants that must move least before another chip wins, in words."""
    found = []
    for one in [] if said is None else said.deciding[:SHOWN_CONSTANTS]:
        sides = [side for side in (one.less, one.more) if side.changes is not None]
        moved = [f"at {100 * (side.changes or 0.0):+.0f} % {side.chip or 'nothing'} wins" for side in sides]
        found.append(f"{one.constant}: {', '.join(moved) or 'within 25 % the answer stays'}")
    return tuple(found)


def flat_of(result: Mapping[str, Any], exact: Sequence[float], said: ExplanationTable | None = None) -> Flat:
    """How many chips are as good; ``exact`` are the scores of those that were evaluated, ``said`` what phaze explain
    found since."""
    proof = result["certificate"]
    near, best = proof["near"], float(result["objective"]["score"])
    counts = [(share, sum(score <= best * (1 + share) for score in exact)) for share in (0.01, 0.02, 0.05)]
    rows = [(f"within {percent(share)}, exact", f"{count:,}") for share, count in counts]
    rows.append((f"within {percent(near['within'])}, at most", f"{near['at_most']:,}"))
    if said is not None and said.flatness is not None:
        flat, least = said.flatness, said.flatness.smallest
        counts = [(one.within, one.count) for one in flat.counts] or [(flat.within, flat.count)]
        rows = [(f"within {percent(share)}, exact", f"{count:,}") for share, count in counts]
        rows.append(("the smallest of them", f"{least.area_mm2:.0f} mm2, loses {100 * least.loss:.1f} %"))
    ends = [f"{one['axis'].replace('_', ' ')} ({one['end']})" for one in result.get("at_ends", ())]
    words = "Exact: evaluated chips alone; the last counts every chip that a lower bound does not rule out."
    if said is not None and said.flatness is not None:
        words = f"{said.flatness.words} Every chip that may be as good was evaluated (phaze explain)."
    words += (
        f" The answer lies at the end of the axes {', '.join(ends)}: a wider space may hold better." if ends else ""
    )
    closed = proof["closed"]
    outside = sum(int(closed.get(key, 0)) for key in ("area", "power", "cost"))
    better = (
        "No chip is better" if proof["gap"] <= EXACT else f"No chip is better by more than {gap_text(proof['gap'])}"
    )
    proved = [
        f"{better}, of {proof['chips']:,}: {closed['evaluated']:,} evaluated exactly, {closed['bound']:,} ruled out by "
        "a lower bound on step time"
    ]
    proved += [f"{closed['memory']:,} by memory"] if closed.get("memory") else []
    proved += [f"{outside:,} more combinations exceed a limit of the space"] if outside else []
    proved += [f"{closed['open']:,} were not considered: the search was stopped"] if closed.get("open") else []
    pill = "Proved best" if proof["gap"] <= EXACT else f"Proved to {gap_text(proof['gap'])}"
    proof_text = f"{'; '.join(proved)}. By phaze's cost model, not of silicon."
    return Flat(pill, tuple(rows), words, proof_text, _deciding(said))


def top_of(job: SearchJob, result: Mapping[str, Any], chip: Chip) -> tuple[str, ...]:
    """What was asked, in a line."""
    models = ", ".join(f"{model['name']}, {model['sequence']:,} tokens" for model in result["models"])
    kind = str(result["objective"]["kind"]).replace("_", " ")
    batch = f"global batch {result['models'][0]['batch']:,}"
    return (models, f"{result['setting']['devices']:,} devices", batch, f"objective {kind}", f"space {job.space.name}")
