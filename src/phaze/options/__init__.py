"""Every option of every command, stated once: name, type, sentence with its unit, default,
spelling.

An option is a field of a table (:mod:`.jobs`, :mod:`.studies`, :mod:`.runs`), which is a TypedDict,
so that type checkers and editors see what a function takes: ``def plan(model=None, **options:
Unpack[PlanOptions])``. The signature and the documentation of the function
(:mod:`phaze.api.function`), the command with its help (:mod:`phaze.cli.command`) and the keys of a
study that options stand for follow from the table.
"""
