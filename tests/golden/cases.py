"""The forty questions: commands on bundled inputs, each a fresh process in a folder of its own."""

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
INPUTS = Path(__file__).parent / "inputs"


@dataclass(frozen=True)
class Case:
    """One question: ``arguments`` of phaze, and the files that it leaves beside its answer.

    ``first`` is the case whose run folder the command reads. A *quick* case is compared every day.
    """

    name: str
    arguments: tuple[str, ...]
    files: tuple[str, ...] = ()
    first: str = ""
    exit_code: int = 0
    quick: bool = True
    torch: bool = False


PLAN_FILES = ("problem.json", "graphs.json", "certificate.json", "plan.json")
RUN_FILES = ("problem.json", "graphs.json", "certificate.json", "result.json")
FRONT_FILES = ("problem.json", "graphs.json", "certificate.json", "front.json")


def _case(
    name: str, line: str, *, quick: bool = True, exit_code: int = 0, torch: bool = False
) -> Case:
    return Case(name, (*line.split(), "--json"), exit_code=exit_code, quick=quick, torch=torch)


def _run(
    name: str, line: str, files: tuple[str, ...], *, folder: str = "--out", quick: bool = False
) -> Case:
    return Case(name, (*line.split(), folder, "run", "--json"), files, quick=quick)


ESTIMATES = (
    _case("estimate-gemm-cores", "estimate --gemm 1x4096x4096x4096 --chip tpu-v4"),
    _case("estimate-gemm-clusters", "estimate --gemm 8192x28672x4096 --chip h100 --load training"),
    _case("estimate-gemm-fp8", "estimate --gemm 8192x28672x4096 --chip h100 --precision fp8"),
    _case("estimate-vector", "estimate --vector softmax:16777216:4096 --chip a100-80gb"),
    _case("estimate-collective", "estimate --collective all_reduce:64MiB:128 --cluster selene"),
    _case(
        "estimate-graph", "estimate --model llama2-7b --tensor 4 --chip tpu-v4 --attention fused"
    ),
)
PLANS = (
    _case("plan-cores", "plan --model bert-large --chip tpu-v4 --devices 64 --batch 1024"),
    _case(
        "plan-clusters",
        "plan --model gpt3-175b --chip h100 --devices 1024 --batch 1024 --tokens 300B",
    ),
    _case("plan-dense", "plan --model llama3-70b --chip h100 --devices 256 --batch 4M-tokens"),
    _case("plan-mixture", "plan --model mixtral-8x7b --chip h100 --devices 64 --batch 512"),
    _case(
        "plan-context",
        "plan --model llama3-8b --chip h200 --devices 64 --batch 64 --sequence 32k --context 1,2,4",
    ),
    _case(
        "plan-1f1b",
        "plan --model llama2-7b --chip a100-40gb --devices 32 --batch 512 --family 1f1b",
    ),
    _case(
        "plan-interleaved",
        "plan --model gpt3-175b --chip a100-80gb --devices 96 --batch 192 --tensor 8 --zero 1",
    ),
    _case(
        "plan-gpipe",
        "plan --model llama2-7b --chip tpu-v5p --devices 64 --batch 256 --stack maxtext",
    ),
    _case(
        "plan-zero-bubble",
        "plan --model llama3-70b --chip h100 --devices 64 --batch 256 --stack torchtitan-eager"
        " --family zb-interleaved --microbatch 1 --tensor 8",
    ),
    _case(
        "plan-folded",
        "plan --model llama3-70b --chip h100 --devices 64 --batch 256 --stack torchtitan-eager"
        " --family zb-v,dualpipe-v --microbatch 1 --tensor 8",
    ),
    _case(
        "plan-fp8", "plan --model llama3-8b --chip h100 --devices 64 --batch 512 --precision fp8"
    ),
    _case(
        "plan-own-model",
        f"plan --model {EXAMPLES}/models/decoder.py:build --chip h100 --devices 16 --batch 128",
        quick=False,
        torch=True,
    ),
    _case(
        "plan-infeasible", "plan --model gpt3-175b --chip h100 --devices 8 --batch 64", exit_code=3
    ),
    _run(
        "plan-certificate",
        "plan --model llama3-8b --chip h100 --devices 64 --batch 4M-tokens",
        PLAN_FILES,
        folder="--certificate",
        quick=True,
    ),
    _case("plan-fixed", f"plan --fixed {EXAMPLES}/run.json"),
)
SEARCHES = (
    _run("search-paper", "search --model bert-large --rules icml24", RUN_FILES, quick=True),
    _run("search-reticle", "search --model llama3-8b", RUN_FILES),
    _run("search-models", "search --model bert-large --model gpt2-xl --rules icml24", RUN_FILES),
    _run("search-energy", f"search {INPUTS}/energy.toml", RUN_FILES),
    _run("search-links", f"search {INPUTS}/links.toml", RUN_FILES),
    _run("search-boxes", f"search {INPUTS}/boxes.toml", RUN_FILES),
)
FRONTS = (
    _run("front-area", "front --model bert-large --rules icml24 --of throughput,area", FRONT_FILES),
    _run("front-price", f"front {INPUTS}/small.toml --of throughput,price", FRONT_FILES),
    _run("front-three", f"front {INPUTS}/small.toml --of throughput,energy,power", FRONT_FILES),
)
SWEEPS = (
    _run(
        "sweep-devices",
        f"sweep {INPUTS}/small.toml --over training.devices=64,256",
        ("sweep.json",),
    ),
    _run(
        "sweep-link",
        (
            "sweep --model bert-large --rules icml24 --over "
            "cluster.link_bytes_per_s=1e9..1e12 --points 3"
        ),
        ("sweep.json",),
    ),
)
SINGLE = (
    Case("explain-paper", ("explain", "run", "--json"), first="search-paper", quick=False),
    _case("compare-chips", f"compare {INPUTS}/small.toml --chip h100 --chip b200", quick=False),
    _case("place-icml24", f"place {INPUTS}/placement.json"),
    _case("place-cluster", f"place {EXAMPLES}/profile.json"),
    _case("schedule-middle", f"schedule {INPUTS}/operators.json"),
    _case("schedule-large", f"schedule {INPUTS}/operators-large.json"),
    _case("graph-tensor", "graph --model mixtral-8x7b --tensor 2 --microbatch 1"),
    _case("chips-paper", "chips --space paper --count"),
)
CASES = (*ESTIMATES, *PLANS, *SEARCHES, *FRONTS, *SWEEPS, *SINGLE)
