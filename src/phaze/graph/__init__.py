"""Models as layers of operators: what one training step computes, reads, writes, keeps and communicates."""

from phaze.callable_module import make_callable

make_callable(__name__)
