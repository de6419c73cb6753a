"""Broken files and hostile values: one sentence and exit code 2, whatever was given."""

import contextlib
import io
import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from phaze import api
from phaze.cli import commands
from phaze.cli.answer import exit_code_of
from phaze.cli.main import app
from phaze.documents import dumps, parse
from phaze.errors import InputError
from phaze.search.journal import SqliteJournal, read_closed, read_evaluated
from tests.report.runs import PLAN, small_run

ROW = {
    "model": "gpt", "hidden": 1024, "layers": 4, "heads": 16, "sequence": 512, "chip": "a100-40gb",
    "cluster": "selene", "devices": 8, "batch": 64, "tensor": 1, "pipeline": 2, "data": 4,
    "microbatch": 2,
    "chunks": 1, "seconds": 1.0,
}  # fmt: skip
CLUSTER = """schema = "phaze.cluster/1"
name = "slow"
title = "a slow one"
devices = 8
[[levels]]
name = "wire"
kind = "switch"
size = 8
bandwidth = RATE
latency = 1e-6
[sources]
levels = "synthetic"
"""


@pytest.fixture(scope="module")
def plan() -> dict[str, Any]:
    """A plan's document."""
    with contextlib.redirect_stdout(io.StringIO()) as said:
        assert exit_code_of(app, [*PLAN.split(), "--json"]) == 0
    found: dict[str, Any] = json.loads(said.getvalue())
    return found


def _refused(ran: Any, *words: str) -> None:
    assert ran.code == 2, ran.err
    assert ran.err.count("\n") == 1
    for word in words:
        assert word in ran.err


@pytest.mark.parametrize(
    "key", ["tensor", "pipeline", "data", "microbatch", "chunks", "devices", "batch", "layers"]
)
@pytest.mark.parametrize("value", ["0", "-1", "9" * 30, "1.5", "²"])
def test_a_measured_run_with_a_degree_that_is_none_is_refused(
    key: str, value: str, phaze: Any, tmp_path: Path
) -> None:
    row = {**ROW, key: value}
    (tmp_path / "rows.csv").write_text(
        f"{','.join(row)}\n{','.join(map(str, row.values()))}\n", encoding="utf-8"
    )
    _refused(phaze("validate", tmp_path / "rows.csv"), "line 2", key)


@pytest.mark.parametrize("cell", ["1" * 131_073, "²", "nan", "1e-320", "9" * 5000])
def test_a_measured_operator_with_a_cell_that_is_no_number_is_refused(
    cell: str, phaze: Any, tmp_path: Path
) -> None:
    (tmp_path / "m.csv").write_text(
        f"operator,batch,m,n,k,elements,rows,seconds\ngemm,1,{cell},64,64,,,{cell}\n",
        encoding="utf-8",
    )
    _refused(
        phaze("calibrate", tmp_path / "m.csv", "--chip", "a100-80gb", "--out", tmp_path / "c.toml"),
        "m.csv",
    )


def test_a_link_slower_than_a_byte_a_second_is_refused(phaze: Any, tmp_path: Path) -> None:
    (tmp_path / "slow.toml").write_text(CLUSTER.replace("RATE", "1e-320"))
    asked = (
        "estimate",
        "--collective",
        "all_reduce:64MiB:8",
        "--cluster",
        tmp_path / "slow.toml",
        "--json",
    )
    _refused(phaze(*asked), "bandwidth", "at least 0.001")
    (tmp_path / "slow.toml").write_text(CLUSTER.replace("RATE", "1.0"))
    assert phaze(*asked).code == 0


def test_a_link_that_reaches_next_to_nothing_of_its_rate_is_refused(
    phaze: Any, tmp_path: Path
) -> None:
    slow = CLUSTER.replace("RATE", "1.0").replace(
        "latency = 1e-6", "latency = 1e-6\nshare = 1e-320\nstart = 0.0"
    )
    (tmp_path / "slow.toml").write_text(slow)
    asked = (
        "estimate",
        "--collective",
        "all_reduce:64MiB:8",
        "--cluster",
        tmp_path / "slow.toml",
        "--json",
    )
    _refused(phaze(*asked), "share", "from 1e-06 to 1")


