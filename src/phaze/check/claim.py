"""What a certificate claims, in words, so that nobody takes an answer to another question for an
answer to theirs."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .bundled import CHIPS, GRAPHS, NETWORKS, SPACES, STACKS, TERMS
from .reading import digest_of

OBJECTIVES = {
    "throughput": "seconds of a batch", "throughput_per_watt": "joules of a batch",
    "throughput_per_usd": "dollars of a batch", "throughput_per_kgco2e": (
        "kilograms of CO2 "
        "equivalent of a batch"
    ),
    "energy_delay": "joule seconds of a batch",
}.get  # fmt: skip


FASTEST = "chip and memory with the fastest plan of a configuration"
"""What is spoken of where more than time counts: a slower plan may take less energy."""
OF_MEMORY = frozenset({"price", "embodied", "cost", "carbon"})
"""Metrics of a front in which memory counts."""
FREE_OF_TERMS = frozenset(
    {"throughput", "throughput_per_watt", "energy_delay", "area", "power", "energy"}
)
"""What no price, lifetime or grid counts in."""


def space_digest(space: Mapping[str, Any]) -> str:
    """The digest of what a space is, whatever its chips are called: axes, rules, and all that is
    said of its chips."""
    chips = [
        None
        if chip is None
        else {key: value for key, value in chip.items() if key not in ("name", "title")}
        for chip in (space["base"], space.get("area_chip"))
    ]
    return digest_of([chips, *(space.get(key) for key in ("axes", "tied", "core_buffers", "keep"))])


def graphs_digest(model: Mapping[str, Any]) -> str:
    """The digest of a model's graphs: widths, microbatches, sequence and traces."""
    return digest_of(model["graphs"])


def network_digest(training: Mapping[str, Any]) -> str:
    """The digest of what the levels of the network are, whatever they are called and however many
    they join, and of the library that runs collectives on them."""
    apart, cluster = ("name", "size", "shape"), training["machine"]["cluster"]
    levels = [
        {key: value for key, value in level.items() if key not in apart}
        for level in cluster["levels"]
    ]
    return digest_of([cluster.get("library", "any"), *levels])


def stack_digest(stack: Mapping[str, Any]) -> str:
    """The digest of what a software stack does, whatever it is called."""
    return digest_of({key: value for key, value in stack.items() if key not in ("name", "title")})


def _constants(constants: Mapping[str, Any], residency: Any) -> str:
    """What chips are said to reach, every value of it."""
    kernels = constants["attention"]
    own = {
        key: value
        for key, value in constants.items()
        if key not in ("basis", "attention") and value is not None
    }
    shown = ", ".join(f"{key} {value!r}" for key, value in own.items())
    timed = "" if kernels is None else f", measured attention kernels ({digest_of(kernels)[:12]})"
    return (
        f"{constants['basis']}, "
        f"{shown}{timed}{'' if residency is True else ', nothing stays in the global buffer'}"
    )


def _terms(problem: Mapping[str, Any]) -> list[str]:
    """Whose prices and lifetimes count, where anything depends on them."""
    front, keep = problem.get("front", {"of": [], "within": {}}), problem["space"]["keep"]
    asked = {*front["of"], *front["within"], str(problem["objective"]["kind"])} - FREE_OF_TERMS
    if not asked and keep.get("most_usd") is None:
        return []
    return [f"ownership   {_known(digest_of(problem['ownership']), TERMS, 'terms')}"]


def _known(digest: str, table: Mapping[str, str], name: str) -> str:
    own = table.get(digest)
    return (
        f"{own}, as bundled"
        if own is not None
        else f"{name!r}, not one that is bundled ({digest[:12]})"
    )


def other_graphs(model: Mapping[str, Any]) -> str:
    """What is said of a model whose graphs are in no table here: that of a bundled name at other
    sizes, or any other; the tables have a bundled model's graphs at the sizes of a search with
    everything at its default."""
    return (
        f"{model['name']!r}, not a bundled model at its default sizes ({graphs_digest(model)[:12]})"
    )


def plan_graphs(model: Mapping[str, Any]) -> str:
    """What is said of the model of a plan, whose graphs no table here has."""
    count, digest = len(model["graphs"]), graphs_digest(model)[:12]
    return f"{model['name']!r} ({count} graphs, {digest}, not compared with bundled ones)"


def _model_name(model: Mapping[str, Any]) -> str:
    own = GRAPHS.get(graphs_digest(model))
    return other_graphs(model) if own is None else f"{own}, as bundled"


def _listed(values: Iterable[Any]) -> str:
    return ", ".join(map(str, sorted(values)))


def _sizes(values: list[int]) -> str:
    return ", ".join(f"{value / 2**30:g}" for value in values) + " GiB"


def _axis(name: str, values: list[float]) -> str:
    return f"{name} {values[0]:g} to {values[-1]:g} ({len(values)})"


def _level(level: Mapping[str, Any]) -> str:
    """A level of a network: how many it joins, how, at what rate."""
    shape = "x".join(map(str, level["shape"])) if level.get("shape") else level["size"]
    return f"{level['kind']} of {shape} at {level['bandwidth_bytes_per_s'] / 1e9:.4g} GB/s"


