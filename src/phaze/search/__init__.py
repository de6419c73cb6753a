"""Search: the space of chips, bounds over all of it, and the best with a certificate."""

from phaze.callable_module import make_callable

make_callable(__name__)
