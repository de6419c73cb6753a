"""Figures of a plan in words, from its document: rows of a name and a text."""

from collections.abc import Mapping
from typing import Any

from phaze.evaluate.idle import idle_words
from phaze.evaluate.utilisation import WORDS
from phaze.options.frameworks import FRAMEWORK_NAMES
from phaze.search.plan_words import offload_words, precision_words, shared_words, state_words
from phaze.units import digits, show, show_count


def shared_text(document: Mapping[str, Any]) -> str:
    """Ranks that share a sequence, and experts, where a plan has some; how state is shared out has
    its own row."""
    return "".join(f"{words}, " for words in shared_words({**document, "shard": 0}))


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


def left_text(left: Mapping[str, Any]) -> str:
    """What a plan leaves of a device's memory, and how far an estimate of memory may be off."""
    band = left["band"]
    share = (
        "none"
        if left["left_bytes"] < 0
        else f"{show(left['left_bytes'], 'B')}, {left['left_share']:.1%}"
    )
    kept = f" ({100 * left['headroom']:.3g} % kept free)" if left["headroom"] else ""
    chance = left.get("fits_probability")
    fits = "" if chance is None else f"; it fits with a chance of {chance:.0%}"
    return (
        f"{share}{kept}{fits}; estimates are off by {band['median']:.0%} (median) to "
        f"{band['ninetieth']:.0%} (90th)"
    )


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


def rate_text(document: Mapping[str, Any]) -> str:
    """Tokens or samples a second, of all devices and of one."""
    rate, each = document["tokens_per_s"], document["tokens_per_s_per_device"]
    return (
        f"{rate:,.0f} a second, {each:,.0f} a device"
        if each >= 100
        else f"{rate:,.4g} a second, {each:.3g} a device"
    )


def mfu_text(document: Mapping[str, Any]) -> str:
    """Both shares of peak."""
    devices = document.get("devices") or document["devices_used"]
    return f"{document['mfu']:.1%}, {document['hfu']:.1%} of {devices:,} devices"


def idle_rows(document: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Devices that are bought and do nothing; nothing where all of them work."""
    words = idle_words(document)
    return [("devices", words)] if words else []


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


def _known(value: float | None, unit: str, basis: str) -> str:
    return f"{unit} unknown: {basis}" if value is None else f"{digits(value)} {unit}"


def training_rows(run: Mapping[str, Any] | None) -> list[tuple[str, str]]:
    """What a whole training run takes, and on what terms; nothing where no tokens were given."""
    if run is None:
        return []
    terms = run["terms"]
    usd, kwh = (
        _known(run["usd"], "USD", run["usd_basis"]),
        _known(run["kwh"], "kWh", run["power_basis"]),
    )
    carbon = "" if run["kgco2e"] is None else f", {digits(run['kgco2e'])} kg CO2e"
    known = [run["usd_basis"]] if run["usd"] is not None else []
    known += (
        [run["power_basis"], f"PUE {terms['power_usage_effectiveness']:g}"]
        if run["kwh"] is not None
        else []
    )
    known += (
        [f"{terms['grid_kgco2e_per_kwh']:g} kg CO2e a kWh"] if run["kgco2e"] is not None else []
    )
    head = f"{run['days']:,.3g} days, {digits(run['device_hours'])} device hours"
    return [
        (f"{show_count(run['tokens'])} tokens", f"{head}, {usd}, {kwh}{carbon}"),
        ("terms", f"{terms['name']}: {'; '.join(known)}"),
    ]


def constants_text(trust: Mapping[str, Any]) -> str:
    """Of a chip of clusters: its clock and what software leaves of the rate of its products."""
    left = trust.get("software_share")
    if left is None:
        return ""
    return (
        f"{show(trust['clock_hz'], 'Hz')} held, {left:.2f} of that rate reached by the "
        "software stack"
    )


def launch_rows(document: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Which frameworks launch a plan as it is, which otherwise than planned, and which not; phaze
    export says why."""
    launch: Mapping[str, Any] = document.get("launch") or {}
    groups: dict[str, list[str]] = {"": [], "with deviations ": [], "not ": []}
    for key, told in launch.items():
        kind = (
            "not "
            if told["refused"] is not None
            else "with deviations "
            if told["deviations"]
            else ""
        )
        groups[kind].append(FRAMEWORK_NAMES.get(key, key))
    words = "; ".join(f"{kind}{', '.join(names)}" for kind, names in groups.items() if names)
    return [("launched by", words)] if words else []


def lever_rows(levers: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What would make a given plan fit, each change alone."""
    texts = {
        "hbm_bytes": lambda value: f"at least {show(value, 'B')} a device",
        "devices": lambda value: f"{value:,}, the pipeline deeper, as many replicas",
        "tensor": lambda value: f"TP {value}, as many replicas as there are devices for",
        "zero": lambda value: f"stage {value}",
    }
    return [
        (
            name.removesuffix("_bytes"),
            "does not help alone" if value is None else texts.get(name, str)(value),
        )
        for name, value in levers.items()
    ]
