"""A plan as its page tells it first: does it fit, how fast, what does it cost, is it worth
changing."""

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
from phaze.report.drawings import Bar, Bars, Gauge, Piece
from phaze.report.plan_text import unit_of
from phaze.report.sections import Card, Figures, Lead, Notes, RunCost, Section, Tone
from phaze.search.plan_words import offload_words, shared_words
from phaze.units import digits, show, show_count

GIB = 2**30
# What a run is priced for where no tokens were given.
USUAL_TOKENS = 10**12
# Chances from which a plan is said to fit, and to fit likely: nine in ten, seven in ten.
SURE, LIKELY = 0.9, 0.7
BASELINES: Mapping[str, str] = MappingProxyType(
    {
        "against": "your plan",
        "thumb": "the rule of thumb",
        "experts": "the experts' split",
        "best": "the best plan",
    }
)


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
    words = [f"TP {plan['tensor']}", f"PP {plan['pipeline']}", f"DP {plan['data']}"]
    degrees = {"CP": "context", "EP": "expert", "ETP": "expert_tensor"}
    words += [f"{name} {plan[key]}" for name, key in degrees.items() if (plan.get(key) or 1) > 1]
    words += [str(plan["family"])] if plan.get("family") else []
    words += [f"VPP {chunks}"] if chunks > 1 else []
    words += [f"microbatch {plan['microbatch']}"]
    words += [f"ZeRO-{plan['zero']}"] if plan.get("zero") else []
    words += ["sequence parallel"] if plan.get("sequence_parallel") else []
    words += [
        text for text in shared_words(plan) if plan.get("shard") and text.startswith("hybrid")
    ]
    words.append(f"recompute {', '.join(modes)}")
    return (*words, *([offload_words(plan)] if offload_words(plan) else []))


def short_words(plan: Mapping[str, Any]) -> str:
    """A split in one line."""
    return " × ".join(word for word in badges(plan)[:3] if not word.endswith(" 1")) or "one device"


@dataclass(frozen=True, slots=True)
class Fit:
    """Whether a plan fits: the memory of its fullest stage, what that leaves of a device, and the
    chance that it fits with the error of such estimates. It fits if that is at least nine in ten,
    likely fits if at least seven in ten."""

    used_bytes: float
    device: DeviceMemory
    left_share: float
    chance: float
    band: Mapping[str, Any]

    @property
    def verdict(self) -> tuple[str, Tone]:
        """In two words."""
        if self.used_bytes > self.device.hbm_bytes * (1 + 1e-9):
            return "Does not fit", "bad"
        if self.chance < LIKELY:
            return "Tight", "warn"
        return ("Fits" if self.chance >= SURE else "Likely fits"), "good"

    @property
    def left(self) -> str:
        """What is left of a device, or missing."""
        left_bytes = self.device.hbm_bytes - self.used_bytes
        return gib(left_bytes) if left_bytes >= 0 else f"{gib(-left_bytes)} short"

    def card(self) -> Card:
        """The answer with a gauge: what is used, what the median error adds, what is kept free."""
        hbm, used, free = self.device.hbm_bytes, self.used_bytes, self.device.kept_free_bytes
        usual, worst = used * (1 + self.band["median"]), used * (1 + self.band["ninetieth"])
        scale = max(hbm, usual) * 1.02
        pieces = [Piece(hbm, max(0.0, scale - hbm), "over")]
        if free:
            pieces.append(Piece(hbm - free, free, "room"))
        pieces += [
            Piece(0.0, used, "tensor"),
            Piece(used, usual - used, "other"),
            Piece(hbm, 0.006 * scale, "ink"),
        ]
        rows = [
            ("left", f"{self.left}, {percent(self.left_share)}"),
            ("chance that it fits", percent(self.chance)),
        ]
        rows += [("kept free", percent(self.device.headroom))] if free else []
        over = "more than a device has" if worst > hbm else "still within a device"
        note = (
            f"Memory estimates are off by {percent(self.band['median'])} in the median (grey) and "
            f"{percent(self.band['ninetieth'])} in the 90th percentile of "
            f"{self.band['rows']}: then it needs "
            f"{gib(worst)}, {over}."
        )
        text = f"{gib(used)} of {gib(hbm)} used; {gib(usual)} with the median error"
        sections: list[Section] = [
            Lead(gib(used), f"of {gib(hbm)} a device"),
            Gauge(pieces, scale, text, ("0", gib(hbm))),
            Figures(rows, notes=[note], paired=True),
        ]
        return Card("Does it fit?", sections, *self.verdict)


def fit_of(plan: Mapping[str, Any], device: DeviceMemory, saves: Saves | None = None) -> Fit:
    """The fullest stage against the memory of a device."""
    left = memory_left(plan["stages"], device, saves)
    used_bytes, chance = device.hbm_bytes - left["left_bytes"], float(left["fits_probability"])
    return Fit(used_bytes, device, float(left["left_share"]), chance, left["band"])


