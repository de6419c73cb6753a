"""Values that one region makes and another reads, however it came by them: as an argument, held by
a module, or by name. A value with a gradient is cut where it crosses
(:mod:`phaze.graph.torch.walk`); masks, position tables and whatever else has none is only seen in
the log, once the pass is over.

    needed(r)  = results of r, what its backward reads, and what the live steps of other regions
               read and r wrote
    live(r)    = steps of r that needed(r) depends on, forward and backward

The least solution is reached from below: a region that turns out to be needed may need more of
earlier ones.
"""

from collections.abc import Sequence

from phaze.graph.torch.convert import live, real_reads
from phaze.graph.torch.record import Log, RecordedStep
from phaze.graph.torch.regions import TracedRegion, Value


def running(log: Log, region: TracedRegion) -> list[RecordedStep]:
    """The steps of a region, forward and backward, that something depends on."""
    back = live(log.backward.get(region.number, ()), set(region.gradients))
    needed = set(region.outputs) | {operand.value for step in back for operand in step.reads}
    return [*live(log.forward.get(region.number, ()), needed), *back]


def _crossing(region: TracedRegion, like: TracedRegion, log: Log) -> set[Value]:
    """The values that ``region``, which runs what ``like`` ran, reads and does not make."""
    written = {
        operand.value for step in log.forward.get(like.number, ()) for operand in step.writes
    }
    read = {operand.value for step in running(log, like) for operand in real_reads(step)} - written
    renamed = dict(zip(like.taken_values, region.taken_values, strict=True))
    return {renamed.get(value, value) for value in read}


def note_crossings(regions: Sequence[TracedRegion], log: Log) -> None:
    """Add to the inputs and outputs of ``regions`` the values without gradient that cross from one
    to another."""
    writer = {
        o.value: number
        for number, steps in log.forward.items()
        for step in steps
        for o in step.writes
    }
    first_of = {region.folds: region for region in reversed(regions) if region.folds is not None}
    grown = True
    while grown:
        grown = False
        for region in reversed(regions):
            like = region if region.ran or region.folds is None else first_of[region.folds]
            for value in sorted(_crossing(region, like, log)):
                maker = writer.get(value, region.number)
                if maker < region.number:
                    region.inputs.setdefault(value, False)
                    grown |= value not in regions[maker].outputs
                    regions[maker].outputs.setdefault(value, False)


def passes_by(regions: Sequence[TracedRegion], log: Log) -> bool:
    """Whether a block reads what it was not given, or somebody reads what a block made and did not
    hand out as a result (a loss that it keeps, an entry in a dictionary): then no call can stand
    for another."""
    writer = {
        o.value: number
        for number, steps in log.forward.items()
        for step in steps
        for o in step.writes
    }
    for number, steps in log.forward.items():
        reader = regions[number]
        for value in {operand.value for step in steps for operand in real_reads(step)}:
            maker = regions[writer.get(value, number)]
            withheld = maker.module is not None and value not in maker.results
            fetched = (
                reader.module is not None
                and value not in reader.taken_values[: len(reader.arguments)]
            )
            if maker is not reader and (withheld or fetched):
                return True
    return False
