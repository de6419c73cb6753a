"""Figures of a plan in words, from its document: rows of a name and a text."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from phaze.evaluate.utilisation import WORDS
from phaze.options.frameworks import FRAMEWORK_NAMES
from phaze.search.plan_words import offload_words, precision_words, state_words
from phaze.units import show, show_count


def keeping_rows(document: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The precision, what replicas share out, and what waits in the memory of the host, as far as
    it is said."""
    precision = document.get("precision")
    rows = [
        ("precision", "" if precision is None else precision_words(str(precision))),
        ("state", state_words(document)),
        ("offload", offload_words(document)),
    ]
    return [row for row in rows if row[1]]


def exchange_rows(document: Mapping[str, Any]) -> list[tuple[str, str]]:
    """How far experts are shared out, and what exchanging their rows takes."""
    if "exchange_s" not in document:
        return []
    nodes, share = document["expert_nodes"], document["exchange_s"] / document["batch_s"]
    where = f"across {nodes} nodes" if nodes > 1 else "inside a node"
    rows = [
        (
            "experts",
            f"EP {document['expert']} {where}; exchange {share:.0%} of the time{_hidden(document)}",
        )
    ]
    changes = document.get("imbalance_sensitivity") or []
    if changes:
        words = ", ".join(f"{row['slower']:+.1%} at {row['rows']:g}" for row in changes)
        rows.append(
            (
                "imbalance",
                (
                    "the most loaded rank's tokens over the mean, at which the same plan "
                    f"takes {words}"
                ),
            )
        )
    return rows


def _hidden(document: Mapping[str, Any]) -> str:
    """What of the exchange is hidden, in words."""
    if not document.get("exchange_hidden_s") or not document["exchange_s"]:
        return ""
    share = document["exchange_hidden_s"] / document["exchange_s"]
    return ", half of it hidden" if 0.45 < share < 0.55 else f", {share:.0%} of it hidden"


def unit_of(document: Mapping[str, Any]) -> str:
    """What a plan's throughput counts: tokens, or samples where the model has no sequence."""
    return "samples" if document["sequence"] == 1 else "tokens"


def batch_text(document: Mapping[str, Any]) -> str:
    """A batch in sequences and in tokens, or in samples."""
    batch, sequence = document["batch"], document["sequence"]
    if unit_of(document) == "samples":
        return f"{batch:,} samples"
    asked = document.get("requested_batch_tokens")
    rounded = (
        "" if asked in (None, batch * sequence) else f" ({show_count(asked)} requested, rounded)"
    )
    return f"{batch:,} sequences of {sequence:,} tokens, {show_count(batch * sequence)}{rounded}"


def flops_text(document: Mapping[str, Any], precision: str) -> str:
    """What MFU and HFU are shares of and how FLOP are counted, with their numbers; documents of
    older releases do not say what of."""
    model, run = (_scaled(document[key]) for key in ("flops_per_token", "run_flops_per_token"))
    peak, full = document.get("device_peak_flops"), document.get("full_flops_per_token")
    if peak is None or full is None:
        return f"MFU counts {model} a token; HFU counts what devices run, {run}"
    named = precision_words(precision).partition(" ")[0]
    return WORDS.format(
        precision=named, peak=show(peak, "FLOP/s"), model=model, full=_scaled(full), run=run
    )


def _scaled(flops: float) -> str:
    return show(flops, "FLOP/s").removesuffix("/s")


def constants_text(trust: Mapping[str, Any]) -> str:
    """Of a chip of clusters: its clock and what software leaves of the rate of its products."""
    left = trust.get("software_share")
    if left is None:
        return ""
    return (
        f"{show(trust['clock_hz'], 'Hz')} held, {left:.2f} of that rate reached by the "
        "software stack"
    )


def launch_words(launch: Mapping[str, Any]) -> str:
    """Which frameworks launch a plan as it is, which otherwise than planned, and which not; phaze
    export says why."""
    groups: dict[str, list[str]] = {"": [], "with deviations ": [], "not ": []}
    for key, target in launch.items():
        kind = (
            "not "
            if target["refused"] is not None
            else "with deviations "
            if target["deviations"]
            else ""
        )
        groups[kind].append(FRAMEWORK_NAMES.get(key, key))
    return "; ".join(f"{kind}{', '.join(names)}" for kind, names in groups.items() if names)


def model_words(job: Mapping[str, Any]) -> str:
    """The model of a job: its name, or its family and sizes."""
    if job.get("family"):
        sizes = job.get("sizes") or {}
        stated = [f"{key} {sizes[key]}" for key in ("layers", "hidden") if key in sizes]
        return ", ".join([str(job["family"]), *stated])
    return str(job["model"] if job.get("model") else Path(str(job.get("graph"))).stem)


def subject_of(document: Mapping[str, Any], model: str = "") -> tuple[str, ...]:
    """What a plan answers, in a line: the model, by the name of its graph where that is at hand,
    batch, devices, network, software."""
    job, cluster = document["job"], document.get("cluster") or {}
    software = f"{job['stack']}, {precision_words(str(job['precision']))}, {job['optimizer']}"
    return (
        model or model_words(job),
        f"global batch {batch_text(document)}",
        f"{int(job['devices']):,} × {job['chip']}",
        str(cluster.get("label") or job["cluster"]),
        software,
    )
