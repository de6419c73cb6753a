"""Evaluate: a model on a chip in a cluster, planned by us or as it was run.

Internal: read :mod:`phaze.evaluate.flow` first.
"""

from phaze.callable_module import make_callable

make_callable(__name__)
