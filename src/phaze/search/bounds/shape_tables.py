r"""The shapes of a model on a cluster, on no chip: what fits, and what every plan of a shape takes
at the least.

A shape is a width t, a depth S, d replicas and an order, under a stage of ZeRO z and a pipeline
family. What depends on no chip is tabled once for a graph, a recompute choice and a memory
(:mod:`phaze.search.bounds.shape_rows` has the degrees), with w_S = max(W / S, largest layer,
ceil(n_k / S) w_k) a size that some stage reaches (W all parameters, n_k layers of kind k, w_k the
bytes of one; one of S stages holds ceil(n_k / S) of them):

    laps, sums   alpha and beta of the family: m - 1/v and 1/v, under icml24 m + S - 1 and 0; where
                 backward passes are split m and 0, as what they count beside the slowest stage is
                 no less than nothing
    ends         (1 - h) sync_d(w_S), and Y where tied layers lie at both ends of a chain; where E
                 is that of the first stage, of the least that one has
    step         optimizer bytes of w_S, shared by the replicas under ZeRO
    again        fewest layers recomputed over all cuts into S stages that fit at z
                 (:func:`fewest_again`)

There are two kinds of tables:

    all families   the shape with the most chunks v that S stages can have where S divides m, at the
                   prices of one chunk: as all stages together take no less than the longest, more
                   chunks count less
    one family     its own terms; and for one depth S the stages whose blocks v divides, up to the
                   number at which they fit with the most replicas of S stages, and with the
                   microbatches that are then in flight

Plans of a family are distinguished by their largest stage: class i has one above g_(i-1) and at
most g_i bytes of parameters, so ends and step count its least such size, and its cuts hold no
larger stage. Replicas with equal laps and order count with the least of each. More replicas never
need more memory, nor do fewer microbatches in flight, so what fits at depth S is tried with the
most replicas that it can have.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from phaze.pipeline.family import Family
from phaze.placement.cut_sets import is_chain
from phaze.placement.prepared_width import (
    Width,
    in_flight_of,
    inside,
    prepared,
    room_of,
    stages_of,
    whole_blocks,
)
from phaze.placement.problem import PlacementProblem
from phaze.placement.shortage import something_fits
from phaze.placement.stage_kernels import StageTable
from phaze.search.bounds import shape_rows
from phaze.search.bounds.fitting_kernels import fewest_again, highest_numbers, unbeaten_rows
from phaze.search.bounds.shape_kernels import Shapes, Stages
from phaze.search.bounds.shape_rows import ShapeRows, all_degrees, chunk_seconds, most_replicas
from phaze.search.bounds.stage_sizes import first_bytes, priced_sizes, reached_bytes, stage_sizes
from phaze.search.problem import pattern_of
from phaze.search.rank_graph import RankGraph
from phaze.search.task import Configuration, ModelTask

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
# Finer classes bound the end of a batch better, and each costs a look. The largest stage of a good
# plan is hardly larger than it must be, so half of the classes hold one size each.
CLASSES = 24
# Columns of a shape beside those by class: laps, sums, moves, move, waits, again, pattern.
PLAIN, AGAIN = 7, 5


@dataclass(frozen=True, slots=True)
class ShapeTables:
    """What a graph takes on no chip: its shapes over all families, how many layers of each kind it
    has, which repeat; and those of one family, made when they are requested, as are the stages of a
    depth."""

    shapes: Shapes
    numbers: Integers
    repeated: Floats
    terms: "ShapeTerms"
    shapes_of_depth: dict[tuple[Family, int], Shapes] = field(default_factory=dict, compare=False)
    cut: dict[tuple[Family, int], Stages] = field(default_factory=dict, compare=False)

    def families(self, depth: int) -> Iterator[tuple[Family, Shapes]]:
        """Every family and its shapes of one depth."""
        for family in self.terms.families:
            key = (family, depth)
            if key not in self.shapes_of_depth:
                self.shapes_of_depth[key] = self.terms.shapes_of(family, depth)
            yield family, self.shapes_of_depth[key]

    def stages(self, family: Family, depth: int) -> Stages:
        """The stages of a family and depth."""
        key = (family, depth)
        if key not in self.cut:
            self.cut[key] = self.terms.stages_of(family, depth)
        return self.cut[key]


@dataclass(frozen=True, slots=True)
class ShapeTerms:
    """What the tables of a configuration and a memory have in common.

    ``reached`` is w_S by depth, ``first`` what a first stage has at the least where its end counts
    alone, ``again`` by depth, -1 where nothing fits; ``tied_s`` is Y by level.
    """

    task: ModelTask
    graph: RankGraph
    problem: PlacementProblem
    width: Width
    table: StageTable
    rows: ShapeRows
    reached: Floats
    first: float | None
    again: Integers
    tied_s: Floats
    counted: bool

    @property
    def families(self) -> tuple[Family, ...]:
        """The pipeline families that the blocks allow."""
        blocks = self.width.blocks
        return tuple(
            f
            for f in self.problem.rules.families
            if f.chunks == 1 or (blocks and blocks % f.chunks == 0)
        )

    def fills(self, stages: int) -> Floats:
        """By degree of a depth, the least beta of any family: 1/v of the most chunks that stages
        with as many blocks at the least can have, nothing where backward passes are split."""
        rounds = self.rows.at(stages).rounds
        fills = np.ones(len(rounds))
        for family in self.families:
            if family.chunks == 1 or family.chunks * stages <= self.width.blocks:
                least = np.minimum(fills, 0.0 if family.split else family.fill)
                fills = np.where(family.runs(rounds, stages), least, fills)
        return fills

    def classes(self, sizes: Floats, stages: int) -> tuple[Floats, Floats]:
        """The greatest and the least size of a largest stage of each class of a depth, ascending,
        of the sizes of its stages; the last are empty if there are few."""
        sizes = sizes[sizes >= self.reached[stages] * (1 - 1e-12)]
        half = CLASSES // 2
        ends = np.arange(1, len(sizes) + 1)
        if len(sizes) > CLASSES:
            ends = np.unique(
                np.append(ends[:half], np.geomspace(half, len(sizes), half + 1).astype(np.int64))
            )
        least = sizes[np.append(0, ends[:-1])] if len(ends) else ends
        empty = np.zeros(CLASSES - len(ends))
        return np.append(sizes[ends - 1], empty), np.append(
            least, empty + self.rows.sizes_bytes[-1]
        )

    def terms(self, stages: int, fills: Floats, sizes: Floats) -> Floats:
        """The rows of a depth and of beta by degree, below 0 where there is none, by size of a
        largest stage."""
        degrees, ends, classes = self.rows.at(stages), self.rows.ends[self.problem.zero], len(sizes)
        if self.first is not None:
            sizes = np.full(classes, self.first)
        size_places = np.searchsorted(self.rows.sizes_bytes, sizes * (1 + 1e-12), side="right") - 1
        problem, share = self.problem, self._shared(degrees.replicas)
        stepped = self._stepped(sizes, size_places) / problem.sent_bytes
        some = np.flatnonzero(fills >= 0)
        rows = np.empty((len(some), PLAIN + 2 * classes))
        sums = fills[some]
        rows[:, 0], rows[:, 1] = degrees.rounds[some] - sums, sums
        if self.problem.rules.families[0].pace_stages:
            rows[:, 0], rows[:, 1] = degrees.rounds[some] + stages - 1, 0
        (moves_s, move_s), pattern = self.rows.transfers_s[stages - 1], degrees.pattern[some]
        rows[:, 2], rows[:, 3], rows[:, 6] = moves_s[pattern], move_s[pattern], pattern
        rows[:, 4], rows[:, AGAIN] = (
            ends.waits_s[degrees.members[some]],
            self.again[stages] if self.counted else 0,
        )
        tied_s = (
            self.tied_s[degrees.levels.max(axis=1)][pattern] if stages > 1 else np.zeros(len(some))
        )
        rows[:, PLAIN : PLAIN + classes] = (
            ends.ends_s[degrees.members[some][:, None], size_places] + tied_s[:, None]
        )
        traffic, cleared = problem.optimizer_traffic_bytes, problem.zeroed_bytes
        if problem.zero < 2:
            rows[:, PLAIN + classes :] = (
                stepped * traffic / share[some, None] + sizes / problem.sent_bytes * cleared
            )
        else:
            rows[:, PLAIN + classes :] = stepped * (traffic + cleared) / share[some, None]
        # Replicas of equal laps whose boundaries cross the same levels count as one.
        marks = np.stack([degrees.rounds[some], degrees.pattern[some]])
        turns = np.flatnonzero((np.diff(marks, prepend=-1) != 0).any(axis=0))
        return np.minimum.reduceat(rows, turns, axis=0) if len(some) else rows

    def _stepped(self, sizes: Floats, places: Integers) -> Floats:
        """Bytes of parameters that the optimizer updates on a rank, if there is one replica."""
        if not self.problem.zero:
            return sizes
        stepped = self.rows.stepped_bytes
        return sizes / self.problem.sharing.context if stepped is None else stepped[places]

    def _shared(self, replicas: Integers) -> Floats:
        """By degree, over how many ranks the update is sharded, beside those that share a
        sequence."""
        if not self.problem.zero:
            return np.ones(len(replicas))
        shard, context = self.problem.sharing.shard, self.problem.sharing.context
        return np.full(len(replicas), shard / context) if shard else replicas.astype(np.float64)

    def overall(self, stages: int) -> Floats:
        """The rows of a depth over all families that none beats, whatever fits: ``again`` is left
        to the memory."""
        rows = self.terms(stages, self.fills(stages), self.reached[[stages]])
        rows[:, AGAIN] = 0
        rows[:, PLAIN - 1] = (
            0  # which levels boundaries cross is in the transfers, and counts no further
        )
        return _unbeaten(rows)

    def overall_in_memory(self, rows: Sequence[Floats]) -> Shapes:
        """Those of :meth:`overall` by depth, from 1 on, as far as a depth fits, with the layers
        recomputed."""
        fitting = [
            depth_rows.copy() if fewest >= 0 else depth_rows[:0]
            for depth_rows, fewest in zip(rows, self.again[1:], strict=True)
        ]
        for depth_rows, fewest in zip(fitting, self.again[1:].tolist(), strict=True):
            depth_rows[:, AGAIN] = fewest if self.counted else 0
        return _shapes(fitting, 1)

    def shapes_of(self, family: Family, stages: int) -> Shapes:
        """The shapes of one family and depth."""
        rows, more = [np.empty((0, PLAIN + 2 * CLASSES))] * self.width.depth, family.chunks
        degrees = self.rows.at(stages)
        beyond = family.most_stages and stages > family.most_stages
        if (
            self.again[stages] < 0
            or beyond
            or (more > 1 and not 1 < stages <= self.width.blocks // more)
        ):
            return _shapes(rows, CLASSES)
        sizes = np.unique(whole_blocks(self.table, more).parameter_bytes)
        fills = np.where(
            family.runs(degrees.rounds, stages), 0.0 if family.split else family.fill, -1.0
        )
        shapes = self.terms(stages, fills, self.classes(sizes, stages)[1])
        boundary_s, ends_s = chunk_seconds(self.problem, self.width, family, degrees.levels)
        at_ends = ends_s[shapes[:, PLAIN - 1].astype(np.int64)]
        shapes[:, 2] = more * shapes[:, 2] + 2 * ((stages - 1) * boundary_s + at_ends)
        shapes[:, 3] = more * shapes[:, 3] + boundary_s
        rows[stages - 1] = _unbeaten(shapes)
        return _shapes(rows, CLASSES)

    def stages_of(self, family: Family, depth: int) -> Stages:
        """The stages of one family and depth."""
        width, graph, pairs = self.width, self.graph, whole_blocks(self.table, family.chunks)
        kinds = np.array([graph.calls[layer.id] for layer in width.graph.layers])
        top = np.repeat(np.arange(len(pairs.start) - 1), np.diff(pairs.start))
        inside_cuts = [
            inside(width.cut_sets, (kinds == kind).astype(np.float64))
            for kind in range(len(graph.layers))
        ]
        counts = np.stack([layers[top] - layers[pairs.rest] for layers in inside_cuts], axis=1)
        replicas = most_replicas(self.problem, width, depth)
        rounds = self.problem.rounds(replicas)
        if family.whole_rounds:  # a multiple of the stages
            rounds = -(-rounds // depth) * depth
        room = room_of(self.problem, replicas, width.graph.width, family)
        fits = highest_numbers(pairs, room, in_flight_of(family, rounds, depth, depth))
        levels = self.rows.at(depth).levels
        boundary_s, ends_s = chunk_seconds(self.problem, width, family, levels)
        moves_s = shape_rows.paced_transfers(self.problem, family) * width.moves_s[:-1] + boundary_s
        # By number from the end: the boundary that a stage is entered by.
        crossed = np.pad(levels[:, ::-1], ((0, 0), (1, 1)))
        sizes = (pairs.parameter_bytes, self.classes(np.unique(pairs.parameter_bytes), depth)[0])
        moved = (np.ascontiguousarray(crossed), moves_s, moves_s.min(axis=0), ends_s)
        return Stages(
            pairs.start, pairs.rest, counts, _repeated(graph, self.problem), fits, *moved, *sizes
        )


def _unbeaten(rows: Floats) -> Floats:
    """The rows of a depth that no other one of the same pattern beats."""
    if not len(rows):
        return rows
    ordered = np.ascontiguousarray(rows[np.lexsort((rows.sum(axis=1), rows[:, 0]))])
    return np.asarray(ordered[unbeaten_rows(np.column_stack([ordered, -ordered[:, PLAIN - 1]]))])


def _shapes(rows: Sequence[Floats], classes: int) -> Shapes:
    """Rows by depth, from 1 on, as columns."""
    by_depth = [np.empty((0, PLAIN + 2 * classes)), *rows]
    start, terms = (
        np.cumsum([0, *(len(depth_rows) for depth_rows in by_depth)]).astype(np.int64),
        np.concatenate(by_depth),
    )
    laps, sums, moves_s, move_s, waits_s, again, pattern = np.ascontiguousarray(terms[:, :PLAIN].T)
    by_class = (terms[:, PLAIN : PLAIN + classes].copy(), terms[:, PLAIN + classes :].copy())
    return Shapes(
        start, laps, sums, moves_s, move_s, waits_s, again, pattern.astype(np.int64), *by_class
    )


def _fewest(problem: PlacementProblem, width: Width, table: StageTable) -> Integers:
    """Fewest layers recomputed at every depth, -1 where nothing fits; with one chunk, which needs
    the least memory."""
    depth, by_microbatches = width.depth, dict[tuple[int, int], Integers]()
    recomputed, family = np.full(depth + 1, -1, np.int64), problem.rules.families[0]
    if not something_fits(
        problem
    ):  # rounded replicas may let a depth through at which nothing fits
        return recomputed
    for stages in range(1, depth + 1):
        replicas = most_replicas(problem, width, stages)
        rounds = problem.rounds(replicas)
        # More replicas never need more memory, so a power of two above them serves many depths at
        # once.
        shared = 1 << (replicas - 1).bit_length() if problem.zero else 1
        key = (depth if rounds >= stages and family.in_flight_rule != "all" else rounds, shared)
        if key not in by_microbatches:
            room = room_of(problem, shared, width.graph.width)
            by_microbatches[key] = fewest_again(
                table, room, in_flight_of(family, key[0], None, depth)
            )
        recomputed[stages] = by_microbatches[key][stages]
    return recomputed


def _tied(task: ModelTask, problem: PlacementProblem, width: Width) -> Floats:
    """Y of a chain whose tied layers lie at its two ends, by the outermost level that its
    boundaries cross; else nothing."""
    graph, levels = problem.graph(width.graph.width), len(problem.cluster.levels)
    first, last = graph.layers[0], graph.layers[-1]
    if not is_chain(graph) or first.tied is None or first.tied != last.tied:
        return np.zeros(levels)
    count, size = (
        sum(layer.tied == first.tied for layer in graph.layers),
        np.array([first.tied_bytes]),
    )
    groups = [
        tuple(count if index == level else 1 for index in range(levels)) for level in range(levels)
    ]
    return np.array([float(task.prices.all_reduce_s(group, size)[0]) for group in groups])


def _repeated(graph: RankGraph, problem: PlacementProblem) -> Floats:
    """1 for kinds of layers that are recomputed in a stage that recomputes, else 0."""
    again = 1 if problem.rules.plain_layers else 2
    return np.array([float(graph.calls.count(kind) >= again) for kind in range(len(graph.layers))])


def tables_of(task: ModelTask, configuration: Configuration, hbm_bytes: float) -> ShapeTables:
    """The tables of a configuration and a memory; what does not depend on both is made once for all
    that share it."""
    zeros = tuple(sorted(task.training.zeros))
    graph, problem = task.graphs[configuration.graph], pattern_of(task, configuration, hbm_bytes)
    place, shared = configuration.graph, (configuration.graph, configuration.shard)
    width = task.memo.take(
        ("width", place, configuration.recompute),
        lambda: prepared(problem, problem.graphs[0], task.prices),
    )
    stages = stages_of(problem, width)
    again = task.shared.take(
        ("fewest again", configuration, hbm_bytes), lambda: _fewest(problem, width, stages)
    )
    # The last stage of ZeRO leaves the most room: its sizes serve all.
    roomy = stages if problem.zero == max(zeros) else stages_of(problem.at_zero(max(zeros)), width)
    reached = task.shared.take(("reached", place), lambda: reached_bytes(graph, problem, width))
    first = first_bytes(width) if problem.rules.end == "first" else None
    sizes = priced_sizes(roomy, reached[1:] if first is None else np.append(reached[1:], first))
    degrees = task.shared.take(("degrees", shared), lambda: all_degrees(problem, width))
    rows = task.memo.take(
        ("shape rows", shared, sizes.tobytes()),
        lambda: shape_rows.shape_rows_of(
            task,
            problem,
            width,
            degrees,
            zeros,
            sizes,
            stage_sizes(roomy) if problem.has_experts else None,
        ),
    )
    tied_s, counted = _tied(task, problem, width), configuration.recompute == "best"
    terms = ShapeTerms(
        task, graph, problem, width, stages, rows, reached, first, again, tied_s, counted
    )
    overall = task.memo.take(
        ("overall", shared, problem.zero, sizes.tobytes()),
        lambda: [terms.overall(s) for s in range(1, width.depth + 1)],
    )
    numbers = np.array([graph.calls.count(kind) for kind in range(len(graph.layers))], np.int64)
    # Where the last stage never recomputes, no layer is sure to be recomputed.
    repeated = (
        _repeated(graph, problem)
        if problem.rules.last_stage_recomputes
        else np.zeros(len(graph.layers))
    )
    return ShapeTables(terms.overall_in_memory(overall), numbers, repeated, terms)
