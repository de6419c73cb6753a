"""What someone tries who wants a false certificate to hold: each a change of a good one, made
consistent."""

import copy
from typing import Any

from tests.check.forge import Forgery, Papers


def put(table: str, *path: Any, value: Any) -> Forgery:
    """Put a value into problem, graphs or certificate."""

    def forge(papers: Papers) -> None:
        place = getattr(papers, table)
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = value

    return forge


def times(table: str, *path: Any, by: float) -> Forgery:
    """A number times a factor, whole ones kept whole."""

    def forge(papers: Papers) -> None:
        place = getattr(papers, table)
        for step in path[:-1]:
            place = place[step]
        old = place[path[-1]]
        place[path[-1]] = int(old * by) if isinstance(old, int) else old * by

    return forge


def score(factor: float) -> Forgery:
    return lambda papers: papers.claim(papers.certificate["best"] * factor)


def _slots(change: Any, layer: int = 1, which: int = 1) -> Forgery:
    """Change the rows of a pass of the answer."""

    def forge(papers: Papers) -> None:
        rows = papers.model["schedules"][layer][which]
        papers.model["schedules"][layer][which] = change([list(row) for row in rows])

    return forge


def _sooner(rows: list[list[Any]]) -> list[list[Any]]:
    return [[row[0] / 2, *row[1:]] for row in rows]


def _at_once(rows: list[list[Any]]) -> list[list[Any]]:
    return [[0.0, *row[1:]] for row in rows]


def _all_on(tensor: int, vector: int) -> Any:
    """Every operator on one core of each kind that it may use, as far as a forger guesses."""
    return lambda rows: [[row[0], tensor, vector] for row in rows]


def stage(change: Any) -> Forgery:
    def forge(papers: Papers) -> None:
        papers.model["stages"] = change(copy.deepcopy(papers.model["stages"]))

    return forge


def split(stages: list[Any]) -> list[Any]:
    """The first stage in two, the halves in the wrong order."""
    layers, mode = stages[0]
    half = len(layers) // 2
    return [[layers[half:], mode], [layers[:half], mode], *stages[1:]]


def _multiplier(entry: Any) -> Forgery:
    """One entry for the backward pass of the block, in every graph."""

    def forge(papers: Papers) -> None:
        count = len(papers.graphs["models"][0])
        papers.certificate["multipliers"] = [[[[1, 1, copy.deepcopy(entry)]] for _ in range(count)]]

    return forge


def _false_multiplier(entry: Any) -> Forgery:
    """A multiplier that would prove anything, beside a score that is too good to be the best."""
    return both(_multiplier(entry), lambda papers: papers.claim(papers.certificate["best"]))


def both(*forgeries: Forgery) -> Forgery:
    def forge(papers: Papers) -> None:
        for one in forgeries:
            one(papers)

    return forge


def fusion(change: Any) -> Forgery:
    """Change what is fused in the backward pass of the block of the answer's graph."""

    def forge(papers: Papers) -> None:
        own = papers.certificate["fusion"][0][papers.model["graph"]][1]
        own[1] = change(copy.deepcopy(own[1]))

    return forge


def _first_two_joined(groups: list[list[int]]) -> list[list[int]]:
    return [groups[0] + groups[1], *groups[2:]]


def _lighter(papers: Papers) -> None:
    """Operators of the answer's graph that do half of the work, in that graph alone."""
    for row in papers.layer()["backward"]["operators"]:
        if "k" in row[3]:
            row[3]["k"] //= 2


def _without_bytes(papers: Papers) -> None:
    for row in papers.layer()["forward"]["operators"]:
        row[4] = [[tensor, 0] for tensor, _ in row[4]]


def _own_table(papers: Papers) -> None:
    papers.certificate["lane_operations"] = {"softmax": 1}


def _small_memory(papers: Papers) -> None:
    papers.answer["hbm_bytes"] = 1 << 20


def _listed_small_memory(papers: Papers) -> None:
    papers.problem["hbm_bytes"] = [1 << 20, *papers.problem["hbm_bytes"]]
    papers.answer["hbm_bytes"] = 1 << 20


WAYS = ("problem", "models", 0, "configurations")


