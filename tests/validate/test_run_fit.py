"""A run's own trace or log: constants that were put in are found again, and what is not determined
is said."""

import gzip
import json
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from phaze.cli.main import app
from phaze.errors import InputError
from phaze.evaluate.fixed import fixed_plan
from phaze.evaluate.run_file import RunJob, job_of
from phaze.hardware.library import load_chip, load_cluster, load_stack
from phaze.validate.kernel_names import class_of, collective_of
from phaze.validate.measured_step import MeasuredStep, length, measured_step, union, without
from phaze.validate.predicted_step import StepWorks, step_works
from phaze.validate.profiler_trace import read_trace, trace_text
from phaze.validate.run_fit import fit_log, fit_trace
from phaze.validate.training_logs import is_log, read_log
from tests.validate.synthetic_trace import collectives, trace_of, with_links

RUN: dict[str, Any] = {
    "schema": "phaze.run/1",
    "llama": {
        "hidden": 4096,
        "layers": 8,
        "heads": 32,
        "mlp": 11008,
        "vocabulary": 32000,
        "sequence": 4096,
    },
    "chip": "h100",
    "cluster": "dgx-h100",
    "stack": "torchtitan",
    "devices": 8,
    "batch": 16,
    "plan": {
        "tensor": 1,
        "pipeline": 1,
        "data": 8,
        "microbatch": 1,
        "recompute": "full",
        "zero": 1,
    },
}
MIB = float(1 << 20)
SIZES = [4 * MIB, 64 * MIB, 512 * MIB]


@pytest.fixture(scope="module")
def job() -> RunJob:
    return job_of(dict(RUN), "run.json")


@pytest.fixture(scope="module")
def works(job: RunJob) -> StepWorks:
    return step_works(job)


def synthetic(job: RunJob, works: StepWorks, hidden: float = 0.5) -> dict[str, Any]:
    links = with_links(job.cluster, 0, 0.61, 37e-6)
    return trace_of(job, works, 0.63, 0.71, 21e-6, collectives(links, 8, SIZES), hidden)


def measured(document: dict[str, Any]) -> MeasuredStep:
    return measured_step([read_trace(json.dumps(document), "rank0.json")])


def test_constants_that_a_trace_was_made_with_are_found_again(
    job: RunJob, works: StepWorks
) -> None:
    fit = fit_trace(job, measured(synthetic(job, works)))
    found = {one.key: one.value for one in fit.fitted}
    assert found["software_share"] == pytest.approx(0.63, rel=1e-3)
    assert found["vector_hbm_share"] == pytest.approx(0.71, rel=1e-3)
    assert found["host_time"] == pytest.approx(21e-6, rel=1e-2)
    assert found["levels[0].share"] == pytest.approx(0.61, rel=1e-2)
    assert found["levels[0].start"] == pytest.approx(37e-6, rel=2e-2)
    assert found["hidden_synchronisation"] == pytest.approx(0.5, abs=0.2)
    assert ("levels[1]", "no sized collective spans the level fabric") in fit.undetermined


def test_all_collectives_behind_kernels_are_hidden_and_none_are_not(
    job: RunJob, works: StepWorks
) -> None:
    for hidden in (0.0, 1.0):
        fit = fit_trace(job, measured(synthetic(job, works, hidden)))
        (found,) = (one.value for one in fit.fitted if one.key == "hidden_synchronisation")
        assert found == pytest.approx(hidden, abs=0.02)


def test_the_rank_that_comes_last_shows_what_a_collective_takes(
    job: RunJob, works: StepWorks
) -> None:
    early = synthetic(job, works)
    for event in early["traceEvents"]:
        if "nccl" in event["name"]:
            event["dur"] *= 3
    late = read_trace(json.dumps(synthetic(job, works)), "rank1.json")
    step = measured_step([read_trace(json.dumps(early), "rank0.json"), late])
    (share,) = (one.value for one in fit_trace(job, step).fitted if one.key == "levels[0].share")
    assert share == pytest.approx(0.61, rel=1e-2)


def test_files_of_a_fit_are_taken_by_plan_and_meet_the_step(
    job: RunJob, works: StepWorks, tmp_path: Path
) -> None:
    trace, run, out = tmp_path / "rank0.json.gz", tmp_path / "run.json", tmp_path / "mine"
    trace.write_bytes(gzip.compress(json.dumps(synthetic(job, works)).encode()))
    run.write_text(json.dumps(RUN))
    runner = CliRunner()
    found = runner.invoke(
        app, ["calibrate", "--trace", str(trace), "--run", str(run), "--out", str(out), "--json"]
    )
    assert found.exit_code == 0, found.output
    document = json.loads(found.stdout)
    assert set(document["files"]) == {"chip", "cluster", "stack"}
    assert document["measured"]["unknown_share"] == 0
    stack = load_stack(str(out / "stack.toml"))
    assert stack.share_on("h100") == pytest.approx(0.63, rel=1e-3)
    assert load_chip(str(out / "chip.toml")).calibration is not None
    assert load_cluster(str(out / "cluster.toml")).levels[0].share == pytest.approx(0.61, rel=1e-2)
    assert all("fitted: 1 run" in (out / f"{kind}.toml").read_text() for kind in document["files"])
    again = {**RUN, **{kind: str(out / f"{kind}.toml") for kind in ("chip", "cluster", "stack")}}
    run.write_text(json.dumps(again))
    priced = runner.invoke(app, ["plan", "--fixed", str(run), "--json"])
    assert priced.exit_code == 0, priced.output
    assert json.loads(priced.stdout)["batch_s"] == pytest.approx(document["step_s"]["fitted"])
    same = runner.invoke(
        app, ["calibrate", "--trace", str(trace), "--run", str(run), "--out", str(out), "--json"]
    )
    kept = {one["key"]: one["value"] for one in json.loads(same.stdout)["fitted"]}
    assert kept["software_share"] == pytest.approx(0.63, rel=1e-3)


