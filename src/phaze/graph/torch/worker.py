"""A process that traces: requests as lines of JSON on standard input, answers as lines on standard
output.

    (at the start, torch imported)        ->  {"ready": true}
    {"open": "model.py:build", "facts"}   ->  {"facts": {...}, "files": ["/abs/model.py", ...]}
    {"tensor": 2, "microbatch": 1, ...}   ->  {"graph": phaze.graph/1}
    whatever goes wrong                   ->  {"where", "problem", "remedy"}
    after limit_s of any request          ->  the same with "ended", and the process ends

What a user's code prints, also from below Python, goes to standard error. The process ends with its
standard input, which that code does not see.
"""

import json
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Never, TextIO

import torch.utils.checkpoint
from torch import nn

from phaze.errors import InputError, PhazeError
from phaze.graph.store import document_of
from phaze.graph.supply.permission import is_code
from phaze.graph.supply.point import USUAL_WIDTHS, Facts, facts_of
from phaze.graph.supply.tracing import LOOK
from phaze.graph.tensor_plan import place_and_plan
from phaze.graph.torch.copies import restored
from phaze.graph.torch.fake import without_weights
from phaze.graph.torch.faults import is_foreign, of_model, quoted, running_line
from phaze.graph.torch.follow import Track
from phaze.graph.torch.planned import planned, with_known_plan
from phaze.graph.torch.printed import Printed
from phaze.graph.torch.program import Source, TensorShape
from phaze.graph.torch.shard import shard_model
from phaze.graph.torch.source import source_of
from phaze.graph.torch.trace import Discovery, discover, trace_model


def _widths(source: Source) -> tuple[tuple[int, ...], tuple[tuple[int, str], ...]]:
    """The usual widths that divide a model, and why the others do not."""
    fitting, refused = [1], []
    with without_weights():
        built: list[nn.Module] = []
        for width in USUAL_WIDTHS[1:]:
            try:
                with of_model(source.name):
                    uneven = [
                        note for note in _notes(source, width, built) if "do not divide" in note
                    ]
                if uneven:
                    refused.append((width, uneven[0]))
                else:
                    fitting.append(width)
            except InputError as fault:
                refused.append((width, f"{fault.where}: {fault.problem}"))
    return tuple(fitting), tuple(refused)


def _notes(source: Source, width: int, built: list[nn.Module]) -> tuple[str, ...]:
    """What is said where a model is split over ``width`` ranks. One that only has weights cut gets
    them back and is kept in ``built``; a library's plan exchanges modules, and every width needs a
    new one."""
    module = built[0] if built else source.build(TensorShape(1, source.sequence)).module
    cuts = source.plan is not None and bool(source.plan.cuts)
    if cuts and not built:
        built.append(module)
    with restored(module) if cuts else nullcontext():
        return shard_model(
            module, source, width=width, sequence=source.sequence, sequence_parallel=False
        ).notes


def own_files(model: str) -> list[str]:
    """The files that ``model`` is made from: the one it names, the package that this is of,
    installed or not, and a user's code that was loaded."""
    place, plan = place_and_plan(model)
    named = place.rpartition(":")[0] or place
    package = named.partition(".")[0] if ":" in place and not named.endswith(".py") else ""
    files = {named} if named.endswith((".py", ".json")) else set()
    files |= set() if plan is None else {plan}
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None) or ""
        if file and (is_foreign(file) or name.partition(".")[0] == package):
            files.add(file)
    return sorted(os.path.realpath(file) for file in files if Path(file).is_file())


