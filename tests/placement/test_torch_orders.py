"""What every stage runs, against PyTorch's own schedules: the same passes in the same order, as
many held at once."""

from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from phaze.pipeline.event_lists_kernels import B, F, W
from phaze.pipeline.families import DUALPIPE_V, ZB_H1, ZB_V, zb_interleaved
from phaze.pipeline.family import Family

pytest.importorskip("torch")
from torch.distributed.pipelining import schedules

CLASSES = {
    "zb-h1": "ScheduleInterleavedZeroBubble",
    "zb-interleaved": "ScheduleInterleavedZeroBubble",
    "zb-v": "ScheduleZBVZeroBubble",
    "dualpipe-v": "ScheduleDualPipeV",
}
PASSES = {"FORWARD": (F,), "BACKWARD_INPUT": (B,), "BACKWARD_WEIGHT": (W,), "FULL_BACKWARD": (B, W)}
Row = tuple[int, int, int, int]


def torch_rows(family: Family, stages: int, rounds: int, rank: int) -> list[Row]:
    """PyTorch's list of a rank as rows of ours: a whole backward is both gradients, joined."""
    said = SimpleNamespace(
        pp_group_size=stages,
        n_local_stages=family.chunks,
        num_stages=stages * family.chunks,
        _num_stages=stages * family.chunks,
        _n_microbatches=rounds,
        microbatches_per_round=rounds // max(1, rounds // stages),
    )
    rows: list[Row] = []
    for action in getattr(schedules, CLASSES[family.name])._calculate_single_rank_operations(
        said, rank
    ):
        if action is None:
            continue
        parts = action.sub_actions or (action,)
        joined = False
        for part in parts:
            for what in PASSES[part.computation_type.name]:
                rows.append((what, part.microbatch_index, part.stage_index, int(joined)))
                joined = True
    return rows


def shapes(family: Family) -> Iterator[tuple[int, int]]:
    for stages in range(1, 8):
        for rounds in (stages, 2 * stages, 2 * stages + 1, 3 * stages, 5 * stages):
            if family.divides(rounds, stages) and rounds % max(1, rounds // stages) == 0:
                yield stages, rounds


@pytest.mark.parametrize(
    "family",
    [ZB_H1, zb_interleaved(2), zb_interleaved(3), ZB_V, DUALPIPE_V],
    ids=lambda f: f"{f.name} {f.chunks}",
)
def test_stages_run_what_pytorch_runs_and_hold_as_much(family: Family) -> None:
    for stages, rounds in shapes(family):
        lists = family.event_lists(stages, rounds, family.chunks)
        for rank in range(stages):
            own = [tuple(row) for row in lists[rank].tolist()]
            assert own == torch_rows(family, stages, rounds, rank), (stages, rounds, rank)
            held = most = 0
            for what, *_ in own:
                held += (what == F) - (what == W)
                most = max(most, held)
            if stages > 1:
                assert most / family.chunks == family.in_flight(rounds, stages - rank, stages), (
                    stages,
                    rounds,
                    rank,
                )
