"""The frames that are passed over to find the call site: wrappers of the thread library.

The built-in patterns come from `catalog/wrappers.toml`. Users add patterns by options and settings.
Patterns of users match functions and modules alike.
"""

from __future__ import annotations

import re
from fnmatch import translate
from typing import TYPE_CHECKING

from nptltrace.catalog._wrappers import FUNCTIONS, MODULES, SOURCES
from nptltrace.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["Called", "PassedOver", "bare_name", "patterns"]

Called = tuple[str, str]  # function and module, as `PassedOver` takes them

_SOURCES = (".py", ".java", ".kt", ".scala", ".groovy")
_OPENING, _CLOSING = "<([", ">)]"
# Special characters of patterns besides `*`.
_SPECIAL = frozenset("?[")


class PassedOver:
    """The rule that passes over frames.

    Args:
        patterns: Patterns of the user, in addition to the built-in patterns.

    Attributes:
        patterns: All patterns.
    """

    def __init__(self, patterns: Sequence[str] = ()) -> None:
        self.patterns = (*FUNCTIONS, *MODULES, *SOURCES, *patterns)
        self._functions = _Matcher((*FUNCTIONS, *patterns))
        self._modules = _Matcher((*MODULES, *patterns))
        self._sources = _Matcher(SOURCES)
        self._of_users = _Matcher(patterns)
        self._known: dict[tuple[str, str], bool] = {}

    def __call__(self, function: str, module: str) -> bool:
        """Return whether a frame is passed over.

        Args:
            function: Demangled name of the function, or empty.
            module: File name of the module, or empty. For a function of Python, the path of its
                source.
        """
        key = (function, module)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._matches(function, module)
        return known

    def between(self, inner: Called, frame: Called, outer: Called) -> bool:
        """Return whether a frame lies between two wrappers, and so is a part of them.

        Such a frame has no name, since its module lacks a full symbol table. Its caller and the
        function that it calls are wrappers in C, in the same module.

        Args:
            inner: The function that the frame called.
            frame: The frame.
            outer: The caller of the frame.
        """
        function, module = frame
        return (
            not function
            and module == inner[1] == outer[1]
            and all("::" not in name and self(name, module) for name in (inner[0], outer[0]))
        )

    def first(self, frames: Sequence[Called]) -> int:
        """Return the index of the call site among frames; 0 if all of them are passed over.

        Args:
            frames: Function and module of each frame, the innermost frame first.
        """
        for n, frame in enumerate(frames):
            around = (frames[n - 1], frame, frames[n + 1]) if 0 < n < len(frames) - 1 else None
            if not self(*frame) and not (around and self.between(*around)):
                return n
        return 0

    def _matches(self, function: str, module: str) -> bool:
        if module.startswith("<") or module.endswith(_SOURCES) or "/" in module:
            texts = (function, module, module.rpartition("/")[2])
            return bool(self._sources(module) or any(map(self._of_users, texts)))
        if module and self._modules(module):
            return True
        if not function:
            return False
        return self._functions(function) or self._functions(bare_name(function))


def patterns(text: str) -> list[str]:
    """Return the patterns of a list with commas between them.

    Raises:
        UsageError: A pattern is empty.
    """
    words = [word.strip() for word in text.split(",")]
    if not all(words):
        raise UsageError(f"an empty pattern in {text!r}")
    return words


def bare_name(function: str) -> str:
    """Return a demangled name without parameters and return type: `ns::f<int>` of `void ns::f…`."""
    end = len(function)
    if function.endswith((")", ") const")):
        end = function.rindex(")") + 1
        depth = 0
        for at in range(end - 1, -1, -1):
            depth += (function[at] == ")") - (function[at] == "(")
            if not depth:
                end = at or end
                break
    depth = begin = 0
    for at, letter in enumerate(function[:end]):
        depth += (letter in _OPENING) - (letter in _CLOSING)
        if letter == " " and not depth and "operator" not in function[begin:at]:
            begin = at + 1
    return function[begin:end]


class _Matcher:
    """Tells whether a text matches one of several patterns.

    To compile a regular expression takes longer than most commands use it. So patterns with `*`
    only, nearly all patterns, are matched without a regular expression.

    Args:
        patterns: Patterns of a shell, as in `fnmatch`.
    """

    def __init__(self, patterns: Iterable[str]) -> None:
        texts = list(patterns)
        simple = [text.split("*") for text in texts if not _SPECIAL & set(text)]
        self._begins = tuple(text[0] for text in simple if len(text) == 2 and not text[1])  # noqa: PLR2004 -- text and *
        self._parts = [text for text in simple if len(text) != 2 or text[1]]  # noqa: PLR2004 -- as above
        others = [translate(text) for text in texts if _SPECIAL & set(text)]
        self._others = re.compile("|".join(others)) if others else None

    def __call__(self, text: str) -> bool:
        """Return whether the whole text matches a pattern."""
        if text.startswith(self._begins) or any(_fits(text, parts) for parts in self._parts):
            return True
        return self._others is not None and self._others.fullmatch(text) is not None


def _fits(text: str, parts: Sequence[str]) -> bool:
    """Return whether a text consists of these parts, with any text between them."""
    first, last = parts[0], parts[-1]
    if len(parts) == 1:
        return text == first
    at, end = len(first), len(text) - len(last)
    if at > end or not text.startswith(first) or not text.endswith(last):
        return False
    for part in parts[1:-1]:
        at = text.find(part, at, end)
        if at < 0:
            return False
        at += len(part)
    return True
