"""Any launch file as the run that it starts (``phaze.run/1``): a run itself, Megatron-LM's flags, a
torchtitan job, a configuration of MaxText or DeepSpeed.

What the file does not say comes from the command line; what both say must agree.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from phaze.documents import check, notation_of
from phaze.errors import InputError
from phaze.evaluate.run_file import RunFile, read_run
from phaze.export.flag import read
from phaze.export.frameworks import FRAMEWORKS, LAUNCH_FILES
from phaze.export.launch import Launch
from phaze.export.planned import is_plan, run_of_plan
from phaze.files import read_text
from phaze.graph.zoo import ZOO
from phaze.hardware.library import load_chip

MODELS = ("model", "gpt", "llama", "moe", "graph")


@dataclass(frozen=True, slots=True)
class LaunchOptions:
    """What the command line says of the job; None or empty where it says nothing. ``model`` as in
    ``phaze.run/1``."""

    model: Mapping[str, Any]
    chip: str | None = None
    cluster: str | None = None
    stack: str | None = None
    devices: int | None = None
    batch: Any = None
    sequence: int | None = None


@dataclass(frozen=True, slots=True)
class Launched:
    """The run of a launch file, what reading it left out or took for granted, and whether code that
    it names as its model may run."""

    run: dict[str, Any]
    framework: str
    where: str
    not_read: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()
    allow_code: bool = False


def read_launch(path: str, options: LaunchOptions, usual_cluster: str | None) -> Launched:
    """The run that a launch file starts; ``usual_cluster`` is the chip's, where neither says
    one."""
    text, where = read_text(path)
    if not text.strip():
        raise InputError(where, "there is nothing in it", f"give {LAUNCH_FILES}")
    is_run = notation_of(path, text) == "toml" and "phaze.run/1" in text
    for framework in () if is_run else FRAMEWORKS:
        if framework.recognises(path, text, where):
            return _launched(
                read(framework, text, where, options.devices), options, usual_cluster, where
            )
    if is_run or text.lstrip().startswith("{"):
        return _given_run(path, options)
    seen = "it has neither --micro-batch-size nor --global-batch-size"
    raise InputError(where, seen, f"give {LAUNCH_FILES}")


def _given_run(path: str, options: LaunchOptions) -> Launched:
    """A run, or a plan's document as the run that it plans, checked; where it names no cluster, the
    chip's."""
    run, where = read_run(path)
    run, assumed = run_of_plan(run, where) if is_plan(run) else (run, ())
    chip, cluster = run.get("chip", options.chip), run.get("cluster", options.cluster)
    if isinstance(chip, str):
        run["chip"], usual = chip, load_chip(chip).cluster
        run["cluster"] = cluster or usual
        if run["cluster"] is None:
            raise InputError(
                "--cluster",
                f"the chip '{chip}' names no default cluster",
                "name one: phaze clusters",
            )
    run = _agreed(run, options, where)
    check(RunFile, run, where)
    return Launched(run, "run", where, (), assumed)


def _agreed(run: dict[str, Any], options: LaunchOptions, where: str) -> dict[str, Any]:
    """A run, with nothing on the command line that contradicts it."""
    for key in ("chip", "cluster", "stack", "devices", "batch", "sequence"):
        value = getattr(options, key)
        if value is not None and key in run and run[key] != value:
            raise InputError(
                f"--{key}", f"{value} and the run says {run[key]}", "leave the option out"
            )
    if options.model and any(key in run and run[key] != options.model.get(key) for key in MODELS):
        raise InputError("--model", f"{where} names its own model", "leave the option out")
    more = {
        key: value for key in ("stack", "sequence") if (value := getattr(options, key)) is not None
    }
    return {**run, **more}


def _agreed_value(name: str, option: Any, stated: Any, where: str) -> Any:
    """What both or either of the command line and the file say."""
    if option is not None and stated is not None and option != stated:
        raise InputError(
            f"--{name}", f"{option} and {where} says {stated}", "leave the option out, or give that"
        )
    value = stated if option is None else option
    if value is None:
        raise InputError(f"--{name}", f"{where} does not say it", f"add --{name}")
    return value


def _launched(
    launch: Launch, options: LaunchOptions, usual_cluster: str | None, where: str
) -> Launched:
    if options.chip is None:
        raise InputError("--chip", f"{where} does not say it", "add --chip, such as --chip h100")
    model = dict(options.model) or dict(launch.model)
    if not model:
        seen = f"{where} does not say all sizes of its model"
        raise InputError(
            "--model", seen, "add --model llama3-8b, or --vocab-size and the sizes to the file"
        )
    _require_sizes(str(model.get("model", "")), launch.sizes, where)
    devices = int(_agreed_value("devices", options.devices, launch.devices, where))
    if devices < launch.group or devices % launch.group:
        degrees = [
            launch.plan[key] for key in ("tensor", "context", "pipeline") if key in launch.plan
        ]
        seen = (
            f"{devices} are not a multiple of {' x '.join(map(str, degrees))}, a replica of {where}"
        )
        raise InputError("--devices", seen, f"give a multiple of {launch.group}")
    run: dict[str, Any] = {
        "schema": "phaze.run/1",
        **model,
        "chip": options.chip,
        "cluster": options.cluster or usual_cluster,
        "stack": options.stack or launch.stack,
        "devices": devices,
        "batch": _agreed_value("batch", options.batch, launch.batch, where),
        "plan": {
            **launch.plan,
            "data": devices // launch.group,
            **_shard(launch, devices // launch.group, where),
        },
    }
    length = (
        options.sequence
        if launch.sequence is None
        else _agreed_value("sequence", options.sequence, launch.sequence, where)
    )
    if length is not None and "model" in model:
        run["sequence"] = length
    for key in ("precision", "optimizer", "attention"):
        if (value := getattr(launch, key)) is not None:
            run[key] = value
    if run["cluster"] is None:
        raise InputError(
            "--cluster",
            f"the chip '{options.chip}' names no default cluster",
            "name one: phaze clusters",
        )
    return Launched(run, launch.framework, where, launch.not_read, launch.assumed)


def _shard(launch: Launch, data: int, where: str) -> dict[str, int]:
    """Ranks that shard state, where they are fewer than those with the same weights."""
    if launch.shards == 1:
        return {}
    alike = data * int(launch.plan.get("context", 1))
    if alike % launch.shards or alike == launch.shards:
        seen = (
            f"{launch.shards} groups that shard state do not divide {alike} replicas into "
            "two or more each"
        )
        raise InputError(where, seen, "give devices that they divide")
    return {"shard": alike // launch.shards}


def _require_sizes(name: str, sizes: Mapping[str, int], where: str) -> None:
    """Refuse a named model whose sizes are not those that a file states."""
    if name not in ZOO:
        return
    entry = ZOO[name]
    for size, listed in (
        ("layers", entry.layers),
        ("hidden", entry.hidden),
        ("heads", entry.heads),
    ):
        if sizes.get(size, listed) != listed:
            seen = f"{name} has {listed} {size} and {where} says {sizes[size]}"
            raise InputError("--model", seen, "name the model that the file trains")
