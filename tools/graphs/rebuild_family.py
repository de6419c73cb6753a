"""The file of a family: every case fitted in all its letters at points drawn once and for all.

The first points are a base and, letter by letter, the base with that letter alone changed; the
others are drawn at random from a seed: eight more points than letters, and two to check. Widths
divide what they split, and a case fixes what its name says.
"""

import random
from collections.abc import Iterator, Mapping
from itertools import product
from types import MappingProxyType
from typing import Any

from phaze.graph.family import FAMILIES, UNGATED, family_case, free_letters
from phaze.graph.ir import Attention, Model
from phaze.graph.shipped import Case, ShippedGraphs, model_at, pack, text_of
from phaze.graph.supply.point import RankPoint
from phaze.graph.torch.families import Gpt, Llama, Moe
from phaze.graph.torch.program import Source
from phaze.graph.torch.source import gpt_source, llama_source, moe_source
from phaze.graph.torch.trace import Discovery, discover, trace_model
from tools.graphs.rebuild import RebuildError, difference, fit_case

CHECKED = 2
"""Points that are traced and not fitted: they must come out."""
FEW_WORDS = 8
"""Fewer than a sequence has: there a look-up reads its table once."""
BASE: Mapping[str, int] = MappingProxyType(
    {"b": 2, "s": 16, "p": 128, "t": 2, "h": 384, "a": 16, "k": 4, "d": 12, "f": 80, "v": 96}
    | {"e": 8, "m": 2, "g": 64, "r": 112}
)
CHANGED: Mapping[str, int] = MappingProxyType(
    {"b": 4, "s": 32, "p": 256, "t": 4, "h": 768, "a": 32, "k": 8, "d": 24, "f": 160, "v": 192}
    | {"e": 16, "m": 4, "g": 128, "r": 224}
)
Letters = dict[str, int]


def _settled(letters: Letters, words: list[str]) -> Letters:
    """``letters`` with what a case fixes."""
    found = dict(letters)
    if "t=1" in words:
        found["t"] = 1
    if "b=1" in words:
        found["b"] = 1
    if "a=t" in words:
        found["a"] = found["t"]
    if "k=a" in words:
        found["k"] = found["a"]
    if "plain" in words:
        found["r"] = 0
    return found


def _drawn(rng: random.Random) -> Letters:
    """Letters whose widths divide what they split; a head is even; tables of words and positions
    differ in size."""
    width = rng.choice((2, 4, 8))
    keys = width * rng.choice((1, 2, 3))
    heads = keys * rng.choice((2, 3, 4))
    length = 8 * rng.randint(2, 12)
    positions = length + rng.randint(0, 95)
    return {
        "b": rng.randint(2, 9),
        "s": length,
        "p": positions,
        "t": width,
        "h": heads * rng.randint(2, 24),
        "a": heads,
        "k": keys,
        "d": 2 * rng.randint(2, 24),
        "f": width * rng.randint(8, 99),
        "v": width * rng.choice([n for n in range(4, 299) if n * width != positions]),
    }


def _drawn_mixture(rng: random.Random) -> Letters:
    """The same for a mixture of experts, which divide the tokens; rows of grouped products have a
    multiple of 8."""
    found = _drawn(rng)
    return found | {
        "h": 8 * found["a"] * rng.randint(1, 6),
        "e": rng.choice((4, 8)),
        "m": rng.choice((2, 3, 4)),
        "g": 8 * found["t"] * rng.randint(1, 12),
        "r": found["t"] * rng.randint(8, 99),
    }


def family_points(family: str, case: str) -> list[Letters]:
    """The points of a case: base, one change each, then drawn ones."""
    words = case.split()
    names = free_letters(family, case)
    base = _settled(dict(BASE), words)
    points = [base, *(_settled({**base, name: CHANGED[name]}, words) for name in names)]
    points.append({**base, "v": FEW_WORDS})
    rng = random.Random(f"{family} {case}")
    while len(points) < len(names) + 8 + CHECKED:
        points.append(_settled((_drawn_mixture if family == "moe" else _drawn)(rng), words))
    return points