def test_half_a_character_is_refused_where_it_stands(
    phaze: Any, plan: dict[str, Any], tmp_path: Path
) -> None:
    path = tmp_path / "plan.json"
    path.write_text(json.dumps({**plan, "approximations": ["\ud800"]}))
    for command in (
        ("export", path, "--to", "csv"),
        ("report", path),
        ("export", path, "--to", "perfetto"),
    ):
        _refused(phaze(*command), "approximations[0]", "half a character")
    assert parse('{"a": "\\ud83d\\ude00"}', "json", "x") == {"a": "\U0001f600"}
    with pytest.raises(InputError, match="half a character"):
        parse('{"\\udfff": 1}', "json", "x")


@pytest.mark.parametrize("number", ["1e999", "-1e999", "1" + "0" * 400 + ".0", "NaN", "Infinity"])
def test_a_number_without_end_is_refused(number: str) -> None:
    with pytest.raises(InputError, match="is not a number that can be used"):
        parse(f'{{"a": [{number}]}}', "json", "x")
    toml = number.replace("NaN", "nan").replace("Infinity", "inf")
    with pytest.raises(InputError, match="is not a number that can be used"):
        parse(f"a = [{toml}]", "toml", "x")


@pytest.mark.parametrize(
    "text",
    [
        "a" + ".a" * 200_000 + "=1",
        "a=" + "[" * 100_000,
        "[" + "'a'." * 100_000 + "a]",
        "x='" + "y" * (5 << 20),
    ],
)
def test_toml_that_would_take_hours_is_refused_at_once(text: str) -> None:
    with pytest.raises(InputError, match=r"nested too deeply|more than 4 MiB"):
        parse(text, "toml", "x")
    assert parse("a = " + dumps([0.5] * 500), "toml", "x")["a"][0] == 0.5


def test_a_run_with_a_broken_result_is_not_compared(phaze: Any, tmp_path: Path) -> None:
    run = small_run(tmp_path)
    result = run / "result.json"
    good = json.loads(result.read_text())
    result.write_text(dumps({**good, "objective": {**good["objective"], "score": 1e-308}}))
    _refused(phaze("report", run), "score")
    result.write_text(dumps({**good, "cluster": "a"}))
    _refused(phaze("report", run), "cluster")
    changes: list[dict[str, Any]] = [{"number": 10**6}, {"hbm_bytes": "a"}]
    edited = [dumps({**good, "chip": {**good["chip"], **change}}) for change in changes]
    for text in ("{", '{"chip": 3}', *edited):
        result.write_text(text)
        _refused(phaze("compare", "--run", run), "result.json")
    result.unlink()
    _refused(phaze("compare", "--run", run), "result.json")


def test_a_journal_with_rows_of_other_kinds_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    for text in ("{", "[]", "3", '{"ran": 3, "score": 1, "lower": 1, "hbm": 1, "error": ""}'):
        path.unlink(missing_ok=True)
        with SqliteJournal(path, "study", "code"):
            pass
        base = sqlite3.connect(path)
        base.execute("INSERT INTO evaluated VALUES (1, ?)", (text,))
        base.execute("INSERT INTO closed VALUES (1, 'bound', 'a text', '')")
        base.commit()
        base.close()
        for read in (
            read_evaluated,
            read_closed,
            lambda where: SqliteJournal(where, "study", "code"),
        ):
            with pytest.raises(InputError, match="the journal is damaged"):
                read(path)


