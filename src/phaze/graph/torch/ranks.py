"""Tensor-parallel ranks as threads on real tensors: collectives really exchange, so gradients can
be compared."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

Lost = tuple[str, int]
Outcome = TypeVar("Outcome")
# Seconds that a rank waits for the others; one that failed ends all of them at once.
PATIENCE_S = 60.0


@dataclass(slots=True)
class Board:
    """Where ranks put what they send; ``lost`` is the collective that does not happen: all_gather
    or sum, number."""

    width: int
    lost: Lost | None = None
    slots: list[Any] = field(default_factory=list)
    barrier: threading.Barrier = field(init=False)

    def __post_init__(self) -> None:
        self.slots = [None] * self.width
        self.barrier = threading.Barrier(self.width, timeout=PATIENCE_S)


class Exchange(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Gives the collective operators a meaning for one rank."""

    def __init__(self, board: Board, rank: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.board, self.rank = board, rank
        self.counts = {"all_gather": 0, "sum": 0, "max": 0, "exchange": 0}

    def __torch_dispatch__(
        self,
        func: Any,
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        name = str(func)
        if not name.startswith("phaze."):
            return func(*args, **(kwargs or {}))
        kind = name.split(".")[1]
        if kind == "shard":
            return args[0].chunk(self.board.width, args[1])[self.rank].clone()
        if kind in ("dispatch", "combine"):
            return self._exchange(kind, args[0], args[1])
        sent = self._swap(args[0])
        group = kind if kind == "all_gather" else "max" if kind == "all_reduce_max" else "sum"
        if (group, self.counts[group]) == self.board.lost:
            sent = [args[0] if kind == "all_gather" else torch.zeros_like(args[0]) for _ in sent]
            sent[self.rank] = args[0]
        self.counts[group] += 1
        return self._combine(kind, sent, args)

    def _combine(self, kind: str, sent: list[Tensor], args: tuple[Any, ...]) -> Tensor:
        if kind == "all_reduce_max":
            return torch.stack(sent).amax(0)
        if kind == "all_gather":
            return torch.cat(sent, args[1])
        total = torch.stack(sent).sum(0)
        return (
            total
            if kind == "all_reduce"
            else total.chunk(self.board.width, args[1])[self.rank].clone()
        )

    def _exchange(self, kind: str, rows: Tensor, counts: Tensor) -> Tensor:
        """Rows to the ranks of their experts, or back; a lost exchange brings nothing."""
        sent: list[tuple[Tensor, list[int]]] = self._swap((rows, [int(n) for n in counts]))
        width, number = self.board.width, self.counts["exchange"]
        owned = len(sent[0][1]) // width
        self.counts["exchange"] += 1
        if kind == "dispatch":
            whole = [list(torch.split(tensor, sizes)) for tensor, sizes in sent]
            mine = range(self.rank * owned, (self.rank + 1) * owned)
            received = torch.cat([pieces[expert] for expert in mine for pieces in whole])
        else:
            parts = []
            for owner, (outputs, _) in enumerate(sent):
                mine = range(owner * owned, (owner + 1) * owned)
                pieces = iter(
                    torch.split(outputs, [sizes[expert] for expert in mine for _, sizes in sent])
                )
                parts += [[next(pieces) for _ in sent][self.rank] for _ in mine]
            received = torch.cat(parts)
        return torch.zeros_like(received) if ("exchange", number) == self.board.lost else received

    def _swap(self, x: Any) -> list[Any]:
        self.board.slots[self.rank] = x
        self.board.barrier.wait()
        sent = list(self.board.slots)
        self.board.barrier.wait()
        return sent


def in_ranks(
    width: int, run: Callable[[int, Exchange], Outcome], lost: Lost | None = None
) -> list[Outcome]:
    """What ``run`` gives on every rank, each in a thread of its own under its exchange; the first
    fault is raised."""
    board = Board(width, lost)
    outcomes: dict[int, Outcome] = {}
    faults: list[BaseException] = []

    def run_rank(rank: int) -> None:
        try:
            mode = Exchange(board, rank)
            with mode:
                outcomes[rank] = run(rank, mode)
        except BaseException as fault:
            if not isinstance(fault, threading.BrokenBarrierError):
                faults.append(fault)
            board.barrier.abort()

    threads = [threading.Thread(target=run_rank, args=(rank,)) for rank in range(width)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if faults:
        raise faults[0]
    if len(outcomes) < width:
        raise TimeoutError(f"a rank waited longer than {PATIENCE_S:g} s for the others")
    return [outcomes[rank] for rank in range(width)]
