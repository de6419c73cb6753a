"""How phaze grows: measures docs/growth.csv, and draws docs/growth.svg from it.

python docs/growth.py             searches of bert-large to 0.1 % in ever larger spaces, plans of
                                  llama3-8b on ever more devices, placements of ever more layers;
                                  each in a process of its own
python docs/growth.py TEXT        only the rows whose name holds TEXT, which are printed and not
                                  kept
python docs/growth.py --draw      only draws what was measured
"""

import csv
import json
import subprocess
import sys
import tempfile
from math import log10
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
COUNTS = sorted({2**k for k in range(13)} | {3 * 2**k for k in range(11)})
FINE_COUNTS = sorted({n * 2**k for k in range(13) for n in (1, 3, 5, 7) if n * 2**k <= 4096})
FINE_LANES = sorted({2**k for k in range(1, 9)} | {3 * 2**k for k in range(7)})
FINE_SIZES = [f"{n * 2**k} MiB" for k in range(5) for n in (4, 5, 6, 7)] + [
    "2 MiB",
    "3 MiB",
    "128 MiB",
]
SIZES = [f"{n} MiB" for n in (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)]
POWERS = {"from": 1, "to": 4096, "times": 2}
SIDES = {"from": 2, "to": 256, "times": 2}
BUFFERS = {"from": "2 MiB", "to": "128 MiB", "times": 2}
# What varies beside rows and columns: counts of cores, lanes, global buffers, values of HBM
# bandwidth.
SPACES: tuple[tuple[str, Any, Any, Any, int], ...] = (
    ("the paper's", POWERS, "columns", BUFFERS, 1),
    ("counts also 3, 6, 12 ...", COUNTS, "columns", BUFFERS, 1),
    ("lanes free", POWERS, SIDES, BUFFERS, 1),
    ("both", COUNTS, SIDES, BUFFERS, 1),
    ("and 13 buffers", COUNTS, SIDES, SIZES, 1),
    ("and 2 HBM bandwidths", COUNTS, SIDES, SIZES, 2),
    ("and 8 HBM bandwidths", COUNTS, SIDES, SIZES, 8),
    ("counts also 5, 7, 10 ..., 15 lanes, 23 buffers", FINE_COUNTS, FINE_LANES, FINE_SIZES, 8),
    ("and 40 HBM bandwidths", FINE_COUNTS, FINE_LANES, FINE_SIZES, 40),
    ("and 72 HBM bandwidths", FINE_COUNTS, FINE_LANES, FINE_SIZES, 72),
)
DEVICES = (8, 64, 512, 4_096, 32_768, 262_144, 1_048_576)
LAYERS = (10, 100, 1_000, 10_000)
PLACED_ON = 1_024
PROGRAM = """
import json, resource, sys, time
from pathlib import Path
from phaze.search.folder import run_in
from phaze.search.question_files import Papers
from phaze.study.load import job_of, study_of
from phaze.study.raw import default_study, with_settings
start = time.perf_counter()
raw = with_settings(default_study("bert-large", "icml24") | {"models": ["bert-large"]}, sys.argv[2:])
done = run_in(Path(sys.argv[1]), Papers(""), job_of(study_of(raw, "growth")))
print(json.dumps({
    "chips": done.state.chips.total, "opened": len(done.state.evaluated), "dual": len(done.state.dual),
    "wall_s": round(time.perf_counter() - start, 1), "cpu_s": round(time.process_time(), 1),
    "gib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2),
    "gap": done.document["certificate"]["gap"], "best": done.document["chip"]["name"],
}))
"""


def _space(counts: Any, lanes: Any, buffers: Any, bandwidths: int) -> str:
    """A space file, as JSON inside TOML values."""

    def value(one: Any) -> str:
        if isinstance(one, dict):
            return (
                "{ " + ", ".join(f"{key} = {json.dumps(item)}" for key, item in one.items()) + " }"
            )
        return json.dumps(one)

    hbm = [f"{300 + 1200 * k // max(1, bandwidths - 1)} GB/s" for k in range(bandwidths)]
    axes = {
        "tensor_cores": counts,
        "rows": SIDES,
        "columns": SIDES,
        "vector_cores": counts,
        "lanes": lanes,
    }
    axes |= {"global_buffer": buffers} | ({"hbm_bandwidth": hbm} if bandwidths > 1 else {})
    lines = [
        'schema = "phaze.space/1"',
        'name = "grown"',
        'title = "a larger space"',
        'base = "tpu-v4-paper"',
        "[axes]",
    ]
    lines += [f"{key} = {value(one)}" for key, one in axes.items()]
    lines += [
        "[core_buffers]",
        'least = "1 KiB"',
        "bytes_per_unit = 16",
        "[keep]",
        'area_of = "tpu-v4-paper"',
    ]
    return "\n".join([*lines, "least_share = 0.3", "smaller_with_one_core = true", ""])


def measured(only: str) -> list[dict[str, Any]]:
    """A row for every space whose name holds ``only``."""
    rows = []
    for name, *axes in SPACES:
        if only not in name:
            continue
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "space.toml").write_text(_space(*axes), encoding="utf-8")
            command = [
                sys.executable,
                "-c",
                PROGRAM,
                f"{folder}/run",
                f"space={folder}/space.toml",
                "search.gap=0.001",
            ]
            ran = subprocess.run(command, capture_output=True, text=True, check=True)
        rows.append({"kind": "chips", "space": name, **json.loads(ran.stdout)})
        sys.stderr.write(f"{rows[-1]}\n")
    return rows


