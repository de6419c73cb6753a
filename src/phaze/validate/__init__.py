"""Published runs of real clusters beside ours: rows, predictions, statistics."""

from phaze.callable_module import make_callable

make_callable(__name__)
