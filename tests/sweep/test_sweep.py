"""Sweeps: the values of a range, points that equal separate searches, regions, bad ranges, the
page."""

import json
import math
from collections.abc import Callable
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import escape

from phaze.errors import InfeasibleError, InputError
from phaze.report.sweep_sheet import sweep_page
from phaze.search.baseline import scale_for
from phaze.search.bounds.chip_times import layer_times_on
from phaze.search.chips import enumerate_space
from phaze.search.folder import RESULT, run_in
from phaze.search.question_files import Papers
from phaze.search.run import begin
from phaze.search.shared import Shared
from phaze.study.load import job_of, study_of
from phaze.study.places import Origin
from phaze.study.raw import default_study, with_settings
from phaze.sweep.over import over_of
from phaze.sweep.run import regions, sweep
from tests.conftest import Ran

STUDY = default_study("bert-large", "icml24") | {
    "space": str(Path(__file__).parent / "small-space.toml"),
    "training": {"microbatches": [1, 2], "recompute": [False]},
}


def _settings(text: str, count: int = 9) -> list[str]:
    return [point.setting for point in over_of(text, STUDY, "study", count).points]


def test_a_range_is_even_by_ratio_and_whole_where_its_ends_are() -> None:
    assert _settings("training.devices=64..1024", 5) == [
        f"training.devices={n}" for n in (64, 128, 256, 512, 1024)
    ]
    assert _settings("training.batch=4,16,8") == [
        "training.batch=4",
        "training.batch=8",
        "training.batch=16",
    ]
    assert _settings("training.devices=2..4", 9) == [f"training.devices={n}" for n in (2, 3, 4)]


def test_units_and_lists() -> None:
    assert _settings("hbm=16 GiB..64 GiB", 3) == [
        'hbm=["16 GiB"]',
        'hbm=["32 GiB"]',
        'hbm=["64 GiB"]',
    ]
    assert (
        _settings("cluster.link_bytes_per_s=1 GB/s..10 GB/s", 2)[1]
        == 'cluster.link_bytes_per_s="10 GB/s"'
    )
    assert _settings("training.sequence=128,512") == [
        "training.sequence=128",
        "training.sequence=512",
    ]


