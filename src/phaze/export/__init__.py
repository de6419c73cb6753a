"""Export: plans and searches in the forms that other tools read."""

from phaze.callable_module import make_callable

make_callable(__name__)
