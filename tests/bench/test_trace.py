"""How long traces take: all widths and microbatches of every named model, and one block anew."""

import resource
import time

import pytest

pytest.importorskip("torch")

from phaze.graph.torch.named import NAMED
from phaze.graph.torch.source import named_source
from phaze.graph.torch.trace import discover, trace_model


@pytest.mark.parametrize("name", NAMED)
def test_sixteen_traces_take_under_a_minute_and_two_gigabytes(name: str) -> None:
    source = named_source(name)
    begin = time.perf_counter()
    found = discover(source)
    for tensor in (1, 2, 4, 8):
        for microbatch in (1, 2, 4, 8):
            trace_model(source, tensor=tensor, microbatch=microbatch, discovery=found)
    taken = time.perf_counter() - begin
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(f"{name:22s} 16 traces {taken:6.1f} s, {memory / 2**30:.2f} GiB")
    assert taken < 60 and memory < 2 * 2**30
