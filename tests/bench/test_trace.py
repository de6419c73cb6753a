"""How long traces take: all widths and microbatches of every named model, one distinct block, and
loading a name.

Marks are on CPU seconds of this process; wall seconds are printed beside. The trace of a block is
the median of 16 traces of the model, without building it, over its distinct blocks.
"""

import resource
import statistics
import time

import pytest

pytest.importorskip("torch")

from phaze.graph import zoo
from phaze.graph.torch.fake import without_weights
from phaze.graph.torch.named import NAMED
from phaze.graph.torch.program import TensorShape
from phaze.graph.torch.source import named_source
from phaze.graph.torch.trace import discover, trace_model

WIDTHS = MICROBATCHES = (1, 2, 4, 8)


@pytest.mark.parametrize("name", NAMED)
def test_sixteen_traces_take_under_a_minute_and_two_gigabytes(name: str) -> None:
    begin = time.process_time()
    for microbatch in MICROBATCHES:
        zoo.load_model(name, zoo.ZOO[name].shipped[-1], microbatch)
    load = (time.process_time() - begin) / len(MICROBATCHES)
    source = named_source(name)
    begin, wall = time.process_time(), time.perf_counter()
    found = discover(source)
    discovered = time.process_time() - begin
    with without_weights():
        start = time.process_time()
        source.build(TensorShape(1, source.sequence))
        build = time.process_time() - start
    blocks = []
    for tensor in WIDTHS:
        for microbatch in MICROBATCHES:
            start = time.process_time()
            trace_model(source, tensor=tensor, microbatch=microbatch, discovery=found)
            blocks.append((time.process_time() - start - build) / len(set(found.classes)))
    block = statistics.median(blocks)
    taken, waited = time.process_time() - begin, time.perf_counter() - wall
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(
        f"\n{name:20s} load {load:5.3f} s  discover {discovered:4.1f} s  trace of a "
        f"block {block:4.2f} s  "
        f"16 traces {taken:5.1f} s CPU, {waited:5.1f} s wall  {memory / 2**30:.2f} GiB"
    )
    assert taken < 60 and block < 2 and load < 0.3 and memory < 2 * 2**30
