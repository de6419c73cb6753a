"""Spaces too large to look at every chip: boxes of axis values, bounded and pruned as a whole.

:mod:`phaze.search.boxes.walk` says how.
"""
