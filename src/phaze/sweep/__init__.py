"""Sweeps: the certified best along a range of one value of a study."""

from phaze.callable_module import make_callable

make_callable(__name__)
