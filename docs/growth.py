"""How a search grows with its space: measures docs/growth.csv, and draws docs/growth.svg from it.

python docs/growth.py             searches of bert-large to 0.1 % in ever larger spaces, each in a process of its own
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
FINE_SIZES = [f"{n * 2**k} MiB" for k in range(5) for n in (4, 5, 6, 7)] + ["2 MiB", "3 MiB", "128 MiB"]
SIZES = [f"{n} MiB" for n in (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)]
POWERS = {"from": 1, "to": 4096, "times": 2}
SIDES = {"from": 2, "to": 256, "times": 2}
BUFFERS = {"from": "2 MiB", "to": "128 MiB", "times": 2}
# What varies beside rows and columns: counts of cores, lanes, global buffers, values of HBM bandwidth.
SPACES: tuple[tuple[str, Any, Any, Any, int], ...] = (
    ("the paper's", POWERS, "columns", BUFFERS, 1),
    ("counts also 3, 6, 12 ...", COUNTS, "columns", BUFFERS, 1),
    ("lanes free", POWERS, SIDES, BUFFERS, 1),
    ("both", COUNTS, SIDES, BUFFERS, 1),
    ("and 13 buffers", COUNTS, SIDES, SIZES, 1),
    ("and 2 HBM bandwidths", COUNTS, SIDES, SIZES, 2),
    ("and 8 HBM bandwidths", COUNTS, SIDES, SIZES, 8),
    ("counts also 5, 7, 10 ..., 15 lanes, 23 buffers", FINE_COUNTS, FINE_LANES, FINE_SIZES, 8),
    ("and 32 HBM bandwidths", FINE_COUNTS, FINE_LANES, FINE_SIZES, 32),
)
PROGRAM = """
import json, resource, sys, time
from pathlib import Path
from phaze.search.folder import run_in
from phaze.search.question_files import Papers
from phaze.study.load import default_study, job_of, study_of, with_settings
start = time.perf_counter()
raw = with_settings(default_study("bert-large", "icml24") | {"models": ["bert-large"]}, sys.argv[2:])
done = run_in(Path(sys.argv[1]), Papers(""), job_of(study_of(raw, "growth")))
print(json.dumps({
    "chips": done.state.opened.total, "opened": len(done.state.evaluated), "dual": len(done.state.dual),
    "wall_s": round(time.perf_counter() - start, 1), "cpu_s": round(time.process_time(), 1),
    "gib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2),
    "gap": done.document["certificate"]["gap"], "best": done.document["chip"]["name"],
}))
"""


def _space(counts: Any, lanes: Any, buffers: Any, bandwidths: int) -> str:
    """A space file, as JSON inside TOML values."""

    def value(one: Any) -> str:
        if isinstance(one, dict):
            return "{ " + ", ".join(f"{key} = {json.dumps(item)}" for key, item in one.items()) + " }"
        return json.dumps(one)

    hbm = [f"{300 + 1200 * k // max(1, bandwidths - 1)} GB/s" for k in range(bandwidths)]
    axes = {"tensor_cores": counts, "rows": SIDES, "columns": SIDES, "vector_cores": counts, "lanes": lanes}
    axes |= {"global_buffer": buffers} | ({"hbm_bandwidth": hbm} if bandwidths > 1 else {})
    lines = [
        'schema = "phaze.space/1"',
        'name = "grown"',
        'title = "a larger space"',
        'base = "tpu-v4-paper"',
        "[axes]",
    ]
    lines += [f"{key} = {value(one)}" for key, one in axes.items()]
    lines += ["[core_buffers]", 'least = "1 KiB"', "bytes_per_unit = 16", "[keep]", 'area_of = "tpu-v4-paper"']
    return "\n".join([*lines, "least_share = 0.3", "smaller_with_one_core = true", ""])


def measured(only: str) -> list[dict[str, Any]]:
    """A row for every space whose name holds ``only``."""
    rows = []
    for name, *axes in SPACES:
        if only not in name:
            continue
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "space.toml").write_text(_space(*axes), encoding="utf-8")
            command = [sys.executable, "-c", PROGRAM, f"{folder}/run", f"space={folder}/space.toml", "search.gap=0.001"]
            ran = subprocess.run(command, capture_output=True, text=True, check=True)
        rows.append({"space": name, **json.loads(ran.stdout)})
        sys.stderr.write(f"{rows[-1]}\n")
    return rows


def _points(rows: list[dict[str, str]], key: str, low: float, high: float) -> list[tuple[float, float]]:
    """Where the values of a column stand in a picture of 640 x 360, both axes by ratio."""
    across = [(log10(float(row["chips"])) - 4) / 5 for row in rows]
    up = [(log10(float(row[key])) - low) / (high - low) for row in rows]
    return [(70 + 530 * x, 310 - 280 * y) for x, y in zip(across, up, strict=True)]


def drawn(rows: list[dict[str, str]]) -> str:
    """CPU seconds and memory over chips."""
    parts = [
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 680 360" font-family="sans-serif" font-size="12">',
        '<rect width="680" height="360" fill="white"/>',
    ]
    for power in range(4, 10):
        x = 70 + 530 * (power - 4) / 5
        parts.append(f'<line x1="{x:.1f}" y1="30" x2="{x:.1f}" y2="310" stroke="#ddd"/>')
        parts.append(f'<text x="{x:.1f}" y="328" text-anchor="middle">{10**power:,}</text>')
    for power in range(4):
        y = 310 - 280 * power / 3
        parts.append(f'<line x1="70" y1="{y:.1f}" x2="600" y2="{y:.1f}" stroke="#ddd"/>')
        parts.append(f'<text x="62" y="{y + 4:.1f}" text-anchor="end" fill="#0b5fa5">{10**power:,} s</text>')
        parts.append(f'<text x="608" y="{y + 4:.1f}" fill="#b3541e">{10.0 ** (power - 1):g} GiB</text>')
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
        rows = measured(only)
        if only:
            return
        with table.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
    with table.open(encoding="utf-8") as file:
        (HERE / "growth.svg").write_text(drawn(list(csv.DictReader(file))), encoding="utf-8")


if __name__ == "__main__":
    main()
