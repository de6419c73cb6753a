"""A plan as a command prints it (``phaze.plan/1``), held against the question that it answers:
every figure, by the price that certificates are checked with. That no plan is faster is not shown
here.

The question is a document too: rules as values, devices, memory, network, and of every tensor width
the layers with their seconds and bytes.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import fsum, inf
from typing import Any

import numpy as np

from .events import events_range
from .families import Family
from .formats import Held
from .job import ROUNDING, Job, Shape
from .network import network_of
from .plan_graph import LayerBytes, LayerSeconds, PlanGraph, StatedMode, Tie
from .pricing import NOT_ONCE, Plan, PlanPrice, broken_rules, holds_all, in_even_chunks, price_of
from .stack import LAUNCHES_A_CHUNK, Stack

TOLERANCE = 1e-9
"""Sums in another order differ in the last bits; a forged figure by more."""
TRANSFERS = ("forward_transfer_s", "backward_transfer_s")
DEGREES = ("context", "expert", "expert_tensor")
Table = Mapping[str, Any]
StatedStage = tuple[tuple[int, ...], str]
"""The calls of a stage, and its mode of recompute."""


def _same(stated: Any, true: float) -> bool:
    is_number = isinstance(stated, int | float) and not isinstance(stated, bool)
    return is_number and abs(stated - true) <= TOLERANCE * abs(true)


def _layer(row: Table, sent: float, group: int) -> LayerBytes:
    every, selective = row["activation_bytes"], row["selective_bytes"]
    between = [StatedMode(more["bytes"], more["live_bytes"]) for more in row["more"]]
    frozen = row["frozen"]
    return LayerBytes(
        modes=(
            StatedMode(every),
            StatedMode(every if selective is None else selective),
            *between,
            StatedMode(0.0),
        ),
        parameters=row["parameter_bytes"] / sent,
        logit_bytes=row["live_bytes"],
        buffer_bytes=row["buffer_bytes"],
        experts=row["expert_bytes"] / sent if group > 1 else 0.0,
        frozen=frozen["bytes"] / sent,
        frozen_experts=frozen["expert_bytes"] / sent if group > 1 else 0.0,
        buffer_kind=row["kind"] if row["kind"] >= 0 else None,
        sharded=row["sharded"],
    )


def _again(row: Table) -> list[float]:
    """Seconds that a layer runs again in each mode."""
    selective = row["selective_s"] if row["selective_bytes"] is not None else 0.0
    full = row["forward_s"] if row["full_s"] is None else row["full_s"]
    return [0.0, selective, *(more["again_s"] for more in row["more"]), full]


def _ties(rows: Sequence[tuple[str | None, float]], sent: float) -> tuple[Tie, ...]:
    """Calls that share parameters, by the name of what they share."""
    names = sorted({name for name, _ in rows if name is not None})
    found = []
    for name in names:
        calls = tuple(at for at, (own, _) in enumerate(rows) if own == name)
        found.append(Tie(calls, rows[calls[0]][1] / sent))
    return tuple(found)


def graph_of(question: Table, width: str) -> tuple[PlanGraph, LayerSeconds]:
    """The layers of a width, and their seconds."""
    rows, edges = question["widths"][width]["layers"], question["widths"][width]["edges"]
    sharing, sent = question["sharing"], question["sent_bytes"]
    group = sharing["expert"] * sharing["expert_tensor"]
    blocks = tuple(row["block"] for row in rows)
    graph = PlanGraph(
        tensor=int(width) // sharing["context"],
        microbatch=1,
        names=("none", "selective", *(more["name"] for more in rows[0]["more"]), "full"),
        layers=tuple(_layer(row, sent, group) for row in rows),
        calls=tuple(range(len(rows))),
        block=blocks,
        equal=any(blocks),
        edges=tuple((tail, head, size) for tail, head, size in edges),
        ties=_ties([(row["tied"], row["tied_bytes"]) for row in rows], sent),
        context=sharing["context"],
        group=group,
        low=question["rules"]["weight_wire"],
        still=_ties([(row["frozen"]["tied"], row["frozen"]["tied_bytes"]) for row in rows], sent),
        every_mode=True,
    )
    forward, backward = (
        np.array([[row[name]] for row in rows]) for name in ("forward_s", "backward_s")
    )
    weight = np.array([[row["weight_s"] or 0.0] for row in rows])
    again = np.array([_again(row) for row in rows]).T[:, :, None]
    unmet = np.array([[row["beside_s"]] for row in rows])
    runs = question["rules"]["exchange_beside"] and sharing["expert"] > 1
    return graph, LayerSeconds(forward, backward, again, weight, True, unmet if runs else None)


def job_of(question: Table) -> Job:
    """What the price depends on beside the layers."""
    rules, state = question["rules"], question["state"]
    stack = Stack(
        host=rules["piece_start_s"] / LAUNCHES_A_CHUNK,
        reducing=rules["reduction_cost"],
        gathering=rules["gather_cost"],
        sharding=rules["sharded_cost"],
        bucket=rules["bucket"],
        agrees=rules["norm"],
        pause=rules["host_s"],
        reserve=question["reserve_bytes"],
        scatters=question["scatter_gather"],
        overlapped=rules["overlapped_transfers"],
        trades=rules["exchange_beside"],
        paired=rules["prefetch"] == "layer",
        arriving=rules["stage"] == "icml24",
        link=inf if rules["link_bytes_per_s"] is None else rules["link_bytes_per_s"],
        first_end=rules["end"] == "first",
        unsplit=rules["unsplit_stages"],
        last_recomputes=rules["last_stage_recomputes"],
    )
    moved, sent = question["optimizer_traffic_bytes"], question["sent_bytes"]
    held = Held(
        state["weight"], state["gradient"], state["optimizer"], moved, sent, rules["gradient_wire"],
        rules["weight_wire"], question["zeroed_bytes"],
    )  # fmt: skip
    network = network_of(question["cluster"], question["prices"])
    return Job(
        question["devices"],
        question["microbatches"],
        stack,
        network,
        held,
        question["headroom"],
        None,
    )


@dataclass(frozen=True, slots=True)
class PlanUnderCheck:
    """A plan that is stated, with what it is priced by."""

    question: Table
    document: Table
    graph: PlanGraph
    times: LayerSeconds
    job: Job
    plan: Plan

    def faults(self) -> Iterator[str]:
        """All that the document says and that is not so."""
        recompute = self.question["recompute"]
        modes = self.question["rules"]["modes"] if recompute == "best" else [recompute]
        broken = list(broken_rules(self.graph, self.job, self.plan, modes))
        # A plan that is given may have uneven chunks; nothing is proved of it, and its bound is 0.
        if (
            not broken
            and self.document["lower_bound_s"] > 0
            and not in_even_chunks(self.graph, self.plan)
        ):
            broken.append("the blocks of a stage are not a multiple of its chunks")
        if broken:
            yield from broken
            return
        rate = self.question["hbm_bytes_per_s"]
        price = price_of(self.graph, self.job, self.plan, self.times, inf if rate is None else rate)
        used = self.plan.shape.data * sum(stage.devices for stage in price.stages)
        if used > self.job.devices:
            yield f"the plan takes {used} devices, more than the {self.job.devices} there are"
            return
        yield from self._stages(price)
        yield from self._memory()
        yield from self._breakdown(price)
        yield from self._totals(price)
        yield from self._events(price)
        yield from self._rates(price, used)

    def _stages(self, price: PlanPrice) -> Iterator[str]:
        for at, (stage, row) in enumerate(zip(price.stages, self.document["stages"], strict=True)):
            true = {
                "forward_s": stage.passes[0] - stage.sent[0],
                "backward_s": stage.passes[1] - stage.sent[1],
                "time_s": stage.time,
                "memory_bytes": stage.need,
                "devices": stage.devices,
            }
            true |= {
                name: sent
                for name, sent in zip(TRANSFERS, stage.sent, strict=True)
                if sent or name in row
            }
            if self.plan.shape.family.split:
                true["weight_s"] = stage.weight
            for name, value in true.items():
                if not _same(row.get(name), value):
                    yield f"stages[{at}]: {name} should be {value!r}"
            for name, value in stage.memory.items():
                if not _same(row["memory"].get(name), value):
                    yield f"stages[{at}]: memory.{name} should be {value!r}"

    def _memory(self) -> Iterator[str]:
        """A need that differs from the memory by rounding only may be called either."""
        most = max(row["memory_bytes"] for row in self.document["stages"])
        there = self.question["hbm_bytes"] * (1 - self.job.headroom)
        if self.document["feasible"] and most > there * (1 + ROUNDING + TOLERANCE):
            yield f"feasible is wrong: {most!r} bytes are needed and there are {there!r}"
        if not self.document["feasible"] and most < there * (1 + ROUNDING - TOLERANCE):
            yield f"feasible is wrong: {most!r} bytes are enough, as there are {there!r}"

    def _breakdown(self, price: PlanPrice) -> Iterator[str]:
        """Stages that tie for the slowest differ in the last bits only, and the breakdown may show
        any one of them."""
        stated, room = self.document["breakdown"], TOLERANCE * price.batch
        slowest = max(stage.time for stage in price.stages)
        possible = [
            price.breakdown(self.plan.rounds, stage)
            for stage in price.stages
            if _same(stage.time, slowest)
        ]
        if set(stated) != set(possible[0]) or abs(fsum(stated.values()) - price.batch) > room:
            yield "the breakdown does not sum to the step time"
            return
        for terms in possible:
            if all(abs(stated[name] - value) <= room for name, value in terms.items()):
                return
        yield f"the breakdown should be {possible[0]!r}"

    def _totals(self, price: PlanPrice) -> Iterator[str]:
        if not _same(self.document["batch_s"], price.batch):
            yield f"batch_s should be {price.batch!r}"
        if not 0 <= self.document["lower_bound_s"] <= price.batch * (1 + TOLERANCE):
            yield "lower_bound_s exceeds the step time"

    def _events(self, price: PlanPrice) -> Iterator[str]:
        """The simulated step time: the last event, and the end of the batch."""
        family, stated = self.plan.shape.family, self.document["simulated_s"]
        passes, sent = list[tuple[float, float, float]](), [stage.sent for stage in price.stages]
        for stage in price.stages:
            weight = stage.weight if family.split else 0.0
            passes.append(
                (stage.passes[0] - stage.sent[0], stage.passes[1] - stage.sent[1] - weight, weight)
            )
        behind = sent if family.hides(self.job.stack.overlapped) else ()
        least, most = (
            end + price.end for end in events_range(family, passes, self.plan.rounds, behind)
        )
        if not (_same(stated, least) or least <= stated <= most * (1 + TOLERANCE)):
            more = "" if least == most else f" to {most!r}"
            yield f"simulated_s should be {least!r}{more}"

    def _rates(self, price: PlanPrice, used: int) -> Iterator[str]:
        """What a training plan states beside its seconds."""
        document = self.document
        if "tokens_per_s" not in document:
            return
        tokens = document["batch"] * document["sequence"] / price.batch
        true = {
            "tokens_per_s": tokens,
            "tokens_per_s_per_device": tokens / document["devices"],
            "devices_used": used,
        }
        for name, value in true.items():
            if not _same(document[name], value):
                yield f"{name} should be {value!r}"
        if (
            -(-document["batch"] // document["microbatch"]) != self.job.batch
            or document["devices"] != self.job.devices
        ):
            yield "batch, microbatch or devices are not those of the question"


def _family(rules: Table, name: Any, chunks: Any) -> Family | None:
    """The family that a document means: by its name, or the first with so many chunks that needs
    none."""
    for row in rules["families"]:
        family = Family(row["name"], row["chunks"], row["most_stages"] == 1)
        if row["chunks"] == chunks and (name == row["name"] or (name is None and not family.split)):
            return family
    return None


def _width_of(question: Table, document: Table) -> str | None:
    """The devices of a stage that a document means, if the question has such a width."""
    tensor = document.get("tensor")
    width = f"{tensor * question['sharing']['context']}" if type(tensor) is int else ""
    there = (
        "stages" in document
        and width in question["widths"]
        and type(document.get("chunks", 1)) is int
    )
    return width if there else None


def _unlike_question(question: Table, document: Table) -> str:
    """What a document says of degrees that the question does not ask for; empty where all is as it
    asks."""
    data, sharing = document.get("data"), question["sharing"]
    if type(data) is not int or not 1 <= data <= question["microbatches"]:
        return "data or family is out of range"
    degrees = all(document.get(key, 1) == sharing[key] for key in DEGREES)
    if not degrees or document.get("shard", 0) != sharing["shard"]:
        return "context, expert, expert_tensor or shard is not that of the problem"
    return ""


def _unlike_layers(
    question: Table, document: Table, graph: PlanGraph, stages: Sequence[StatedStage]
) -> str:
    """Why the stages of a document are none of the question's; empty where they are."""
    if not holds_all(graph, stages):
        return NOT_ONCE
    if (
        document.get("pipeline") != len(stages)
        or document.get("order", "") not in question["rules"]["orders"]
    ):
        return "pipeline or order is wrong"
    if any(list(calls) != sorted(calls) for calls, _ in stages):
        return "layers are not in the order in which they run"
    return ""


