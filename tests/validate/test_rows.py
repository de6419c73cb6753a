"""Measured runs as CSV: what a line means, and what is said of a bad one."""

import pytest

from phaze.errors import InputError
from phaze.validate.rows import read_rows
from phaze.validate.sets import SETS, rows_of, set_named

HEADER = "model,hidden,layers,heads,sequence,chip,devices,batch,tensor,pipeline,data,microbatch,recompute,seconds"
LINE = "gpt,1024,8,16,1024,a100-80gb,16,64,2,4,2,1,full,0.5"


def changed(**cells: str) -> str:
    """The header and the line with cells replaced."""
    columns, values = HEADER.split(","), LINE.split(",")
    return "\n".join(
        [HEADER, ",".join(cells.get(c, v) for c, v in zip(columns, values, strict=True))]
    )


def test_a_line_becomes_a_run() -> None:
    (row,) = read_rows(f"{HEADER}\n{LINE}\n\n", "mine.csv")
    assert row.run["gpt"] == {
        "hidden": 1024,
        "layers": 8,
        "heads": 16,
        "sequence": 1024,
        "vocabulary": 51200,
    }
    assert row.run["cluster"] == "selene"
    assert row.run["plan"]["recompute"] == "full"
    assert (row.id, row.seconds, row.memory_bytes, row.free) == ("line 2", 0.5, None, ("chunks",))


def test_empty_cells_of_a_plan_are_free() -> None:
    (row,) = read_rows(changed(microbatch="", recompute="", pipeline="1"), "mine.csv")
    assert row.free == ("microbatch", "recompute")


def test_a_line_may_share_out_sequences_experts_and_state() -> None:
    names = "model,hidden,layers,heads,experts,active,expert_mlp,shared_mlp,vocabulary,sequence,tied,chip,devices,batch"
    degrees = (
        "tensor,context,expert,shard,pipeline,data,zero,microbatch,recompute,memory_gib,fits_gib"
    )
    line = "moe,1024,8,16,8,2,2048,0,32000,4096,no,h100,32,64,2,2,4,4,1,8,1,1,none,60,80"
    (row,) = read_rows(f"{names},{degrees}\n{line}", "mine.csv")
    assert (row.run["moe"]["experts"], row.run["moe"]["shared_mlp"], row.run["moe"]["tied"]) == (
        8,
        0,
        False,
    )
    assert {key: row.run["plan"][key] for key in ("context", "expert", "shard")} == {
        "context": 2,
        "expert": 4,
        "shard": 4,
    }
    assert (row.memory_bytes, row.fits_bytes, row.seconds) == (60 * 2**30, 80 * 2**30, None)


def test_no_run_stands_in_two_sets() -> None:
    ids = [row.id for one in SETS for row in rows_of(one)]
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "the first line must name columns"),
        ("model,hiden", "unknown column 'hiden'; did you mean 'hidden'"),
        (HEADER, "there is no run"),
        (f"{HEADER}\n1,2", "line 2: it has 2 cells and the header 14"),
        (changed(devices=""), "line 2: devices: it is missing"),
        (changed(layers="many"), "line 2: layers: 'many' is not a whole number"),
        (changed(seconds="-1"), "line 2: seconds: '-1' is out of range"),
        (changed(seconds=""), "nothing was measured"),
        (changed(model="llama2-7b"), "the sizes of 'llama2-7b' are known"),
        (changed(chip="a10"), "a10"),
        (f'{HEADER}\n"gpt', "line 2: unexpected end of data"),
    ],
)
def test_a_bad_file_is_said_in_one_sentence(text: str, said: str) -> None:
    with pytest.raises(InputError) as fault:
        read_rows(text, "mine.csv")
    assert said in str(fault.value)


@pytest.mark.parametrize("one", SETS, ids=lambda one: one.name)
def test_every_row_that_comes_along_has_a_source_and_an_own_name(one: object) -> None:
    rows = rows_of(one)  # type: ignore[arg-type]
    assert all(row.source for row in rows)
    assert len({row.id for row in rows}) == len(rows)


def test_an_unknown_set_is_refused() -> None:
    with pytest.raises(InputError, match="did you mean 'sc21'"):
        set_named("sc2")
