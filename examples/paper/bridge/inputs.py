"""A study of the paper with faults put back: graphs, network and chips as files, and an ordinary
study that names them.

units          compute took 1000 times its seconds beside links in bytes per second: here links are
               1000 times faster
memory_rates   HBM gives 128 and the global buffer 256 words of 2 bytes a cycle to the whole chip,
               whatever it has: 269 and 538 GB/s at 1.05 GHz, where ours has 1200 GB/s and 4096
               bytes a cycle
"""

import tomllib
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, get_args

from examples.paper.bridge.faults import Faults, Head, faulty
from phaze.errors import InputError, unknown_name
from phaze.graph import store
from phaze.graph.zoo import ZOO, load_model
from phaze.hardware.write import toml_text

HERE = Path(__file__).parent
STUDY = HERE / "bridge.toml"
CLOCK_HZ = 1.05e9
WORD_BYTES = 2
HBM_WORDS, BUFFER_WORDS = 128, 256
# Compute seconds were those of a clock of 1.05e6.
SLIP = 1000


def faults_of(table: Mapping[str, Any], where: str) -> Faults:
    """The table ``[faults]``: every key but ``head`` true or false."""
    known = {name: getattr(Faults(), name) for name in Faults.__dataclass_fields__}
    for key, value in table.items():
        if key not in known:
            raise unknown_name(f"{where}: faults.{key}", "fault", key, known)
        allowed = get_args(Head) if key == "head" else (True, False)
        if not any(value is one or (isinstance(one, str) and value == one) for one in allowed):
            raise InputError(
                f"{where}: faults.{key}",
                f"{value!r}",
                f"give one of {', '.join(map(str, allowed))}",
            )
    return Faults(**table)


def read_study(path: Path = STUDY) -> tuple[dict[str, Any], Faults]:
    """A study with a table ``[faults]``, and that table."""
    raw = tomllib.loads(path.read_text(encoding="utf-8"))
    return raw, faults_of(raw.pop("faults", {}), str(path))


def _preset(room: str, kind: str, name: str) -> dict[str, Any]:
    """A bundled file's values."""
    source = files(room) / "presets" / kind / f"{name}.toml"
    return tomllib.loads(source.read_text(encoding="utf-8"))


def _written(path: Path, text: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return str(path.resolve())


def _graphs(folder: Path, name: str, faults: Faults, microbatches: Sequence[int]) -> list[str]:
    """The graphs of a model, one for each width and microbatch, with what the published code made
    of them."""
    found = []
    for width in ZOO[name].widths:
        for microbatch in microbatches:
            text = store.dumps(faulty(load_model(name, width, microbatch), faults))
            found.append(_written(folder / f"{name}-t{width}-b{microbatch}.json", text))
    return found


def _rate(words: int) -> str:
    return f"{words * WORD_BYTES * CLOCK_HZ / 1e9} GB/s"


def _chip(folder: Path) -> str:
    """The stand-in with the published rates of its memories."""
    raw = _preset("phaze.hardware", "chips", "tpu-v4-paper")
    raw["hbm"]["bandwidth"], raw["global_buffer"]["bandwidth"] = (
        _rate(HBM_WORDS),
        _rate(BUFFER_WORDS),
    )
    return _written(folder / "tpu-v4-paper.toml", toml_text(raw))


def faulty_study(folder: Path, models: Sequence[str], faults: Faults) -> tuple[Path, str]:
    """An ordinary study of these models in a folder with all that it names, and the chip that it
    compares with."""
    raw, _ = read_study()
    sizes = raw["training"]["microbatches"]
    raw["models"] = [
        {"name": name, "graphs": _graphs(folder, name, faults, sizes)} for name in models
    ]
    chip = "tpu-v4-paper"
    if faults.memory_rates:
        chip = _chip(folder)
        space = _preset("phaze.search", "spaces", "paper")
        space["axes"] |= {
            "hbm_bandwidth": [_rate(HBM_WORDS)],
            "global_bandwidth": [_rate(BUFFER_WORDS)],
        }
        raw["space"] = _written(folder / "space.toml", toml_text(space))
        raw["objective"]["baseline"] = chip
    if faults.units:
        raw["cluster"] = {"link_bytes_per_s": f"{4 * SLIP} GiB/s"}
    study = folder / "study.toml"
    _written(study, toml_text(raw))
    return study, chip
