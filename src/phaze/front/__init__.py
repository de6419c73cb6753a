"""Fronts: every design of a study that no other one beats in all of two or three metrics, with a certificate."""

from phaze.callable_module import make_callable

make_callable(__name__)
