"""Digests of what is bundled, for ``phaze/check/bundled.py``: ``python -m tests.check.digests``
writes it anew.

The checker has them as constants, so that a forged folder cannot call its own inputs bundled.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from phaze.check.claim import graphs_digest, network_digest, space_digest, stack_digest
from phaze.documents import digest, plain_value
from phaze.graph.zoo import ZOO
from phaze.hardware.bundled import preset_names
from phaze.hardware.library import chip_names, load_chip
from phaze.study.load import question_of, study_of
from phaze.study.raw import default_study

PLACE = Path(__file__).parent.parent.parent / "src" / "phaze" / "check" / "bundled.py"
HEAD = '''"""Digests of what is bundled, so that a claim can say whether it is about that.

Written by ``python -m tests.check.digests``: a default search of every built-in model, in both settings.
"""

from types import MappingProxyType
'''
CLUSTERS = ("paper-flat", "selene", "dgx-h100", "tpu-v4-pod")


RETICLES = ("n3-reticle", "n5-reticle", "n7-reticle")


def problem_of(model: str, rules: str, space: str = "paper", **training: Any) -> dict[str, Any]:
    """The problem of a search with everything else at its default."""
    raw = {**default_study(model), "rules": rules, "space": space, "training": training}
    return dict(question_of(study_of(raw, "digests")).problem)


def chips() -> dict[str, str]:
    """Names of chips by digest."""
    return {digest(plain_value(load_chip(name))): name for name in chip_names()}


def stacks() -> dict[str, str]:
    """Names of stacks by digest, as a search has them."""
    found = {}
    for name in preset_names("stacks"):
        rules = "icml24" if name == "icml24" else "cluster"
        training = problem_of("bert-large", rules, stack=name)["models"][0]["training"]
        found[stack_digest(training["machine"]["stack"])] = name
    return found


def tables(models: Iterable[str]) -> dict[str, dict[str, str]]:
    """Names by digest: spaces, networks, graphs."""
    graphs = {}
    for rules in ("icml24", "cluster"):
        for model in models:
            problem = problem_of(
                model, rules, cluster="paper-flat" if rules == "icml24" else "selene"
            )
            graphs[graphs_digest(problem["models"][0])] = model
    for model in models:
        graphs[graphs_digest(problem_of(model, "cluster", "n5-reticle")["models"][0])] = model
    spaces = {
        space_digest(
            problem_of("bert-large", "icml24")["space"]
        ): "the space of the ICML 2024 paper"
    }
    spaces |= {
        space_digest(problem_of("bert-large", "cluster", name)["space"]): name for name in RETICLES
    }
    networks: dict[str, str] = {}
    for cluster in CLUSTERS:
        rules = "icml24" if cluster == "paper-flat" else "cluster"
        training = problem_of("bert-large", rules, cluster=cluster)["models"][0]["training"]
        networks[network_digest(training)] = cluster
    return {"SPACES": spaces, "NETWORKS": networks, "GRAPHS": graphs, "CHIPS": chips(),
    "STACKS": stacks(),
            "TERMS": {digest(problem_of("bert-large",
            "icml24")["ownership"]): "terms"}}  # fmt: skip


def text_of(found: dict[str, dict[str, str]]) -> str:
    """The module."""
    lines = [HEAD]
    for name, rows in found.items():
        inner = "".join(f'        "{digest}": "{value}",\n' for digest, value in rows.items())
        lines.append(f"{name} = MappingProxyType(\n    {{\n{inner}    }}\n)\n")
    return "\n".join(lines[:1]) + "\n" + "".join(lines[1:])


if __name__ == "__main__":
    PLACE.write_text(text_of(tables(ZOO)))
