"""``phaze new``: a commented file to start from, for a stated goal."""

from pathlib import Path
from typing import Annotated

from phaze.api.values import Answer, notes
from phaze.errors import InputError, unknown_name
from phaze.options.arguments import parsed
from phaze.options.option import Option

# A study's name and the ending of its space are a name together, of at most 64 characters.
LONGEST_NAME = 50
# What each kind of file is tried with.
TRIES = (
    ("study", "phaze search {file}"),
    ("space", "phaze chips --space {file} --count"),
    ("chip", "phaze chips {file}"),
    ("cluster", "phaze clusters {file}"),
    ("stack", "phaze stacks {file}"),
    ("model", "phaze graph --model {file}:build"),
)
Kind = Annotated[str, Option("study, space, chip, cluster, stack or model.", argument=True)]
NodeName = Annotated[str, Option("The process: n3, n5, n7 or paper-22nm.")]
Area = Annotated[str, Option("Area limit of a chip, in mm2.")]
Power = Annotated[str, Option("Power limit of a chip (TDP), in W.")]
ModelNames = Annotated[
    list[str] | None, Option("A model of a study; may be repeated.", repeatable=True)
]
Out = Annotated[str | None, Option("The file; default my-<kind>.toml, or my_model.py.")]


def _quantity(text: str, unit: str) -> float:
    from phaze.units import parse

    plain = text.strip().removeprefix("-").replace(".", "", 1)
    value = (
        float(text)
        if plain.isascii() and plain.isdigit()
        else parse(text, "mm2" if unit == "mm2" else "W")
    )
    if value <= 0:
        raise ValueError(f"give a number above 0 in {unit}")
    return value


def new(
    kind: Kind,
    node: NodeName = "n5",
    area: Area = "800 mm2",
    power: Power = "700 W",
    model: ModelNames = None,
    out: Out = None,
) -> Answer:
    """Write a commented template that works unchanged and explains each line.

    Existing files are not overwritten. Examples: phaze new study --node n7 --area 600 --power 400 ·
    phaze new chip --out small.toml --area 300 --power 250 · phaze new model
    """
    from phaze.files import write_whole
    from phaze.study.starters import NODES, USUAL_MODEL, Goal, in_a_line, texts_of

    tries = dict(TRIES)
    if kind not in tries:
        raise unknown_name("", "kind of file", kind, tries)
    if node not in NODES:
        raise unknown_name("--node", "process", node, NODES)
    file = out or ("my_model.py" if kind == "model" else f"my-{kind}.toml")
    ending = ".py" if kind == "model" else ".toml"
    if not file.endswith(ending):
        raise InputError("--out", f"'{file}' is not a name for a {kind}", f"let it end in {ending}")
    models = tuple(model or [USUAL_MODEL])
    for option, text in (("--out", file), *(("--model", name) for name in models)):
        if not text.isprintable():
            raise InputError(
                option,
                f"{text!r} cannot be written to a line of a file",
                "give printable characters alone",
            )
    plain = "".join(c if c.isascii() and c.isalnum() else "-" for c in Path(file).stem.lower())
    name = plain[:LONGEST_NAME].strip("-") or f"my-{kind}"
    area_mm2 = parsed("--area", area, lambda text: _quantity(text, "mm2"))
    power_w = parsed("--power", power, lambda text: _quantity(text, "W"))
    texts = texts_of(kind, Goal(name, node, area_mm2, power_w, models), file)
    for path in texts:
        if Path(path).exists():
            raise InputError(
                path, "this file already exists", "give another --out, or move it away"
            )
    for path, text in texts.items():
        write_whole(Path(path), text)
    tried = tries[kind].format(file=in_a_line(file))

    line = f"{' and '.join(texts)} written; try: {tried}"
    return Answer({"files": list(texts), "try": tried}, notes(line))
