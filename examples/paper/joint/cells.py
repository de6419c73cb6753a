r"""The cells of the map: a job and a space, one thing changed from the centre, or two.

For a cell c with space S and the models' blocks B, every throughput T by a certified search:

    joint(c)      max over chips x in S and all placements of T(x, c)
    blind(c)      T(x_B, c), the best placement on x_B = the chip of S that runs one block on one device fastest
    given(c)      T(x_B', c), x_B' likewise among the chips with as many HBM stacks and links (or as much HBM) as the
                  joint chip: blind in its cores and buffers alone
    value         joint / blind,       value of cores  joint / given

Each is at least 1 but for the gap of the proofs. A blind chip whose memory cannot hold the job has no value.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from examples.paper.cases import Question
from phaze.documents import parse
from phaze.hardware.write import toml_text

HERE = Path(__file__).parent
# The axes that only the placement can value: memory and links.
SYSTEM_AXES = ("hbm_stacks", "links")


@dataclass(frozen=True, slots=True)
class Cell:
    """A point of the map: its group (a row of the page), what it changes, in words, and as settings of the studies."""

    group: str
    label: str
    model: str = "llama3-8b"
    space: str = "n5-reticle"
    settings: tuple[str, ...] = ()
    sequence: int | None = None
    rules: str = "cluster"

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
    return ('rules="icml24"', 'training.cluster="paper-flat"', 'hbm=["80 GiB"]') if cell.free else ()


def joint_question(out: Path, cell: Cell, space: str | None = None, name: str = "joint") -> Question:
    """The search of a cell, over all chips or over those of a space file."""
    settings = (f'models=["{cell.model}"]', f'space="{space or cell.space}"', *_paper(cell), *_length(cell))
    return Question(out / "map" / cell.name / name, str(HERE / "map.toml"), (*settings, *cell.settings))


def blind_question(out: Path, cell: Cell, space: str | None = None, name: str | None = None) -> Question:
    """The search for the block's chip: one for all cells with the same model, sequence and space."""
    block = f'models=[{{name="{cell.model}", part="block", widths=[1]}}]'
    settings = (block, f'space="{space or cell.space}"', *_paper(cell), *_length(cell))
    shared = f"{cell.model}-{cell.space}-{cell.sequence or 'usual'}"
    return Question(out / "map" / "blind" / (name or shared), str(HERE / "blind.toml"), settings)


def _preset(space: str) -> dict[str, Any]:
    room = ("phaze.search", "presets/spaces") if space == "paper" else ("phaze.hardware", "presets/silicon/spaces")
    source = files(room[0]) / room[1] / f"{space}.toml"
    return parse(source.read_text(encoding="utf-8"), "toml", space)


def narrowed(path: Path, space: str, axes: dict[str, float]) -> str:
    """A bundled space with one value on some axes, as a file."""
    raw = _preset(space)
    ties = {name: value for name, value in raw["axes"].items() if isinstance(value, str)}
    whole = {name: int(value) if value == int(value) else value for name, value in axes.items()}
    raw["axes"] |= {name: [value] for name, value in whole.items() if name not in ties}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(toml_text(raw), encoding="utf-8")
    return str(path.resolve())


DEVICES, FABRIC = (64, 256, 1024, 4096), (12.5, 50.0, 200.0)


def _scale() -> list[Cell]:
    """Devices against the bandwidth between nodes, both at the same batch."""
    return [
        Cell(
            "devices and scale-out",
            f"{devices}, {rate:g} GB/s",
            settings=(f"training.devices={devices}", f'cluster.levels.fabric.bandwidth="{rate} GB/s"'),
        )
        for devices in DEVICES
        for rate in FABRIC
    ]


def _others() -> list[Cell]:
    found = [Cell("batch", f"{n} sequences", settings=(f"training.batch={n}",)) for n in (256, 4096)]
    found += [
        Cell("sequence", f"{n}", sequence=n, settings=(f"training.batch={8 * 2**20 // n}",)) for n in (2048, 4096)
    ]
    found += [Cell("process", space, space=space) for space in ("n7-reticle", "n3-reticle")]
    found += [Cell("model", name, model=name) for name in ("bert-large", "llama3-70b", "gpt3-175b", "mixtral-8x7b")]
    return found


PAPER_MODELS, PAPER_LINKS = ("bert-large", "llama2-7b", "gpt3-175b"), (1, 4, 16, 64, 256)


def _free() -> list[Cell]:
    """The paper's space, in which HBM and links take no area, over the speed of its flat network."""
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
    return (*_scale(), *_others(), *_free())
