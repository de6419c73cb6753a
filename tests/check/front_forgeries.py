"""What someone tries who wants a false front to hold: each a change of a good one, made
consistent."""

import copy
from typing import Any

from tests.check.forge import Forgery, Papers
from tests.check.forgeries import SEARCHED, both, put, times

FRONT = ("certificate", "front")
TRAINING = ("problem", "models", 0, "training")


def _rows(change: Any) -> Forgery:
    def forge(papers: Papers) -> None:
        papers.certificate["front"] = change(copy.deepcopy(papers.certificate["front"]))

    return forge


def _without(at: int) -> Forgery:
    return _rows(lambda rows: [row for place, row in enumerate(rows) if place != at % len(rows)])


def _exchanged(key: str) -> Forgery:
    """Two designs say of themselves what is true of the other."""

    def change(rows: list[Any]) -> list[Any]:
        rows[0][key], rows[-1][key] = rows[-1][key], rows[0][key]
        return rows

    return _rows(change)


def _value(at: int, metric: int, factor: float) -> Forgery:
    return times(*FRONT, at, "values", metric, by=factor)


def _limit(name: str, value: float) -> Forgery:
    return put("problem", "front", "within", name, value=value)


def _model(change: Any, at: int = -1) -> Forgery:
    def forge(papers: Papers) -> None:
        papers.certificate["front"][at]["models"][0].update(
            change(papers.certificate["front"][at]["models"][0])
        )

    return forge


def _halved(model: dict[str, Any]) -> dict[str, Any]:
    return {"stages": model["stages"][: len(model["stages"]) // 2]}


EITHER: dict[str, Forgery] = {
    "the first design left out": _without(0),
    "a design of the middle left out": _without(2),
    "only one design": _rows(lambda rows: rows[:1]),
    "only the fastest design": _rows(lambda rows: [min(rows, key=lambda row: row["values"][0])]),
    "no design": _rows(lambda _: []),
    "a design twice": _rows(lambda rows: [*rows, rows[0]]),
    "more throughput than there is": _value(0, 0, 0.999),
    "more throughput of the last": _value(-1, 0, 0.5),
    "less area or price than there is": _value(0, 1, 0.99),
    "less throughput, to cover less": _value(1, 0, 1.001),
    "values of another design": _exchanged("values"),
    "chip of another design": _exchanged("chip"),
    "a value that is not a number": put(*FRONT, 0, "values", 0, value="0.1"),
    "a value that is not finite": put(*FRONT, 0, "values", 0, value=1e400),
    "a value too few": _rows(lambda rows: [{**row, "values": row["values"][:-1]} for row in rows]),
    "no model": _rows(lambda rows: [{**row, "models": []} for row in rows]),
    "a key more": _rows(lambda rows: [{**row, "sure": True} for row in rows]),
    "memory that the problem does not have": put(*FRONT, 0, "hbm_bytes", value=1 << 50),
    "more replicas than devices": _model(lambda model: {"data": model["data"] * 64}),
    "half of the layers": _model(
        lambda model: {"stages": [[layers[::2], m] for layers, m in model["stages"]]}
    ),
    "stages in another order": _model(
        lambda model: {"stages": [[layers[1:], mode] for layers, mode in model["stages"]]}
    ),
    "a graph that there is none of": _model(lambda _: {"graph": 99}),
    "recompute that there is none of": _model(lambda _: {"recompute": "sometimes"}),
    "another metric": put("problem", "front", "of", 1, value="embodied"),
    "a metric twice": put("problem", "front", "of", 1, value="throughput"),
    "a metric that there is none of": put("problem", "front", "of", 1, value="beauty"),
    "metrics exchanged": lambda papers: papers.problem["front"]["of"].reverse(),
    "a limit below its designs": _limit("area", 1.0),
    "a power limit below its designs": _limit("power", 1.0),
    "a limit on throughput above its designs": _limit("throughput", 1e12),
    "another batch": put(*TRAINING, "batch", value=24),
    "certificate of another schema": put("certificate", "schema", value="phaze.front/1"),
    "another cost model": put("certificate", "cost_model", value="0" * 64),
    "negative gap": put("certificate", "gap", value=-0.5),
    "an answer beside the front": put("certificate", "answer", value=None),
    **{name: SEARCHED[name] for name in SEARCHED if "only the claim" not in name},
}
OF_CORES: dict[str, Forgery] = {
    "plans of another design": both(_exchanged("models"), _exchanged("hbm_bytes")),
    "faster links": times(
        *TRAINING, "machine", "cluster", "levels", 0, "bandwidth_bytes_per_s", by=1000
    ),
    "area constants": times("problem", "space", "base", "process", "area", "mac_mm2", by=1.001),
    "schedules that begin sooner": _model(
        lambda model: {
            "schedules": [
                [[[slot[0] / 2, *slot[1:]] for slot in rows] for rows in own]
                for own in model["schedules"]
            ]
        }
    ),
    "an axis cut short": lambda papers: papers.problem["space"]["axes"]["rows"].pop(),
}
OF_CLUSTERS: dict[str, Forgery] = {
    "the last design left out": _without(-1),
    "fewer devices": put(*TRAINING, "devices", value=7),
    "a limit taken away": lambda papers: papers.problem["front"]["within"].clear(),
    "a wider limit": _limit("power", 1e6),
    "a limit on another metric": lambda papers: papers.problem["front"].update(
        within={"area": 1e6}
    ),
    "cheaper packages": put("problem", "ownership", "package_usd", value=1.0),
    "cheaper wafers": times(
        "problem", "space", "base", "clusters", "node", "fab", "wafer_usd", by=0.99
    ),
    "watts of another node": times(
        "problem", "space", "base", "clusters", "node", "energy", "mac_j", by=0.5
    ),
    "memory of other stacks": put(*FRONT, 0, "hbm_bytes", value=64 << 30),
    "half of the stages": _model(_halved),
    "a ZeRO stage that is none": _model(lambda _: {"zero": 4}),
    "chunks without blocks": _model(lambda _: {"chunks": 7}),
}
