"""Random profile documents of extreme kinds: equal layers and stages, numbers from 1e-24 to 1e15,
huge levels."""

import random
from typing import Any

# Decimal fractions whose sums depend on their order, so that equal stages differ in the last bits.
AMOUNTS = (0.0, 0.1, 0.1, 0.2, 0.3, 0.7, 1 / 3, 1.0, 3.0)
SCALES = (1.0, 1.0, 1.0, 1.0, 1e-3, 1e-9, 1e-24, 1e6, 1e12, 1e14)
SIZES = (1, 2, 3, 4, 5, 7, 8, 9, 13)
HUGE_SIZES = (1, 2, 5, 2**20, 2**31 - 1, 2**32, 2**40)


def _edges(rng: random.Random, n: int, size: float) -> list[dict[str, Any]]:
    if rng.random() < 0.6:
        found = [(i, i + 1) for i in range(n - 1)] + (
            [(0, n - 1)] if n > 2 and rng.random() < 0.3 else []
        )
    else:
        found = [(i, j) for i in range(n) for j in range(i + 1, n) if rng.random() < 0.4][:10]
    return [{"from": i, "to": j, "bytes": size} for i, j in found]


def _extras(rng: random.Random, layer: dict[str, Any]) -> dict[str, Any]:
    extra: dict[str, Any] = {}
    if rng.random() < 0.5:
        extra["selective_bytes"] = layer["activation_bytes"] * rng.choice([0, 1 / 3, 1])
        extra["selective_s"] = layer["forward_s"] * rng.choice([0, 0.1, 1])
    if rng.random() < 0.4:
        extra["full_s"] = layer["forward_s"] * rng.choice([0, 0.1, 1])
    return extra


def _layers(
    rng: random.Random, n: int, scales: list[float], cluster: bool, width: int
) -> list[dict[str, Any]]:
    names = ("forward_s", "backward_s", "parameter_bytes", "activation_bytes")
    kinds = [
        [rng.choice(AMOUNTS) * scale for scale in scales] for _ in range(rng.choice([1, 1, 2, 3]))
    ]
    layers = []
    for i in range(n):
        share = width if rng.random() < 0.7 else 1
        row = {name: value / share for name, value in zip(names, rng.choice(kinds), strict=True)}
        layers.append(
            {"id": i, **row, "sharded": share > 1, **(_extras(rng, row) if cluster else {})}
        )
    if cluster and n > 1 and rng.random() < 0.4:
        tied = rng.sample(layers, rng.randint(2, n))
        shared = min(layer["parameter_bytes"] for layer in tied) * rng.choice([0.5, 1])
        for layer in tied:
            layer |= {"tied": "word", "tied_bytes": shared}
    return layers


def _cluster_keys(rng: random.Random) -> dict[str, Any]:
    choices, joined = rng.choice([SIZES, SIZES, SIZES, HUGE_SIZES]), 1
    sizes = [rng.choice(choices) for _ in range(rng.choice([1, 2, 2, 3, 4]))]
    for size in sizes:
        joined *= size
    return {
        "devices": min(joined, rng.choice([2, 3, 5, 8, 60])),
        "recompute": rng.choice([False, True, "best", "selective"]),
        "zero": rng.choice([0, 1, 2, 3]),
        "schedule": rng.choice(["1f1b", "1f1b", "gpipe"]),
        "stack": rng.choice(["ideal", "ideal", "megatron-2022", "torchtitan"]),
        **({"hbm_bytes_per_s": rng.choice([1.0, 3e12])} if rng.random() < 0.5 else {}),
        "cluster": [
            {
                "name": f"level{i}",
                "kind": "switch",
                "size": size,
                "bandwidth": rng.choice([1.0, 3.0, 1e11, 1e6, 1e18]),
                "latency": rng.choice([0, 0.1, 1e-6, 1e9]),
            }
            for i, size in enumerate(sizes)
        ],
    }


def random_profile(seed: int) -> dict[str, Any]:
    """A profile under either rules; most fit, many have ties."""
    rng = random.Random(seed)
    cluster, n = rng.random() < 0.7, rng.choice([1, 2, 2, 3, 4, 6])
    scales = [rng.choice(SCALES) for _ in range(4)]
    if rng.random() < 0.6:
        scales[1] = scales[0]
    keys: dict[str, Any] = {
        "recompute": rng.choice([False, True, "best"]),
        "devices": rng.choice([1, 2, 3, 5, 8]),
        "link_bytes_per_s": rng.choice([1.0, 3.0, 1e-6, 1e15]),
    }
    edge_bytes = rng.choice(AMOUNTS) * rng.choice(SCALES)
    return {
        "schema": "phaze.profile/1",
        "rules": "cluster" if cluster else "icml24",
        "hbm_bytes": rng.choice([1e15, 1e15, min(1e15, max(1e-12, 30 * (scales[2] + scales[3])))]),
        "microbatches": rng.choice([1, 2, 3, 4, 5, 8, 100, 12345]),
        "optimizer": rng.choice(["sgd", "adam"]),
        **(_cluster_keys(rng) if cluster else keys),
        "widths": {
            str(width): {
                "layers": _layers(rng, n, scales, cluster, width),
                "edges": _edges(random.Random(seed), n, edge_bytes),
            }
            for width in sorted(rng.sample([1, 2, 3, 5], rng.randint(1, 2)))
        },
    }
