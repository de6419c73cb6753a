"""What an operator takes on a chip: time, energy, traffic and what bounds it.

Internal: the ways in are :mod:`phaze.cost.chip_set` for many works on many chips,
:mod:`phaze.cost.estimate` for one.
"""