OPENED: dict[str, Any] = {
    "hbm": 0,
    "score": 1.0,
    "lower": 1.0,
    "ran": [[0, 1.0, 0.0, 1.0, 1.0]],
    "error": "",
}
JOURNALS: tuple[tuple[str | dict[str, Any], str], ...] = (
    ("UPDATE closed SET reason = 'luck' WHERE chip = 1", "luck"),
    ("UPDATE closed SET chip = 99 WHERE chip = 1", "chips of its space"),
    ("UPDATE evaluated SET chip = 99", "no chip 99"),
    ({"hbm": 9}, "a memory or a configuration"),
    ({"ran": [[99, 1.0, 0.0, 1.0, 1.0]]}, "a memory or a configuration"),
    ({"ran": OPENED["ran"] * 2}, "a memory or a configuration"),
    ({"hbm": True}, "not a whole number"),
    ({"score": 0}, "not a number from 1e-30"),
    ({"lower": 1e308}, "not a number from 0"),
    ({"ran": [[0, 1e-320, 0.0, 1.0, 1.0]]}, "not a number from 1e-30"),
    ({"error": None}, "not text"),
    ({"error": "\ud800"}, "surrogates"),
)


def test_a_journal_whose_rows_are_not_of_its_question_is_refused(
    phaze: Any, tmp_path: Path
) -> None:
    run = small_run(tmp_path)
    journal = run / "journal.sqlite"
    good, answer = journal.read_bytes(), (run / "result.json").read_bytes()
    for change, word in JOURNALS:
        journal.write_bytes(good)
        (run / "result.json").write_bytes(answer)
        with contextlib.closing(sqlite3.connect(journal, isolation_level=None)) as base:
            base.execute("DELETE FROM evaluated WHERE chip > (SELECT min(chip) FROM evaluated)")
            if isinstance(change, str):
                base.execute(change)
            else:
                base.execute(
                    "UPDATE evaluated SET document = ?", (json.dumps({**OPENED, **change}),)
                )
        _refused(phaze("report", run), word)
        if isinstance(
            change, dict
        ):  # a finished run answers from its folder; one that goes on reads its journal
            (run / "result.json").unlink()
            _refused(phaze("search", tmp_path / "study.toml", "--out", run, "--workers", "1"), word)


def test_a_stack_file_on_a_base_is_shown(phaze: Any, tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text(
        'schema = "phaze.stack/1"\nname = "own"\ntitle = "own"\nbase = '
        '"megatron-2022"\nhost_time = "20 us"\n'
    )
    shown, base = (
        json.loads(phaze("stacks", which, "--json").out) for which in (own, "megatron-2022")
    )
    assert shown["host_s"] == 20e-6 != base["host_s"]
    assert shown["state_bytes"] == base["state_bytes"]


def test_a_plan_whose_optional_parts_are_left_out_or_null_has_a_page(
    phaze: Any, plan: dict[str, Any], tmp_path: Path
) -> None:
    path = tmp_path / "plan.json"
    nothing = dict.fromkeys(("shortage", "proved", "alternatives", "rule_of_thumb", "experts"))
    path.write_text(
        json.dumps(
            {
                **{key: value for key, value in plan.items() if key != "chunks"},
                "proved": plan["proved"],
            }
        )
    )
    assert phaze("report", path).code == 0
    path.write_text(json.dumps({**plan, **nothing, "chunks": 2}))
    assert phaze("report", path).code == 0


def test_a_plan_of_more_layers_than_its_model_has_is_refused(
    phaze: Any, plan: dict[str, Any], tmp_path: Path
) -> None:
    *stages, last = plan["stages"]
    more = {**last, "layers": [*last["layers"], last["layers"][-1] + 1]}
    path = tmp_path / "plan.json"
    path.write_text(json.dumps({**plan, "stages": [*stages, more]}))
    for command in (("report", path), ("export", path, "--to", "perfetto")):
        _refused(phaze(*command), "layers")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("constants", {"basis": "datasheet"}),
        ("constants", {"basis": "datasheet", "band": "wide"}),
        ("constants", {"basis": "datasheet", "band": None, "software_share": 0.9}),
        (
            "constants",
            {"basis": "datasheet", "band": None, "software_share": 0.9, "clock_hz": "fast"},
        ),
        ("memory_left", 1.5),
        (
            "memory_left",
            {"left_bytes": 1.0, "left_share": 0.1, "headroom": 0.0, "band": {"median": "small"}},
        ),
        ("choices", {"tried": "many", "fitting": 1}),
    ],
)
def test_a_plan_whose_page_would_show_what_is_no_number_is_refused(
    key: str, value: object, phaze: Any, plan: dict[str, Any], tmp_path: Path
) -> None:
    path = tmp_path / "plan.json"
    path.write_text(json.dumps({**plan, key: value}))
    _refused(phaze("report", path), key)


