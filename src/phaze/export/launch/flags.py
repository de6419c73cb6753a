"""Flags of a launch file by name, with what reads their values."""

import re
from collections.abc import Mapping

from phaze.errors import InputError


class Flags:
    """The flags of a file by name, the last of each, with what reads them."""

    def __init__(self, found: Mapping[str, list[str]], where: str) -> None:
        self.found, self.where = found, where

    def __contains__(self, name: str) -> bool:
        return name in self.found

    def text(self, name: str) -> str | None:
        """The value of a flag, or None if it is not there."""
        if name not in self.found:
            return None
        if not self.found[name]:
            raise InputError(f"{self.where}: {name}", "it has no value", "write one behind it")
        value = self.found[name][0]
        if "$" in value or "`" in value:
            raise InputError(f"{self.where}: {name}", f"'{value}' is set outside this file", "write the value out")
        return value

    def count(self, name: str) -> int | None:
        """The value of a flag as a whole number above 0."""
        value = self.text(name)
        if value is None:
            return None
        if not re.fullmatch(r"[0-9]{1,18}", value) or int(value) < 1:
            raise InputError(f"{self.where}: {name}", f"'{value}' is out of range", "give a whole number above 0")
        return int(value)