@pytest.mark.parametrize(
    "line",
    [
        (
            " iteration 10/ 100 | consumed samples: 160 | elapsed time per iteration (ms): "
            "{ms:.2f} | loss scale: 1.0 |"
        ),
        (
            "[titan] \x1b[31mstep: 10\x1b[0m  loss: 8.1  memory: 42.13GiB(44.5%)  tps: "
            "{tps:,.2f}  mfu: 33.4%"
        ),
    ],
)
def test_a_log_fits_the_share_that_meets_its_step(line: str, job: RunJob) -> None:
    target = 1.2 * fixed_plan(job)[1].batch_s
    text = "\n".join([line.format(ms=1e3 * target, tps=16 * 4096 / 8 / target)] * 5)
    assert is_log(text) and not is_log(json.dumps({"traceEvents": [text]}))
    logged = read_log(text, "log.txt", 16 * 4096, 8)
    assert logged.step_s == pytest.approx(target, rel=1e-2)
    fit = fit_log(job, logged.step_s)
    assert [one.key for one in fit.fitted] == ["software_share"]
    assert fit.fitted[0].before is not None and fit.fitted[0].value < fit.fitted[0].before
    assert {key for key, _ in fit.undetermined} >= {"host_time", "levels"}


def test_a_step_that_no_share_explains_is_said_to_be_one(job: RunJob) -> None:
    fit = fit_log(job, 1e-3)
    assert fit.fitted == ()
    assert "no share of it explains that" in dict(fit.undetermined)["software_share"]


@pytest.mark.parametrize(
    ("name", "what"),
    [
        (
            "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
            "collective",
        ),
        ("void pytorch_flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<...>", "attention"),
        ("cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_32", "attention"),
        ("nvjet_hsh_256x128_64x4_1x2_h_bz_coopA_TNT", "gemm"),
        ("ampere_bf16_s16816gemm_bf16_128x256_ldg8_f2f_stages_64x3_tn", "gemm"),
        ("Cijk_Alik_Bljk_BBS_BH_MT256x256x64", "gemm"),
        ("triton_poi_fused__to_copy_mul_silu_0", "vector"),
        ("void at::native::vectorized_elementwise_kernel<4, ...>", "vector"),
        (
            (
                "void at::native::(anonymous "
                "namespace)::multi_tensor_apply_kernel<FusedAdamMathFunctor>"
            ),
            "optimizer",
        ),
        ("Memcpy DtoD (Device -> Device)", "copy"),
        ("my_secret_kernel", "unknown"),
    ],
)
def test_kernels_are_classified_by_their_names(name: str, what: str) -> None:
    assert class_of(name) == what


def test_the_kind_of_a_collective_is_in_its_name() -> None:
    assert collective_of("ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL") == "reduce_scatter"
    assert collective_of("gloo:all_reduce") == "all_reduce"
    assert collective_of("nccl:_all_gather_base") == "all_gather"
    assert collective_of("gemm") is None


def test_unknown_kernels_are_reported_with_their_share() -> None:
    events = [
        {
            "ph": "X",
            "cat": "kernel",
            "name": "my_secret_kernel",
            "ts": 0,
            "dur": 30,
            "pid": 0,
            "tid": 7,
        },
        {"ph": "X", "cat": "kernel", "name": "some_gemm", "ts": 30, "dur": 70, "pid": 0, "tid": 7},
    ]
    step = measured({"traceEvents": events})
    ((name, share),) = step.unknown
    assert (name, round(share, 9)) == ("my_secret_kernel", 0.3)


SPANS = st.lists(
    st.tuples(st.integers(0, 50), st.integers(1, 9)).map(
        lambda p: (float(p[0]), float(p[0] + p[1]))
    ),
    max_size=8,
)