@given(low=st.floats(1e-3, 1e6), factor=st.floats(1.5, 1e6), count=st.integers(2, 40))
def test_ratios_between_neighbours_are_equal(low: float, factor: float, count: int) -> None:
    text = f"cluster.link_bytes_per_s={low + 0.00012345!r}..{(low + 0.00012345) * factor!r}"
    values = [point.number for point in over_of(text, STUDY, "study", count).points]
    steps = [b / a for a, b in pairwise(values)]
    assert (
        all(math.isclose(step, factor ** (1 / (count - 1)), rel_tol=1e-6) for step in steps)
        or len(values) < count
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("training.devices", "key=low..high"),
        ("training.devices=a..b", "'a' is not a number"),
        ("training.devices=8..2", "a positive number upwards"),
        ("training.devices=0..8", "a positive number upwards"),
        ("training.nothing=1..8", "training: unknown key 'nothing'"),
        ("nothing=1..8", "nothing"),
        ("hbm=1 GiB..8 GB", "units GiB and GB"),
        ("training.devices=1.5,2", "training.devices"),
    ],
)
def test_bad_ranges_are_one_sentence(text: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        _settings(text)


def test_points_equal_separate_searches_and_the_page_shows_them(
    tmp_path: Path, phaze: Callable[..., Ran]
) -> None:
    over = over_of("training.devices=16..1024", STUDY, "study", 3)
    document = sweep(tmp_path / "sweep", STUDY, Origin("study"), over)
    again = sweep(tmp_path / "sweep", STUDY, Origin("study"), over)
    assert document == again
    for at, devices in enumerate((16, 128, 1024)):
        study = tmp_path / f"{devices}.json"
        study.write_text(json.dumps(STUDY), encoding="utf-8")
        arguments = [
            "search",
            study,
            "--set",
            f"training.devices={devices}",
            "--out",
            tmp_path / str(at),
        ]
        assert phaze(*arguments, "--workers", "1").code == 0
        folder = tmp_path / "sweep" / "points" / f"{at:03d}"
        assert (folder / RESULT).read_bytes() == (tmp_path / str(at) / RESULT).read_bytes()
    rates = [point["models"][0]["throughput_per_s"] for point in document["points"]]
    assert rates == sorted(rates)
    page = sweep_page(document)
    assert "training.devices" in page
    assert page.count("<circle") == 3
    for region in document["plans"]:
        assert f"{region['name'].lower()} is {region['what']}" in page
    assert page.count('height="4"') == len(document["plans"])


@pytest.mark.parametrize(
    "text",
    [
        "budget.area=40,120,300",
        "training.sequence=64,128",
        "training.batch=64,256",
        "hbm=16 GiB,32 GiB",
        "cluster.link_bytes_per_s=1e9,1e11",
    ],
)
def test_what_points_share_changes_no_byte(text: str, tmp_path: Path) -> None:
    over = over_of(text, STUDY, "study")
    sweep(tmp_path / "sweep", STUDY, Origin("study"), over)
    for at, point in enumerate(over.points):
        alone = with_settings(STUDY, [point.setting])
        run_in(tmp_path / str(at), Papers(""), job_of(study_of(alone, "study")))
        folder = tmp_path / "sweep" / "points" / f"{at:03d}"
        assert (folder / RESULT).read_bytes() == (tmp_path / str(at) / RESULT).read_bytes()


CLUSTER = STUDY | {
    "rules": "cluster",
    "training": {"cluster": "selene", "devices": 16, "batch": 32, "microbatches": [1]},
}


@pytest.mark.parametrize(
    "text",
    [
        "budget.area=40,120,300",
        "cluster.levels.fabric.bandwidth=1e8,1e9,1e11",
        pytest.param("cluster.levels.node.size=4,8", marks=pytest.mark.slow),
        pytest.param("cluster.levels.node.latency=1e-6,1e-4", marks=pytest.mark.slow),
        pytest.param("training.batch=64,256", marks=pytest.mark.slow),
        pytest.param(
            'objective.kind="throughput_per_watt",hbm=16 GiB,32 GiB', marks=pytest.mark.slow
        ),
        pytest.param('training.stack="links.toml",budget.area=40,120,300', marks=pytest.mark.slow),
    ],
)
def test_what_points_on_levels_share_changes_no_byte(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("links.toml").write_text(
        'base = "megatron-core"\nschema = "phaze.stack/1"\nschedule = "links"\n'
    )
    *settings, last = text.split('",')
    study = with_settings(CLUSTER, [f'{one}"' for one in settings])
    over = over_of(last, study, "study")
    document = sweep(tmp_path / "sweep", study, Origin("study"), over)
    for at, point in enumerate(over.points):
        alone = with_settings(study, [point.setting])
        run_in(tmp_path / str(at), Papers(""), job_of(study_of(alone, "study")))
        folder = tmp_path / "sweep" / "points" / f"{at:03d}"
        assert (folder / RESULT).read_bytes() == (tmp_path / str(at) / RESULT).read_bytes()
    assert all(
        "recompute best" not in model["plan"]
        for point in document["points"]
        for model in point["models"]
    )
    if "fabric.bandwidth" in text:
        scores = [point["score"] for point in document["points"]]
        assert scores == sorted(scores, reverse=True) and scores[0] > scores[-1]


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        (
            "cluster.levels.rack.bandwidth=1e9",
            "unknown level of selene .rack.; allowed: fabric, node",
        ),
        ("cluster.levels.node.speed=1e9", "unknown key .speed.; allowed: bandwidth, latency, size"),
        ("cluster.link_bytes_per_s=1e9", "say cluster.levels.node.bandwidth"),
    ],
)
def test_a_level_that_there_is_not_is_refused(setting: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        job_of(study_of(with_settings(CLUSTER, [setting]), "study"))


def test_points_of_the_same_chips_and_graphs_share_their_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    jobs = [
        job_of(study_of(STUDY | {"budget": {"area": area}}, "study"))
        for area in (120.0, 300.0, 300.0)
    ]
    shared, counts = Shared(), list[int]()

    def counting(*arguments: Any) -> Any:
        counts.append(len(arguments[4]))
        return layer_times_on(*arguments)

    monkeypatch.setattr(import_module("phaze.search.run"), "layer_times_on", counting)
    states = [begin(job, enumerate_space(job.space), scale_for(job), shared=shared) for job in jobs]
    assert counts == [len(states[0].chips), len(states[1].chips) - len(states[0].chips)]
    alone = begin(jobs[1], enumerate_space(jobs[1].space), scale_for(jobs[1]))
    for own, other in zip(states[1].times[0], alone.times[0], strict=True):
        assert own.forward_s.tobytes() == other.forward_s.tobytes()
        assert own.backward_s.tobytes() == other.backward_s.tobytes()
    assert states[2].memo.schedules is states[0].memo.schedules
    apart = job_of(study_of(STUDY | {"training": {"microbatches": [4]}}, "study"))
    assert shared.schedules(apart).schedules is not states[0].memo.schedules


def test_a_point_where_nothing_fits_says_so_and_the_rest_go_on(tmp_path: Path) -> None:
    over = over_of("hbm=64 MiB,32 GiB", STUDY | {"training": {"devices": 2, "batch": 8}}, "study")
    document = sweep(
        tmp_path, STUDY | {"training": {"devices": 2, "batch": 8}}, Origin("study"), over
    )
    assert document["points"][0]["chip"] is None
    assert document["points"][0]["problem"]
    assert document["points"][1]["chip"]
    assert escape(document["points"][0]["problem"]) in sweep_page(document)
    with pytest.raises(InfeasibleError, match="nothing is feasible at any point"):
        sweep(tmp_path / "none", STUDY, Origin("study"), over_of("hbm=1 MiB,2 MiB", STUDY, "study"))


def test_regions_are_runs_and_a_chip_that_comes_back_keeps_its_name() -> None:
    found = [(r.name, r.first, r.last) for r in regions(["x", "x", None, "y", "x", "x"])]
    assert found == [("A", 0, 1), ("B", 3, 3), ("A", 4, 5)]
    assert regions([str(n) for n in range(28)])[-1].name == "AB"


def test_names_stay_text() -> None:
    document = {
        "name": "<script>",
        "over": "a&b",
        "points": [
            {"value": v, "shown": str(v), "chip": "<b>", "gap": 0.0, "models": [_model("<i>")]}
            for v in (1.0, 2.0)
        ],
        "chips": [{"name": "A", "what": "<b>", "first": 0, "last": 1}],
    }
    page = sweep_page(document)
    shown = page.split("<script", maxsplit=1)[0].replace("<b>phaze sweep</b>", "")
    assert not any(bad in shown for bad in ("<script>", "<i>", "<b>", "a&b"))


def _model(name: str) -> dict[str, object]:
    plan = {
        "pipeline": 1,
        "data": 1,
        "tensor": 1,
        "microbatch": 1,
        "recompute": "none",
        "plan": "TP 1, PP 1, DP 1",
    }
    return {"name": name, "throughput_per_s": 1.0, **plan}


def test_the_command(tmp_path: Path, phaze: Callable[..., Ran]) -> None:
    study, out = tmp_path / "study.json", tmp_path / "out"
    study.write_text(json.dumps(STUDY), encoding="utf-8")
    arguments = ["sweep", study, "--over", "training.devices=16,64", "--out", out, "--workers", "1"]
    said = phaze(*arguments, "--json")
    assert said.code == 0, said.err
    assert json.loads(said.out)["schema"] == "phaze.sweep/1"
    assert "plan" in phaze(*arguments).out
    assert (out / "sweep.html").is_file()
    bad = phaze("sweep", study, "--over", "training.nothing=1,2", "--out", out)
    assert (bad.code, bad.err.count("\n")) == (2, 1)
    (out / "sweep.html").unlink()
    assert phaze("report", out).code == 0 and (out / "sweep.html").is_file()
    good = json.loads((out / "sweep.json").read_text(encoding="utf-8"))
    first, second = good["points"]
    lies: tuple[tuple[dict[str, Any], str], ...] = (
        ({"points": [first, {**second, "value": 1}]}, "ascend"),
        ({"points": [{**first, "chip": None}, second]}, "points[0]"),
        ({"points": [{**first, "gap": None}, second]}, "points[0]"),
        ({"points": [first, {**second, "models": []}]}, "points[1].models"),
        (
            {
                "points": [
                    first,
                    {**second, "models": [{**second["models"][0], "throughput_per_s": 0}]},
                ]
            },
            "throughput_per_s",
        ),
        ({"chips": [{**good["chips"][0], "last": 7}]}, "chips"),
        ({"plans": []}, "plans"),
    )
    for change, word in lies:
        (out / "sweep.json").write_text(json.dumps({**good, **change}), encoding="utf-8")
        ran = phaze("report", out)
        assert (ran.code, ran.err.count("\n")) == (2, 1) and word in ran.err


def test_a_range_that_begins_at_zero_has_a_page() -> None:
    points = [
        {"value": v, "shown": f"{v:g}", "chip": "x", "gap": 0.0, "models": [_model("m")]}
        for v in (-1.0, 0.0, 2.0)
    ]
    for there in (points, points[1:]):
        band = {"name": "A", "what": "x", "first": 0, "last": len(there) - 1}
        assert "<svg" in sweep_page(
            {"name": "n", "over": "search.gap", "points": there, "chips": [band]}
        )
