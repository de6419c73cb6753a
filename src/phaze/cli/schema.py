"""``phaze schema``: the JSON schema of every file format."""

from typing import TYPE_CHECKING, Annotated, Any

from phaze.api.values import Answer, notes
from phaze.options.option import Option
from phaze.report.sections import Table

if TYPE_CHECKING:
    from phaze.documents import Format

Name = Annotated[
    str | None, Option("A format such as phaze.chip/1, or its short name, chip.", argument=True)
]


def formats() -> "dict[str, Format]":
    """Every file format by its name."""
    from phaze.evaluate.run_file import RUN
    from phaze.front.schema import FRONT
    from phaze.graph.store_check import FORMAT as GRAPH
    from phaze.graph.tensor_plan import FORMAT as TENSOR_PLAN
    from phaze.hardware.chip import CHIP
    from phaze.hardware.cluster import CLUSTER
    from phaze.hardware.core_chip import CORE_CHIP
    from phaze.hardware.dies import DIE
    from phaze.hardware.ownership import OWNERSHIP
    from phaze.hardware.stack import STACK
    from phaze.hardware.technology import NODE, TECHNOLOGY
    from phaze.placement.profile import PROFILE
    from phaze.schedule.files import OPERATORS
    from phaze.search.cluster_space import CLUSTER_SPACE
    from phaze.search.core_space import SPACE
    from phaze.study.schema import STUDY
    from phaze.sweep.schema import FORMAT as SWEEP

    clusters = (CHIP, CLUSTER_SPACE, NODE)
    hardware = (*clusters, CORE_CHIP, CLUSTER, DIE, OWNERSHIP, SPACE, STACK, TECHNOLOGY)
    every = (*hardware, FRONT, GRAPH, OPERATORS, PROFILE, RUN, STUDY, SWEEP, TENSOR_PLAN)
    return {form.name: form for form in sorted(every, key=lambda form: form.name)}


def schema(name: Name = None) -> Answer:
    """List the file formats, or print the JSON schema of one.

    Examples: phaze schema · phaze schema chip > chip.schema.json
    """
    every = formats()
    if name is None:
        return _all(every)
    # A short name means the version that every command reads, the first; sorted so that it comes
    # last.
    short = {
        full.removeprefix("phaze.").split("/")[0]: full for full in sorted(every, reverse=True)
    }
    full = short.get(name, name)
    if full not in every:
        from phaze.errors import unknown_name

        raise unknown_name("", "format", name, short)
    document: dict[str, Any] = {"$id": full, **every[full].model.model_json_schema(by_alias=True)}

    from phaze.documents import dumps

    return Answer(document, notes(dumps(document, pretty=True)))


def _all(formats: "dict[str, Format]") -> Answer:
    rows = [(form.name, form.summary) for form in formats.values()]
    document = {"formats": [{"name": name, "summary": summary} for name, summary in rows]}
    return Answer(document, lambda: [Table(("format", "what it holds"), rows, texts=2)])
