"""``--tp-plan``: a tensor-parallel plan of one's own."""

from typing import Annotated

import typer

TpPlan = Annotated[
    str | None,
    typer.Option(
        "--tp-plan",
        help="A tensor-parallel plan (phaze.tensor-plan/1) of your own model; phaze graph --show-plan prints one.",
    ),
]
