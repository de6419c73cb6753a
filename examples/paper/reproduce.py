"""The ICML 2024 paper's experiment, its faults corrected: ``make paper`` runs it, with the tables
of docs/paper.md.

For each of the paper's eight models, throughput of

    stand-in          the TPUv4 stand-in under the experts' split (the unit of every ratio) and
                      under the searched one
    block chip        the chip with the best energy-delay product of one block on one device, under
                      both
    own chip          the best chip and placement for the model
    common chip       the best chip for the geometric mean of all eight, with the searched placement

then the same against the real TPU v4 on its own torus, under rules cluster, what each part of the
space contributes to the gain, the way from the paper's setting to today's hardware, one rule at a
time, and the parts of :mod:`examples.paper.parts`. Pictures go to docs/images/paper. Every search
has its own folder under --out and goes on there when it was stopped; --only NAME does one table. In
the end every run has its page, report.html in its folder.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from examples.paper import parts
from examples.paper.cases import (
    MODELS,
    Found,
    Question,
    answer_all,
    one_block,
    one_model,
    rows,
    searched,
    write_pages,
)
from examples.paper.pictures import IMAGES
from examples.paper.sheets import (
    HEADS,
    Ablation,
    Line,
    ablation_table,
    chip_table,
    put,
    ratio_table,
)
from examples.paper.steps import STEP_MODELS, step_table, steps
from phaze.hardware.chip import Chip
from phaze.hardware.library import load_chip
from phaze.search.compare import ComparisonRow
from phaze.values import replace

GIB = 2**30
TABLES = (
    "paper",
    "real",
    "ablation",
    "arithmetic",
    "steps",
    "bridge",
    "spotlight",
    "map",
    "robust",
)
# Parts that take longer than all others: only when they are asked for.
LONG = ("spotlight-long",)
PAGE = Path(__file__).parents[2] / "docs" / "paper.md"
# The real chip's job: its torus, and the stack that the cluster names (maxtext).
REAL = (
    'rules="cluster"',
    'training.cluster="tpu-v4-pod"',
    'training.optimizer="adam"',
    'training.recompute=["best"]',
    'training.sequence_parallel="best"',
    # as in the paper's own setting: eager attention, all memory that the stack leaves, no ZeRO and
    # no interleaving
    "training.zero=0",
    "training.chunks=[1]",
    # maxtext runs GPipe, whose stages hold every microbatch: gpt3-175b under the experts' split
    # would not fit
    'stack.families=["1f1b"]',
    'training.attention="eager"',
    "training.headroom=0",
    'objective.baseline="tpu-v4"',
)
# What is changed, for the baseline as well as for the search.
ABLATIONS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("never recompute", ("training.recompute=[false]",)),
    ("microbatch 1", ("training.microbatches=[1]",)),
    ("HBM 32 GiB", ('hbm=["32 GiB"]',)),
    ("nothing stays in the global buffer", ("cost.residency=false",)),
    ("vector lanes free", ('space="paper-free-lanes"', "search.gap=0.001")),
    ("links of 40 GiB/s", (f'training.cluster="{Path(__file__).parent / "fast-flat.toml"}"',)),
)


@contextmanager
def _said(what: str) -> Iterator[None]:
    sys.stderr.write(f"{what} ... ")
    sys.stderr.flush()
    yield
    sys.stderr.write("done\n")


def _each(out: Path, name: str, settings: Sequence[str] = ()) -> dict[str, Found]:
    """The best chip and placement of every model."""
    found = {}
    for model in MODELS:
        with _said(f"{name}: {model}"):
            found[model] = searched(out / name / model, "model.toml", [one_model(model), *settings])
    return found


def _blocks(out: Path) -> dict[str, Chip]:
    """The chip of every model's block, with the largest HBM."""
    asked = {
        model: Question(out / "block" / model, "block.toml", (one_block(model),))
        for model in MODELS
    }
    answer_all(list(asked.values()))
    return {model: searched(*question).chip for model, question in asked.items()}


def _rate(row: ComparisonRow | None) -> float | None:
    return None if row is None else row.throughput_per_s


def _lines(
    base: Chip,
    blocks: dict[str, Chip],
    own: dict[str, Found],
    common: Found,
    settings: Sequence[str],
) -> list[Line]:
    lines = []
    for model in MODELS:
        block = replace(blocks[model], name="block")
        chips = [
            base,
            block,
            replace(own[model].chip, name="own"),
            replace(common.chip, name="common"),
        ]
        found = rows(model, chips, settings)
        order = [
            (base.name, "experts"),
            (base.name, "searched"),
            ("block", "experts"),
            ("block", "searched"),
        ]
        order += [("own", "experts"), ("own", "searched"), ("common", "searched")]
        lines.append(Line(model, tuple(_rate(found.get(key)) for key in order)))
    return lines


