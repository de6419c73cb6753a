"""Plans along devices, batch, sequence and chip: every row is the plan of its own job."""

import json
from collections.abc import Callable

import pytest

from phaze.errors import InputError
from phaze.evaluate.what_if import over_of
from tests.conftest import Ran

GPT = "hidden=1024,layers=8,heads=16,vocabulary=51200,sequence=512"
JOB = (
    "plan",
    "--gpt",
    GPT,
    "--chip",
    "a100-80gb",
    "--microbatch",
    "2",
    "--tensor",
    "1,2",
    "--zero",
    "1",
)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("devices=64..1024", ("64", "128", "256", "512", "1024")),
        ("devices=48..100", ("48", "96", "100")),
        ("devices=8..8", ("8",)),
        ("batch=3,5", ("3", "5")),
        ("sequence=4k,32k", ("4096", "32768")),
        ("chip=h100, b200", ("h100", "b200")),
    ],
)
def test_values_of_an_axis(text: str, values: tuple[str, ...]) -> None:
    assert over_of(text).values == values


@pytest.mark.parametrize(
    "text",
    ["wings=3", "devices=8..4", "devices=", "devices=0", "chip=nonsense", "chip=", "batch=x"],
)
def test_what_is_no_axis_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        over_of(text)


def test_every_row_is_the_plan_of_its_own_job(phaze: Callable[..., Ran]) -> None:
    axes = (
        "--over",
        "devices=4,8",
        "--over",
        "batch=32,64",
        "--over",
        "sequence=256,512",
        "--over",
        "chip=h100",
    )
    found = json.loads(phaze(*JOB, "--devices", 8, "--batch", 32, *axes, "--json").out)
    devices, batch, sequence, chip = found["what_if"]
    alone = json.loads(phaze(*JOB, "--devices", 4, "--batch", 32, "--json").out)
    assert [row["same"] for row in devices["rows"]] == [False, True]
    assert devices["rows"][0]["batch_s"] == alone["batch_s"]
    assert devices["rows"][1]["batch_s"] == found["batch_s"]
    assert [row["label"] for row in batch["rows"]] == ["32", "64"]
    assert batch["rows"][1]["batch_s"] > found["batch_s"]
    shorter, own = sequence["rows"]
    assert own["same"]
    assert shorter["tokens_per_s_per_device"] > 0
    assert chip["rows"][0]["batch_s"] < found["batch_s"]
