"""Sweeps: the certified best along a range of one value of a study."""

from phaze.callable_module import make_askable

make_askable(__name__)