def fewer_ways(keep: Any) -> Forgery:
    """Leave out configurations that the claim still lists."""

    def forge(papers: Papers) -> None:
        own = papers.problem["models"][0]
        chosen = (
            papers.model
            if "answer" in papers.certificate
            else papers.certificate["front"][0]["models"][0]
        )
        own["configurations"] = [way for way in own["configurations"] if keep(way, chosen["graph"])]

    return forge


def twice(papers: Papers) -> None:
    own = papers.problem["models"][0]["configurations"]
    own.append(own[0])


def one_zero_less(papers: Papers) -> None:
    """The last stage of ZeRO of every configuration of one graph but the answer's own."""
    for way in papers.problem["models"][0]["configurations"]:
        way["zeros"] = way["zeros"][:-1] or [99]


SEARCHED: dict[str, Forgery] = {
    "only the graph that won": fewer_ways(lambda way, graph: way["graph"] == graph),
    "one graph without a configuration": fewer_ways(
        lambda way, graph: way["graph"] != (graph == 0)
    ),
    "no configuration": fewer_ways(lambda way, graph: False),
    "a configuration twice": twice,
    "a stage of ZeRO less than the claim lists": one_zero_less,
    "a stage of ZeRO that only the claim lists": lambda papers: papers.training["zeros"].append(3),
    "a graph by a truth value": put(*WAYS, 0, "graph", value=False),
    "a graph from the end": put(*WAYS, 0, "graph", value=-1),
    "configurations as a table": put(*WAYS, value={}),
}
"""What was searched is less than what the claim lists."""
CHIP = ("certificate", "answer", "chip")
LEVEL = ("models", 0, "training", "machine", "cluster", "levels", 0)
STACK = ("models", 0, "training", "machine", "stack")

