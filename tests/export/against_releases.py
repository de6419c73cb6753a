"""Every kind of launch file, read by the releases themselves: their parsers, their checks of
arguments, their layouts.

    pip download --no-deps --python-version 3.12 --only-binary :all: megatron-core==0.19.2
    torchtitan==0.2.2 pip install torch triton tyro torchdata datasets tensorboard
    python -m tests.export.against_releases .             read all of tests/export/splits.py; 1 if
                                                          one is refused
    python -m tests.export.against_releases . --record    and write tests/export/recorded anew

No GPU is needed: nothing is started. The tests of every day parse with what was recorded.
"""

import argparse
import contextlib
import csv
import importlib
import io
import json
import logging
import os
import shlex
import sys
import tempfile
import typing
import warnings
import zipfile
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import typing_extensions

from phaze.export.megatron import CONNECTIONS, OFFLOADS
from phaze.export.source import PlannedSplit
from phaze.export.torchtitan_flavour import FLAVOUR, flavour_module, model_sizes
from phaze.export.torchtitan_limits import FLAVOURS
from tests.export.launching import written
from tests.export.splits import MEGATRON, TORCHTITAN

RECORDED = Path(__file__).parent / "recorded"
WHEELS = {"megatron": "megatron_core-0.19.2-*.whl", "torchtitan": "torchtitan-0.2.2-*.whl"}
ENGINE = "2.14.0"
# What a user adds: data, tokenizer, learning rate, length; and no fusion of Transformer Engine,
# which needs a GPU.
OWN = shlex.split(
    "--mock-data --tokenizer-type NullTokenizer --vocab-size 51200 --lr 1e-4 "
    "--train-iters 10 --no-rope-fusion"
)


def words_of(text: str) -> list[str]:
    """The flags of a shell array, comments left out, as a shell reads them."""
    return shlex.split(text[text.index("(\n") + 2 : text.index("\n)\n")], comments=True)


def with_megatron() -> Iterator[tuple[str, str]]:
    """Name of a plan, and what Megatron-LM says against it."""
    arguments = importlib.import_module("megatron.training.arguments")
    utilities = importlib.import_module("megatron.training.argument_utils")
    # As on a machine with an H100 and a Transformer Engine that the release is made for.
    arguments.get_device_arch_version = lambda: 9  # type: ignore[attr-defined]
    importlib.import_module("torch").cuda.get_device_capability = lambda: (9, 0)
    core = importlib.import_module("megatron.core.utils")
    core._te_version = core.PkgVersion(ENGINE)  # type: ignore[attr-defined]
    build = (
        getattr(arguments, "core_transformer_config_from_args", None)
        or utilities.core_transformer_config_from_args
    )
    for name, split in MEGATRON.items():
        text = written("megatron", split)
        for variable in (CONNECTIONS, OFFLOADS):
            os.environ.pop(variable, None)
            if f"export {variable}=1" in text:
                os.environ[variable] = "1"
        os.environ.update(RANK="0", WORLD_SIZE=str(split.processes))
        sys.argv = ["pretrain_gpt.py", *words_of(text), *OWN]
        said = io.StringIO()
        try:
            with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
                read = arguments.parse_args()
                arguments.validate_args(read)
                build(read)
            assert read.data_parallel_size == split.data
            assert (read.virtual_pipeline_model_parallel_size or 1) == split.chunks
            assert (read.context_parallel_size, read.expert_model_parallel_size) == (
                split.context,
                split.expert,
            )
            yield name, ""
        except (AssertionError, ValueError, RuntimeError, SystemExit, NotImplementedError) as fault:
            yield (
                name,
                (
                    f"{type(fault).__name__}: {fault} "
                    f"{said.getvalue()[-200:] if isinstance(fault, SystemExit) else ''}"
                ),
            )


