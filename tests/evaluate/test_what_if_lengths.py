"""What-if proposes sequences that the model has."""

import pytest

from phaze.evaluate.request import Job
from phaze.evaluate.what_if import changes


@pytest.mark.parametrize(
    ("model", "sequence", "labels"),
    [
        ("llama3-8b", 8192, ["4,096", "8,192"]),
        ("llama3-8b", 4096, ["2,048", "4,096", "8,192"]),
        ("gpt2-xl", 1024, ["512", "1,024"]),
        ("vit-large", 197, ["197"]),
        ("qwen3-30b-a3b", 4096, ["2,048", "4,096", "8,192", "16,384"]),
    ],
)
def test_only_lengths_that_the_model_has_are_proposed(
    model: str, sequence: int, labels: list[str]
) -> None:
    document = {"batch": 8, "sequence": sequence}
    groups = {title: rows for title, _, rows in changes(Job(model, None, "h100", 8, 8), document)}
    assert [row.label for row in groups["Sequence, as many tokens a step"]] == labels
