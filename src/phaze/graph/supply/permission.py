"""Whose Python runs: what the caller names, and what a file names only where the caller allows
that.

    phaze plan --model own.py:build, phaze.plan("own.py:build")     named by the caller: runs
    models = ["own.py:build"] in a study, a run, a row, ...         named by a file: refused
    the same with --allow-code, allow_code=True                     runs

Opening a model asks here before its code is imported (:func:`phaze.graph.supply.supply.supply_of`),
and nothing else imports code that a user brings along.
"""

from phaze.errors import InputError
from phaze.graph.tensor_plan import place_and_plan

REMEDY = "name it on the command line (--model FILE.py:FUNCTION), or add --allow-code"


def is_code(model: str) -> bool:
    """Whether opening a model imports Python: ``file.py:function`` or
    ``package.module:function``."""
    return ":" in place_and_plan(model)[0]


def require_allowed(model: str, allow_code: bool, where: str = "") -> None:
    """Refuse a model that is code unless the caller named it or allowed it; ``where`` is the file
    that names it."""
    if is_code(model) and not allow_code:
        raise InputError(
            where or model, f"'{model}' is Python code, which runs only if you say so", REMEDY
        )
