r"""The cells of the map: a job and a space, one thing changed from the centre, or two.

For a cell c with space S and the models' blocks B, every throughput T by a certified search:

    joint(c)      max over chips x in S and all placements of T(x, c)
    blind(c)      T(x_B, c), the best placement on x_B = the chip of S that runs one block on one
                  device fastest
    given(c)      T(x_B', c), x_B' likewise among the chips with as many HBM stacks and links (or as
                  much HBM) as the joint chip: blind in its cores and buffers alone
    value         joint / blind,       value of cores  joint / given

Each is at least 1 but for the gap of the proofs. A blind chip whose memory cannot hold the job has
no value.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from examples.paper.cases import Question
from examples.paper.joint.process import Interface, technology_of, without_area
from phaze.documents import parse
from phaze.hardware.technology import load_node
from phaze.hardware.write import toml_text

HERE = Path(__file__).parent
# The axes that only the placement can value: memory and links.
SYSTEM_AXES = ("hbm_stacks", "links")


@dataclass(frozen=True, slots=True)
class Variant:
    """A bundled space changed: so many HBM stacks alone, or interfaces that take no area."""

    stacks: int | None = None
    without_area: tuple[Interface, ...] = ()

    @property
    def name(self) -> str:
        """A folder's; empty for the space as it is."""
        stacks = () if self.stacks is None else (f"{self.stacks}-stacks",)
        return "-".join((*stacks, *(f"free-{interface}" for interface in self.without_area)))


AS_BUNDLED = Variant()


@dataclass(frozen=True, slots=True)
class Cell:
    """A point of the map: its group (a row of the page), what it changes, in words, and as settings
    of the studies."""

    group: str
    label: str
    model: str = "llama3-8b"
    space: str = "n5-reticle"
    settings: tuple[str, ...] = ()
    sequence: int | None = None
    rules: str = "cluster"
    variant: Variant = AS_BUNDLED

    @property
    def name(self) -> str:
        """A folder's."""
        return "".join(c if c.isalnum() else "-" for c in f"{self.group}-{self.label}")

    @property
    def free(self) -> bool:
        """Whether memory and links cost no area, as in the paper's space."""
        return self.rules == "icml24"


def _length(cell: Cell) -> tuple[str, ...]:
    return () if cell.sequence is None else (f"training.sequence={cell.sequence}",)


def _paper(cell: Cell) -> tuple[str, ...]:
    """The paper's setting: its rules, network and memories."""
    return (
        ('rules="icml24"', 'training.cluster="paper-flat"', 'hbm=["80 GiB"]') if cell.free else ()
    )


def joint_question(
    out: Path, cell: Cell, space: str | None = None, name: str = "joint"
) -> Question:
    """The search of a cell, over all chips or over those of a space file."""
    asked = space or space_of(out, cell)
    settings = (f'models=["{cell.model}"]', f'space="{asked}"', *_paper(cell), *_length(cell))
    return Question(
        out / "map" / cell.name / name, str(HERE / "map.toml"), (*settings, *cell.settings)
    )


def blind_question(
    out: Path, cell: Cell, space: str | None = None, name: str | None = None
) -> Question:
    """The search for the block's chip: one for all cells with the same model, sequence and
    space."""
    block = f'models=[{{name="{cell.model}", part="block", widths=[1]}}]'
    settings = (block, f'space="{space or space_of(out, cell)}"', *_paper(cell), *_length(cell))
    variant = f"-{cell.variant.name}" if cell.variant.name else ""
    shared = f"{cell.model}-{cell.space}-{cell.sequence or 'usual'}{variant}"
    return Question(out / "map" / "blind" / (name or shared), str(HERE / "blind.toml"), settings)


def _preset(space: str) -> dict[str, Any]:
    room = (
        ("phaze.search", "presets/spaces")
        if space == "paper"
        else ("phaze.hardware", "presets/silicon/spaces")
    )
    source = files(room[0]) / room[1] / f"{space}.toml"
    return parse(source.read_text(encoding="utf-8"), "toml", space)


def space_of(out: Path, cell: Cell) -> str:
    """The space of a cell: the bundled one by its name, a variant as a file beside its process and
    base chip."""
    variant = cell.variant
    return (
        cell.space
        if variant == AS_BUNDLED
        else written_variant(out / "map" / "spaces", cell.space, variant)
    )