@given(SPANS, SPANS)
def test_what_is_exposed_is_what_no_other_span_covers(
    spans: list[tuple[float, float]], others: list[tuple[float, float]]
) -> None:
    ticks = range(60)
    own = {t for t in ticks for a, b in spans if a <= t < b}
    rest = {t for t in ticks for a, b in others if a <= t < b}
    assert length(union(spans)) == len(own)
    assert without(union(spans), union(others)) == len(own - rest)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "not a whole JSON trace"),
        (b'{"traceEvents": [{"ph": "X", "ts": 1', "not a whole JSON trace"),
        (b"[" * 200000, "nesting is too deep"),
        (b'{"traceEvents": {}}', "there is no list 'traceEvents'"),
        (b"[1, null, {}]", "no event has a time"),
        (
            b'[{"ph": "X", "name": "gemm", "cat": "kernel", "ts": NaN, "dur": 1}]',
            "no event has a time",
        ),
        (
            b'[{"ph": "X", "name": "gemm", "cat": "kernel", "ts": 0, "dur": -5}]',
            "no event has a time",
        ),
        (
            b'[{"ph": "X", "name": "gemm", "cat": "x", "ts": 0, "dur": 5}]',
            "neither kernels nor operators",
        ),
        (b"\x1f\x8bnot gzip", "gzipped and broken"),
        (gzip.compress(b"[]" * 5000, mtime=0)[:-9], "ends too early"),
    ],
)
def test_a_bad_trace_ends_in_one_sentence(
    content: bytes, said: str, tmp_path: Path, phaze: Callable[..., Any]
) -> None:
    trace, run = tmp_path / "trace.json", tmp_path / "run.json"
    trace.write_bytes(content)
    run.write_text(json.dumps(RUN))
    found = phaze("calibrate", "--trace", trace, "--run", run, "--out", tmp_path / "o")
    assert found.code == 2
    assert said in found.err
    assert found.err.count("\n") == 1
    assert not (tmp_path / "o").exists()


VALUES = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers(-(10**20), 10**20) | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=6,
)
KEYS = st.sampled_from(["ph", "name", "cat", "ts", "dur", "args", "pid", "tid"])
WORDS = st.sampled_from(
    ["X", "kernel", "cpu_op", "ProfilerStep#1", "gloo:all_reduce", "nccl_AllGather", "gemm"]
)
EVENTS = st.dictionaries(KEYS, WORDS | VALUES, max_size=8)
SIZED = st.fixed_dictionaries(
    {
        "Input Dims": VALUES,
        "Input type": VALUES,
        "Group size": VALUES,
        "In msg nelems": VALUES,
        "dtype": VALUES,
    }
)
GOOD = st.fixed_dictionaries(
    {
        "ph": st.just("X"),
        "name": WORDS,
        "cat": WORDS,
        "ts": st.floats(0, 1e6),
        "dur": st.floats(0, 1e3),
        "args": SIZED,
    }
)


@settings(max_examples=60)
@given(st.lists(EVENTS | GOOD, max_size=8))
def test_any_events_are_read_or_refused(events: list[Any]) -> None:
    try:
        step = measured({"traceEvents": events, "distributedInfo": {"world_size": 2}})
    except InputError as fault:
        assert str(fault)
    else:
        assert all(seconds >= 0 for seconds in step.class_s.values())
        assert 0 <= step.exposed_s <= sum(step.class_s.values()) + 1e-9


def test_a_trace_that_unpacks_to_too_much_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_module("phaze.validate.profiler_trace"), "MOST_BYTES", 1000)
    bomb = tmp_path / "bomb.json.gz"
    bomb.write_bytes(gzip.compress(b" " * 100_000))
    with pytest.raises(InputError, match="unpacked there is more"):
        trace_text(str(bomb))


def test_a_trace_of_a_pipeline_is_compared_by_its_mean_stage() -> None:
    plan = {
        "tensor": 1,
        "pipeline": 2,
        "data": 4,
        "microbatch": 1,
        "recompute": "full",
        "zero": 1,
        "chunks": 1,
    }
    job = job_of({**RUN, "plan": plan}, "run.json")
    works = step_works(job)
    links = with_links(job.cluster, 0, 0.61, 37e-6)
    made = trace_of(job, works, 0.63, 0.71, 21e-6, collectives(links, 4, SIZES), 0.0)
    found = {one.key: one.value for one in fit_trace(job, measured(made)).fitted}
    assert found["software_share"] == pytest.approx(0.63, rel=1e-3)
    assert found["host_time"] == pytest.approx(21e-6, rel=1e-2)
    assert found["hidden_synchronisation"] == pytest.approx(0.0, abs=0.02)


def test_names_of_kernels_hold_nothing_that_a_terminal_obeys() -> None:
    events = [
        {"ph": "X", "cat": "kernel", "name": "a\x1b[31m\x9b kernel", "ts": 0, "dur": 5, "pid": 1,
        "tid": 1},
        {"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce", "ts": 5, "dur": 5, "pid": 1,
        "tid": 1,
         "args": {"Collective name": "all\x1b[2Jreduce"}},
    ]  # fmt: skip
    names = [
        interval.name
        for interval in read_trace(json.dumps({"traceEvents": events}), "trace.json").work
    ]
    assert names == ["a?[31m? kernel", "all?[2Jreduce"]
