"""Let the reference show functions of the API as Python does: with the signature and the
documentation that follow from the tables of options."""

import inspect
from typing import Any

import griffe

from phaze import api


class Signatures(griffe.Extension):
    """Gives functions that take a table of options the parameters of the table."""

    def on_function(self, *, func: griffe.Function, **_: Any) -> None:
        """Replace what the source states of a function by what it has when it runs."""
        function = getattr(api, func.name, None) if func.path.startswith("phaze.api.") else None
        if function is None or not hasattr(function, "parameters"):
            return
        func.parameters = griffe.Parameters(
            *(
                griffe.Parameter(
                    name,
                    annotation=inspect.formatannotation(one.annotation, "").replace(
                        "collections.abc.", ""
                    ),
                    kind=getattr(griffe.ParameterKind, one.kind.name.lower()),
                    default=None if one.default is inspect.Parameter.empty else repr(one.default),
                )
                for name, one in inspect.signature(function).parameters.items()
            )
        )
        if func.docstring is not None:
            func.docstring.value = inspect.cleandoc(function.__doc__ or "")