CHILD = """
import json, resource, subprocess, sys
ran = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps({"cpu_s": round(used.ru_utime + used.ru_stime, 2), "gib": round(used.ru_maxrss / 2**20, 2)}))
"""


def _command(*words: str) -> dict[str, Any]:
    """CPU seconds and memory of a command of phaze, its start included."""
    command = [sys.executable, "-c", CHILD, sys.executable, "-m", "phaze", *words]
    found: dict[str, Any] = json.loads(
        subprocess.run(command, capture_output=True, text=True, check=True).stdout
    )
    return found


def _profile(layers: int) -> dict[str, Any]:
    """A chain of equal blocks between two other layers, none of which is split."""
    sizes = {"parameter_bytes": 1e6, "activation_bytes": 2e6, "sharded": False}
    times = [(0.01, 0.02), *[(0.1, 0.2)] * (layers - 2), (0.05, 0.12)]
    rows = [
        {"id": at, "forward_s": ahead, "backward_s": back, **sizes}
        for at, (ahead, back) in enumerate(times)
    ]
    edges = [{"from": at, "to": at + 1, "bytes": 1e6} for at in range(layers - 1)]
    return {
        "schema": "phaze.profile/1", "rules": "icml24", "devices": PLACED_ON,
        "hbm_bytes": 32 * 2**30,
        "link_bytes_per_s": 4.0 * 2**30, "microbatches": 4096, "optimizer": "sgd",
        "recompute": False,
        "widths": {"1": {"layers": rows, "edges": edges}},
    }  # fmt: skip


def other_rows(only: str) -> list[dict[str, Any]]:
    """Rows of devices and of layers whose name holds ``only``."""
    rows = []
    for devices in DEVICES:
        if only in (name := f"llama3-8b on {devices:,} H100"):
            job = ("--devices", f"{devices}", "--batch", f"{max(512, devices)}")
            found = _command("plan", "--model", "llama3-8b", "--chip", "h100", *job, "--json")
            rows.append({"kind": "devices", "space": name, "chips": devices, **found})
            sys.stderr.write(f"{rows[-1]}\n")
    for layers in LAYERS:
        if only in (name := f"{layers:,} layers on {PLACED_ON:,} devices"):
            with tempfile.TemporaryDirectory() as folder:
                Path(folder, "profile.json").write_text(
                    json.dumps(_profile(layers)), encoding="utf-8"
                )
                found = _command("place", f"{folder}/profile.json", "--json")
            rows.append({"kind": "layers", "space": name, "chips": layers, **found})
            sys.stderr.write(f"{rows[-1]}\n")
    return rows


def _points(
    rows: list[dict[str, str]], key: str, low: float, high: float
) -> list[tuple[float, float]]:
    """Where the values of a column stand in a picture of 640 x 360, both axes by ratio."""
    across = [(log10(float(row["chips"])) - 4) / 6 for row in rows]
    up = [(log10(float(row[key])) - low) / (high - low) for row in rows]
    return [(70 + 530 * x, 310 - 280 * y) for x, y in zip(across, up, strict=True)]


def drawn(rows: list[dict[str, str]]) -> str:
    """CPU seconds and memory over chips."""
    parts = [
        (
            '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 680 360" '
            'font-family="sans-serif" font-size="12">'
        ),
        '<rect width="680" height="360" fill="white"/>',
    ]
    for power in range(4, 11):
        x = 70 + 530 * (power - 4) / 6
        parts.append(f'<line x1="{x:.1f}" y1="30" x2="{x:.1f}" y2="310" stroke="#ddd"/>')
        parts.append(f'<text x="{x:.1f}" y="328" text-anchor="middle">{10**power:,}</text>')
    for power in range(4):
        y = 310 - 280 * power / 3
        parts.append(f'<line x1="70" y1="{y:.1f}" x2="600" y2="{y:.1f}" stroke="#ddd"/>')
        parts.append(
            f'<text x="62" y="{y + 4:.1f}" text-anchor="end" fill="#0b5fa5">{10**power:,} s</text>'
        )
        parts.append(
            f'<text x="608" y="{y + 4:.1f}" fill="#b3541e">{10.0 ** (power - 1):g} GiB</text>'
        )
    for key, low, high, colour in (("cpu_s", 0, 3, "#0b5fa5"), ("gib", -1, 2, "#b3541e")):
        points = _points(rows, key, low, high)
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}"/>' for x, y in points]
    parts.append('<text x="335" y="350" text-anchor="middle">chips of the space</text>')
    parts.append('<text x="70" y="18" fill="#0b5fa5">CPU seconds of a search to 0.1 %</text>')
    parts.append('<text x="600" y="18" text-anchor="end" fill="#b3541e">memory</text>')
    return "\n".join([*parts, "</svg>", ""])


def main() -> None:
    """Measure, unless told only to draw, and draw."""
    table = HERE / "growth.csv"
    if "--draw" not in sys.argv:
        only = sys.argv[1] if len(sys.argv) > 1 else ""
        rows = [*measured(only), *other_rows(only)]
        if only:
            return
        with table.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
    with table.open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["kind"] == "chips"]
    (HERE / "growth.svg").write_text(drawn(rows), encoding="utf-8")


if __name__ == "__main__":
    main()
