"""The page of a search: one HTML file that needs nothing else. Answer, certificate, and every chip as a point.

Points are (area, bound or score relative to the best, how closed), as whole numbers: the page of 29,360 chips stays
below 1.5 MB, and a canvas draws them. Bounds are worked out only as far as they matter, so a point at the top edge
means "at least this".
"""

from collections.abc import Mapping, Sequence
from html import escape
from types import MappingProxyType
from typing import Any

from phaze.documents import dumps
from phaze.search.journal import Closed
from phaze.units import show

STEPS = 2000
HEIGHT_SHARE = 0.25
COLOURS: Mapping[str, str] = MappingProxyType(
    {"bound": "#8a94a6", "evaluated": "#0b7a4b", "failed": "#b3261e", "open": "#c77700"}
)

STYLE = """
:root{color-scheme:light dark;--ink:#1b1f27;--soft:#5b6472;--line:#d9dde4;--paper:#fff;--band:#f4f6f9}
@media (prefers-color-scheme:dark){:root{--ink:#e8ebf0;--soft:#a3acba;--line:#333b47;--paper:#14171c;--band:#1c2129}}
body{font:16px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper);margin:0 auto;max-width:60rem;
padding:1.5rem}
h1{font-size:1.6rem;margin:0 0 .2rem}h2{font-size:1.15rem;margin:2rem 0 .5rem}p{margin:.4rem 0}.soft{color:var(--soft)}
table{border-collapse:collapse;width:100%}th,td{text-align:left;padding:.3rem .6rem;border-bottom:1px solid var(--line)}
td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}
.facts{display:grid;grid-template-columns:repeat(auto-fit,minmax(11rem,1fr));gap:.6rem}
.facts div{background:var(--band);padding:.6rem .8rem;border-radius:.4rem}.facts b{display:block;font-size:1.1rem}
.stages{display:flex;gap:2px;margin:.5rem 0}.stages span{background:#2f6fde;color:#fff;
text-align:center;min-width:1.2rem;font-size:.75rem;padding:.2rem 0;border-radius:2px}
canvas{width:100%;height:22rem;background:var(--band);border-radius:.4rem}
"""

SCRIPT = """
const d=JSON.parse(document.getElementById("points").textContent),c=document.getElementById("chart");
function draw(){const r=window.devicePixelRatio||1,w=c.clientWidth,h=c.clientHeight;c.width=w*r;c.height=h*r;
const g=c.getContext("2d");g.scale(r,r);const ink=getComputedStyle(document.body).color,L=64,B=34,T=10,R=12;
const x=v=>L+v/d.steps*(w-L-R),y=v=>h-B-v/d.steps*(h-B-T);g.strokeStyle=ink;g.fillStyle=ink;g.globalAlpha=.7;
g.font="12px system-ui";g.strokeRect(L,T,w-L-R,h-B-T);
for(let i=0;i<=4;i++){const s=i*d.steps/4;g.textAlign="center";
const a=d.area[0]+(d.area[1]-d.area[0])*i/4;g.fillText(a.toFixed(0)+" mm\\u00b2",x(s),h-B+18);
g.textAlign="right";g.fillText("+"+(d.share*100*i/4).toFixed(1)+" %",L-8,y(s)+4)}
for(const [k,p] of Object.entries(d.points)){g.fillStyle=d.colours[k];
g.globalAlpha=k=="bound"?.35:1;const s=k=="bound"?2:5;
for(let i=0;i<p.length;i+=2)g.fillRect(x(p[i])-s/2,y(p[i+1])-s/2,s,s)}
g.globalAlpha=1;g.strokeStyle="#d11";g.lineWidth=2;g.beginPath();g.arc(x(d.best[0]),y(d.best[1]),7,0,7);g.stroke()}
draw();addEventListener("resize",draw);
"""


def _points(closed: Sequence[Closed], area_mm2: Sequence[float], result: Mapping[str, Any]) -> dict[str, Any]:
    best = float(result["objective"]["score"])
    least, most = min(area_mm2), max(area_mm2)
    span = (most - least) or 1.0

    def across(area: float) -> int:
        return round((area - least) / span * STEPS)

    points: dict[str, list[int]] = {reason: [] for reason in COLOURS}
    for one in closed:
        if one.bound is not None and one.reason in points:
            up = min(1.0, max(0.0, one.bound / best - 1.0) / HEIGHT_SHARE)
            points[one.reason] += [across(area_mm2[one.chip]), round(up * STEPS)]
    return {
        "steps": STEPS,
        "share": HEIGHT_SHARE,
        "area": [least, most],
        "best": [across(float(result["chip"]["area_mm2"])), 0],
        "colours": dict(COLOURS),
        "points": points,
    }


