"""Regular expressions that are compiled on their first use.

Modules have more than a hundred patterns, and a command uses few of them. To compile one takes as
long as to import a small module.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, AnyStr

__all__ = ["pattern"]


class _Pattern:
    """Stands for a pattern, and compiles it when somebody asks for a method."""

    def __init__(self, text: str | bytes, flags: int) -> None:
        self._text, self._flags = text, flags

    def __getattr__(self, name: str) -> Any:
        # Two threads may both compile it: the results are equal.
        value = getattr(re.compile(self._text, self._flags), name)
        setattr(self, name, value)
        return value


def pattern(text: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Return a pattern that is compiled on its first use.

    Args:
        text: The regular expression.
        flags: As for `re.compile`.

    Returns:
        An object with the methods and attributes of a compiled pattern. Functions of the module
        `re` do not take it in place of a text.
    """
    late: re.Pattern[AnyStr] = _Pattern(text, flags)  # type: ignore[assignment]
    return late
