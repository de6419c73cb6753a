"""The software stack of a study as its table ``stack`` changes it: single keys of the one that it
names.

    [stack]      keys of phaze.stack/1 as schedule = "links" or host_time = "10 us"; optimizer,
                 precision and attention are those of ``training``

So every rule of a setting is one key of a study.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import create_model, model_validator

from phaze.documents import Document, Reader, check
from phaze.files import is_path
from phaze.hardware.library import load_stack, stack_keys
from phaze.hardware.overlap import layered
from phaze.hardware.stack import Stack, require_built, with_new_names
from phaze.values import replace

OF_THE_FILE = frozenset({"schema", "base", "name", "title", "notes", "sources"})
OF_TRAINING = frozenset({"optimizer", "precision", "attention"})
OF_GIVEN_PLANS = frozenset({"balances_stages"})
"""How a given plan is cut into stages; a study seeks the cuts."""
NO_CHANGES = OF_THE_FILE | OF_TRAINING | OF_GIVEN_PLANS


class StackChanges(Document):
    """What a study changes of its software; the keys are those of ``phaze.stack/1``."""

    @model_validator(mode="before")
    @classmethod
    def _older_names(cls, raw: Any) -> Any:
        return with_new_names(raw)

    def changes(self) -> Mapping[str, Any]:
        """The keys that are given."""
        return self.model_dump(exclude_none=True, exclude_unset=True)


def _optional_keys() -> dict[str, Any]:
    """The type of every key of a stack that a study may have or leave out."""
    keys: dict[str, Any] = {}
    for name, field in Stack.model_fields.items():
        key: Any = field.alias or name
        kind: Any = field.annotation
        for condition in field.metadata:
            kind = Annotated[kind, condition]
        if key not in NO_CHANGES:
            keys[key] = (kind | None, None)
    return keys


if TYPE_CHECKING:
    StackTable = StackChanges
else:
    StackTable = create_model(
        "StackTable", __base__=StackChanges, __doc__=StackChanges.__doc__, **_optional_keys()
    )


def changed_stack(text: str, table: StackChanges, reader: Reader) -> Stack:
    """The stack of a name or path with what the table says; its name says what was changed."""
    stack, changes = load_stack(text, reader), table.changes()
    if not changes:
        return require_built(stack, text if is_path(text) else "")
    stated, _ = stack_keys(text, reader)
    changed = check(Stack, layered(stated, changes), "stack")
    named = replace(changed, name=f"{stack.name} with other {', '.join(sorted(changes))}")
    return require_built(named, "stack")
