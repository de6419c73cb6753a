"""What was requested of the plans that are searched: a plan is proved fastest among those alone.

Each option that narrows (or, for attention, names) the plans of a job stands in the key
``restricted`` of ``job``, in the sentence of the proof, on the page and in the claim of the
certificate. What is not requested is what is usual: the degrees and microbatches that the model
allows, every stage of ZeRO, recompute stage by stage, every pipeline family of the stack with any
number of chunks.
"""

from collections.abc import Callable, Mapping
from typing import Annotated, Any

from pydantic import Field

from phaze.evaluate.recomputing import mode_named
from phaze.evaluate.request import ATTENTIONS, Job
from phaze.graph.ir import Attention
from phaze.options.keys import RestrictedKeys


class RestrictedTable(RestrictedKeys):
    """The options of a job that say which plans are searched; None: what is usual."""

    shard: list[Annotated[int, Field(ge=0)]] | None = None
    recompute: str | None = None
    attention: list[Attention] | None = None


def restrictions_of(job: Job) -> dict[str, Any]:
    """What of a job narrows the plans that are searched, by the names of the options; empty:
    nothing does."""
    usual = Job(job.model, job.sizes, job.chip, job.devices, job.batch)
    stated = {key: getattr(job, key) for key in RestrictedTable.model_fields}
    stated = {key: value for key, value in stated.items() if value != getattr(usual, key)}
    if "recompute" in stated:
        stated["recompute"] = mode_named(job.recompute, "--recompute")
    if "attention" in stated:
        stated["attention"] = ATTENTIONS if job.attention == "best" else (job.attention,)
    if "best" in (job.family or ()):
        del stated["family"]
    return {
        key: list(value) if isinstance(value, tuple) else value for key, value in stated.items()
    }


def _listed(values: Any, last: str = "or") -> str:
    words = [
        str(value).replace("_", " ") for value in (values if isinstance(values, list) else [values])
    ]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} {last} {words[-1]}"


def restriction_words(restricted: Mapping[str, Any]) -> list[str]:
    """Each restriction in the field's words."""
    wording: dict[str, Callable[[Any], str]] = {
        "tensor": lambda value: f"TP {_listed(value)}",
        "microbatch": lambda value: f"microbatch {_listed(value)}",
        "context": lambda value: f"CP {_listed(value)}",
        "context_way": lambda value: f"context parallelism by {_listed(value)}",
        "expert": lambda value: f"EP {_listed(value)}",
        "zero": lambda value: f"ZeRO {value}",
        "shard": lambda value: (
            f"state sharded over {_listed([count or 'all' for count in value])} ranks"
        ),
        "recompute": lambda value: f"recompute {value}",
        "attention": lambda value: f"{_listed(value)} attention",
        "family": lambda value: f"pipeline {_listed(value)}",
        "chunks": lambda value: f"VPP {_listed(sorted({1, *value}))}",
        "headroom": lambda value: f"{100 * value:.3g} % of memory kept free",
    }
    return [
        words(restricted[key]) for key, words in wording.items() if restricted.get(key) is not None
    ]


def option_words(restricted: Mapping[str, Any]) -> list[str]:
    """The restrictions as options of ``phaze plan``."""
    options = []
    for key, value in restricted.items():
        texts = [str(entry) for entry in value] if isinstance(value, list) else [str(value)]
        if key == "shard":
            texts = ["all" if entry == "0" else entry for entry in texts]
        if key == "attention" and len(texts) > 1:
            texts = ["best"]
        options += [f"--{key.replace('_', '-')}", ",".join(texts)]
    return options


def proof_words(document: Mapping[str, Any]) -> str:
    """What is proved of a plan that was sought: of whose plans, and of which of them."""
    job = document["job"]
    restricted, stack = job.get("restricted") or {}, job["stack"]
    free = ["any number of stages and replicas", "any cuts"]
    free += ["recompute chosen stage by stage"] if "recompute" not in restricted else []
    free += ["with or without chunks"] if not {"chunks", "family"} & set(restricted) else []
    rest = ", ".join(free)
    if not restricted:
        return f"proved: no plan of {stack} is faster, of {rest}"
    only = _listed(restriction_words(restricted), "and")
    return (
        f"proved only among plans of {stack} with {only}, as requested: none of these is "
        f"faster, of {rest}; "
        "other plans were not searched and may be faster"
    )


def short_proof(document: Mapping[str, Any]) -> str:
    """The same in few words; empty where the plan was not sought."""
    if document.get("proved") is not True:
        return ""
    stack, restricted = (
        document["job"]["stack"],
        restriction_words(document["job"].get("restricted") or {}),
    )
    if not restricted:
        return f"No plan of {stack} is faster by phaze's cost model: proved. "
    return f"Proved only among plans of {stack} with {_listed(restricted, 'and')}, as requested. "


def restated_job(document: Mapping[str, Any]) -> Job:
    """The job that the key ``job`` of a plan's document states, with its restrictions."""
    stated = {
        key: value for key, value in (document.get("restricted") or {}).items() if value is not None
    }
    kinds = stated.pop("attention", None)
    if kinds is not None:
        stated["attention"] = "best" if len(kinds) > 1 else kinds[0]
    stated = {
        key: tuple(value) if isinstance(value, list) else value for key, value in stated.items()
    }
    named = {
        key: document[key] for key in ("chip", "devices", "batch", "cluster", "stack", "precision")
    }
    rows = float(document.get("rows", 1.0))
    return Job(
        model=str(document.get("model") or document.get("family")),
        sizes=document.get("sizes"),
        sequence=document.get("sequence"),
        basis=document.get("basis", "calibrated"),
        imbalance=rows if rows > 1 else None,
        **named,
        **stated,
    )
