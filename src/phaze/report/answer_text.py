"""What stands beside the answer of a search or front, in terminal and page: what it holds under,
how plausible."""

from collections.abc import Mapping
from typing import Any

from phaze.search.plan_words import precision_words
from phaze.units import show

PROVISIONAL = (
    "The time was too short to evaluate a chip: this design is feasible, the first that "
    "fits, not optimised."
)
BELIEF = "Trust the comparison of designs inside this space, not the chip's own figures"


def network_words(result: Mapping[str, Any]) -> str:
    """The network: whose links, how fast, how many devices."""
    setting = result["setting"]
    speed = (
        f", {show(setting['link_bytes_per_s'], 'B/s')} each"
        if "link_bytes_per_s" in setting
        else ""
    )
    name = str((result.get("cluster") or {}).get("label") or "one flat link")
    whose = " on the chip's own links" if setting["links"] == "chip" else ""
    level = " inside its innermost level" if setting.get("levels", 1) > 1 else ""
    return f"{name}; {setting['devices']:,} devices{speed}{whose}{level}"


def job_words(result: Mapping[str, Any]) -> str:
    """Optimizer, attention and software."""
    setting = result["setting"]
    attention = " and ".join(sorted({model["attention"] for model in result["models"]}))
    words = [f"optimizer {setting['optimizer']}", f"attention {attention}"]
    if "stack" in setting:
        stages = sorted({model["zero"] for model in result["models"]})
        words.append(
            f"stack {setting['stack']}, {precision_words(setting['precision'])}, ZeRO "
            f"{' and '.join(map(str, stages))}"
        )
    return ", ".join(words)


def basis_words(result: Mapping[str, Any]) -> str:
    """What times rest on."""
    constants, rules = result["setting"]["constants"], result["setting"]["rules"]
    if constants["basis"] == "ideal":
        return f"rules {rules}, every peak reached: a comparison of designs, no forecast"
    if constants["basis"] == "datasheet":
        return f"rules {rules}, 0.80 of every peak (data sheet), ± {constants['band']:.0%}"
    if constants["basis"] == "held":
        left = f"{constants['software_share']:.2f} of that left by the stack"
        return (
            f"rules {rules}, arrays at the clock held, {left}, 0.80 of HBM, ± "
            f"{constants['band']:.0%}"
        )
    return (
        f"rules {rules}, {constants['basis']} constants of {constants['of']}, ± "
        f"{constants['band']:.0%}"
    )


def _shipped(figure: Mapping[str, Any], scale: float, unit: str) -> str:
    least = "at least " if figure["shipped_is_lower_bound"] else ""
    return f"{figure['shipped_chip']}, {least}{figure['shipped'] / scale:.2f} {unit}"


def shipped_words(result: Mapping[str, Any]) -> str:
    """The densest shipped chips beside it."""
    found = result["plausibility"]
    compute, power, frugal = (
        found["peak_flops_per_mm2"],
        found["design_w_per_mm2"],
        found.get("peak_flops_per_w"),
    )
    note = f"; {found['note']}" if found["note"] else ""
    said = f"{_shipped(compute, 1e12, 'TFLOP/s')}; {_shipped(power, 1.0, 'W')} a mm2"
    return f"{said}{'' if frugal is None else '; ' + _shipped(frugal, 1e12, 'TFLOP/s a W')}{note}"


def front_facts(front: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What stands beside a front: how dense its chips are, the densest shipped, and what it holds
    under."""
    points, setting = front["points"], front["setting"]
    said = []
    figures = [("peak_flops_per_mm2", "TFLOP/s a mm2", 1e12), ("design_w_per_mm2", "W a mm2", 1.0)]
    if all(point["plausibility"].get("peak_flops_per_w") is not None for point in points):
        figures.append(("peak_flops_per_w", "TFLOP/s a W", 1e12))
    for key, unit, scale in figures:
        values = [point["plausibility"][key]["value"] / scale for point in points]
        low, high = f"{min(values):.2f}", f"{max(values):.2f}"
        said.append(f"{low if low == high else f'{low} to {high}'} {unit}")
    models = [model for point in points for model in point["models"]]
    one = {**front, "models": models, "plausibility": points[0]["plausibility"]}
    return [
        ("density", ", ".join(said)),
        ("densest shipped", shipped_words(one)),
        ("process", str(setting["process"])),
        ("network", network_words(front)),
        ("job", job_words(one)),
        ("times", basis_words(front)),
    ]


def _figures(found: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The figures of a chip that stand beside shipped ones."""
    return [one for one in found.values() if isinstance(one, Mapping)]


def front_warning(front: Mapping[str, Any]) -> str:
    """How many designs are beyond what was shipped, and the furthest of them; empty if none is."""
    beyond = [point for point in front["points"] if point["plausibility"]["warnings"]]
    if not beyond:
        return ""
    worst = max(
        beyond, key=lambda point: max(one["ratio"] for one in _figures(point["plausibility"]))
    )
    found, count = worst["plausibility"], len(front["points"])
    many = f"{len(beyond):,} of the {count:,} designs are" if count > 1 else "the design is"
    said = (
        f"{many} beyond what was shipped; of {worst['chip']['name']} {'; '.join(found['warnings'])}"
    )
    return f"Warning: {said}. {BELIEF}: {found['reason']}."