def _main_tables(
    out: Path,
    name: str,
    base: Chip,
    blocks: dict[str, Chip],
    settings: Sequence[str],
    images: Path | None = None,
) -> dict[str, str]:
    own = _each(out, name, settings)
    with _said(f"{name}: common"):
        common = searched(out / name / "common", "common.toml", settings)
    lines = _lines(base, blocks, own, common, settings)
    if images is not None:
        parts.ratio_picture(images, lines, (f"{base.name}, searched", *HEADS))
        parts.area_picture(images, {**own, "common": common})
    return {
        f"{name}-ratios": ratio_table(lines, base.name),
        f"{name}-chips": chip_table({**own, "common": common}),
    }


def _ablations(out: Path, base: Chip) -> str:
    """What each part of the space is worth: the gain without it, by model."""
    cases = {
        "without-" + name.replace(" ", "-").replace("/", "-"): (name, settings)
        for name, settings in ABLATIONS
    }
    answer_all(
        [
            Question(out / folder / model, "model.toml", (one_model(model), *settings))
            for folder, (_, settings) in cases.items()
            for model in MODELS
        ]
    )
    done = []
    for folder, (name, settings) in {"paper": ("all of it", ()), **cases}.items():
        own = _each(out, folder, settings)
        gains: list[tuple[float | None, ...]] = []
        for model in MODELS:
            found = rows(model, [base, replace(own[model].chip, name="own")], settings)
            keys = [
                (base.name, "experts"),
                (base.name, "searched"),
                ("own", "experts"),
                ("own", "searched"),
            ]
            unit, *others = [_rate(found.get(key)) for key in keys]
            gains.append(
                tuple(None if unit is None or rate is None else rate / unit for rate in others)
            )
        done.append(Ablation(name, tuple(zip(*gains, strict=True))))
    return ablation_table(done)


def _means(out: Path, base: Chip) -> str:
    """The common chip by the paper's mean of raw throughput."""
    with _said("common chip by the arithmetic mean"):
        found = searched(
            out / "paper" / "common-arithmetic", "common.toml", ['objective.mean="arithmetic"']
        )
    gains: list[float | None] = []
    for model in MODELS:
        seen = rows(model, [base, replace(found.chip, name="common")])
        unit, rate = _rate(seen[base.name, "experts"]), _rate(seen["common", "searched"])
        gains.append(None if unit is None or rate is None else rate / unit)
    return (
        chip_table({"common, arithmetic mean": found})
        + "\n"
        + ablation_table(
            [Ablation("common, arithmetic mean", (tuple(gains),))], heads=("searched",)
        )
    )


def _steps(out: Path, model: str) -> str:
    """A model under the paper's setting and every rule of today's hardware, one after another."""
    found = []
    for at, (name, settings) in enumerate(steps()):
        with _said(f"steps: {model}: {name}"):
            found.append(
                (
                    name,
                    searched(
                        out / "steps" / model / str(at), "model.toml", [one_model(model), *settings]
                    ),
                )
            )
    return step_table(found)


def main() -> None:
    """Run what is asked for and rewrite its tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--out", type=lambda text: Path(text).resolve(), default=(Path("runs") / "paper").resolve()
    )
    parser.add_argument("--page", type=Path, default=PAGE)
    parser.add_argument("--images", type=Path, default=IMAGES)
    parser.add_argument("--only", choices=(*TABLES, *LONG))
    said = parser.parse_args()
    wanted = [said.only] if said.only else list(TABLES)
    base, blocks = (
        load_chip("tpu-v4-paper", form="cores"),
        _blocks(said.out) if {"paper", "real"} & set(wanted) else {},
    )
    if "paper" in wanted:
        put(said.page, _main_tables(said.out, "paper", base, blocks, (), said.images))
    if "real" in wanted:
        put(
            said.page,
            _main_tables(said.out, "real", load_chip("tpu-v4", form="cores"), blocks, REAL),
        )
    if "ablation" in wanted:
        put(said.page, {"ablation": _ablations(said.out, base)})
    if "arithmetic" in wanted:
        put(said.page, {"arithmetic": _means(said.out, base)})
    if "steps" in wanted:
        put(said.page, {f"steps-{model}": _steps(said.out, model) for model in STEP_MODELS})
    if "bridge" in wanted:
        put(said.page, parts.bridge(said.out, said.images))
    if "spotlight" in wanted:
        put(said.page, parts.spotlight(said.out, said.images))
    if "spotlight-long" in wanted:
        put(said.page, parts.spotlight_long(said.out, said.images))
    if "map" in wanted:
        put(said.page, parts.joint_map(said.out, said.images))
    if "robust" in wanted:
        put(said.page, parts.robust(said.out))
    write_pages(said.out)


if __name__ == "__main__":
    main()
