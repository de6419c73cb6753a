"""A plan as its page tells it first: does it fit, how fast, what does it cost, is it worth changing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from phaze.evaluate.headroom import DeviceMemory, memory_left
from phaze.evaluate.idle import idle_words
from phaze.evaluate.training_run import Budget, Pace, training_run
from phaze.hardware.chip import Chip
from phaze.hardware.ownership import load_terms
from phaze.hardware.stack import Saves
from phaze.report.page.memory_view import Piece
from phaze.report.plan_text import unit_of
from phaze.search.plan_words import offload_words, shared_words
from phaze.units import digits, show, show_count

GIB = 2**30
# What a run is priced for where no tokens were given.
USUAL_TOKENS = 10**12
# Chances from which a plan is said to fit, and to fit likely: nine in ten, seven in ten.
SURE, LIKELY = 0.9, 0.7
LOSSES: Mapping[str, str] = MappingProxyType(
    {
        "forward": "slower kernels (forward)",
        "backward": "slower kernels (backward)",
        "recompute": "activation recomputation",
        "transfer": "exposed pipeline send/recv",
        "bubble": "pipeline bubble",
        "synchronisation": "exposed DP communication",
        "optimizer": "optimizer step",
        "tied": "tied parameters",
    }
)


RIVALS: Mapping[str, str] = MappingProxyType(
    {
        "against": "your plan",
        "thumb": "the rule of thumb",
        "experts": "the experts' split",
        "best": "the best plan",
    }
)


@dataclass(frozen=True, slots=True)
class Fit:
    """Whether a plan fits, and with how much room."""

    verdict: str
    kind: str
    used: str
    capacity: str
    pieces: tuple[Piece, ...]
    label: str
    facts: tuple[tuple[str, str], ...]
    note: str
    left: str


@dataclass(frozen=True, slots=True)
class Speed:
    """Tokens a second of a device, with its band."""

    rate: str
    band: str
    pieces: tuple[Piece, ...]
    label: str
    low: str
    high: str
    facts: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Cost:
    """What training on so many tokens takes; figures are texts, and what the page's calculator starts from."""

    days: str
    hours: str
    usd: str
    mwh: str
    basis: str
    inputs: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True, slots=True)
class GainRow:
    """A plan beside this one."""

    name: str
    width: float
    value: str
    slower: str
    on: bool


@dataclass(frozen=True, slots=True)
class Gain:
    """What this plan gains over what people run."""

    headline: str
    against: str
    rows: tuple[GainRow, ...]
    note: str


def rate_words(value: float) -> str:
    """A count with three digits and its prefix."""
    return f"{digits(value / 1e3)}k" if 1e4 <= value < 1e6 else show_count(float(f"{value:.3g}"))


def gib(value: float) -> str:
    """Bytes in GiB, three digits."""
    return f"{digits(value / GIB)} GiB"


def percent(share: float) -> str:
    """A share with as many digits as it is worth."""
    return f"{100 * share:.0f} %" if abs(share) >= 0.1 else f"{100 * share:.2g} %"


def badges(plan: Mapping[str, Any]) -> tuple[str, ...]:
    """A split in the field's letters."""
    modes = sorted({stage["recompute"] for stage in plan["stages"]})
    chunks = int(plan.get("chunks", 1))
    found = [f"TP {plan['tensor']}", f"PP {plan['pipeline']}", f"DP {plan['data']}"]
    degrees = {"CP": "context", "EP": "expert", "ETP": "expert_tensor"}
    found += [f"{name} {plan[key]}" for name, key in degrees.items() if (plan.get(key) or 1) > 1]
    found += [str(plan["family"])] if plan.get("family") else []
    found += [f"VPP {chunks}"] if chunks > 1 else []
    found += [f"microbatch {plan['microbatch']}"]
    found += [f"ZeRO-{plan['zero']}"] if plan.get("zero") else []
    found += ["sequence parallel"] if plan.get("sequence_parallel") else []
    found += [words for words in shared_words(plan) if plan.get("shard") and words.startswith("hybrid")]
    found.append(f"recompute {', '.join(modes)}")
    return (*found, *([offload_words(plan)] if offload_words(plan) else []))


def short_words(plan: Mapping[str, Any]) -> str:
    """A split in one line."""
    return " × ".join(word for word in badges(plan)[:3] if not word.endswith(" 1")) or "one device"


def fit_of(plan: Mapping[str, Any], device: DeviceMemory, saves: Saves | None = None) -> Fit:
    """The fullest stage against the memory of a device, with the error of such estimates and the chance that it fits.

    It fits if that is at least nine in ten, likely fits if it is at least seven in ten.
    """
    left, hbm_bytes = memory_left(plan["stages"], device, saves), device.hbm_bytes
    band, chance = left["band"], float(left["fits_probability"])
    used = hbm_bytes - left["left_bytes"]
    usual, worst = used * (1 + band["median"]), used * (1 + band["ninetieth"])
    verdict, kind = ("Fits", "good") if chance >= SURE else ("Likely fits", "good")
    if chance < LIKELY:
        verdict, kind = "Tight", "warn"
    if used > hbm_bytes * (1 + 1e-9):
        verdict, kind = "Does not fit", "bad"
    most = max(hbm_bytes, usual) * 1.02
    pieces: list[Piece] = [(hbm_bytes / most, max(0.0, 1 - hbm_bytes / most), "over", "")]
    if device.headroom:
        free = device.kept_free_bytes
        pieces.append((hbm_bytes * (1 - device.headroom) / most, free / most, "room", ""))
    pieces += [(0.0, used / most, "tensor", ""), (used / most, (usual - used) / most, "other", "")]
    pieces.append((hbm_bytes / most, 0.006, "ink", ""))
    room = gib(left["left_bytes"]) if left["left_bytes"] >= 0 else f"{gib(-left['left_bytes'])} short"
    facts = [("left", f"{room}, {percent(left['left_share'])}"), ("chance that it fits", percent(chance))]
    facts += [("kept free", percent(device.headroom))] if device.headroom else []
    over = "more than a device has" if worst > hbm_bytes else "still within a device"
    note = (
        f"Memory estimates are off by {percent(band['median'])} in the median (grey) and {percent(band['ninetieth'])} "
        f"in the 90th percentile of {band['rows']}: then it needs {gib(worst)}, {over}."
    )
    label = f"{gib(used)} of {gib(hbm_bytes)} used; {gib(usual)} with the median error"
    return Fit(verdict, kind, gib(used), gib(hbm_bytes), tuple(pieces), label, tuple(facts), note, room)


