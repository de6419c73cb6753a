"""The best order of a layer's operators on one chip, with a proof: problems, bounds, exact schedules, a checker."""

from phaze.callable_module import make_callable

make_callable(__name__)
