"""A search: the line that is live while it runs, and its answer."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from phaze.hardware.formats import PLAIN
from phaze.report.answer_text import (
    basis_words,
    density_words,
    job_words,
    near_words,
    network_words,
    shipped_words,
    warning_words,
)
from phaze.report.plan_text import (
    batch_text,
    exchange_rows,
    flops_text,
    idle_rows,
    keeping_rows,
    left_text,
    mfu_text,
    rate_text,
    training_rows,
)
from phaze.report.progress import Progress
from phaze.report.proof_text import proof_table
from phaze.report.sections import Cell, Figures, Meter, Notes, Section
from phaze.search.plan_words import degree_words, recompute_words, shared_words
from phaze.units import show

if TYPE_CHECKING:
    from phaze.search.state import Standing


def shown_on(progress: Progress) -> "Callable[[Standing], None]":
    """What shows how far a search is: every chip that is still open may turn out to be closed by a
    bound."""

    def watch(standing: "Standing") -> None:
        gap = f"gap {standing.gap:.3%}" if standing.best < float("inf") else "nothing fits yet"
        what = f"searching ({gap}, {standing.bound:,} pruned by bound), chips evaluated"
        progress.count(standing.evaluated, standing.evaluated + standing.open, what, at_most=True)

    return watch


def _again(model: Mapping[str, Any]) -> str:
    return recompute_words(model["plan"], model["recompute"]) + (
        f", ZeRO {model['zero']}" if model["zero"] else ""
    )


def _stages(plan: Mapping[str, Any]) -> str:
    sizes = [len(stage["layers"]) for stage in plan["stages"]]
    shown = " ".join(map(str, sizes[:12])) + (" ..." if len(sizes) > 12 else "")
    words = [degree_words(plan), *shared_words({**plan, "shard": 0})]
    words += [f"VPP {plan['chunks']}"] if plan.get("chunks", 1) > 1 else []
    words += [str(plan["family"])] if plan.get("family") else []
    return ", ".join(
        [*words, f"{shown} layers a stage" if len(sizes) == 1 else f"layers by stage {shown}"]
    )


def _fullest(plan: Mapping[str, Any], hbm_bytes: float) -> Meter:
    need = max(float(stage["memory_bytes"]) for stage in plan["stages"])
    return Meter(
        need / hbm_bytes, f"{need / hbm_bytes:.0%} of {show(hbm_bytes, 'B')} in the fullest stage"
    )


def _cores(chip: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What a chip is made of: cores, or clusters at the clock that they hold."""
    clusters = chip.get("clusters")
    if clusters is None:
        return [
            ("tensor cores", f"{chip['tensor_cores']} of {chip['rows']} x {chip['columns']}"),
            ("vector cores", f"{chip['vector_cores']} of {chip['lanes']} lanes"),
        ]
    arrays = (
        f"{clusters['arrays']} arrays of {chip['rows']} x {chip['columns']} and "
        f"{chip['lanes']} lanes"
    )
    held, most = chip["clock_hz"] / 1e9, clusters["clock_hz"] / 1e9
    return [
        ("clusters", f"{clusters['count']} of {arrays}, {clusters['built']} built"),
        ("registers", f"{show(clusters['register_bytes'], 'B')} a cluster"),
        ("operands", f"{show(clusters['operand_bytes'], 'B')} a cluster"),
        ("clock", f"{held:.2f} of {most:.2f} GHz held at {chip['design_power_w']:.0f} W"),
        ("HBM stacks", f"{clusters['hbm_stacks']}, on a die of {clusters['die_mm2']:.0f} mm2"),
    ]


def _peak(chip: Mapping[str, Any]) -> str:
    """The peak at the rated clock, which a chip of clusters need not hold."""
    rated_hz = (chip.get("clusters") or chip)["clock_hz"]
    return f"{show(chip['peak_flops'], 'FLOP/s')} at {show(rated_hz, 'Hz')}"


def _chip(result: Mapping[str, Any]) -> Figures:
    chip, links = result["chip"], (result.get("cluster") or {}).get("links")
    rows = [
        *_cores(chip),
        ("global buffer", show(chip["global_buffer_bytes"], "B")),
        ("HBM", show(chip["hbm_bytes"], "B")),
        ("area", show(chip["area_mm2"], "mm2")),
        ("cost", f"manufactured for {show(chip['making_usd'], 'USD')} with its HBM"),
        ("peak", _peak(chip)),
        ("density", density_words(result)),
        ("densest shipped", shipped_words(result)),
        ("process", result["setting"]["process"]),
        ("network", network_words(result)),
        ("job", job_words(result)),
        ("times", basis_words(result)),
    ]
    return Figures(rows, chip["name"], notes=[f"note: {links}"] if links else [])


def _model(result: Mapping[str, Any], model: Mapping[str, Any]) -> Figures:
    rows: list[tuple[str, Cell]] = [
        ("throughput", f"{model['throughput_per_s']:,.6g} sequences/s"),
        ("tokens", rate_text(model)),
        ("MFU, HFU", mfu_text(model)),
        *idle_rows(model),
        ("global batch", batch_text(model)),
        ("step time", show(model["batch_s"], "s")),
        (
            "energy",
            f"{show(model['energy_j'], 'J')} a step, {show(model['power_w'], 'W')} a device",
        ),
        ("microbatch", f"{model['microbatch']}, recompute {_again(model)}"),
        ("plan", _stages(model["plan"])),
        *keeping_rows({**model, "data": model["plan"]["data"]}),
        *exchange_rows(model),
        ("memory", _fullest(model["plan"], float(result["chip"]["hbm_bytes"]))),
        *([("memory left", left_text(model["memory_left"]))] if "memory_left" in model else []),
        *training_rows(model.get("training_run")),
    ]
    notes = [flops_text(model, result["setting"].get("precision", PLAIN)), *model.get("notes", ())]
    return Figures(rows, model["name"], notes=[f"note: {note}" for note in notes])


def _regrets(result: Mapping[str, Any]) -> list[Section]:
    if "regrets" not in result["objective"]:
        return []
    names = [model["name"] for model in result["models"]]
    rows = [
        (name, f"{regret:.2%}")
        for name, regret in zip(names, result["objective"]["regrets"], strict=True)
    ]
    return [Figures(rows, "Regret", "against each model's own best chip")]


def result_sections(
    result: Mapping[str, Any], folder: str, work: str = "", page: bool = True
) -> list[Section]:
    """The answer of a search; ``work`` says what it took, ``page`` whether there is one."""
    proof, warning = result["certificate"], warning_words(result)
    sentence = f"Nothing in the space is better by more than {proof['gap']:.2g} of the score."
    notes = [sentence, near_words(result), *([work] if work else [])]
    places = [f"The run: {folder}", *([f"Its page: {folder}/report.html"] if page else [])]
    return [
        _chip(result),
        *([Notes([warning])] if warning else []),
        *(_model(result, model) for model in result["models"]),
        *_regrets(result),
        replace(proof_table(proof), notes=notes),
        Notes(places, verbatim=True),
    ]
