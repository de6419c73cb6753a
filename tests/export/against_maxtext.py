"""Every kind of MaxText configuration, read by the release itself: its reader, its checks, its
mesh, its batches.

    pip download --no-deps --ignore-requires-python maxtext==0.2.5 && unzip maxtext-0.2.5-*.whl -d
    maxtext pip install jax flax omegaconf pydantic jinja2 absl-py packaging pathwaysutils
    --ignore-requires-python
    PYTHONPATH=maxtext python -m tests.export.against_maxtext              1 if one is refused
    PYTHONPATH=maxtext python -m tests.export.against_maxtext --record     and write tests/export/recorded

No accelerator is needed: nothing is started. The tests of every day read with what was recorded.
"""

import importlib
import json
import logging
import os
import sys
import tempfile
import typing
from pathlib import Path
from typing import Any

import typing_extensions

from phaze.export.maxtext_mesh import axes
from phaze.export.source import PlannedSplit
from phaze.graph.zoo import ZOO
from tests.export.launching import written
from tests.export.maxtext_splits import MAXTEXT

RECORDED = Path(__file__).parent / "recorded" / "maxtext-0.2.5.json"
AXES = {"stage": "pipeline"}


def objection(split: PlannedSplit, path: Path) -> str:
    """What the release says against a configuration; nothing where it takes it as it was meant."""
    jax: Any = importlib.import_module("jax")
    reader = importlib.import_module("maxtext.configs.pyconfig")
    slices = split.processes // split.node if 0 < split.node < split.processes else 1
    # As on the devices of the plan: their number, and in how many slices they lie.
    jax.devices = lambda *_: [None] * split.processes
    importlib.import_module("maxtext.utils.max_utils").get_num_slices = lambda *_: slices  # type: ignore[attr-defined]
    path.write_text(written("maxtext", split))
    try:
        read = reader.initialize_pydantic(["", str(path)])
    except Exception as fault:  # whatever a release raises is an objection
        return f"{type(fault).__name__}: {' '.join(str(fault).split())[:300]}"
    said = _degrees(read)
    wanted = {axis: degree for axis, degree in axes(split).items() if degree > 1}
    if said != wanted:
        return f"a mesh of {said}, wanted {wanted}"
    if read.global_batch_size_to_train_on != split.batch:
        return f"a batch of {read.global_batch_size_to_train_on}"
    return _sizes(split, read)


def _degrees(read: Any) -> dict[str, int]:
    """The degrees of the mesh that the release makes, by our axes."""
    both = zip(read.mesh_axes, read.ici_parallelism, read.dcn_parallelism, strict=True)
    return {AXES.get(axis, axis): ici * dcn for axis, ici, dcn in both if ici * dcn > 1}


def _sizes(split: PlannedSplit, read: Any) -> str:
    """What is wrong with the sizes of the model that it would train."""
    if split.model not in ZOO:
        return (
            ""
            if read.vocab_size == split.sizes["vocabulary"]
            else f"a vocabulary of {read.vocab_size}"
        )
    entry = ZOO[split.model]
    merged = (
        getattr(read, "inhomogeneous_layer_cycle_interval", 1)
        if read.decoder_block.value == "gemma2"
        else 1
    )
    layers = read.num_decoder_layers * (2 if read.decoder_block.value == "gemma2" else merged)
    said = (layers, read.emb_dim, read.num_query_heads)
    return "" if said == (entry.layers, entry.hidden, entry.heads) else f"a model of {said}"


def main() -> int:
    """Read all, say what was refused."""
    typing.override = typing_extensions.override  # type: ignore[attr-defined]  # the release is for Python 3.12
    os.environ["JAX_PLATFORMS"] = "cpu"
    logging.disable()
    importlib.import_module(
        "pytest"
    )  # beside which the release joins no cluster, and raises instead of leaving
    refused = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, split in MAXTEXT.items():
            said = objection(split, Path(folder) / "job.yml")
            sys.stdout.write(f"{name:<32} {said or 'accepted'}\n")
            refused += bool(said)
    if "--record" in sys.argv:
        types = importlib.import_module("maxtext.configs.types")
        fields = types.MaxTextConfig.model_fields
        keys = {
            name: str(field.annotation).replace("typing.", "")
            for name, field in sorted(fields.items())
        }
        RECORDED.write_text(json.dumps(keys, indent=0) + "\n")
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main())