def speed_card(plan: Mapping[str, Any], band: float | None) -> Card:
    """Throughput with the band of its time."""
    rate, error, unit = float(plan["tokens_per_s_per_device"]), band or 0.0, unit_of(plan)
    low, high = rate / (1 + error), rate / max(1 - error, 0.05)
    scale, idle = high * 1.15, idle_words(plan)
    pieces = [Piece(low, high - low, "other"), Piece(rate, 0.008 * scale, "tensor")]
    rows = [
        ("MFU", f"{100 * plan['mfu']:.1f} %"),
        ("HFU", f"{100 * plan['hfu']:.1f} %"),
        ("step", show(plan["batch_s"], "s")),
        ("cluster", f"{rate_words(plan['tokens_per_s'])} {unit}/s"),
        *([("devices", idle)] if idle else []),
    ]
    text = f"{digits(rate)} {unit} a second and device, between {digits(low)} and {digits(high)}"
    sections: list[Section] = [
        Lead(digits(rate), f"{unit}/s a device"),
        Gauge(pieces, scale, text, (digits(low), digits(high)), thin=True),
        Figures(rows, paired=True),
    ]
    return Card("How fast?", sections, f"± {100 * error:.0f} %" if band else "no band", "soft")


def cost_card(plan: Mapping[str, Any], chip: Chip, devices: int) -> Card:
    """The training run that was priced, or one of a trillion tokens on the bundled terms."""
    run = plan.get("training_run")
    example = "For example " if run is None else ""
    if run is None:
        pace = Pace(int(plan["batch"]) * int(plan["sequence"]), float(plan["batch_s"]), devices)
        run = training_run(Budget(USUAL_TOKENS, load_terms("default")), pace, chip)
    hours, pue = (
        float(run["device_hours"]) or 1.0,
        float(run["terms"]["power_usage_effectiveness"]) or 1.0,
    )
    carbon = "" if run["kgco2e"] is None else f", {digits(run['kgco2e'])} kg CO2e"
    price = f"{run['usd_basis']}; "
    if run["usd"] is None:
        price = f"USD unknown: {run['usd_basis']}, or write it here. "
    basis = f"{show_count(run['tokens'])} tokens{carbon}. {price}{run['power_basis']}; PUE {pue:g}."
    cost = RunCost(
        tokens=float(run["tokens"]),
        tokens_per_s=float(run["tokens"]) / (86400 * float(run["days"]) or 1.0),
        devices=devices,
        usd_per_device_hour=None if run["usd"] is None else float(run["usd"]) / hours,
        device_w=None if run["kwh"] is None else float(run["kwh"]) * 1e3 / hours / pue,
        power_usage_effectiveness=pue,
        notes=[f"{example}{basis} Change any of them."],
    )
    return Card("What does it cost?", [cost])


def _slower(ratio: float) -> str:
    """By how much, to the percent where that is a tenth or more: steps are not known better."""
    more = 100 * (ratio - 1)
    return f"{more:+.0f} %" if abs(more) >= 10 else f"{more:+.1f} %"


@dataclass(frozen=True, slots=True)
class Gain:
    """What a plan gains over what people run: the figure, and over what."""

    figure: str
    unit: str
    bars: Bars
    note: str

    def card(self) -> Card:
        """The steps of both as bars."""
        return Card(
            "Is it worth changing?",
            [Lead(self.figure, self.unit), self.bars, Notes([self.note], look="small")],
        )


def gain_of(
    key: str,
    plans: Sequence[tuple[str, str, float]],
    bound_s: float,
    proof: str,
    run: Mapping[str, Any] | None,
) -> Gain:
    """A plan among all others, each (key, name, step); ``proof``: what is proved of the best one,
    ``run`` is what a training run takes with this one. The comparison that the figure names has no
    second figure in its row."""
    steps = {other: step_s for other, _, step_s in plans}
    step_s = steps[key]
    baselines = ("against", "thumb", "experts") if key == "best" else ("best",)
    baseline = next((name for name in baselines if name in steps), None)
    rows = []
    for other, name, other_s in sorted(plans, key=lambda row: -row[2]):
        if other == key or other in BASELINES:
            slower = "" if other in (key, baseline) else _slower(other_s / step_s)
            rows.append(Bar(name, other_s, show(other_s, "s"), slower, marked=other == key))
    if key == "best" and bound_s < step_s * (1 - 1e-6):
        rows.append(Bar("Lower bound", bound_s, show(bound_s, "s"), _slower(bound_s / step_s)))
    bars = Bars(rows, look="below")
    proof = proof if key == "best" else ""
    if baseline is None:
        return Gain("no comparison", "nothing that people usually run fits", bars, proof)
    faster = steps[baseline] / step_s - 1
    saved = ""
    if run is not None and faster > 0:
        usd = "" if run["usd"] is None else f" and {digits(float(run['usd']) * faster)} USD"
        saved = f"It saves {digits(float(run['days']) * faster)} days{usd}. "
    return Gain(
        _slower(1 + faster), f"throughput over {BASELINES[baseline]}", bars, f"{saved}{proof}"
    )
