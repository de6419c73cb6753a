"""What overlap buys on a hand-made Llama block: the table of docs/schedule.md is what the solver
says."""

from dataclasses import replace
from pathlib import Path

import pytest

from phaze.schedule.solve import solve
from tests.schedule.blocks import Machine, backward, forward

PAGE = Path(__file__).parents[2] / "docs" / "schedule.md"
ROWS = [
    line.strip("|\n ").split(" | ")
    for line in PAGE.read_text().splitlines()
    if line.startswith("| 2 x ")
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: " ".join(row[:3]))
def test_the_table_says_what_the_solver_finds(row: list[str]) -> None:
    lanes, width, direction, *times, share = row
    machine = replace(Machine(), lanes=int(lanes.removeprefix("2 x ")))
    if width != "1":
        machine = replace(machine, width=4, link_bytes_per_s=50e9)
    make = forward if direction == "forward" else backward
    found = [solve(make(machine, rules)) for rules in ("serial", "icml24", "overlap")]
    assert all(one.optimal for one in found)
    assert [f"{one.makespan_s * 1e3:.2f}" for one in found] == times
    assert f"{found[2].makespan_s / found[1].makespan_s:.2f}" == share


def test_there_is_a_table() -> None:
    assert len(ROWS) == 8
