"""Runs of every kind beyond the default question: good ones hold without any solver, forged ones
are refused."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from phaze.check.verdict import check
from tests.check.cluster_forgeries import CLUSTER_STUDY, CLUSTERS, MODEL, NODE, STACK, TRAINING
from tests.check.forge import Forgery, Papers
from tests.check.forgeries import both, put, score, times
from tests.search.test_verify import finished

BERT = 'models = [{{name = "bert-large", sequence = 128}}]'
WIDE = 'models = [{{name = "bert-large", sequence = 128, widths = [2]}}]'
LLAMA = 'models = [{{name = "llama3-8b", sequence = 256}}]'
NARROW = 'models = [{{name = "llama3-8b", sequence = 256, widths = [1]}}]'
MIXTRAL = 'models = [{{name = "mixtral-8x7b", sequence = 128}}]'
QWEN = 'models = [{{name = "qwen3-30b-a3b", sequence = 128, widths = [1]}}]'
CLUSTERS_3 = CLUSTERS.replace("n5-reticle-base", "n3-reticle-base")
OWN = 'schema = "phaze.stack/1"\nname = "own"\nbase = "megatron-core"\n'
Kind = tuple[str, str, str, str]


def _kind(
    more: str, model: str = BERT, devices: int = 8, space: str = CLUSTERS, stack: str = ""
) -> Kind:
    study = CLUSTER_STUDY.replace(BERT, model).replace("devices = 8", f"devices = {devices}")
    return study + more, space, stack, model


KINDS = {
    "joules": _kind('[objective]\nkind = "throughput_per_watt"\n'),
    "dollars": _kind('[objective]\nkind = "throughput_per_usd"\n'),
    "carbon": _kind('[objective]\nkind = "throughput_per_kgco2e"\n'),
    "joule seconds": _kind('[objective]\nkind = "energy_delay"\n'),
    "collectives beside a queue": _kind('[stack]\nschedule = "links"\n', WIDE),
    "collectives beside a queue, whole": _kind(
        '[stack]\nschedule = "links"\npiecewise_collectives = false\ntrims_recompute = true\n', WIDE
    ),
    "hybrid sharding": _kind('shard = [4, 8, "all"]\nzero = 3\n', NARROW, 32),
    "hybrid sharding, every stage of ZeRO": _kind("shard = [2, 8]\n", NARROW, 32),
    "joules of hybrid sharding": _kind(
        'shard = [2, 8]\n[objective]\nkind = "throughput_per_watt"\n', NARROW, 32
    ),
    "joules of two models": _kind(
        '[objective]\nkind = "throughput_per_watt"\n',
        (
            'models = [{{name = "bert-large", sequence = 128}}, {{name = "gpt2-xl", sequence '
            "= 128, weight = 2}}]"
        ),
    ),
    "a torus": _kind('cluster = "tpu-v4-pod"\n', devices=64),
    "a block alone": _kind(
        "", 'models = [{{name = "bert-large", sequence = 128, part = "block"}}]'
    ),
    "torchtitan": _kind('stack = "torchtitan"\n'),
    "torchtitan, eager": _kind('stack = "torchtitan-eager"\n'),
    "GPipe": _kind('stack = "torchtitan-eager"\nfamily = ["gpipe"]\n'),
    "zero bubble in a V": _kind('stack = "torchtitan-eager"\nfamily = ["zb-v"]\n'),
    "split families": _kind(
        'stack = "torchtitan-eager"\nfamily = ["dualpipe-v", "zb-interleaved"]\n'
    ),
    "fp8": _kind('precision = "fp8"\n'),
    "fp8 whose largest values are sought": _kind(
        'stack = "torchtitan"\nprecision = "fp8-tensorwise"\n'
    ),
    "fp8 in blocks": _kind('precision = "fp8-block"\n', LLAMA),
    "mxfp8": _kind('precision = "mxfp8"\n', space=CLUSTERS_3),
    "nvfp4": _kind('precision = "nvfp4"\n', space=CLUSTERS_3),
    "context": _kind("context = [1, 2]\n", LLAMA),
    "ways of a context": _kind(
        'context = [2, 4]\ncontext_way = ["all_gather", "ulysses", "ring"]\n', LLAMA
    ),
    "a mixture": _kind("", MIXTRAL, 32),
    "experts": _kind("expert = [8]\n", MIXTRAL, 32),
    "experts beside widths": _kind('expert = [1, 8]\nsequence_parallel = "best"\n', MIXTRAL, 64),
    "experts in fp8": _kind('expert = [1, 8]\nprecision = "fp8"\n', MIXTRAL, 64),
    "experts of torchtitan": _kind('expert = [1, 8]\nstack = "torchtitan"\n', MIXTRAL, 64),
    "hidden exchanges": _kind(
        'expert = [8]\nstack = "{folder}/own.toml"\n',
        QWEN,
        1024,
        stack=OWN + "hidden_exchange = 0.5\n",
    ),
    "exchanges beside shared experts": _kind(
        'expert = [8]\nstack = "{folder}/own.toml"\n',
        QWEN,
        1024,
        stack=OWN + "overlaps_shared_experts = true\ndeduplicated_exchange = true\n",
    ),
}
EVERYDAY = {
    "collectives beside a queue, whole",
    "hybrid sharding",
    "joules",
    "torchtitan",
    "zero bubble in a V",
    "fp8",
    "experts",
}


def _some(names: Iterable[str]) -> list[Any]:
    return [
        name if name in EVERYDAY else pytest.param(name, marks=pytest.mark.slow) for name in names
    ]


def _run(folder: Path, kind: Kind) -> Path:
    study, space, stack, _ = kind
    (folder / "own.toml").write_text(stack)
    return finished(folder, study, space)


def _lost(*path: Any) -> Forgery:
    """Leave a key out."""

    def forge(papers: Papers) -> None:
        own: Any = {
            "problem": papers.problem,
            "certificate": papers.certificate,
            "graphs": papers.graphs,
        }
        for key in path[:-1]:
            own = own[key]
        del own[path[-1]]

    return forge


def _dense(papers: Papers) -> None:
    """No parameter is one of an expert."""
    for layer in papers.graphs["models"][0][papers.model["graph"]]["layers"]:
        layer["parameters"] = [row[:6] for row in layer["parameters"]]


EVERY: dict[str, Forgery] = {
    "a score that is too good": score(1 - 1e-7),
    "a plan without its family": _lost(*MODEL, "family"),
    "a stack without its families": _lost(*STACK, "families"),
    "a job without its precision": _lost(*TRAINING, "precision"),
    "a slower host": both(
        times(*STACK, "host_s", by=3.0), put(*STACK, "accumulation_apart", value=300.0)
    ),
    "a memory that is not there": put(*STACK, "reserve_bytes", value=1e13),
}


def _starts(change: Callable[[list[float]], Any]) -> Forgery:
    """Other starts of the pass that takes most operators."""

    def forge(papers: Papers) -> None:
        rows = [(layer, at) for layer in papers.model["schedules"] for at in range(len(layer))]
        layer, at = max(rows, key=lambda row: len(row[0][row[1]]))
        layer[at] = change(layer[at])

    return forge


OWN_FORGERIES: dict[str, dict[str, Forgery]] = {
    "collectives beside a queue, whole": {
        "all at once": _starts(lambda starts: [0.0 for _ in starts]),
        "half the time": _starts(lambda starts: [0.5 * start for start in starts]),
        "a pass that is not scheduled": _starts(lambda starts: []),
        "one operator fewer": _starts(lambda starts: starts[:-1]),
        "a start that is not a number": _starts(lambda starts: [True, *starts[1:]]),
        "a start before all others": _starts(lambda starts: [-1.0, *starts[1:]]),
        "no schedules": _lost(*MODEL, "schedules"),
        "another rule": put(*STACK, "schedule", value="serial"),
        "a rule that there is not": put(*STACK, "schedule", value="Links"),
    },
    "hybrid sharding": {
        "shared out over others": both(put(*MODEL, "shard", value=2),
        put(*TRAINING, "shards", value=[2])),
        "shared out over some, not said": _lost(*TRAINING, "shards"),
        "a plan that does not say": _lost(*MODEL, "shard"),
        "over a number of ranks that does not divide": put(*MODEL, "shard", value=7),
        "over no rank": put(*TRAINING, "shards", value=[]),
        "over minus one": put(*MODEL, "shard", value=-1),
    },
    "fp8": {
        "a format that is faster": put(*TRAINING, "constants", "rates", value=[[8, 8.0]]),
        "casts that are left out": lambda papers: papers.certificate["fusion"][0][papers.model["graph"]][1][0].pop(),
        "16 bits at the price of 8": both(
            put(*TRAINING, "precision", value="bf16"),
            put(*TRAINING, "machine", "precision", value="bf16")
        ),
    },
    "joules": {
        "seconds at the price of joules": put("problem", "objective", "kind", value="throughput"),
        "joules at the price of seconds": score(0.5),
        "arrays that take nothing": times(*NODE, "energy", "edge_j", by=0.5),
        "more joules a byte": times(*NODE, "energy", "hbm_j_per_byte", by=1.5),
        "HBM that takes nothing": put(*NODE, "energy", "stack_w", value=0.0),
    },
    "dollars": {
        "cheap electricity": times("problem", "ownership", "electricity_usd_per_kwh", by=0.5),
        "a long life": times("problem", "ownership", "lifetime_years", by=2.0),
    },
    "torchtitan": {"gathers over a whole stage": put(*STACK, "prefetch", value="year")},
    "zero bubble in a V": {
        "another family": put(*MODEL, "family", value="interleaved"),
        "no family but one": put(*STACK, "families", value=["1f1b"]),
        "weights that take no time": lambda papers: papers.certificate["fusion"][0][papers.model["graph"]][1].pop(),
    },
    "experts": {
        "experts that are no experts": _dense,
        "exchanges that take nothing": put(*STACK, "hidden_exchange", value=2.0),
    },
}  # fmt: skip


@pytest.mark.parametrize("name", _some(KINDS))
def test_a_run_of_every_kind_holds_and_forged_ones_do_not(name: str, tmp_path: Path) -> None:
    run = _run(tmp_path, KINDS[name])
    found = check(run)
    assert found.holds, found.sentence()
    for title, forge in {**EVERY, **OWN_FORGERIES.get(name, {})}.items():
        papers = Papers(run)
        forge(papers)
        (tmp_path / "forged").mkdir(exist_ok=True)
        forged = check(papers.write(tmp_path / "forged"))
        assert not forged.holds and (forged.wrong or forged.missing), title
