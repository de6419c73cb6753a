"""The best order of a layer's operators on one chip, with a proof: problems, bounds, exact
schedules, a checker.

Internal: the way in is :func:`phaze.schedule.solve.solve`, with a problem of
:mod:`phaze.schedule.problem`.
"""
