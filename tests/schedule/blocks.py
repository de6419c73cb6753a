"""A hand-made Llama-2 7B block, forward and backward, with plain roofline times: neither traced nor
costed by phaze.

Sequence 4096, microbatch 1, hidden 4096, 32 heads of 128, MLP 11008, 16-bit, tensor width t with an
all-reduce after attention and after the MLP. A product takes max(multiply-adds / units / clock,
bytes / HBM); units are those of one tensor core or of all. A vector operator takes max(elements x
cycles / lanes / clock, bytes / HBM). HBM is shared by all cores, so it limits one core and all of
them alike. A collective takes 2 (t - 1) / t of its bytes at the link's rate.
"""

from dataclasses import dataclass

from phaze.schedule.problem import ScheduledOperator, ScheduleProblem
from phaze.schedule.rules import Rules

S, H, HEADS, D, MLP = 4096, 4096, 32, 128, 11008


@dataclass(frozen=True, slots=True)
class Machine:
    """A chip of the paper's template, and its link."""

    tensor_cores: int = 8
    rows: int = 128
    vector_cores: int = 2
    lanes: int = 128
    clock_hz: float = 1.05e9
    hbm_bytes_per_s: float = 1.2e12
    link_bytes_per_s: float = 4 * 2**30
    width: int = 1


class Writer:
    """Collects operators by name, with what each waits for."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.operators: list[ScheduledOperator] = []
        self.edges: list[tuple[int, int]] = []
        self.place: dict[str, int] = {}

    def _add(self, operator: ScheduledOperator, after: tuple[str, ...]) -> None:
        self.place[operator.id] = len(self.operators)
        self.edges += [(self.place[name], len(self.operators)) for name in after]
        self.operators.append(operator)

    def product(self, name: str, m: int, n: int, k: int, *after: str, batch: int = 1) -> None:
        """A matrix product of ``batch`` m x n x k."""
        chip = self.machine
        compute = batch * m * n * k / chip.rows**2 / chip.clock_hz
        memory = 2 * batch * (m * k + k * n + m * n) / chip.hbm_bytes_per_s
        all_cores = max(compute / chip.tensor_cores, memory)
        self._add(ScheduledOperator(name, "tensor", max(compute, memory), all_cores), after)

    def vector(self, name: str, elements: int, cycles: float, moved: float, *after: str) -> None:
        """``cycles`` an element, ``moved`` reads and writes of 2 bytes an element."""
        chip = self.machine
        compute = elements * cycles / chip.lanes / chip.clock_hz
        memory = 2 * moved * elements / chip.hbm_bytes_per_s
        self._add(
            ScheduledOperator(
                name, "vector", max(compute, memory), max(compute / chip.vector_cores, memory)
            ),
            after,
        )

    def all_reduce(self, name: str, *after: str) -> None:
        """Nothing at width 1."""
        chip = self.machine
        time = 2 * (chip.width - 1) / chip.width * 2 * S * H / chip.link_bytes_per_s
        self._add(ScheduledOperator(name, "none", time, time), after)

    def problem(self, rules: Rules) -> ScheduleProblem:
        """What was collected, under ``rules``."""
        chip = self.machine
        return ScheduleProblem(
            rules, chip.tensor_cores, chip.vector_cores, tuple(self.operators), tuple(self.edges)
        )


def forward(machine: Machine, rules: Rules) -> ScheduleProblem:
    """The forward pass of one block."""
    w, t = Writer(machine), machine.width
    own, heads, mlp = H // t, HEADS // t, MLP // t
    w.vector("norm1", S * H, 4, 2)
    for name in ("q", "k", "v"):
        w.product(name, S, own, H, "norm1")
    for name in ("q", "k"):
        w.vector(f"rope_{name}", S * own, 3, 2, name)
    w.product("scores", S, S, D, "rope_q", "rope_k", batch=heads)
    w.vector("softmax", heads * S * S, 5, 2, "scores")
    w.product("context", S, D, S, "softmax", "v", batch=heads)
    w.product("out", S, H, own, "context")
    w.all_reduce("reduce1", "out")
    w.vector("add1", S * H, 1, 3, "reduce1")
    w.vector("norm2", S * H, 4, 2, "add1")
    for name in ("gate", "up"):
        w.product(name, S, mlp, H, "norm2")
    w.vector("silu", S * mlp, 6, 3, "gate", "up")
    w.product("down", S, H, mlp, "silu")
    w.all_reduce("reduce2", "down")
    w.vector("add2", S * H, 1, 3, "reduce2", "add1")
    return w.problem(rules)


def backward(machine: Machine, rules: Rules) -> ScheduleProblem:
    """The backward pass: gradients of inputs and, floating beside them, of weights."""
    w, t = Writer(machine), machine.width
    own, heads, mlp = H // t, HEADS // t, MLP // t
    w.product("down_x", S, mlp, H)
    w.product("down_w", mlp, H, S)
    w.vector("silu", S * mlp, 10, 5, "down_x")
    for name in ("gate", "up"):
        w.product(f"{name}_x", S, H, mlp, "silu")
        w.product(f"{name}_w", H, mlp, S, "silu")
    w.vector("sum2", S * H, 1, 3, "gate_x", "up_x")
    w.all_reduce("reduce2", "sum2")
    w.vector("norm2", S * H, 8, 4, "reduce2")
    w.product("out_x", S, own, H, "norm2")
    w.product("out_w", own, H, S, "norm2")
    w.product("probs", S, S, D, "out_x", batch=heads)
    w.product("values", S, D, S, "out_x", batch=heads)
    w.vector("softmax", heads * S * S, 4, 3, "probs")
    for name in ("q", "k"):
        w.product(f"scores_{name}", S, D, S, "softmax", batch=heads)
        w.vector(f"rope_{name}", S * own, 3, 2, f"scores_{name}")
    for name, before in (("q", "rope_q"), ("k", "rope_k"), ("v", "values")):
        w.product(f"{name}_x", S, H, own, before)
        w.product(f"{name}_w", H, own, S, before)
    w.vector("sum1", S * H, 2, 4, "q_x", "k_x", "v_x")
    w.all_reduce("reduce1", "sum1")
    w.vector("norm1", S * H, 8, 4, "reduce1")
    return w.problem(rules)
