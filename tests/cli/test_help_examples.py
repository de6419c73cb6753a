"""Every command's help has an example: its options are read every day, and with the slow tests each
one is run."""

import gzip
import json
import re
import shlex
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from phaze.cli.main import app
from tests.conftest import Ran
from tests.report.runs import SPACE, STUDY
from tests.search.made_silicon import SMALL
from tests.search.test_silicon_search import STUDY as SILICON

ROOT = Path(__file__).parents[2]
PRESETS = ROOT / "src" / "phaze" / "hardware" / "presets"
# What serves until it is stopped, measures for minutes, or starts Ray (tests/search/test_ray.py
# does).
NOT_RUN = ("phaze view", "--engine ray")
# Examples that answer a small question here: the model that they name is searched in other tests
# and in make demo.
SMALLER = {"--model llama3-8b --of throughput,price": "study.toml --of throughput,price"}
# Four rows of each kind: what a fit needs at least.
SIZES = (1024, 2048, 4096, 8192)
MEASURED = "operator,batch,m,n,k,elements,rows,seconds\n" + "".join(
    f"gemm,1,{n},{n},{n},,,{2 * n**3 / 2.3e14 + 5e-6}\nadd,,,,,{n * n},,{6 * n * n / 1.6e12 + 5e-6}\n"
    for n in SIZES
)
# Commands that make a folder of their own: they must find none of another example's.
MAKING = ("phaze new ", "phaze search ", "phaze front ", "phaze sweep ")


def _commands(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    for own, one in getattr(command, "commands", {}).items():
        if hasattr(one, "commands"):
            yield from _commands(one, f"{name} {own}")
        elif not one.hidden:
            yield f"{name} {own}", one


COMMANDS = dict(_commands(get_command(app), "phaze"))


def examples_of(name: str) -> list[str]:
    """The command lines after ``Examples:`` in the docstring of a command."""
    found = re.search(
        r"Examples?: (.*)$", " ".join((COMMANDS[name].callback.__doc__ or "").split())
    )
    return [] if found is None else [one.strip() for one in found[1].split("·")]


EXAMPLES = [one for name in COMMANDS for one in examples_of(name)]


@pytest.mark.parametrize("name", COMMANDS)
def test_a_help_text_has_examples_whose_options_exist(name: str) -> None:
    examples = examples_of(name)
    assert examples
    for line in examples:
        words = shlex.split(line.partition(" > ")[0])
        own = name.split()
        assert words[: len(own)] == own
        COMMANDS[name].make_context(name, words[len(own) :])


@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "phaze study check"])
def test_a_help_text_shows_each_example_as_a_command_to_paste(name: str) -> None:
    text = COMMANDS[name].help
    assert all(len(line) <= 78 for line in text.splitlines())
    shown = text.partition("Examples:\n")[2].replace(" \\\n   ", "").splitlines()
    assert [line.strip() for line in shown] == examples_of(name)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with everything that the examples name."""
    from phaze.cli.answer import exit_code_of

    made = tmp_path_factory.mktemp("examples")

    def run(*words: str) -> None:
        assert exit_code_of(app, list(words)) == 0, words

    for name in ("study", "mine"):
        (made / f"{name}.toml").write_text(STUDY.replace("space.toml", str(made / "space.toml")))
    (made / "space.toml").write_text(SPACE)
    (made / "space.json").write_text(
        json.dumps({**SMALL, "axes": {**SMALL["axes"], "clusters": [4, 8, 12]}})
    )
    (made / "silicon.toml").write_text(SILICON.replace("space.json", str(made / "space.json")))
    for name in ("my.py", "my_model.py"):
        shutil.copy(ROOT / "examples" / "models" / "decoder.py", made / name)
    for name in ("run.json", "profile.json", "launch.sh"):
        shutil.copy(ROOT / "examples" / name, made / name)
    (made / "examples").symlink_to(ROOT / "examples")
    shutil.copy(ROOT / "tests" / "api" / "operators.json", made / "layer.json")
    for preset, name in (
        ("silicon/chips/h100", "chip"),
        ("clusters/selene", "cluster"),
        ("technologies/n5", "process"),
    ):
        shutil.copy(PRESETS / f"{preset}.toml", made / f"my-{name}.toml")
    (made / "a100.csv").write_text(MEASURED)
    kernel = {
        "ph": "X",
        "cat": "kernel",
        "name": "ampere_bf16_s16816gemm_bf16",
        "ts": 0,
        "dur": 3e6,
        "pid": 0,
        "tid": 7,
    }
    for rank in range(2):
        (made / f"rank{rank}.json.gz").write_bytes(
            gzip.compress(json.dumps({"traceEvents": [kernel]}).encode())
        )
    (made / "rows.csv").write_text("name,chip,tensor_cores.count\nhalf,tpu-v4-paper,4\n")
    rows = (ROOT / "src" / "phaze" / "validate" / "data" / "sc21.csv").read_text().splitlines()
    (made / "my_runs.csv").write_text("\n".join(rows[:2]) + "\n")
    run(
        "search", str(made / "silicon.toml"), "--out", str(made / "runs" / "demo"), "--workers", "1"
    )
    run(
        "search",
        str(made / "study.toml"),
        "--out",
        str(made / "runs" / "bert-large"),
        "--workers",
        "1",
    )
    for name in ("llama3-8b", "mine"):
        run("search", str(made / "mine.toml"), "--out", str(made / "runs" / name), "--workers", "1")
    front = str(made / "runs" / "llama3-8b-front")
    run(
        "front",
        str(made / "study.toml"),
        "--of",
        "throughput,area",
        "--out",
        front,
        "--workers",
        "1",
    )
    run("plan", "--fixed", str(made / "run.json"), "--html", str(made / "plan.html"))
    job = (
        "--model",
        "bert-large",
        "--chip",
        "a100-80gb",
        "--devices",
        "8",
        "--batch",
        "32",
        "--microbatch",
        "1",
    )
    run("plan", *job, "--tensor", "1", "--certificate", str(made / "runs" / "proof"))
    return made


@pytest.mark.slow
@pytest.mark.parametrize(
    "line", [one for one in EXAMPLES if not any(word in one for word in NOT_RUN)]
)
def test_an_example_of_a_help_text_runs(
    line: str,
    folder: Path,
    phaze: Callable[..., Ran],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    if line.startswith(MAKING):
        for path in folder.iterdir():
            if path.is_file() and not line.startswith("phaze new "):
                (tmp_path / path.name).symlink_to(path)
    monkeypatch.chdir(tmp_path if line.startswith(MAKING) else folder)
    monkeypatch.setenv("PHAZE_CACHE", str(folder / "cache"))
    (folder / "plan.json").write_text(
        phaze("plan", "--fixed", str(folder / "run.json"), "--json").out
    )
    for large, small in SMALLER.items():
        line = line.replace(large, small)
    words = [
        str(path)
        for word in shlex.split(line.partition(" > ")[0])[1:]
        for path in ([*Path().glob("prof*.json")] if word == "*.json" else [word])
    ]
    ran = phaze(*words)
    assert ran.code == 0, ran.err
