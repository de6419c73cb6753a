"""Pairs of queries and keys that an attention kernel works on: all of them, or those that its mask
leaves.

For q queries and k keys of one head, with a window of w keys (0: none), summed over the queries:

    full                      q k
    causal                    q (k + 1) / 2                      query i of q = k sees i keys; of
                              fewer queries, spread
                                                                 evenly over the positions, q / k of
                                                                 that
    causal, window            q / k sum over i of min(i, w)      = q / k (w (w + 1) / 2 + (k - w) w)
                              for w < k
    both sides, window        q / k sum over i of (min(i, w) + min(k + 1 - i, w) - 1)

``window`` counts the query's own position. Kernels of fused attention skip the rest, block by
block; attention that is traced as products ("eager") computes all q k. None of it grows when the
window shrinks.
"""

from phaze.graph.ir import Operator


def pairs(queries: int, keys: int, causal: bool = False, window: int = 0) -> int:
    """Pairs of one head that the mask leaves, rounded up."""
    if not causal and not 0 < window < keys:
        return queries * keys
    width = window if 0 < window < keys else keys
    seen = width * (width + 1) // 2 + (keys - width) * width
    if not causal:
        seen = 2 * seen - keys
    return -(-queries * seen // keys) if keys else 0


def attention_pairs(operator: Operator) -> int:
    """Pairs of one head of a fused attention operator; without the sizes ``causal`` and ``window``
    all of them."""
    sizes = dict(operator.sizes)
    return pairs(
        sizes["queries"], sizes["keys"], bool(sizes.get("causal", 0)), sizes.get("window", 0)
    )


def mean_keys(operator: Operator) -> int:
    """Keys that a query sees, the mean rounded up: a product over as many keys has the work of the
    pairs."""
    queries = operator.size("queries")
    return -(-attention_pairs(operator) // queries) if queries else operator.size("keys")
