"""The search of the paper's whole space, one model at a time and several together: seconds, memory, chips closed."""

import resource
import time
from pathlib import Path

import pytest

from phaze.search.folder import run_in
from phaze.search.kernels import warm
from phaze.study.load import default_study, job_of, study_of

MODELS = ("bert-large", "gpt2-xl", "llama2-7b", "megatron-gpt2-54", "megatron-gpt2-72", "gpt3-175b")


def _searched(models: list[str], folder: Path) -> tuple[float, dict[str, int], str]:
    raw = default_study("+".join(models)) | {"name": "bench", "models": models}
    start = time.perf_counter()
    done = run_in(folder, "", job_of(study_of(raw, "bench")))
    seconds = time.perf_counter() - start
    known = done.state.known
    work = f"{len(known.schedules)} of {known.asked} schedules, {known.placements} placements"
    return seconds, done.document["certificate"]["closed"], work


@pytest.mark.parametrize("model", MODELS)
def test_one_model_in_thirty_seconds(model: str, tmp_path: Path) -> None:
    warm()
    seconds, closed, work = _searched([model], tmp_path)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"\n{model:<20}{seconds:6.1f} s (30)  {peak:5.2f} GiB (2)  {closed}  {work}")
    assert seconds < 30 and peak < 2


def test_the_common_chip_in_five_minutes(tmp_path: Path) -> None:
    seconds, closed, work = _searched(list(MODELS), tmp_path)
    print(f"\n{'all together':<20}{seconds:6.1f} s (300)  {closed}  {work}")
    assert seconds < 300
