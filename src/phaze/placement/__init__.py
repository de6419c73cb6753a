"""Placement: how the layers of a model are split over many devices, and the proof that no split is
faster.

Internal: the way in is :mod:`phaze.placement.solve`, with a problem of
:mod:`phaze.placement.problem`.
"""