class TracingProcess:
    """The model that this process traces, with what earlier traces found out about it."""

    def __init__(self) -> None:
        self.source: Source | None = None
        self.discoveries: dict[tuple[int, str], Discovery] = {}
        self.tracks: dict[TensorShape, Track] = {}

    def open(self, model: str, facts: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Run the code that makes the model, once; ``facts`` of another process are used as they
        are."""
        place, file = place_and_plan(model)
        if is_code(model):
            sys.path.insert(0, "")  # own code may import what lies in the working folder
        if facts is not None:
            if isinstance(sys.stdout, Printed):
                sys.stdout.silent = (
                    True  # the process that opened it first has shown what it prints
                )
            self.source = with_known_plan(source_of(place), facts_of(facts))
            return {"facts": facts, "files": own_files(model)}
        return {"facts": self.open_source(model, source_of(place), file), "files": own_files(model)}

    def open_source(self, model: str, source: Source, file: str | None) -> dict[str, Any]:
        """The facts of a source, with its tensor-parallel plan."""
        self.source, basis, plan = planned(source, file)
        widths, refused = _widths(self.source)
        opened_source = self.source
        facts = Facts(
            model,
            opened_source.sequence,
            opened_source.longest,
            opened_source.fixed,
            widths,
            refused,
            basis,
            plan,
            opened_source.rotary,
        )
        return facts.document()

    def trace(self, point: Mapping[str, Any]) -> dict[str, Any]:
        """The graph at a point; which blocks are equal is found once for a sequence and kind of
        attention."""
        if self.source is None:
            raise InputError("", "no model was loaded")
        key = int(point["sequence"]), str(point["attention"])
        if key not in self.discoveries:
            self.discoveries[key] = discover(self.source, key[0], point["attention"] == "fused")
        return {
            "graph": document_of(
                trace_model(
                    self.source, **point, discovery=self.discoveries[key], tracks=self.tracks
                )
            )
        }


def answer(bench: TracingProcess, request: Mapping[str, Any]) -> dict[str, Any]:
    """The answer to one request; a fault is an answer too."""
    try:
        return (
            bench.open(request["open"], request.get("facts"))
            if "open" in request
            else bench.trace(request)
        )
    except InputError as fault:
        return {"where": fault.where, "problem": fault.problem, "remedy": fault.remedy}
    except PhazeError as fault:
        return {"where": "", "problem": str(fault), "remedy": ""}
    except (
        Exception
    ) as fault:  # of a library that the model is of, or of ours: one sentence all the same
        where = str(request.get("open", "the model"))
        return {"where": where, "problem": f"it cannot be traced ({quoted(fault)})", "remedy": ""}


def _lines(requests: TextIO, leave: Callable[[int], Any]) -> Iterator[str]:
    """Requests as they come. When there are no more the process ends at once, whatever it is doing:
    whoever asked has gone."""
    waiting: SimpleQueue[str] = SimpleQueue()

    def read() -> None:
        for line in requests:
            waiting.put(line)
        leave(0)

    threading.Thread(target=read, daemon=True).start()
    while True:
        yield waiting.get()


def _late(model: str, limit_s: float) -> dict[str, Any]:
    """What is answered for code that does not end: the line that it is in, if that can be seen."""
    line = running_line(sys._current_frames().get(threading.main_thread().ident or 0))
    problem = f"its code did not end within {limit_s:g} s{f' (it is in {line})' if line else ''}"
    return {"where": model, "problem": problem, "remedy": LOOK, "ended": True}


def serve(requests: TextIO, answers: int, leave: Callable[[int], Any] = os._exit) -> None:
    """Answer requests until there are no more; ``answers`` is a file descriptor, ``leave`` ends the
    process."""
    bench, model = TracingProcess(), ""
    lock = threading.Lock()

    def say(document: Mapping[str, Any]) -> None:
        line = (json.dumps(document) + "\n").encode()
        with lock:
            while line:
                line = line[os.write(answers, line) :]

    def expire(limit_s: float) -> None:
        say(_late(model, limit_s))
        leave(1)

    say({"ready": True})
    for line in _lines(requests, leave):
        request = json.loads(line)
        model, limit_s = request.get("open", model), request.pop("limit_s", 0.0)
        timer = threading.Timer(limit_s, expire, [limit_s])
        timer.daemon = True
        if limit_s:
            timer.start()
        outcome = answer(bench, request)
        timer.cancel()
        say(outcome)


def _told_exit(code: int) -> Never:
    raise SystemExit(f"os._exit({code})")


def plain_call(function: Callable[..., Any], *args: Any, **named: Any) -> Any:
    """Stands for ``torch.utils.checkpoint.checkpoint``: a plan chooses what is recomputed, and a
    graph that recomputes already would count it twice."""
    options = (
        "use_reentrant",
        "context_fn",
        "determinism_check",
        "debug",
        "preserve_rng_state",
        "early_stop",
    )
    return function(*args, **{name: value for name, value in named.items() if name not in options})


def main() -> None:
    """Keep the real standard output for answers; whatever else is printed goes to standard error.

    Whoever starts this process lets it ignore interrupts of the terminal, and closes its standard
    input instead. A model that ends the process from below Python's exceptions would take the line
    with it: here that raises, but in processes that it forks.
    """
    answers, requests, own_process, leave = (
        os.dup(1),
        os.fdopen(os.dup(0), encoding="utf-8"),
        os.getpid(),
        os._exit,
    )
    os.dup2(2, 1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    sys.stdout = Printed(sys.stderr)
    torch.utils.checkpoint.checkpoint = plain_call
    os._exit = lambda status: _told_exit(status) if os.getpid() == own_process else leave(status)
    serve(requests, answers, leave)
