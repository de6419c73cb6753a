r"""How long a stage takes a microbatch where its transfers run behind the work of other chunks.

Interleaved 1F1B of v chunks, S stages, m microbatches of a replica; f and b are the forward and the
backward seconds of a stage (recomputing and exposed collectives with them), x and y its transfers
across entry and exit, v messages each, at the ends of the pipeline the v - 1 around it; c what
starting v - 1 chunks adds to a pass. A stage has two times,

    blocking      T  = f + x + b + y + 2 c              every message delays the work behind it
    overlapped    T* = max(f, x) + max(b, y) + 2 c      a message runs beside one piece of the other
                  pass: the
                                                        longer of the two counts

and in between what it takes at the pace of the pipeline,

    T' = T* + rho (T - T*) = max(f, x) + rho min(f, x) + max(b, y) + rho min(b, y) + 2 c      (pace)
    rho = (v - 1) S / (m v - 1)                                                           (unpaired)

as (v - 1) S of the m v pieces of a pass run while the pipeline fills or empties, with no piece of
the other pass beside them; the 2 (S - s) further ones of stage s are the way that the sum of T
counts. S divides m, so rho <= 1, and f + b + 2 c <= T* <= T' <= T. The batch takes (m - 1/v) max T'
+ (1/v) sum T + E + Y: no less than its work, and no less than m (x + y) of any stage. It never
falls with f, b, x or y.

For equal stages that is no less than the last event (:mod:`phaze.placement.simulate`), where every
message waits for its sender's channel, forward and backward messages having one each: 1 % above on
average and at most 9 % while x <= f, up to twice where the channels bind, as the formula lets a
device send one thing at a time. Where it does, events end 2 % below the formula on average and at
most 16 %; of two stages alone, which send both over one link, up to 9 % above.

Every other family waits for its transfers: T' = T. No stack says that it hides those of split
backward passes.
"""


def paced_s(work_s: float, transfer_s: float, unpaired: float) -> float:
    """A pass and its transfers at the pace of the pipeline; ``unpaired`` is rho, 1 where transfers
    block."""
    return max(work_s, transfer_s) + unpaired * min(work_s, transfer_s)


def timed(
    work_s: float, transfer_s: float, start_s: float, unpaired: float, apart: bool
) -> tuple[float, float, float]:
    """A pass as its stage runs it, what it takes at the pace of the pipeline, and its transfers if
    they are ``apart``, overlapped with other work."""
    pace_s = paced_s(work_s, transfer_s, unpaired) + start_s
    return (work_s + start_s, pace_s, transfer_s) if apart else (pace_s, pace_s, 0.0)
