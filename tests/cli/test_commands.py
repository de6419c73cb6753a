"""The command line as a person meets it: answers, documents, exit codes."""

import contextlib
import io
import json
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phaze import __version__
from phaze.api.values import Answer
from phaze.cli import answer
from phaze.cli.command import command
from phaze.cli.main import app
from phaze.cli.schema import formats
from phaze.cli.tour import HIDDEN
from phaze.errors import InfeasibleError
from phaze.hardware.bundled import preset_names


class Ran(Protocol):
    """What a command did; the fixture gives it."""

    code: int
    out: str
    err: str


Phaze = Callable[..., Ran]


def test_version(phaze: Phaze) -> None:
    ran = phaze("--version")
    assert (ran.code, ran.out) == (0, f"phaze {__version__}\n")


def test_help_names_every_command_and_fits_two_screens(phaze: Phaze) -> None:
    out = phaze("--help").out
    listed = {
        line.split()[1] for line in out.splitlines() if line.startswith("│ ") and line[2].isalpha()
    }
    own = {
        command.name or command.callback.__name__
        for command in app.registered_commands
        if command.callback
    }
    assert listed == own - set(HIDDEN) | {"study"}
    assert len(out.splitlines()) <= 66


def test_the_examples_of_the_help_run(
    phaze: Phaze, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    shown = [
        line.split()[1:]
        for line in phaze("--help").out.splitlines()
        if line.startswith("   phaze ")
    ]
    assert [words[0] for words in shown] == ["plan", "search", "verify"]
    # The search and its check are those of ``make demo``.
    assert phaze(*shown[0], "--json").code == 0


def test_no_arguments_show_the_help(phaze: Phaze) -> None:
    ran = phaze()
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == phaze("--help").out


def test_one_chip_as_a_document(phaze: Phaze) -> None:
    ran = phaze("chips", "tpu-v4", "--json")
    document = json.loads(ran.out)
    assert ran.code == 0
    assert ran.out.count("\n") == 1
    assert document["peak_flops"] == pytest.approx(275.2512e12)
    assert document["area_mm2"] == pytest.approx(sum(document["area_by_component_mm2"].values()))
    assert json.loads(phaze("chips", "tpu-v4-paper", "--json").out)["area_mm2"] == pytest.approx(
        278.82667631, abs=5e-9
    )
    assert json.loads(phaze("chips", "tpu-v5e", "--json").out)["area_mm2"] is None


def test_pretty_indents_the_same_document(phaze: Phaze) -> None:
    plain, pretty = (
        phaze("chips", "tpu-v4", "--json").out,
        phaze("chips", "tpu-v4", "--json", "--pretty").out,
    )
    assert pretty.count("\n") > 20
    assert json.loads(plain) == json.loads(pretty)


def test_the_papers_space_is_counted(phaze: Phaze) -> None:
    ran = phaze("chips", "--space", "paper", "--count", "--json")
    assert ran.out == '{"chips":29360,"tensor_parts":4186,"vector_parts":697}\n'


@pytest.mark.parametrize("kind", ["chips", "clusters", "stacks"])
def test_every_preset_is_listed_and_shown(phaze: Phaze, kind: str) -> None:
    listed = phaze(kind).out
    for name in preset_names(kind):
        assert name in listed
        shown = phaze(kind, name)
        assert shown.code == 0
        assert name in shown.out
        assert all(len(line) <= 80 for line in shown.out.splitlines())
    assert all(len(line) <= 80 for line in listed.splitlines())


def test_every_format_has_a_schema(phaze: Phaze) -> None:
    for name in formats():
        document = json.loads(phaze("schema", name, "--json").out)
        assert document["$id"] == name
        assert "schema" in document["properties"]
    assert json.loads(phaze("schema", "chip").out)["$id"] == "phaze.chip/1"


def test_the_schema_of_a_stack_requires_no_key_that_its_base_gives(phaze: Phaze) -> None:
    document = json.loads(phaze("schema", "stack", "--json").out)
    short, whole = document["anyOf"]
    assert document["required"] == ["schema"] and short["required"] == ["base"]
    assert short["properties"]["base"] == {"type": "string"}, "base = null is not a base"
    assert {"name", "title", "fusion", "host_time", "state_bytes"} <= set(whole["required"])
    assert "base" not in whole["required"] and document["additionalProperties"] is False


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("chips", "tpu-v44"), "unknown chip 'tpu-v44'; did you mean 'tpu-v4'?"),
        (("clusters", "selen"), "did you mean 'selene'?"),
        (("stacks", "megatron"), "unknown stack 'megatron'"),
        (("schema", "chips"), "did you mean 'chip'?"),
        (("chips", "--space", "papr", "--count"), "did you mean 'paper'?"),
        (("chips", "--space", "paper"), "add --count"),
        (("chips", "--count"), "add --space"),
        (("chips", "tpu-v4", "--space", "paper", "--count"), "either a chip or a space"),
        (("chips", "missing.toml"), "missing.toml: there is no such file"),
        (("validate", "--silicon", "--operators"), "more than one thing is chosen"),
        (("chip",), "No such command 'chip'"),
        (("chips", "--jso"), "No such option"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(
    phaze: Phaze, arguments: tuple[str, ...], said: str
) -> None:
    ran = phaze(*arguments)
    assert ran.code == 2
    assert said in ran.err
    assert ran.err.count("\n") == 1
    as_json = phaze(*arguments, "--json")
    assert as_json.code == 2
    assert json.loads(as_json.out)["error"] in as_json.err


def test_a_wrong_file_says_its_path_and_value(phaze: Phaze, tmp_path: Path) -> None:
    preset = Path(answer.__file__).parents[1] / "hardware" / "presets" / "chips" / "tpu-v4.toml"
    wrong = tmp_path / "chip.toml"
    wrong.write_text(preset.read_text().replace('size = "32 GiB"', 'size = "-32 GiB"'))
    ran = phaze("chips", wrong)
    assert ran.code == 2
    assert f"{wrong}: hbm.size: '-32 GiB' is out of range; it must be greater than 0." in ran.err


def test_a_users_chip_reads_from_a_file_and_from_standard_input(
    phaze: Phaze, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    preset = Path(answer.__file__).parents[1] / "hardware" / "presets" / "chips" / "h100.toml"
    own = tmp_path / "own.toml"
    own.write_text(preset.read_text().replace('name = "h100"', 'name = "own"'))
    assert json.loads(phaze("chips", own, "--json").out)["name"] == "own"
    for text in (own.read_text(), json.dumps(tomllib.loads(own.read_text()))):
        monkeypatch.setattr("sys.stdin", io.StringIO(text))
        assert json.loads(phaze("chips", "-", "--json").out)["name"] == "own"


def test_nothing_feasible_is_exit_code_3_with_the_shortage(
    capsys: pytest.CaptureFixture[str],
) -> None:
    import typer

    own = typer.Typer()

    @own.command()
    @command
    def fails() -> Answer:
        raise InfeasibleError("It does not fit.", {"needed_bytes": 3})

    @own.command()
    @command
    def breaks() -> Answer:
        raise RuntimeError("a fault\nof two lines")

    assert answer.exit_code_of(own, ["fails", "--json"]) == 3
    assert json.loads(capsys.readouterr().out) == {"error": "It does not fit.", "needed_bytes": 3}
    assert answer.exit_code_of(own, ["breaks", "--json"]) == 1
    said = capsys.readouterr()
    assert json.loads(said.out)["error"].startswith(
        "this is a fault of phaze: RuntimeError: a fault of two lines"
    )
    assert said.err.count("\n") == 1


def test_names_that_look_like_markup_stay_text(phaze: Phaze, tmp_path: Path) -> None:
    preset = Path(answer.__file__).parents[1] / "hardware" / "presets" / "chips" / "tpu-v4.toml"
    own = tmp_path / "own.toml"
    own.write_text(
        preset.read_text().replace('title = "Google TPU v4"', 'title = "[bold]x[/bold] [/]"')
    )
    assert "[bold]x[/bold] [/]" in phaze("chips", own).out


def test_a_closed_pipe_is_no_fault() -> None:
    command = f"{sys.executable} -m phaze chips | head -n 1"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("chip")


def test_help_imports_none_of_the_heavy_libraries() -> None:
    code = (
        "import sys; from phaze.cli.main import app; from phaze.cli.answer import exit_code_of;"
        "exit_code_of(app, ['--help']);"
        "heavy = {'numpy', 'numba', 'ortools', 'torch', 'pydantic', 'pandas'} & set(sys.modules);"
        "sys.exit(', '.join(sorted(heavy)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_chip_too_large_for_a_wafer_is_shown_with_what_stands_in_the_way(
    phaze: Phaze, tmp_path: Path
) -> None:
    preset = Path(answer.__file__).parents[1] / "hardware" / "presets" / "chips" / "tpu-v4.toml"
    huge = tmp_path / "huge.toml"
    huge.write_text(preset.read_text().replace('size = "128 MiB"', 'size = "1 TiB"'))
    document = json.loads(phaze("chips", huge, "--json").out)
    assert document["ownership"] is None
    assert "does not fit a wafer" in document["obstacle"]
    assert "does not fit a wafer" in " ".join(phaze("chips", huge).out.split())


numbers = (
    st.integers(-(2**70), 2**70)
    | st.floats()
    | st.sampled_from(["1e300 GHz", "1e15 Hz", "1 EB/s", "0 B", "1 B"])
)


@given(st.data())
@settings(max_examples=120)
def test_any_number_in_a_chip_file_is_an_answer_or_bad_input(data: st.DataObject) -> None:
    preset = Path(answer.__file__).parents[1] / "hardware" / "presets" / "chips" / "tpu-v4.toml"
    raw = tomllib.loads(preset.read_text())
    table = data.draw(
        st.sampled_from(
            ["", "tensor_cores", "vector_cores", "global_buffer", "hbm", "links", "published"]
        )
    )
    place = raw[table] if table else raw
    place[data.draw(st.sampled_from(sorted(key for key in place if key != "sources")))] = data.draw(
        numbers
    )
    said, wrong = io.StringIO(), io.StringIO()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "chip.json"
        path.write_text(json.dumps(raw))
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(wrong):
            code = answer.exit_code_of(app, ["chips", str(path), "--json"])
    assert code in (0, 2), wrong.getvalue()
    assert isinstance(json.loads(said.getvalue()), dict)