def plan_faults(question: Table, document: Table) -> list[str]:
    """What a ``phaze.plan/1``, fitting or not, says in answer to a question and that is not so; one
    sentence each."""
    rules, sharing = question["rules"], question["sharing"]
    named = document.get("schema"), document.get("rules")
    if named != ("phaze.plan/1", rules["name"]) or type(document.get("feasible")) is not bool:
        return [f"the document is not a plan under rules {rules['name']}"]
    width = _width_of(question, document)
    if width is None:
        return ["stages, tensor or chunks are missing or out of range"]
    family = _family(rules, document.get("family"), document.get("chunks", 1))
    if family is None:
        return ["data or family is out of range"]
    unlike = _unlike_question(question, document)
    if unlike:
        return [unlike]
    graph, times = graph_of(question, width)
    position = {row["id"]: call for call, row in enumerate(question["widths"][width]["layers"])}
    stages = list[StatedStage]()
    for row in document["stages"]:
        calls = [position.get(name, -1) for name in row["layers"]]
        stages.append((tuple(calls), str(row["recompute"])))
    unlike = _unlike_layers(question, document, graph, stages)
    if unlike:
        return [unlike]
    shape = Shape(
        tensor=graph.tensor,
        stages=len(stages),
        data=document["data"],
        order=document.get("order", ""),
        family=family,
        zero=question["zero"],
        context=graph.context,
        group=graph.group,
        shard=sharing["shard"],
    )
    plan = Plan(shape, tuple(stages), -(-question["microbatches"] // shape.data))
    return list(PlanUnderCheck(question, document, graph, times, job_of(question), plan).faults())
