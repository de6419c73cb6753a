"""``python -m tools.rule_defaults cluster icml24`` prints the defaults of a study that differ between
these rules, from the tables of options."""

import sys

from phaze.options.key_fields import study_options
from phaze.options.option import ByRules


def rows(first: str, second: str) -> list[tuple[str, str, str]]:
    """Key and both defaults, where they differ."""
    stated: dict[str, ByRules] = {
        key: option.rules for key, option in study_options().items() if option.rules is not None
    }
    return [
        (key, rules.spelled(first), rules.spelled(second))
        for key, rules in sorted(stated.items())
        if rules.under(first) != rules.under(second)
    ]


def table(first: str, second: str) -> str:
    """The rows below their heads, in columns."""
    lines = [("key", f"rules {first}", f"rules {second}"), *rows(first, second)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


if __name__ == "__main__":
    sys.stdout.write(table(*sys.argv[1:]) + "\n")