def _model_words(
    model: Mapping[str, Any], models: int, residency: Any, named: str | None = None
) -> list[str]:
    """What is said of a model of the problem; ``named``: where no table has its graphs."""
    training = model["training"]
    stack, level = training["machine"]["stack"], training["machine"]["cluster"]
    widths = {graph["tensor"] for graph in model["graphs"]}
    microbatches = {graph["microbatch"] for graph in model["graphs"]}
    recompute = {way["recompute"] for way in model["configurations"]}
    sequences = {graph["sequence"] for graph in model["graphs"]}
    degrees = [f"{key} {_listed({g.get(key, 1) for g in model['graphs']})}, " for key in ("context",
    "expert")
               if any(key in g for g in model["graphs"])]  # fmt: skip
    speed = ", ".join(_level(one) for one in level["levels"])
    weight = "" if models == 1 else f", weight {model['weight']:g}"
    return [
        f"model       {named or _model_name(model)}{weight}; sequence "
        f"{_listed(sequences)}, "
        f"{_listed({graph['attention'] for graph in model['graphs']})} attention"
        f"{'' if model['part'] == 'model' else ', its most repeated layer alone'}",
        f"job         {training['devices']:,} devices, {training['batch']:,} sequences a "
        "batch, microbatches "
        f"{_listed(microbatches)}, TP {_listed(widths)}, {''.join(degrees)}recompute "
        f"{_listed(recompute)}, "
        f"{training['optimizer']}, {training['precision']}, ZeRO "
        f"{_listed(training['zeros'])}, chunks "
        f"{'any' if training['chunks'] is None else _listed({1, *training['chunks']})}, headroom "
        f"{training['headroom']:g}",
        f"network     {_known(network_digest(training), NETWORKS, level['name'])}: {speed}",
        f"software    {_known(stack_digest(stack), STACKS, stack['name'])}: schedule "
        f"{stack['schedule']}, pipelines "
        f"{', '.join(stack['families'])}, fusion {stack['fusion']} (as the certificate "
        "lists it; neither tracing nor "
        "the choice of what is fused is derived here)",
        f"constants   {_constants(training['constants'], residency)}",
    ]


def words_of(problem: Mapping[str, Any], certificate: Mapping[str, Any], chips: str) -> list[str]:
    """The claim, a line each; every value of it is read from the problem that the certificate is
    bound to."""
    space, objective = problem["space"], problem["objective"]
    axes = ", ".join(_axis(name, values) for name, values in space["axes"].items())
    lines = [
        f"space       {_known(space_digest(space), SPACES, space['name'])}: {chips}; {axes}",
        f"memories    {_sizes(problem['hbm_bytes'])}",
    ]
    for model in problem["models"]:
        lines += _model_words(model, len(problem["models"]), problem["residency"])
    lines += _terms(problem)
    of = OBJECTIVES(objective["kind"]) or objective["kind"]
    mean = f", {objective['mean']} mean over models"
    if objective["mean"] == "regret":
        mean = ", the most of any model relative to its own best chip,"
    mean = "" if len(problem["models"]) == 1 else mean
    share = f"{100 * certificate['gap']:.4g} %"
    if "front" in problem:
        return [*lines, *_front_words(problem["front"], certificate, mean, share)]
    what = "chip, memory and plan" if objective["kind"] == "throughput" else FASTEST
    lines.append(
        f"claim       no {what} has fewer {of}{mean} than "
        f"{certificate['best']!r} by more than {share}"
    )
    return lines


def plan_words(problem: Mapping[str, Any], certificate: Mapping[str, Any]) -> list[str]:
    """The claim of a plan."""
    chip, model = problem["chip"], problem["models"][0]
    measured, held = model["training"]["constants"]["clock_hz"], chip["clock_hz"]
    clock = f"{(measured or held) / 1e9:.4g} GHz, {'measured' if measured else 'held'}"
    rest = (
        f"{_sizes(problem['hbm_bytes'])}, {clock}; {model['training']['constants']['basis']} "
        "constants"
    )
    requested = [
        f"{key} {_values(value)}" for key, value in sorted(problem.get("restricted", {}).items())
    ]
    among = f"among those requested ({'; '.join(requested)}) " if requested else ""
    return [
        f"chip        {_known(digest_of(chip), CHIPS, chip['name'])}: {rest}",
        *_model_words(model, 1, problem["residency"], plan_graphs(model)),
        f"claim       {among}no plan with these microbatches, widths, recompute, stages "
        "of ZeRO and chunks, any "
        f"stages, replicas and cuts, takes less than {certificate['best']!r} s a batch",
    ]


def _values(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _front_words(
    front: Mapping[str, Any], certificate: Mapping[str, Any], mean: str, share: str
) -> list[str]:
    """The claim of a front."""
    proved = certificate.get("limits", {})
    limits = []
    for name, value in front["within"].items():
        side = "least" if name == "throughput" else "most"
        mean_of = f" (a mean of at most {proved[name]!r})" if name in proved else ""
        limits.append(f"{name} at {side} {value:g}{mean_of}")
    designs = certificate["front"]
    count = len(designs) if isinstance(designs, list) else 0
    runs = [name for name in front["of"] if name in ("throughput", "energy", "cost", "carbon")]
    what = FASTEST if set(runs) - {"throughput"} else "chip, memory and plan"
    if what == FASTEST and not {*front["of"], *front["within"]} & OF_MEMORY:
        what = f"{FASTEST}, each chip with the most memory that it may have,"
    by = f", {' and '.join(runs)} by more than {share}," if runs else ""
    weighed = (
        f"front       {', '.join(front['of'])}{mean}; within "
        f"{', '.join(limits) or 'no limits'}; {count:,} designs"
    )
    if certificate["gap"] >= 1:
        return [weighed, "claim       these designs can be had; of others nothing is claimed"]
    return [
        weighed,
        f"claim       no {what} within the limits is better in one of "
        f"these{by} without being worse in "
        "another, than every design of the front",
    ]


def larger_words(answered: Sequence[str], lines: Sequence[str]) -> list[str]:
    """The claim of a run's answer against another space, from what is claimed of either."""
    space = answered[0].partition(" ")[2].strip()
    other = lines[0].partition(" ")[2].strip()
    return [f"answer of   {space}", f"against     {other}", *lines[1:]]