def _as_file(path: Path, raw: dict[str, Any]) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = toml_text(raw)
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")
    return str(path.resolve())


def written_variant(folder: Path, space: str, variant: Variant) -> str:
    """A variant of a space of clusters, as a file."""
    raw = _preset(space)
    name = raw["name"] = f"{space}-{variant.name}"
    if variant.stacks is not None:
        raw["axes"]["hbm_stacks"] = [variant.stacks]
    if variant.without_area:
        source = files("phaze.hardware") / "presets" / "silicon" / "bases" / f"{raw['base']}.toml"
        base = parse(source.read_text(encoding="utf-8"), "toml", raw["base"])
        node = without_area(load_node(base["technology"]), variant.without_area)
        base["technology"] = _as_file(folder / f"{name}-process.toml", technology_of(node))
        base["name"] = f"{name}-base"
        raw["base"] = _as_file(folder / f"{name}-base.toml", base)
    return _as_file(folder / f"{name}.toml", raw)


def narrowed(path: Path, space: str, axes: dict[str, float]) -> str:
    """A bundled space, or one of a file, with one value on some axes, as a file."""
    own = Path(space)
    raw = (
        parse(own.read_text(encoding="utf-8"), "toml", space)
        if own.suffix == ".toml"
        else _preset(space)
    )
    ties = {name: value for name, value in raw["axes"].items() if isinstance(value, str)}
    whole = {name: int(value) if value == int(value) else value for name, value in axes.items()}
    raw["axes"] |= {name: [value] for name, value in whole.items() if name not in ties}
    return _as_file(path, raw)


DEVICES, FABRIC = (64, 256, 1024, 4096), (12.5, 50.0, 200.0)


def _scale() -> list[Cell]:
    """Devices against the bandwidth between nodes, both at the same batch."""
    return [
        Cell(
            "devices and scale-out",
            f"{devices}, {rate:g} GB/s",
            settings=(
                f"training.devices={devices}",
                f'cluster.levels.fabric.bandwidth="{rate} GB/s"',
            ),
        )
        for devices in DEVICES
        for rate in FABRIC
    ]


def _others() -> list[Cell]:
    found = [
        Cell("batch", f"{n} sequences", settings=(f"training.batch={n}",)) for n in (256, 4096)
    ]
    found += [
        Cell("sequence", f"{n}", sequence=n, settings=(f"training.batch={8 * 2**20 // n}",))
        for n in (2048, 4096)
    ]
    found += [Cell("process", space, space=space) for space in ("n7-reticle", "n3-reticle")]
    found += [
        Cell("model", name, model=name)
        for name in ("bert-large", "llama3-70b", "gpt3-175b", "mixtral-8x7b")
    ]
    return found


STACKS, CROWDED = (4, 5, 6), 4096
PRICED: tuple[tuple[Interface, ...], ...] = (("hbm",), ("links",), ("hbm", "links"))


def _system() -> list[Cell]:
    """What of memory and links is chosen, and what is priced: fixed stacks, and interfaces that
    take no area; at the centre, and where devices are many for the batch."""
    found = []
    for devices in (1024, CROWDED):
        own = (f"training.devices={devices}",)
        found += [
            Cell(
                "HBM stacks",
                f"{stacks}, {devices} devices",
                variant=Variant(stacks=stacks),
                settings=own,
            )
            for stacks in STACKS
        ]
        found += [
            Cell(
                "area of interfaces",
                f"{' and '.join(names)} free, {devices} devices",
                variant=Variant(without_area=names),
                settings=own,
            )
            for names in PRICED
        ]
    return found


PAPER_MODELS, PAPER_LINKS = ("bert-large", "llama2-7b", "gpt3-175b"), (1, 4, 16, 64, 256)


def _free() -> list[Cell]:
    """The paper's space, in which HBM and links take no area, over the speed of its flat
    network."""
    return [
        Cell(
            f"paper's space, {model}",
            f"{rate} GiB/s",
            model,
            "paper",
            (f'cluster.link_bytes_per_s="{rate} GiB/s"', "training.batch=4096"),
            rules="icml24",
        )
        for model in PAPER_MODELS
        for rate in PAPER_LINKS
    ]


def cells() -> Sequence[Cell]:
    """All of them, in the order of the page."""
    return (*_scale(), *_others(), *_system(), *_free())