def speed_of(plan: Mapping[str, Any], band: float | None) -> Speed:
    """Throughput with the band of its time."""
    rate, off = float(plan["tokens_per_s_per_device"]), band or 0.0
    low, high = rate / (1 + off), rate / max(1 - off, 0.05)
    most = high * 1.15
    pieces: tuple[Piece, ...] = ((low / most, (high - low) / most, "other", ""), (rate / most, 0.008, "tensor", ""))
    facts = (
        ("MFU", f"{100 * plan['mfu']:.1f} %"),
        ("HFU", f"{100 * plan['hfu']:.1f} %"),
        ("step", show(plan["batch_s"], "s")),
        ("cluster", f"{rate_words(plan['tokens_per_s'])} {unit_of(plan)}/s"),
        *((("devices", idle),) if (idle := idle_words(plan)) else ()),
    )
    label = f"{digits(rate)} {unit_of(plan)} a second and device, between {digits(low)} and {digits(high)}"
    said = f"± {off:.0%}".replace("%", " %") if band else "no band"
    return Speed(digits(rate), said, pieces, label, digits(low), digits(high), facts)


def cost_of(plan: Mapping[str, Any], chip: Chip, devices: int) -> Cost:
    """The training run that was priced, or one of a trillion tokens on the bundled terms."""
    run = plan.get("training_run")
    given = run is not None
    if run is None:
        pace = Pace(int(plan["batch"]) * int(plan["sequence"]), float(plan["batch_s"]), devices)
        run = training_run(Budget(USUAL_TOKENS, load_terms("default")), pace, chip)
    hours, terms = float(run["device_hours"]) or 1.0, run["terms"]
    pue = float(terms["power_usage_effectiveness"]) or 1.0
    usd = None if run["usd"] is None else float(run["usd"]) / hours
    watts = None if run["kwh"] is None else float(run["kwh"]) * 1e3 / hours / pue
    tokens = show_count(run["tokens"])
    carbon = "" if run["kgco2e"] is None else f", {digits(run['kgco2e'])} kg CO2e"
    basis = "" if run["usd"] is None else f"{run['usd_basis']}; "
    unknown = f"USD unknown: {run['usd_basis']}, or write it here. " if run["usd"] is None else ""
    said = f"{tokens} tokens{carbon}. {unknown}{basis}{run['power_basis']}; PUE {pue:g}. Change any of them."
    return Cost(
        days=digits(run["days"]),
        hours=digits(run["device_hours"]),
        usd="unknown" if run["usd"] is None else digits(run["usd"]),
        mwh="unknown" if run["kwh"] is None else digits(run["kwh"] / 1e3),
        basis=said if given else f"For example {said}",
        inputs=(
            ("tokens", "Tokens", tokens),
            ("usd", "USD a device hour", "" if usd is None else f"{usd:.3g}"),
            ("watts", "W a device", "" if watts is None else f"{watts:.0f}"),
            ("pue", "PUE", f"{pue:g}"),
        ),
    )


def _slower(ratio: float) -> str:
    """By how much, to the percent where that is a tenth or more: steps are not known better."""
    more = 100 * (ratio - 1)
    return f"{more:+.0f} %" if abs(more) >= 10 else f"{more:+.1f} %"


def gain_of(
    key: str, plans: Sequence[tuple[str, str, float]], bound_s: float, proof: str, run: Mapping[str, Any] | None
) -> Gain:
    """A plan among all others, each (key, name, step); ``proof``: what is proved of the best one, ``run`` is what a
    training run takes with this one. The comparison that the headline names has no second figure in its row."""
    steps = {one: step for one, _, step in plans}
    own = steps[key]
    comparisons = ("against", "thumb", "experts") if key == "best" else ("best",)
    comparison = next((name for name in comparisons if name in steps), None)
    shown = [row for row in plans if row[0] in ("against", "thumb", "experts", "best", key)]
    most = max(step for _, _, step in shown)
    rows = [
        GainRow(name, step / most, show(step, "s"), "" if one in (key, comparison) else _slower(step / own), one == key)
        for one, name, step in sorted(shown, key=lambda row: -row[2])
    ]
    if key == "best" and bound_s < own * (1 - 1e-6):
        rows.append(GainRow("Lower bound", bound_s / most, show(bound_s, "s"), _slower(bound_s / own), False))
    proof = proof if key == "best" else ""
    if comparison is None:
        return Gain("no comparison", "nothing that people usually run fits", tuple(rows), proof)
    faster = steps[comparison] / own - 1
    words = "throughput over " + RIVALS[comparison]
    saved = ""
    if run is not None and faster > 0:
        usd = "" if run["usd"] is None else f" and {digits(float(run['usd']) * faster)} USD"
        saved = f"It saves {digits(float(run['days']) * faster)} days{usd}. "
    return Gain(_slower(1 + faster), words, tuple(rows), f"{saved}{proof}")
