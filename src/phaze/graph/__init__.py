"""Models as layers of operators: what one training step computes, reads, writes, keeps and communicates."""

from phaze.askable import make_askable

make_askable(__name__)
