"""Command lines with odd options: negative, huge, not numbers, empty, repeated, of other commands,
in any mixture."""

from collections.abc import Iterator
from pathlib import Path
from random import Random

import typer

from phaze.cli.main import app
from tests.cli.fuzz_theirs import LLAMA

NUMBERS = """
-1 0 1 2 3 7 -0 1.5 1e3 nan inf -inf 1e400 -1e308 1e-320 0x10 1_000 ² ٣ ½ +5 2147483648 9223372036854775808 1e18
"""
WORDS = """
- -- --- . .. / /dev/null /dev/zero nowhere nowhere.json nowhere.toml é 🙂 %s a:b a.py:b : x.json: = == , [bold]x[/nope]
tpu-v4 a100-80gb bert-large gpt2 selene none best full fused cluster icml24 paper calibrated ideal training ٣x٣x٣
hidden=64,layers=2,heads=4,vocabulary=512,sequence=64 hidden=-64 hidden=, hidden=64,hidden=64 hidden=²
1,2 1,,2 1..2 0..5 5..1 1,1,1 1x2x3 0x0x0 1x2x3x4x5 8x8x-8 9x9x99999999999999999999 softmax:0 softmax:64:0
softmax:1e5 all_reduce:64MiB:0 all_reduce:nan:8 all_reduce:1TiB:99999999 6% -6% 100% 150% nan% 1e400%
throughput,area throughput,throughput area throughput,area,power,price power=300 power=-1 power=nan area=0
nothing=1 vector_cores=4 vector_cores=3 rows=nan rows=128 rows=
"""
SETTINGS = """
training.batch=0 training.batch=-1 training.batch=nan training.batch=1e400 training.devices=1 training.devices=7
training.devices=1048577 name=../x name= hbm=[] hbm=1 search.gap=nan search.gap=-1 search.gap=2 search.gap=0.5
a=1 a.b.c.d=1 .=1 = =1 a= a training=1 models=[] schema=1 a=[[[[1 rules=cluster space=paper budget.usd=0
training.microbatches=[] training.microbatches=[0] training.microbatches=[1,1] training.headroom=2
models=["gpt2"] models=["bert-large","bert-large"] objective.kind=nothing budget.power=nan name="\\ud800"
training.batch=9999999999999999999999999999999999999999 training.cluster="selene" training.headroom=nan
"""
RANGES = """
training.devices=4,8 training.devices=8 training.devices=0,1 training.devices=-4..4 search.gap=0,0.1
training.devices=1..1e400 training.devices=nan..5 x=1,2 training.devices=4..8 hbm=16..32 =1,2
training.devices= training.batch=256,256,256 training.batch=1e300,2 search.gap=0.5..1 name=1,2
hbm=16GiB..32GiB hbm=16GiB..32KiB hbm=1GiB,x hbm=32GiB..1e300GiB training.microbatches=1,2
"""
NUMBER = (*NUMBERS.split(), " 4 ", "", "9" * 19, "9" * 30, "1" * 5000)
TEXT = (
    *WORDS.split(),
    "",
    " ",
    "\u202e",
    "\udcff",
    "a" * 5000,
    "a\nb",
    "\x1b[31m",
    "x" * 200 + "/" + "y" * 200,
)
# Where a command may write: inside the folder that it is called in, or nowhere.
PLACES = (
    "",
    " ",
    ".",
    "new",
    "x/y/z",
    "é",
    "\udcff",
    "a" * 5000,
    "/dev/null",
    "/dev/null/x",
    "new/../new",
    "a\nb",
    "-",
)
OWN = {
    **{
        "--set": (*SETTINGS.split(), "=" * 3000, 'name="a b"'),
        "--over": (*RANGES.split(), "hbm=16 GiB..32 GiB"),
    },
    **{"--time": NUMBER, "--points": ("2", "1", "0", "-1", "1001", "nan")},
    **dict.fromkeys(("--out", "--html", "--perfetto"), PLACES),
}
GPT = "hidden=256,layers=2,heads=4,vocabulary=512,sequence=64"
# The files of fuzz_cases are in F, and a finished run. Each ends within seconds, whatever is added:
# its study is of few chips.
LINES = f"""
chips tpu-v4
chips
chips --space F/few.toml --count
chips F/chip.toml --terms F/terms.toml
clusters selene
stacks megatron-2022
technologies n5
models gpt2
schema chip
graph --gpt {GPT} --tensor 2 --microbatch 1
graph --llama {GPT} --tensor 2 --sequence-parallel
graph --model bert-large --sequence 128 --fusion full
graph --model F/graph.json --attention eager
estimate --gemm 1x512x512x512 --chip tpu-v4 --basis ideal
estimate --vector softmax:65536:64 --chip tpu-v4 --load training
estimate --collective all_reduce:64MiB:16 --cluster selene
estimate --graph F/graph.json --chip tpu-v4 --fusion full
schedule F/operators.json --scheduler exact
schedule - F/operators.json
schedule --model F/graph.json --chip tpu-v4 --layer epilogue --pass forward --rules overlap
schedule --model bert-large --chip h100 --tensor 2 --microbatch 2 --pass backward
new chip --node n5 --area 600 --power 500 --out chip.toml
new study --node n7 --area 600 --power 400 --model bert-large --out first.toml
new space --node paper-22nm --out space.toml
new stack
new cluster --node n7
new model --out own_model.py
place F/clustered.json --perfetto trace.json
plan --gpt {GPT} --chip a100-80gb --devices 4 --batch 8 --cluster selene --microbatch 1,2 --tensor 1,2 --zero 1
plan --gpt {GPT} --chip F/chip.toml --devices 8 --batch 8 --headroom 6% --recompute best --attention fused
plan --gpt {GPT} --chip a100-80gb --devices 4 --batch 8 --html plan.html --perfetto trace.json --chunks 1
plan --fixed F/run.json --datasheet
plan --against F/launch.sh --llama {LLAMA} --chip h100
plan --llama {LLAMA} --chip h100 --devices 4 --batch 8 --microbatch 1 --tensor 1 --certificate new
plan --llama {LLAMA} --chip h100 --devices 4 --batch 8 --microbatch 1 --tensor 1 --over devices=4,8
validate F/rows.csv --datasheet
validate --silicon
calibrate F/measured.csv --chip a100-80gb --out fitted.toml
calibrate --trace F/trace.json --run F/measured-run.json --out new
study check F/study.toml --set training.batch=128
search F/study.toml --out new --workers 1 --time 2 --gap 0.1
search F/clustered.toml --out new --workers 1 --time 2 --headroom 6% --attention fused
front F/study.toml --of throughput,area --out new --workers 1 --within power=900 --time 2
sweep F/study.toml --over training.devices=4,8 --points 2 --out new --workers 1
report F/plan.json --out page.html
report F/run --out page.html
export F/plan.json --to csv
export F/plan.json --to megatron --out flags
export F/plan.json --to chakra --out new
export F/plan.json --to deepspeed
export F/run --to perfetto --out trace.json
export F/run --to parquet --out chips.parquet
compare F/study.toml --chip tpu-v4 --basis datasheet
compare --run F/run --chip tpu-v4
compare F/study.toml --chips F/chips.csv
verify F/run --quick
verify F/run --space F/few.toml --gap 0.1
explain F/run --workers 1 --instead rows=128
explain F/run --workers 1 --compare tpu-v4 --flatness 3%
cache --clear
doctor
kernels nothing nothing nothing nothing
""".strip().splitlines()
# Without its argument each of these does minutes of work.
WHOLE = ("kernels", "validate")


