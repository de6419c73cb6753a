"""Report: what a person sees and exports."""

from phaze.callable_module import make_callable

make_callable(__name__)
