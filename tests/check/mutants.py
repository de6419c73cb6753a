"""python -m tests.check.mutants [NUMBER ...]: faults of one line in the checker, each found by
tests of every day.

Every mutant changes one line of a copy of ``src/phaze/check``; the tests that it names must fail on
that copy.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "phaze"
CHECK, PLACEMENT = "tests/check/", "tests/placement/"
LIES = f"{CHECK}test_plan_lies.py"
FIELDS = f"{CHECK}test_plan_fields.py"
EVERY_PLAN = f"{FIELDS}::test_the_checker_agrees_with_every_plan"
SPLITS = f"{PLACEMENT}test_split_families.py"
EVENTS = f"{PLACEMENT}test_events.py"
TRANSFERS = f"{PLACEMENT}test_transfers.py"
SLOTS = f"{CHECK}test_schedule_lies.py"
CORES = f"{CHECK}test_agreement.py"
CLUSTERS = f"{CHECK}test_cluster_agreement.py"
PLANS = f"{CLUSTERS}::test_plans_take_what_phaze_says_and_no_bound_is_above_the_best"
PLACEMENTS = f"{CORES}::test_placements_take_what_phaze_says"
EXPERTS = "tests/cost/test_experts_apart.py"
EQUAL = f"{CORES}::test_equal_blocks_and_several_first_layers_are_bounded_as_published"
DEGREES = f"{CORES}::test_the_best_number_of_replicas_is_found_however_long_they_synchronise"
PASSES = f"{CHECK}test_pass_agreement.py"
FORGERIES = f"{CHECK}test_forgeries.py"
VALUES = f"{CHECK}test_values.py"
REGRET = f"{CHECK}test_regret.py"
OF_EVERY_KIND = "::test_a_run_of_every_kind_holds_and_changed_ones_do_not"
BOXES = f"{CHECK}test_boxes.py::test_no_operator_takes_less_on_a_chip_than_on_a_box_around_it"
CLUSTER_BOXES = (
    f"{CHECK}test_cluster_boxes.py::test_no_chip_of_clusters_is_better_than_a_box_around_it"
)
BOX_PRICES = f"{CHECK}test_box_objectives.py::test_no_chip_takes_less_than_a_box_around_it"


@dataclass(frozen=True)
class Mutant:
    """A line of a file of the checker, what stands there instead, and tests that see it."""

    file: str
    old: str
    new: str
    tests: tuple[str, ...]


MUTANTS = (
    # the price of a plan
    Mutant(
        "pricing.py",
        "return fsum(waits) - min(hidden * fsum(waits), whole)",
        "return fsum(waits) - hidden * fsum(waits)",
        (EVERY_PLAN,),
    ),
    Mutant(
        "pricing.py",
        '"bubble_s": self.pipeline - rounds * stage.time,',
        '"bubble_s": self.pipeline - rounds * stage.passes[0],',
        (LIES,),
    ),
    Mutant(
        "pricing.py",
        "if any(owner[tail] > owner[head] for",
        "if any(owner[tail] > owner[head] + 1 for",
        (LIES,),
    ),
    Mutant(
        "stages.py",
        "ahead = np.maximum(ahead, size / link + np.array(after, float) @ forward)",
        "ahead = np.maximum(ahead, size / link + counts @ forward)",
        (EVERY_PLAN,),
    ),
    Mutant(
        "pricing.py",
        "longest = int(np.argmax(seconds + steps))",
        "longest = int(np.argmax(steps))",
        (EVERY_PLAN,),
    ),
    Mutant(
        "pricing.py",
        "counted = stages[:1] if job.stack.first_end else stages",
        "counted = stages",
        (EVERY_PLAN,),
    ),
    Mutant(
        "pricing.py",
        'may = ("none",) if at == shape.stages - 1 and not job.stack.last_recomputes else modes',
        "may = modes",
        (LIES,),
    ),
    Mutant(
        "plans.py",
        '"in_flight": np.asarray((flying - 1) * self.kept),',
        '"in_flight": np.asarray(flying * self.kept),',
        (LIES,),
    ),
    Mutant(
        "plans.py",
        "if head in inside and tail not in inside\n",
        "if head in inside\n",
        (EVERY_PLAN,),
    ),
    Mutant(
        "plans.py", "return (family.chunks - 1) * once", "return family.chunks * once", (TRANSFERS,)
    ),
    Mutant(
        "plans.py",
        "return np.asarray(waited), np.asarray((1 - shown) * np.minimum(work, sent))",
        "return np.asarray(waited), np.asarray((1 - shown) * sent)",
        (TRANSFERS,),
    ),
    Mutant(
        "job.py",
        "updated, cleared = shard if shape.zero >= 1 else whole, shard if shape.zero >= 2 else whole",
        "updated, cleared = shard if shape.zero >= 2 else whole, shard if shape.zero >= 2 else whole",
        (EVERY_PLAN,),
    ),
    Mutant(
        "job.py",
        "others = np.maximum(0.0, (size[0] + size[1]) / piece - 1.0) if piece else 0.0",
        "others = np.maximum(0.0, (size[0] + size[1]) / piece) if piece else 0.0",
        (EVERY_PLAN,),
    ),
    Mutant(
        "job.py",
        "each = [job.held.wire] * (shape.zero >= 2) + [low] * (shape.zero >= 3)",
        "each = [job.held.wire] * (shape.zero >= 2)",
        (EVERY_PLAN,),
    ),
    Mutant(
        "job.py",
        "follows = max(once, last) + others * late",
        "follows = once + others * late",
        (EVERY_PLAN,),
    ),
    Mutant(
        "job.py",
        "every = every - (1.0 - adds) * np.maximum(every - follows, 0.0)",
        "every = every - np.maximum(every - follows, 0.0)",
        (EVERY_PLAN,),
    ),
    Mutant(
        "job.py",
        "rounds = (1.0 + (chunks - 1.0) * shape.stages) / chunks",
        "rounds = 1.0 + (chunks - 1.0) * shape.stages",
        (f"{FIELDS}::test_the_checker_agrees_where_chunks_lengthen_the_window_of_a_reduction",),
    ),
    Mutant(
        "job.py",
        "members = strided(job.network, [(1, shape.width * shape.stages * shape.data)])",
        "members = strided(job.network, [(1, shape.width * shape.data)])",
        (EVERY_PLAN,),
    ),
    Mutant(
        "job.py",
        "return max(self.bytes, min(chunk, bucket * job.held.sent))",
        "return max(self.bytes, chunk)",
        (EVERY_PLAN,),
    ),
    Mutant(
        "families.py",
        "return float(stages > 1)",
        "return 0.0",
        (EVERY_PLAN,),
    ),
    Mutant(
        "pricing.py",
        "filled += fsum(stage.unmet for stage in stages)",
        "filled += 0.0",
        (EVERY_PLAN,),
    ),
    Mutant(
        "pricing.py",
        "behind += alone * unmet",
        "behind += unmet",
        (EVERY_PLAN,),
    ),
    Mutant("job.py", "ends = starts + 2 * wide - 1", "ends = starts + wide - 1", (EVERY_PLAN,)),
    Mutant(
        "families.py",
        (
            "return min(float(rounds), (2 * (number - 1) + (self.chunks - 1) * stages + 1) / "
            "self.chunks)"
        ),
        "return min(float(rounds), (2 * number + (self.chunks - 1) * stages + 1) / self.chunks)",
        (LIES,),
    ),
    Mutant(
        "families.py",
        "(0, 1, 0), (0, 2, -2), (0, e, 1 - e)",
        "(0, 1, 0), (0, 2, -1), (0, e, 1 - e)",
        (SPLITS,),
    ),
    # a plan as it is printed
    Mutant(
        "printed.py",
        "return is_number and abs(stated - true) <= TOLERANCE * abs(true)",
        "return is_number and stated - true <= TOLERANCE * abs(true)",
        (FIELDS, LIES),
    ),
    Mutant(
        "printed.py",
        'if not 0 <= self.document["lower_bound_s"] <= price.batch * (1 + TOLERANCE):',
        'if not self.document["lower_bound_s"] <= price.batch * (1 + TOLERANCE):',
        (LIES,),
    ),
    Mutant(
        "printed.py",
        'if self.document["feasible"] and most > there * (1 + ROUNDING + TOLERANCE):',
        'if self.document["feasible"] and most > there * (2 + ROUNDING + TOLERANCE):',
        (LIES,),
    ),
    Mutant("printed.py", "if used > self.job.devices:", "if used > 2 * self.job.devices:", (LIES,)),
    Mutant(
        "events.py",
        "lead = count - stage if chunks == 1 else",
        "lead = count if chunks == 1 else",
        (EVENTS,),
    ),
    Mutant(
        "events.py",
        "around = to == (self.count - 1 if which else 0)",
        "around = to == 0",
        (TRANSFERS,),
    ),
    # schedules
    Mutant(
        "slots.py",
        "if (a.network or not a.uses) and (b.network or not b.uses):",
        "if not a.uses and not b.uses:",
        (SLOTS,),
    ),
    Mutant(
        "slots.py",
        "if self.runs[then].start < self.runs[first].end - slack:",
        "if self.runs[then].start < self.runs[first].start - slack:",
        (SLOTS,),
    ),
    Mutant(
        "slots.py", "if bound > makespan * (1 + TOLERANCE):", "if bound > 2 * makespan:", (SLOTS,)
    ),
    Mutant(
        "schedules.py",
        "bound = np.minimum(bound, times.one[unit] * weight)",
        "bound = times.one[unit] * weight",
        (CORES,),
    ),
    Mutant(
        "schedules.py",
        "spread = 1.0 if schedules.rule.alone else chained + sum(share for _, share in shares)",
        "spread = 1.0",
        (CORES,),
    ),
    Mutant(
        "schedules.py",
        "if all(order.ordered(unit, other) for other in some):",
        "if any(order.ordered(unit, other) for other in some):",
        (CORES,),
    ),
    Mutant(
        "schedules.py",
        "if not all(order.ordered(a, b) for a, b in pairwise(some)):",
        "if not some:",
        (CORES,),
    ),
    Mutant(
        "core_paths.py",
        "held = range(len(KINDS)) if chip.rule.alone else chip.kinds[place]",
        "held = chip.kinds[place]",
        (CORES,),
    ),
    Mutant(
        "core_paths.py", "start = max(start, free[kind][0])", "start = free[kind][-1]", (CORES,)
    ),
    Mutant(
        "completions.py",
        "return np.maximum(job.stack.sharding * waits, waits - work)",
        "return np.maximum(0.0 * waits, waits - work)",
        (PLANS,),
    ),
    Mutant(
        "exact_cuts.py",
        "counts_end = number == row.stages or not first_end",
        "counts_end = number > 0",
        (PLANS,),
    ),
    Mutant(
        "exact_cuts.py",
        "pace = table.least_pace(number - 1, needed - so_far)[after, np.arange(len(after))]",
        "pace = table.least_pace(number - 1, 0 * so_far)[after, np.arange(len(after))]",
        (PLANS,),
    ),
    Mutant(
        "plans.py",
        "if graph.equal and not job.stack.all_recompute:",
        "if graph.equal:",
        (PLANS,),
    ),
    Mutant(
        "plan_classes.py",
        "alike = self.graph.group == 1 and set(self.zeros) == {0}",
        "alike = self.graph.group == 1",
        (PLANS,),
    ),
    # the network
    Mutant(
        "network.py",
        'rounds, share = 2.0 if kind == "all_reduce" else 1.0, (n - 1) / n',
        'rounds, share = 2.0 if kind == "all_reduce" else 1.0, n / (n + 1)',
        (CLUSTERS,),
    ),
    Mutant(
        "network.py",
        "range(stride, min(size, stride * count) + 1, stride)",
        "range(0, min(size, stride * count) + 1, stride)",
        (EVERY_PLAN, CLUSTERS),
    ),
    # products, boxes, bounds
    Mutant(
        "mappings.py",
        "np.where(8.0 * made <= side.sums, 0.0, drain)",
        "np.where(4.0 * made <= side.sums, 0.0, drain)",
        (CLUSTERS,),
    ),
    Mutant(
        "mappings.py",
        "while 2 * gn * gm <= group and 2 * gn <= multicast:",
        "while 2 * gn * gm <= group:",
        (CORES,),
    ),
    Mutant(
        "products.py",
        "busy = (work + parts.fill * (1.0 + drains_a_wave * waves)) / parts.array_rate",
        "busy = (work + parts.fill * (2.0 + drains_a_wave * waves)) / parts.array_rate",
        (CORES, CLUSTERS),
    ),
    Mutant(
        "products.py",
        "return self.latency + 2 * self.least_rows + self.least_columns - 2",
        "return self.latency + 2 * self.rows + self.columns - 2",
        (BOXES, CLUSTER_BOXES),
    ),
    # experts that have a kernel each
    Mutant(
        "works.py",
        "a, b, c = ((size * (1.0 / self.batch), need) for size, need in (self.a, self.b, self.c))",
        "a, b, c = ((size, need) for size, need in (self.a, self.b, self.c))",
        (EXPERTS,),
    ),
    Mutant(
        "operators.py",
        "kernels = p.experts * (2 if p.bits < 16 else 1)",
        "kernels = p.experts",
        (EXPERTS,),
    ),
    Mutant(
        "operators.py",
        "total = np.maximum(total, self._vector(work.lanes)[0])",
        "total = total + self._vector(work.lanes)[0]",
        (FORGERIES,),
    ),
    Mutant(
        "plan_bounds.py",
        "return np.asarray(laps * pace + share * costs.filled + ends)",
        "return np.asarray(laps * pace + costs.filled + ends)",
        (PLANS,),
    ),
    Mutant(
        "boxes.py",
        "share = 1 / (made.built_share + 1 / made.spare_every)",
        "share = 0.5 / (made.built_share + 1 / made.spare_every)",
        (BOXES, CLUSTER_BOXES),
    ),
    Mutant(
        "boxes.py",
        "ports = np.maximum(2.0 * top.global_width, top.clusters)",
        "ports = np.maximum(top.global_width, top.clusters)",
        (CLUSTER_BOXES,),
    ),
    Mutant(
        "silicon.py",
        "tile = np.maximum(high.sums / 8.0, macs)",
        "tile = np.maximum(low.sums / 8.0, macs)",
        (CLUSTER_BOXES,),
    ),
    Mutant("silicon.py", "share = np.minimum(flat, tall)", "share = flat", (BOX_PRICES,)),
    Mutant(
        "silicon.py",
        "square = volts_of(low.clock, made) ** 2",
        "square = volts_of(chips.clock, made) ** 2",
        (BOX_PRICES,),
    ),
    Mutant(
        "silicon.py",
        "leaking = made.leakage_w_per_mm2 * low.area",
        "leaking = made.leakage_w_per_mm2 * areas_of(chips, made).total",
        (BOX_PRICES,),
    ),
    Mutant(
        "boxes.py",
        "slowest = np.maximum(slowest, LEAST_SHARE * bottom.clock) * LEAST",
        "slowest = np.maximum(slowest, 0.9 * bottom.clock) * LEAST",
        (BOX_PRICES,),
    ),
    Mutant(
        "boxes.py",
        "return drawn_of(replace(most, area=area), bottom, grid.made).power()",
        "return drawn_of(bottom, bottom, grid.made).power()",
        (BOX_PRICES,),
    ),
    Mutant(
        "limits.py",
        "return np.maximum(watts, np.minimum(self.sustained_w, power.watts(rated)))",
        "return np.maximum(watts, power.watts(rated))",
        (BOX_PRICES,),
    ),
    Mutant(
        "products.py",
        "return self.unit_rate / self.array_rate",
        "return 0.5 * self.unit_rate / self.array_rate",
        (BOX_PRICES,),
    ),
    # plans exactly, and what bounds them under the published rules
    Mutant(
        "completions.py",
        "better = fits[stage][:, None] & (first + last < waited)",
        "better = whole_chunks[stage][:, None] & (first + last < waited)",
        (CLUSTERS,),
    ),
    Mutant(
        "completions.py",
        "slower = np.maximum(seconds[:, None, :], self.pace[-1][sets.after[:, None], columns])",
        "slower = np.maximum(seconds[:, None, :], self.pace[-1][sets.before[:, None], columns])",
        (PLACEMENTS,),
    ),
    Mutant(
        "exact_cuts.py",
        "seconds = family.laps(rounds, stages) * pace + ends",
        "seconds = rounds * pace + ends",
        (PLACEMENTS,),
    ),
    Mutant("exact_cuts.py", "most = data - 1", "most = data // 2", (DEGREES,)),
    Mutant(
        "exact_cuts.py",
        "pipeline = laps * max(label[0] + label[1], pace[step])",
        "pipeline = laps * (label[0] + label[1] + pace[step])",
        (CLUSTERS,),
    ),
    Mutant(
        "exact_cuts.py",
        "reached[sets.before[steps]] = True",
        "reached[sets.after[steps]] = True",
        (CLUSTERS,),
    ),
    Mutant(
        "closed_sets.py",
        "if inside and not before[call] & closed_set and smaller not in seen:",
        "if inside and smaller not in seen:",
        (PLACEMENTS,),
    ),
    Mutant(
        "closed_sets.py",
        "unsplit[number] = job.stack.unsplit and graph.width > 1 and not sharded",
        "unsplit[number] = False",
        (PLACEMENTS,),
    ),
    Mutant(
        "closed_sets.py",
        "if closed_set >> head & 1 and not closed_set >> tail & 1\n",
        "if closed_set >> head & 1\n",
        (CLUSTERS,),
    ),
    Mutant(
        "closed_sets.py",
        "live.append(max(size for _, size in rows))",
        "live.append(0.0)",
        (CLUSTERS,),
    ),
    Mutant(
        "plan_classes.py",
        "return (0,)\n        names, stack",
        "return self.modes\n        names, stack",
        (PLACEMENTS,),
    ),
    Mutant(
        "plan_classes.py",
        "stages = [[call] for call in sources] if row.stages > 1 else",
        "stages = [[call] for call in sources[:1]] if row.stages > 1 else",
        (EQUAL,),
    ),
    Mutant(
        "row_costs.py",
        "waited = np.maximum(recomputed, moved) if job.stack.arriving else recomputed + moved",
        "waited = recomputed + moved",
        (EQUAL,),
    ),
    Mutant(
        "plan_bounds.py",
        "shared = costs.slowdown * costs.layers / (row.stages + spared * (costs.slowdown - 1.0))",
        "shared = costs.slowdown * costs.layers / row.stages",
        (PLACEMENTS,),
    ),
    Mutant(
        "plan_bounds.py",
        "time_left = left + costs.boundary if mode and space.job.stack.arriving else left",
        "time_left = left",
        (EQUAL,),
    ),
    Mutant("plan_bounds.py", "if not space.parts.unsplit:", "if space.graph.width:", (PLACEMENTS,)),
    Mutant("job.py", "FLAT_REDUCTION = 4.0", "FLAT_REDUCTION = 2.0", (PLACEMENTS,)),
    # a model
    Mutant(
        "model.py",
        'return self._paired if self.rule.paired and work.core == "both" else self._spread',
        "return self._spread",
        (FORGERIES,),
    ),
    Mutant(
        "orders.py",
        "if all(before[later] & seen == seen for later in nodes[position + 1 :]):",
        "if any(before[later] & seen == seen for later in nodes[position + 1 :]):",
        (CORES, PASSES),
    ),
    Mutant(
        "pass_units.py",
        "return {product for product in matrix - joined if inputs & reads[product]}",
        "return {product for product in matrix if inputs & reads[product]}",
        (PASSES,),
    ),
    # what runs take beside time
    Mutant(
        "silicon.py",
        "filled = 0.0 * each if made.port_fills else joules.across",
        "filled = 0.0 * each",
        (f"{VALUES}{OF_EVERY_KIND}[joules]",),
    ),
    Mutant(
        "plan_energy.py",
        "total += 2 * (len(tie.calls) - 1) * job.held.sent * tie.elements",
        "total += (len(tie.calls) - 1) * job.held.sent * tie.elements",
        (f"{VALUES}{OF_EVERY_KIND}[joules]",),
    ),
    Mutant(
        "plan_bounds.py",
        "np.where(below[number] & (bound > least), np.inf, bound)",
        "np.where(below[number], np.inf, bound)",
        (f"{VALUES}::test_no_other_chip_is_the_answer_where_joules_count",),
    ),
    Mutant(
        "energy.py",
        "np.where(self.open, self.seconds(rates, joules), 0.0).max(axis=0)",
        "np.where(self.open, self.seconds(rates, joules), np.inf).min(axis=0)",
        (f"{VALUES}{OF_EVERY_KIND}[seconds and joules]",),
    ),
    Mutant(
        "fronts.py",
        "above = (point[:, None] < corners).all(axis=0)",
        "above = (point[:, None] < corners).any(axis=0)",
        (f"{VALUES}::test_a_value_is_below_a_corner_where_no_design_covers_it",),
    ),
    Mutant(
        "verdict.py",
        "_prove_alone(run, grid, space, model, value * (1 - verdict.gap), lend)",
        "_prove_alone(run, grid, space, model, 0.5 * value, lend)",
        (REGRET,),
    ),
    # claims
    Mutant(
        "verdict.py",
        "require(abs(bound - best * (1 - verdict.gap)) <= NEAR * best,",
        "require(bound - best * (1 - verdict.gap) <= NEAR * best,",
        (FORGERIES,),
    ),
)


def _copy(mutant: Mutant, folder: Path) -> None:
    """The package with one line of its checker changed; all else are links."""
    package = folder / "phaze"
    package.mkdir()
    for path in SOURCE.iterdir():
        if path.name not in ("check", "__pycache__"):
            (package / path.name).symlink_to(path)
    shutil.copytree(
        SOURCE / "check", package / "check", ignore=shutil.ignore_patterns("__pycache__")
    )
    path = package / "check" / mutant.file
    text = path.read_text(encoding="utf-8")
    assert text.count(mutant.old) == 1, (
        f"{mutant.file}: '{mutant.old}' stands there {text.count(mutant.old)} times"
    )
    path.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")


def dies(mutant: Mutant) -> bool:
    """Whether some of its tests fails."""
    with tempfile.TemporaryDirectory() as folder:
        _copy(mutant, Path(folder))
        environment = {**os.environ, "PYTHONPATH": folder, "PYTHONDONTWRITEBYTECODE": "1"}
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-x",
            "-n",
            "0",
            "-p",
            "no:cacheprovider",
            *mutant.tests,
        ]
        ended = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
        )
    assert ended.returncode in (0, 1), ended.stdout[-2000:] + ended.stderr[-2000:]
    return ended.returncode == 1


def main() -> int:
    """Every mutant, or those of these numbers."""
    chosen = [int(number) for number in sys.argv[1:]] or range(len(MUTANTS))
    alive = 0
    for number in chosen:
        mutant = MUTANTS[number]
        dead = dies(mutant)
        alive += not dead
        sys.stdout.write(
            f"{number:3} {mutant.file:14} {'dies' if dead else 'LIVES'}  {mutant.new}\n"
        )
        sys.stdout.flush()
    return int(alive > 0)


if __name__ == "__main__":
    sys.exit(main())