def _options(command: list[str]) -> list[tuple[str, bool]]:
    """The options of a command, and whether each is a flag."""
    group = typer.main.get_command(app)
    for name in command[: 2 if command[0] == "study" else 1]:
        group = getattr(group, "commands", {})[name]
    params = [param for param in group.params if param.param_type_name == "option"]
    return [(param.opts[0], bool(getattr(param, "is_flag", False))) for param in params]


def _odd(random: Random, option: str) -> str:
    own = OWN.get(option)
    if own is not None and (own is PLACES or random.random() < 0.7):
        return random.choice(own)
    return random.choice(random.choice((NUMBER, TEXT)))


def _changed(random: Random, line: list[str]) -> list[str]:
    """A line with one change."""
    start = 2 if line[0] == "study" else 1
    kind, at = random.random(), random.randrange(start, len(line)) if len(line) > start else 0
    if kind < 0.45 and at:
        return [
            *line[:at],
            line[at] if line[at].startswith("--") else _odd(random, line[at - 1]),
            *line[at + 1 :],
        ]
    if kind < 0.5 and at and line[0] not in WHOLE:
        return line[:at] + line[at + 1 :]
    if kind < 0.55:
        return [*line, _odd(random, "")]
    if kind < 0.6:
        return [*line, *line[start:]]
    command = line if random.random() < 0.95 else random.choice(LINES).split()
    option, flag = random.choice(_options(command))
    return [*line, option, *([] if flag and random.random() < 0.9 else [_odd(random, option)])]


def odd_line(folder: Path, seed: int) -> list[str]:
    """A command line with one to three changes, the same one for a seed every time."""
    random = Random(f"line {seed}")
    line = random.choice(LINES).replace("F/", f"{folder}/").split()
    for _ in range(random.choice((1, 1, 2, 3))):
        line = _changed(random, line)
    return line


def odd_lines(folder: Path, count: int) -> Iterator[list[str]]:
    """The lines of the first ``count`` seeds."""
    return (odd_line(folder, seed) for seed in range(count))
