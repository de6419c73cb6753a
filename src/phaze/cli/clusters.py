"""``phaze clusters``: how devices are joined, and the software stacks that run on them."""

from typing import Annotated

import typer

from phaze.api import library
from phaze.cli.answer import asking

Name = Annotated[str | None, typer.Argument(help="A preset, or the path of a cluster file (- for standard input).")]


@asking(library.clusters)
def clusters(name: Name) -> None:
    """List clusters, or show one: its levels, bandwidths and latencies.

    Examples: phaze clusters · phaze clusters dgx-h100 · phaze clusters my-cluster.toml --json
    """