@pytest.mark.parametrize(
    "sizes", [None, {}, {"sequence": 0}, {"sequence": "long"}, {"sequence": True}]
)
def test_a_plan_of_a_family_without_a_length_is_not_exported(
    sizes: object, phaze: Any, plan: dict[str, Any], tmp_path: Path
) -> None:
    assert plan["job"]["family"] is not None
    path = tmp_path / "plan.json"
    path.write_text(json.dumps({**plan, "job": {**plan["job"], "sizes": sizes, "sequence": None}}))
    for command in (("report", path), ("export", path, "--to", "torchtitan")):
        _refused(phaze(*command), "sizes")


def test_a_plan_without_what_is_printed_of_it_is_not_loaded(
    plan: dict[str, Any], tmp_path: Path
) -> None:
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(plan))
    assert repr(api.load(path))
    short = {
        "stage": 0,
        "missing_bytes": 1.0,
        "needed_bytes": 2.0,
        "available_bytes": 1.0,
        "terms": {},
    }
    rows = [
        {key: value for key, value in row.items() if key != "slower"}
        for row in plan["alternatives"]
    ]
    spoiled: tuple[dict[str, Any], ...] = (
        *(
            {key: value for key, value in plan.items() if key != gone}
            for gone in ("zero", "feasible", "choices")
        ),
        {**plan, "alternatives": rows},
        {**plan, "shortage": short},
        {**plan, "shortage": {**short, "levers": {"devices": "many"}}},
    )
    for document in spoiled:
        path.write_text(json.dumps(document))
        with pytest.raises(InputError):
            api.load(path)


def test_a_text_that_a_terminal_would_obey_is_refused(phaze: Any, tmp_path: Path) -> None:
    (tmp_path / "slow.toml").write_text(
        CLUSTER.replace("RATE", "1.0").replace("a slow one", "\\u001b[31mred")
    )
    _refused(phaze("clusters", tmp_path / "slow.toml"), "title", "U+001B")
    (tmp_path / "rows.csv").write_text(
        f"{','.join(ROW)}\n\x9b31m{','.join(map(str, ROW.values()))}\n", encoding="utf-8"
    )
    _refused(phaze("validate", tmp_path / "rows.csv"), "line 2", "U+009B")


def test_a_model_of_billions_of_layers_is_refused_before_they_are_counted_out(phaze: Any) -> None:
    sizes = "hidden=64,layers=2147483648,heads=4,vocabulary=512,sequence=64"
    _refused(phaze("graph", "--gpt", sizes), "layers", "4,096")


@pytest.mark.parametrize(
    "command",
    ["verify NAME", "compare --run NAME", "report NAME", "explain NAME", "export NAME --to csv"],
)
def test_a_name_longer_than_the_system_takes_is_refused(command: str, phaze: Any) -> None:
    _refused(phaze(*command.replace("NAME", "n" * 300).split()), "n" * 200)


def test_a_fault_of_a_file_that_phaze_brings_along_is_its_own(
    phaze: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(*_: object) -> None:
        raise FileNotFoundError(
            2, "No such file or directory", str(Path(commands.__file__).parents[1] / "data")
        )

    monkeypatch.setattr("phaze.hardware.technologies.preset_names", gone)
    ran = phaze("technologies")
    assert ran.code == 1 and "a fault of phaze" in ran.err


@pytest.mark.parametrize("seconds", ["nan", "-1", "-inf"])
def test_a_time_that_is_no_number_of_seconds_is_refused(
    seconds: str, phaze: Any, tmp_path: Path
) -> None:
    for command in (("search",), ("front", "--of", "throughput,area")):
        ran = phaze(
            *command, "--model", "bert-large", f"--time={seconds}", "--out", tmp_path / "run"
        )
        _refused(ran, "--time", seconds)
    assert not (tmp_path / "run").exists()
