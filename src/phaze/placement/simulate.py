"""A plan as discrete events: every pass of every microbatch on every stage of one of its replicas
(:mod:`phaze.pipeline.replica`). The gradients are synchronised after them, as the rules say."""

from phaze.pipeline.families import named_family
from phaze.pipeline.family import Family
from phaze.pipeline.replica import Events, StageSeconds, events, last_event_s
from phaze.placement.plan import Plan, Stage

# Beyond so many events one more microbatch every T seconds is reckoned, the pace that the slowest
# stage keeps.
MOST_EVENTS = 1_000_000


def stage_seconds(plan: Plan) -> StageSeconds:
    """What the events need of a plan's stages."""
    return StageSeconds(
        [stage.forward_s for stage in plan.stages],
        [stage.backward_s for stage in plan.stages],
        [stage.weight_s for stage in plan.stages],
        [stage.forward_transfer_s for stage in plan.stages],
        [stage.backward_transfer_s for stage in plan.stages],
    )


def _overlapped_s(stage: Stage) -> float:
    """A microbatch of a stage once the pipeline is full."""
    return max(stage.forward_s, stage.forward_transfer_s) + max(
        stage.backward_s, stage.backward_transfer_s
    )


def replica_seconds(plan: Plan, family: Family, rounds: int) -> float:
    """End of the last event of one replica that runs ``rounds`` microbatches."""
    count = len(plan.stages)
    watched = min(rounds, max(MOST_EVENTS // (family.chunks * count), 4 * count))
    if (family.chunks > 1 or family.split) and watched < rounds:
        watched -= (watched - rounds) % count
    stages = stage_seconds(plan)
    end_s = last_event_s(family, stages, watched)
    if family.separate_passes:
        pace_s = max(stages.forward_s) + max(stages.backward_s)
    else:
        pace_s = max(map(_overlapped_s, plan.stages))
    return end_s + (rounds - watched) * pace_s


def timeline(plan: Plan, rounds: int) -> Events:
    """When every event of one replica of ``rounds`` microbatches starts, for a drawing."""
    return events(named_family(plan.family, plan.chunks), stage_seconds(plan), rounds)
