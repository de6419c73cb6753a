"""What stands beside a search's answer, for terminal and page: what it holds under, and how plausible it is."""

from collections.abc import Mapping
from typing import Any

from phaze.units import show

PROVISIONAL = "The time was too short to evaluate a chip: this design has list schedules, and is feasible."
BELIEF = "Trust the comparison of designs inside this space, not the chip's own figures"


def network_words(result: Mapping[str, Any]) -> str:
    """The network: whose links, how fast, how many devices."""
    setting = result["setting"]
    speed = show(setting["link_bytes_per_s"], "B/s")
    name = str((result.get("cluster") or {}).get("label") or "one flat link")
    whose = " on the chip's own links" if setting["links"] == "chip" else ""
    level = " inside its innermost level" if setting["rules"] == "cluster" else ""
    return f"{name}; {setting['devices']:,} devices, {speed} each{whose}{level}"


def job_words(result: Mapping[str, Any]) -> str:
    """Optimizer, attention and software."""
    setting = result["setting"]
    attention = " and ".join(sorted({model["attention"] for model in result["models"]}))
    words = [f"optimizer {setting['optimizer']}", f"attention {attention}"]
    if "stack" in setting:
        words.append(f"stack {setting['stack']}, {setting['precision']}, ZeRO {setting['zero']}")
    return ", ".join(words)


def basis_words(result: Mapping[str, Any]) -> str:
    """What times rest on."""
    constants, rules = result["setting"]["constants"], result["setting"]["rules"]
    if constants["basis"] == "ideal":
        return f"rules {rules}, every peak reached: a comparison of designs, no forecast"
    if constants["basis"] == "datasheet":
        return f"rules {rules}, 0.80 of every peak (data sheet), ± {constants['band']:.0%}"
    return f"rules {rules}, {constants['basis']} constants of {constants['of']}, ± {constants['band']:.0%}"


def density_words(result: Mapping[str, Any]) -> str:
    """Peak and power a mm2."""
    found = result["plausibility"]
    compute, power = found["peak_flops_per_mm2"], found["design_w_per_mm2"]
    return f"{compute['value'] / 1e12:.2f} TFLOP/s and {power['value']:.2f} W a mm2"


def _shipped(figure: Mapping[str, Any], scale: float, unit: str) -> str:
    least = "at least " if figure["shipped_is_lower_bound"] else ""
    return f"{figure['shipped_chip']}, {least}{figure['shipped'] / scale:.2f} {unit}"


def shipped_words(result: Mapping[str, Any]) -> str:
    """The densest shipped chips beside it."""
    found = result["plausibility"]
    compute, power = found["peak_flops_per_mm2"], found["design_w_per_mm2"]
    note = f"; {found['note']}" if found["note"] else ""
    return f"{_shipped(compute, 1e12, 'TFLOP/s')}; {_shipped(power, 1.0, 'W')} a mm2{note}"


def warning_words(result: Mapping[str, Any]) -> str:
    """What to be warned of, empty if nothing."""
    found = result["plausibility"]
    return f"Warning: {'; '.join(found['warnings'])}. {BELIEF}: {found['reason']}." if found["warnings"] else ""


def near_words(result: Mapping[str, Any]) -> str:
    """How flat the optimum is."""
    proof = result["certificate"]
    near = proof["near"]
    least, most, share = near["at_least"], near["at_most"], f"{near['within']:.0%}".replace("%", " %")
    many = f"{most:,}" if least == most else f"Between {least:,} and {most:,}"
    verb = "is" if most == 1 else "are"
    said = f"{many} of the {proof['chips']:,} chips {verb} within {share} of the answer, itself among them."
    return f"{said} {PROVISIONAL}" if result.get("provisional") else said
