"""The passes of a model's layer as scheduling problems on one chip: what ``phaze schedule --model``
asks.

The operators are those of the traced layer, fused as the stack fuses, costed on the chip, their
collectives on the cluster; the rule is the stack's own unless another is named. The host's launches
are no part of a schedule.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from phaze.errors import InputError, unknown_name
from phaze.evaluate.layers import Setting, pass_problem
from phaze.graph.fuse import fuse_layer
from phaze.graph.ir import Model
from phaze.graph.ir import Operator as GraphOperator
from phaze.graph.rewrites import run_layer
from phaze.hardware.calibration import Basis
from phaze.hardware.library import load_built_stack, load_chip, load_cluster, require_links
from phaze.schedule.problem import ScheduleProblem
from phaze.schedule.rules import RULE, Rules
from phaze.values import replace

Pass = Literal["forward", "backward"]
PASSES: tuple[Pass, ...] = ("forward", "backward")


@dataclass(frozen=True, slots=True)
class LayerPass:
    """One pass of a layer to be scheduled: whose it is, as plain values, the problem, and all cores
    of the chip (a problem has no more than it has operators)."""

    of: dict[str, Any]
    problem: ScheduleProblem
    cores: tuple[int, int]

    @property
    def shown(self) -> ScheduleProblem:
        """The problem on all cores of the chip."""
        return replace(self.problem, tensor_cores=self.cores[0], vector_cores=self.cores[1])

    @property
    def title(self) -> str:
        """It in words."""
        of = self.of
        where = f"{of['chip']}, {of['cluster']}, {of['stack']}"
        return f"{of['model']}: {of['layer']}, {of['pass']} (called {of['calls']} x), on {where}"


def name_of(operator: GraphOperator) -> str:
    """Kind and module of an operator, of a fused one the kinds of its members."""
    kinds = dict.fromkeys(part.kind for part in operator.parts) or {operator.kind: None}
    return f"{' + '.join(kinds)}{f' ({operator.module})' if operator.module else ''}"


def setting_of(
    chip: str, cluster: str | None, stack: str | None, basis: Basis, rules: str | None
) -> Setting:
    """Where layers run, by name; without a cluster or stack the usual ones, without ``rules`` the
    stack's."""
    device = load_chip(chip)
    place = cluster or device.cluster
    if place is None:
        raise InputError(
            "--cluster",
            f"the chip '{device.name}' names no default cluster",
            "name one: phaze clusters",
        )
    network = load_cluster(place, chip=device)
    require_links(device, chip, network, "--chip")
    software = load_built_stack(stack or network.stack)
    if rules is not None:
        software = replace(software, schedule=_rules(rules), hides_tensor_collectives=False)
    return Setting(device, network, software, basis)


def _rules(name: str) -> Rules:
    if name not in RULE:
        raise unknown_name("--rules", "schedule rule", name, list(RULE))
    return RULE[name].name


def layer_named(model: Model, name: str | None) -> int:
    """The layer of that name, or that a module of that name is a call of; without one the most
    repeated."""
    if name is None:
        return max(range(len(model.layers)), key=lambda index: (model.count(index), -index))
    for index, layer in enumerate(model.layers):
        if layer.name == name:
            return index
    for call in model.calls:
        if call.module == name:
            return call.layer
    raise unknown_name(
        "--layer", f"layer of {model.name}", name, [layer.name for layer in model.layers]
    )


def layer_passes(
    model: Model, layer: str | None, passes: Sequence[Pass], setting: Setting
) -> list[LayerPass]:
    """The passes of one layer, their operators named by number, kinds and module."""
    index = layer_named(model, layer)
    fused = fuse_layer(
        run_layer(model.layers[index], setting.stack, setting.precision), setting.stack.fusion
    )
    solved_passes = []
    for name in passes:
        graph = fused.backward if name == "backward" else fused.forward
        lowered, problem = pass_problem(graph, setting, name == "backward")
        operators = tuple(
            replace(
                operator,
                id=f"{i} {' + '.join(dict.fromkeys(name_of(graph.operators[p]) for p in unit.places))}",
            )
            for i, (unit, operator) in enumerate(zip(lowered.units, problem.operators, strict=True))
        )
        of = {
            "model": model.name, "layer": model.layers[index].name, "calls": model.count(index),
            "pass": name,
            "tensor": model.tensor, "microbatch": model.microbatch, "sequence": model.sequence,
            "attention": model.attention, "sequence_parallel": model.sequence_parallel,
            "chip": setting.chip.name, "cluster": setting.cluster.name, "stack": setting.stack.name,
            "basis": setting.basis,
        }  # fmt: skip
        cores = setting.chip.tensor_cores, setting.chip.vectors.count
        solved_passes.append(LayerPass(of, replace(problem, operators=operators), cores))
    return solved_passes
