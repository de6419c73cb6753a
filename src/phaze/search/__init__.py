"""Search: the space of chips, bounds over all of it, and the best with a certificate."""

from phaze.callable_module import make_askable

make_askable(__name__)