def _facts(pairs: Sequence[tuple[str, str]]) -> str:
    cells = "".join(f"<div><span class=soft>{escape(name)}</span><b>{escape(fact)}</b></div>" for name, fact in pairs)
    return f"<div class=facts>{cells}</div>"


def _model(model: Mapping[str, Any]) -> str:
    plan = model["plan"]
    facts = _facts(
        [
            ("throughput", f"{model['throughput_per_s']:,.4g} sequences/s"),
            ("batch", show(model["batch_s"], "s")),
            ("split", f"{plan['pipeline']} stages x {plan['data']} copies, width {model['tensor']}"),
            ("microbatch", f"{model['microbatch']}, recompute {model['recompute']}"),
        ]
    )
    stages = "".join(
        f'<span style="flex:{len(stage["layers"])}" title="{show(stage["time_s"], "s")}, '
        f'{show(stage["memory_bytes"], "B")}">{len(stage["layers"])}</span>'
        for stage in plan["stages"]
    )
    terms = "".join(
        f"<tr><td>{escape(name.removesuffix('_s').replace('_', ' '))}</td><td class=n>{show(seconds, 's')}</td>"
        f"<td class=n>{seconds / model['batch_s']:.1%}</td></tr>"
        for name, seconds in plan["breakdown"].items()
    )
    title = f"<h2>{escape(model['name'])}</h2>{facts}<p class=soft>Layers of each stage, first to last:</p>"
    table = f"<table><tr><th>where a batch goes<th class=n>time<th class=n>share</tr>{terms}</table>"
    return f"{title}<div class=stages>{stages}</div>{table}"


def _certificate(result: Mapping[str, Any]) -> str:
    proof = result["certificate"]
    meaning = {
        "area": "too large, or smaller than the space keeps",
        "memory": "no plan fits into its memory",
        "bound": "a lower bound proves that it cannot be better",
        "evaluated": "opened: exact schedules and placements",
        "failed": "its evaluation failed; its bound counts",
        "open": "not looked at: the search was stopped",
    }
    rows = "".join(
        f"<tr><td>{reason}</td><td>{meaning[reason]}</td><td class=n>{count:,}</td></tr>"
        for reason, count in proof["closed"].items()
        if count
    )
    proved = f"Nothing in the space is better by more than {proof['gap']:.2g} of the score"
    said = f"{proved}; asked for {proof['asked_gap']:g}."
    return f"<h2>Certificate</h2><p>{said}</p><table><tr><th>closed by<th>why<th class=n>chips</tr>{rows}</table>"


def page_of(result: Mapping[str, Any], closed: Sequence[Closed], area_mm2: Sequence[float]) -> str:
    """The page of a result, from the list of closed chips and the area of each."""
    chip = result["chip"]
    facts = _facts(
        [
            ("tensor cores", f"{chip['tensor_cores']} of {chip['rows']} x {chip['columns']}"),
            ("vector cores", f"{chip['vector_cores']} of {chip['lanes']} lanes"),
            ("global buffer", show(chip["global_buffer_bytes"], "B")),
            ("HBM", show(chip["hbm_bytes"], "B")),
            ("area", show(chip["area_mm2"], "mm2")),
            ("peak", show(chip["peak_flops"], "FLOP/s")),
        ]
    )
    points = dumps(_points(closed, area_mm2, result)).replace("<", "\\u003c")
    legend = " · ".join(f'<span style="color:{colour}">■</span> {name}' for name, colour in COLOURS.items())
    name = escape(str(result["name"]))
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>phaze: {name}</title>'
        f'<meta name="viewport" content="width=device-width,initial-scale=1"><style>{STYLE}</style></head><body>'
        f"<h1>{escape(chip['name'])}</h1><p class=soft>The best chip of the study {name}, objective "
        f"{escape(result['objective']['kind'])}.</p>{facts}{''.join(_model(model) for model in result['models'])}"
        f"{_certificate(result)}<h2>Every chip</h2><p class=soft>Area against how far its bound (or, evaluated, its "
        f"proved score) is above the best; the top edge means at least that far. {legend}; the answer is circled.</p>"
        f'<canvas id="chart" role="img" aria-label="area and bound of every chip"></canvas>'
        f"<p class=soft>phaze {escape(result['version'])}, study {result['study_digest'][:12]}, "
        f"code {result['code_digest'][:12]}</p>"
        f'<script type="application/json" id="points">{points}</script><script>{SCRIPT}</script></body></html>\n'
    )
