"""Why an answer is the answer: its neighbours, what more of each resource buys, how wrong constants may be."""

from phaze.callable_module import make_callable

make_callable(__name__)