REFUSED: dict[str, Forgery] = {
    # the score
    "a score that is too good": score(0.999),
    "a score that is far too good": score(0.5),
    "a score that is a little too good": score(1 - 1e-7),
    "a score that is too bad": score(1.001),
    "a score of zero": score(0.0),
    "a negative score": score(-1.0),
    "a score that is a text": put("certificate", "best", value="0.1"),
    "a score that is true": put("certificate", "best", value=True),
    "a bound above the score": put("certificate", "bound", value=1e9),
    "a bound that is not that of the gap": times("certificate", "bound", by=0.99),
    "a negative gap": put("certificate", "gap", value=-0.1),
    "a gap above one": put("certificate", "gap", value=1.5),
    # the chip and its memory
    "a chip with more cores than the space has": put(*CHIP, "tensor_cores", value=4096),
    "a chip with twice the clock": times(*CHIP, "clock", by=2.0),
    "a chip with twice the HBM bandwidth": times(*CHIP, "hbm_bandwidth", by=2.0),
    "a chip with a larger core buffer": times(*CHIP, "tensor_buffer", by=2),
    "a chip with a field too many": put(*CHIP, "voltage", value=1.0),
    "a chip of NaN": put(*CHIP, "rows", value=float("nan")),
    "no chip": put("certificate", "answer", "chip", value={}),
    "a memory that the study does not have": _small_memory,
    "a memory into which nothing fits": _listed_small_memory,
    # schedules
    "a schedule in half the time": _slots(_sooner),
    "a schedule in which all starts at once": _slots(_at_once),
    "a schedule with a negative start": _slots(lambda rows: [[-1.0, *rows[0][1:]], *rows[1:]]),
    "a schedule on cores that do not exist": _slots(_all_on(10_000, 10_000)),
    "a schedule on the wrong kinds of core": _slots(_all_on(0, 0)),
    "a schedule on half a core": _slots(lambda rows: [[row[0], 0.5, None] for row in rows]),
    "a schedule with an operator less": _slots(lambda rows: rows[:-1]),
    "a schedule with an operator more": _slots(lambda rows: [*rows, rows[-1]]),
    "a schedule with operators changed round": _slots(lambda rows: rows[::-1]),
    "an empty schedule": _slots(lambda rows: []),
    "a schedule of texts": _slots(lambda rows: [["0", None, None] for _ in rows]),
    "a schedule of infinities": _slots(lambda rows: [[1e308 * 10, None, None] for _ in rows]),
    "forward and backward pass changed round": lambda papers: papers.model["schedules"][
        1
    ].reverse(),
    "no schedules": put("certificate", "answer", "models", 0, "schedules", value=[]),
    # stages
    "more replicas than devices": times("certificate", "answer", "models", 0, "data", by=64),
    "half a replica": put("certificate", "answer", "models", 0, "data", value=0.5),
    "no replica": put("certificate", "answer", "models", 0, "data", value=0),
    "a layer in no stage": stage(lambda stages: [[stages[0][0][:-1], stages[0][1]], *stages[1:]]),
    "a layer in two stages": stage(lambda stages: [*stages, [[stages[-1][0][-1]], "none"]]),
    "a layer that does not exist": stage(
        lambda stages: [[[*stages[0][0], 10_000], stages[0][1]], *stages[1:]]
    ),
    "an empty stage": stage(lambda stages: [*stages, [[], "none"]]),
    "no stages": stage(lambda stages: []),
    "stages in the wrong order": stage(split),
    "a last stage that recomputes": stage(lambda stages: [*stages[:-1], [stages[-1][0], "full"]]),
    "a mode that there is not": stage(lambda stages: [*stages[:-1], [stages[-1][0], "free"]]),
    "a configuration that the study does not have": put(
        "certificate", "answer", "models", 0, "recompute", value="best"
    ),
    "another graph than the one that was scheduled": lambda papers: papers.model.update(
        graph=(papers.model["graph"] + 1) % len(papers.graphs["models"][0])
    ),
    "a graph that does not exist": put("certificate", "answer", "models", 0, "graph", value=99),
    # multipliers
    "a multiplier above one": _false_multiplier([[[2.0, [0]]], 0.0, 0.0]),
    "a negative multiplier": _false_multiplier([[[-1.0, [0]], [1.0, [1]]], 0.0, 0.0]),
    "a chain that is none": _false_multiplier([[[1.0, list(range(20))[::-1]]], 0.0, 0.0]),
    "a chain with an operator twice": _false_multiplier([[[1.0, [0, 0, 0, 0]]], 0.0, 0.0]),
    "a chain of an operator that is not there": _false_multiplier([[[1.0, [500]]], 0.0, 0.0]),
    "a multiplier that is not a number": _false_multiplier([[["1", [0]]], 0.0, 0.0]),
    "a share of cores above one": _false_multiplier([[], 5.0, 0.0]),
    "multipliers of a pass that is not there": lambda papers: papers.certificate.update(
        multipliers=[[[[1, 2, [[], 1.0, 0.0]]] for _ in papers.graphs["models"][0]]]
    ),
    # fusion
    "an operator that is left out": fusion(lambda groups: groups[:-1]),
    "an operator that is done twice": fusion(lambda groups: [*groups, groups[-1]]),
    "an operator of another pass": fusion(lambda groups: [[*groups[0], 0], *groups[1:]]),
    "operators in an order that cannot run": fusion(lambda groups: groups[::-1]),
    "operators fused in the answer's graph alone": fusion(_first_two_joined),
    # graphs and tables
    "half of the work in the answer's graph": _lighter,
    "no bytes in the answer's graph": _without_bytes,
    "another cost model": put("certificate", "cost_model", value="0" * 64),
    "tables of its own": _own_table,
    "a graph of another microbatch": put("graphs", "models", 0, 0, "microbatch", value=64),
    "a graph less than the problem has": lambda papers: papers.graphs["models"][0].pop(),
    "another schema": put("certificate", "schema", value="phaze.certificate/2"),
    # the job, changed behind the answer's back
    "a faster link": times("problem", *LEVEL, "bandwidth_bytes_per_s", by=8.0),
    "twice the devices": times("problem", "models", 0, "training", "devices", by=2),
    "twice the batch": times("problem", "models", 0, "training", "batch", by=2),
    "more bytes a parameter": times("problem", *STACK, "state_bytes", by=1e6),
    "a faster base chip": times("problem", "space", "base", "clock_hz", by=2.0),
    "operators that start at no cost, then at one": put(
        "problem", "models", 0, "training", "constants", "start_up_s", value=1e-3
    ),
    "a negative bandwidth": times("problem", *LEVEL, "bandwidth_bytes_per_s", by=-1.0),
    "a negative area": times("problem", "space", "base", "process", "area", "mac_mm2", by=-1.0),
    "residency said twice": put("problem", "residency", value=False),
    "residency that is not a truth value": put("problem", "residency", value="yes"),
    # numbers that are none, or too many
    "a score of minus nothing": put("certificate", "best", value=-0.0),
    "a score as a whole number of 400 digits": put("certificate", "best", value=10**400),
    "devices as a whole number of 400 digits": put(
        "problem", "models", 0, "training", "devices", value=10**400
    ),
    "a batch of minus nothing": put("problem", "models", 0, "training", "batch", value=-0.0),
    "a batch of many": put("problem", "models", 0, "training", "batch", value=2**62),
    "a batch of half a sequence": put("problem", "models", 0, "training", "batch", value=16.5),
    "a number in other digits": put("certificate", "best", value="\u0661"),
    "memory of minus nothing": put("problem", "hbm_bytes", value=[-0.0]),
    "memories that fall": lambda papers: papers.problem["hbm_bytes"].reverse(),
    "no memory": put("problem", "hbm_bytes", value=[]),
    "an axis of nothing": lambda papers: papers.problem["space"]["axes"].update(rows=[]),
    "an axis of half an array": lambda papers: papers.problem["space"]["axes"]["rows"].append(0.5),
    "an axis of a negative": lambda papers: papers.problem["space"]["axes"]["rows"].append(-128),
    "an axis in capitals": lambda papers: papers.problem["space"]["axes"].update(
        Rows=papers.problem["space"]["axes"].pop("rows")
    ),
    "a certificate's key in capitals": lambda papers: papers.certificate.update(
        Best=papers.certificate.pop("best")
    ),
    "an answer in capitals": lambda papers: papers.model.update(Data=papers.model.pop("data")),
    "a graph without layers": put("graphs", "models", 0, 0, "layers", value=[]),
    "a graph without calls": put("graphs", "models", 0, 0, "calls", value=[]),
    "a graph that goes round": lambda papers: papers.graphs["models"][0][papers.model["graph"]][
        "edges"
    ].append([5, 2, 1.0, 1.0]),
    "an edge from a call to itself": lambda papers: papers.graphs["models"][0][
        papers.model["graph"]
    ]["edges"].append([2, 2, 1.0, 1.0]),
    "an edge of negative bytes": lambda papers: papers.graphs["models"][0][papers.model["graph"]][
        "edges"
    ].append([2, 3, -1e12, 1.0]),
    "a layer of negative parameters": lambda papers: papers.layer().update(
        parameters=[[*row[:2], -1, *row[3:]] for row in papers.layer()["parameters"]]
    ),
    "the documents of another run's graphs": lambda papers: papers.graphs.update(
        models=[papers.graphs["models"][0][::-1]]
    ),
    "no model": both(put("problem", "models", value=[]), put("graphs", "models", value=[])),
    "a weight of nothing": put("problem", "models", 0, "weight", value=0.0),
    "a mean of luck over one model": put("problem", "objective", "kind", value="Throughput"),
    **SEARCHED,
}


def half(papers: Papers) -> None:
    papers.certificate["gap"] = 0.5
    papers.claim(papers.certificate["best"])


def _least_memory(papers: Papers) -> None:
    papers.problem["hbm_bytes"] = papers.problem["hbm_bytes"][:1]


HONEST_ABOUT_ANOTHER: dict[str, tuple[Forgery, str]] = {
    "a gap of one half": (half, "claim"),
    "a gap of one, which claims nothing": (
        both(
            put("certificate", "gap", value=1.0),
            lambda papers: papers.claim(papers.certificate["best"]),
        ),
        "claim",
    ),
    "a memory dropped": (_least_memory, "memories"),
    "a larger share of the area": (
        put("problem", "space", "keep", "least_share", value=0.01),
        "space",
    ),
    "another area of a unit": (
        times("problem", "space", "base", "process", "area", "mac_mm2", by=1e-3),
        "space",
    ),
    "a static power that nothing asks for": (
        times("problem", "space", "base", "process", "energy", "static_w_per_mm2", by=2.0),
        "space",
    ),
}
"""True theorems about other questions: what they are about stands in the line of the claim that
begins so."""
