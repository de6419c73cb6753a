"""A plan as it is told first: does it fit, how fast, what does it cost, is it worth changing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from phaze.evaluate.headroom import DeviceMemory, memory_left
from phaze.evaluate.idle import idle_words
from phaze.evaluate.training_run import Budget, Pace, training_run
from phaze.hardware.chip import Chip
from phaze.hardware.ownership import load_terms
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
    """A split in the field's letters, as far as it is stated; a row names what its stages
    recompute."""
    modes = sorted({stage["recompute"] for stage in plan.get("stages") or ()})
    modes = modes or list(plan.get("recompute") or ())
    chunks = int(plan.get("chunks", 1))
    words = [f"TP {plan['tensor']}", f"PP {plan['pipeline']}", f"DP {plan['data']}"]
    degrees = {"CP": "context", "EP": "expert", "ETP": "expert_tensor"}
    words += [f"{name} {plan[key]}" for name, key in degrees.items() if (plan.get(key) or 1) > 1]
    words += [str(plan["family"])] if plan.get("family") else []
    words += [f"VPP {chunks}"] if chunks > 1 else []
    words += [f"microbatch {plan['microbatch']}"] if plan.get("microbatch") else []
    words += [f"ZeRO-{plan['zero']}"] if plan.get("zero") else []
    words += ["sequence parallel"] if plan.get("sequence_parallel") else []
    words += [
        text for text in shared_words(plan) if plan.get("shard") and text.startswith("hybrid")
    ]
    words += [f"recompute {', '.join(modes)}"] if modes else []
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
            f"Memory estimates are off by {percent(self.band['median'])} in the median and "
            f"{percent(self.band['ninetieth'])} in the 90th percentile of "
            f"{self.band['rows']}: then it needs "
            f"{gib(worst)}, {over}."
        )
        text = f"with the median error of estimates {gib(usual)}"
        sections: list[Section] = [
            Lead(gib(used), f"of {gib(hbm)} a device"),
            Gauge(pieces, scale, text, ("0", gib(hbm))),
            Figures(rows, notes=[note], paired=True),
        ]
        return Card("Does it fit?", sections, *self.verdict)


def fit_of(plan: Mapping[str, Any], device: DeviceMemory) -> Fit:
    """The fullest stage against the memory of a device, with the error and the chance that the plan
    states; of documents that state none they are reckoned."""
    left = plan.get("memory_left") or {}
    if left.get("fits_probability") is None:
        left = memory_left(plan["stages"], device)
    fullest = max(float(stage["memory_bytes"]) for stage in plan["stages"])
    chance, share = float(left["fits_probability"]), 1 - fullest / device.hbm_bytes
    return Fit(fullest, device, share, chance, left["band"])


def speed_card(plan: Mapping[str, Any], trust: Mapping[str, Any]) -> Card:
    """Throughput with the band of its time; ``trust`` are the constants that it rests on."""
    rate, error, unit = (
        float(plan["tokens_per_s_per_device"]),
        trust["band"] or 0.0,
        unit_of(plan),
    )
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
    band = f"± {100 * error:.0f} %" if error else "no band"
    text = f"{digits(low)} to {digits(high)} with the error of {trust['basis']} constants"
    sections: list[Section] = [
        Lead(f"{rate:,.0f}" if rate >= 100 else digits(rate), f"{unit}/s a device"),
        Gauge(pieces, scale, text, (digits(low), digits(high)), thin=True),
        Figures(rows, paired=True),
    ]
    return Card("How fast?", sections, band, "soft")


def example_run(plan: Mapping[str, Any], chip: Chip, devices: int) -> dict[str, Any]:
    """A run of a trillion tokens on the bundled terms."""
    pace = Pace(int(plan["batch"]) * int(plan["sequence"]), float(plan["batch_s"]), devices)
    return training_run(Budget(USUAL_TOKENS, load_terms("default")), pace, chip)


def run_cost(run: Mapping[str, Any], devices: int, example: str = "") -> RunCost:
    """What a training run takes and on what terms (the key ``training_run`` of an answer)."""
    terms = run["terms"]
    hours = float(run["device_hours"]) or 1.0
    pue = float(terms["power_usage_effectiveness"]) or 1.0
    carbon = ""
    if run["kgco2e"] is not None:
        grid = f"at {terms['grid_kgco2e_per_kwh']:g} kg a kWh"
        carbon = f", {digits(run['kgco2e'])} kg CO2e {grid}"
    price = f"USD unknown: {run['usd_basis']}" if run["usd"] is None else run["usd_basis"]
    power = f"kWh unknown: {run['power_basis']}" if run["kwh"] is None else run["power_basis"]
    return RunCost(
        tokens=float(run["tokens"]),
        tokens_per_s=float(run["tokens"]) / (86400 * float(run["days"]) or 1.0),
        devices=devices,
        usd_per_device_hour=None if run["usd"] is None else float(run["usd"]) / hours,
        device_w=None if run["kwh"] is None else float(run["kwh"]) * 1e3 / hours / pue,
        power_usage_effectiveness=pue,
        notes=[
            f"{example}{show_count(run['tokens'])} tokens{carbon}. Terms {terms['name']}: {price}; "
            f"{power}; PUE {pue:g}."
        ],
    )


def cost_card(plan: Mapping[str, Any], chip: Chip | None, devices: int) -> list[Card]:
    """The training run that was priced, or an example of one on a ``chip``."""
    run = plan.get("training_run")
    if run is not None:
        return [Card("What does it cost?", [run_cost(run, devices)])]
    if chip is None:
        return []
    example = run_cost(example_run(plan, chip, devices), devices, "For example ")
    return [Card("What does it cost?", [example])]


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
        note = [Notes([self.note], look="small")] if self.note else []
        return Card("Is it worth changing?", [Lead(self.figure, self.unit), self.bars, *note])


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
