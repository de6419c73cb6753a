"""Compiled loops: object code that is shipped, and numba where there is none.

:func:`~phaze.compiled.kernel.njit` is what a file of kernels decorates its functions with.
Functions of files that have not changed since ``make kernels`` run from the shipped library,
without numba being imported; others are compiled by numba and kept in its cache, as is everything
on other machines (:mod:`~phaze.compiled.library`).
"""

from phaze.compiled.kernel import njit

__all__ = ["njit"]
