"""Evaluate: a model on a chip in a cluster, planned by us or as it was run.

Internal: read :mod:`phaze.evaluate.flow` first.
"""
