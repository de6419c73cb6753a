"""What a claim says of a bundled model whose graphs the independent checker does not know by
digest.

The checker knows the graphs of bundled models at their default sizes alone. Where a study names a
bundled model, and the graphs of the run are, byte for byte, those that phaze has of it at the
study's microbatches, widths and sequence, the claim says so, and who compared them.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from phaze.check.verdict import Verdict
    from phaze.study.load import Question

COMPARED = "as bundled at these sizes (compared by phaze itself)"


def say_compared(
    verdict: "Verdict", models: Sequence[Mapping[str, Any]], bundled: Sequence[bool]
) -> None:
    """State in the claim which models of a problem were found to be bundled ones; their graphs were
    compared."""
    from phaze.check.claim import other_graphs, plan_graphs

    for model, same in zip(models, bundled, strict=True):
        for unknown in (other_graphs(model), plan_graphs(model)) if same else ():
            verdict.words = [
                line.replace(unknown, f"{model['name']}, {COMPARED}", 1)
                if line.startswith("model ")
                else line
                for line in verdict.words
            ]


def say_bundled(verdict: "Verdict", question: "Question") -> None:
    """State in the claim which models are bundled ones at other sizes; graphs.json is what the
    question has."""
    named = [table.graphs is None and table.model is None for table in question.study.tables()]
    say_compared(verdict, question.problem["models"], named)