def source_at(
    family: str, letters: Mapping[str, int], layers: int, tied: bool, gated: bool = True
) -> Source:
    """The family's module at some sizes."""
    sizes: dict[str, Any] = {
        key: letters[letter] for key, letter in FAMILIES[family].letters.items()
    }
    if family == "gpt":
        return gpt_source(Gpt(layers=layers, **sizes))
    if family == "moe":
        return moe_source(Moe(layers=layers, tied=tied, mlp=letters["f"], **sizes))
    return llama_source(Llama(layers=layers, tied=tied, gated=gated, **sizes))


def _cases(family: str) -> Iterator[tuple[str, Attention, bool, bool]]:
    """Every case with its attention, whether the sequence is sharded, and whether embeddings are
    tied."""
    if family == "moe":
        yield from _mixture_cases()
        return
    attentions: tuple[Attention, ...] = ("eager", "fused")
    ties = (False, True) if family == "llama" else (True,)
    keys = ("k=a", "k<a") if family == "llama" else ("",)
    for attention, width, micro, heads, key, tied in product(
        attentions, ("t=1", "t>1"), ("b=1", "b>1"), ("a>t", "a=t"), keys, ties
    ):
        if heads == "a=t" and (key == "k<a" or attention == "fused"):
            continue
        for spread in (False, True) if width == "t>1" else (False,):
            words = [width, micro, heads, *([key] if key else [])]
            point = _settled({**BASE, "t": 2}, words)
            name = family_case(family, {"tied": tied}, point, RankPoint(2, 1, 0, attention, spread))
            yield name, attention, spread, tied


def _mixture_cases() -> Iterator[tuple[str, Attention, bool, bool]]:
    """Those of ``moe``: shared experts know no sequence parallelism."""
    for width, micro, shared in product(("t=1", "t>1"), ("b=1", "b>1"), ("plain", "shared")):
        for spread in (False, True) if width == "t>1" and shared == "plain" else (False,):
            point = _settled({**BASE, "t": 2}, [width, micro, shared])
            yield (
                family_case("moe", {}, point, RankPoint(2, 1, 0, "fused", spread)),
                "fused",
                spread,
                False,
            )


def _trace(
    source: Source, letters: Letters, attention: Attention, spread: bool, found: Discovery
) -> Model:
    return trace_model(
        source,
        tensor=letters["t"],
        microbatch=letters["b"],
        sequence=letters["s"],
        attention=attention,
        sequence_parallel=spread,
        discovery=found,
    )


def rebuild_family(file: str) -> str:
    """The text of the file of a family."""
    gated = file != UNGATED
    family = file if gated else "llama"
    cases: dict[str, Case] = {}
    checks: list[tuple[str, Letters, Model]] = []
    for name, attention, spread, tied in _cases(family):
        points = family_points(family, name)
        found = discover(source_at(family, points[0], 2, tied, gated), fused=attention == "fused")
        models = [
            _trace(source_at(family, p, 2, tied, gated), p, attention, spread, found)
            for p in points
        ]
        cases[name] = fit_case(points[:-CHECKED], models[:-CHECKED], free_letters(family, name))
        checks.extend(
            (name, p, m) for p, m in zip(points[-CHECKED:], models[-CHECKED:], strict=True)
        )
    content = pack(cases)
    shipped = ShippedGraphs(content["expressions"], content["templates"], content["cases"])
    for name, letters, fresh in checks:
        rank = RankPoint(
            letters["t"], letters["b"], letters["s"], fresh.attention, fresh.sequence_parallel
        )
        made = model_at(shipped, name, letters, family, rank)
        if made != fresh:
            raise RebuildError(f"{family}, {name}, {letters}: {difference(made, fresh)}.")
    return text_of(content)
