"""The engines by name: processes of this machine, or a Ray cluster. Both give the same bytes."""

from collections.abc import Iterator
from contextlib import contextmanager

from phaze.errors import InputError, unknown_name
from phaze.search.engine import workers
from phaze.search.run import Evaluate

ENGINES = ("local", "ray")


@contextmanager
def engine_of(name: str, address: str | None, count: int, cores: int) -> Iterator[Evaluate]:
    """An engine of ``count`` workers, for as long as the context lasts; 0 takes all that there are.

    ``cores`` are those of this machine.
    """
    if name not in ENGINES:
        raise unknown_name("--engine", "engine", name, ENGINES)
    if name == "local":
        if address is not None:
            raise InputError("--address", "the engine 'local' has no address", "add --engine ray")
        yield workers(count or cores)
        return
    from phaze.search.engine_ray import RayEngine

    place = address or "auto"
    with RayEngine(place, count or (cores if place == "local" else 0)) as engine:
        yield engine
