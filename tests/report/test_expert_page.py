"""The page of a plan whose experts are shared out: every plan of the document is that of its own
degrees."""

import json
from collections.abc import Callable
from pathlib import Path

from phaze.evaluate.plan_set import plans_in
from tests.conftest import Ran

JOB = (
    "plan --model mixtral-8x7b --chip h100 --devices 32 --batch 64 --microbatch 1 --tensor "
    "1,2 --expert 1,8"
)


def test_every_plan_of_a_mixture_has_its_own_degrees_and_a_page(
    phaze: Callable[..., Ran], tmp_path: Path
) -> None:
    ran = phaze(*JOB.split(), "--json", "--html", str(tmp_path / "plan.html"))
    assert ran.code == 0, ran.err
    document = json.loads(ran.out)
    degrees = {
        (one.document["tensor"], one.document.get("expert", 1)) for one in plans_in(document)
    }
    assert {(1, 8), (2, 8)} <= degrees
    rows = [row for row in document["alternatives"] if row.get("plan")]
    for row, plan in zip(rows, plans_in(document)[1:], strict=False):
        assert row.get("expert", 1) == plan.document.get("expert", 1)
        assert ("exchange_s" in plan.document) == (row.get("expert", 1) > 1)
    assert (tmp_path / "plan.html").stat().st_size > 10_000