def with_torchtitan(folder: Path) -> Iterator[tuple[str, str]]:
    """Name of a plan, and what torchtitan says against it."""
    manager = importlib.import_module("torchtitan.config").ConfigManager
    dimensions = importlib.import_module("torchtitan.distributed.parallel_dims").ParallelDims
    for name, split in TORCHTITAN.items():
        (folder / "job.toml").write_text(written("torchtitan", split))
        try:
            if split.model not in FLAVOURS:
                _require_sizes(split)
            with contextlib.redirect_stderr(io.StringIO()):
                read = (
                    manager()
                    .parse_args(["--job.config_file", str(folder / "job.toml")])
                    .parallelism
                )
            dimensions(
                dp_replicate=read.data_parallel_replicate_degree,
                dp_shard=read.data_parallel_shard_degree,
                cp=read.context_parallel_degree, tp=read.tensor_parallel_degree,
                pp=read.pipeline_parallel_degree,
                ep=read.expert_parallel_degree, etp=read.expert_tensor_parallel_degree,
                world_size=split.processes,
            )  # fmt: skip
            yield name, ""
        except (AssertionError, ValueError, SystemExit) as fault:
            yield name, f"{type(fault).__name__}: {fault}"


def _require_sizes(split: PlannedSplit) -> None:
    """The flavour that a module adds has the parameters of the plan's model."""
    torch, own = (
        importlib.import_module("torch"),
        importlib.import_module("torchtitan.models.llama3"),
    )
    exec(
        compile(flavour_module(split), "phaze_flavor", "exec"), {}
    )  # what the release's custom_import does
    with torch.device("meta"):
        built = own.Transformer(own.llama3_args[FLAVOUR])
    sizes = model_sizes(split)
    h, f, v, kv = (sizes[key] for key in ("hidden", "mlp", "vocabulary", "kv_heads"))
    block = 2 * h * h + 2 * h * (h // sizes["heads"] * kv) + 3 * h * f + 2 * h
    wanted = sizes["layers"] * block + 2 * v * h + h
    found = sum(parameter.numel() for parameter in built.parameters())
    assert found == wanted, f"{found} parameters instead of {wanted}"


def record() -> None:
    """Names, forms and choices of all flags and keys, as facts for the tests of every day."""
    RECORDED.mkdir(exist_ok=True)
    parser = argparse.ArgumentParser(allow_abbrev=False)
    importlib.import_module("megatron.training.arguments").add_megatron_arguments(parser)
    rows = []
    for action in parser._actions:
        form = "switch" if action.nargs == 0 else str(action.nargs or 1)
        kind = getattr(action.type, "__name__", "") if action.type in (int, float) else ""
        choices = " ".join(str(getattr(choice, "name", choice)) for choice in action.choices or ())
        rows += [
            (flag, form, kind, choices) for flag in action.option_strings if flag.startswith("--")
        ]
    with (RECORDED / "megatron-core-0.19.2.csv").open("w", newline="") as out:
        csv.writer(out, lineterminator="\n").writerows(
            [("flag", "takes", "type", "choices"), *sorted(rows)]
        )
    job = importlib.import_module("torchtitan.config.job_config").JobConfig
    hints = typing.get_type_hints(job)
    tables = {name: keys for top in sorted(hints) for name, keys in _tables(top, hints[top])}
    (RECORDED / "torchtitan-0.2.2.json").write_text(json.dumps(tables, indent=1) + "\n")


def _tables(name: str, table: Any) -> Iterator[tuple[str, dict[str, str]]]:
    """A table and those inside it, by dotted names."""
    if is_dataclass(table):
        yield name, _keys(table)
        for key, kind in typing.get_type_hints(table).items():
            yield from _tables(f"{name}.{key}", kind)


def _keys(table: Any) -> dict[str, str]:
    hints = typing.get_type_hints(table)
    return {one.name: str(hints[one.name]).replace("typing.", "") for one in fields(table)}


def main() -> int:
    """Read all, say what was refused."""
    typing.override = typing_extensions.override  # type: ignore[attr-defined]  # the release is for Python 3.12
    logging.disable()
    warnings.simplefilter("ignore")
    refused = 0
    with tempfile.TemporaryDirectory() as held:
        for pattern in WHEELS.values():
            (wheel,) = Path(sys.argv[1]).glob(pattern)
            with zipfile.ZipFile(wheel) as packed:
                packed.extractall(held)
        sys.path.insert(0, held)
        recording = "--record" in sys.argv
        for framework, found in (
            ("Megatron-LM", with_megatron()),
            ("torchtitan", with_torchtitan(Path(held))),
        ):
            for name, said in found:
                sys.stdout.write(f"{framework:<12} {name:<24} {said or 'accepted'}\n")
                refused += bool(said)
        if recording:
            record()
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main())
