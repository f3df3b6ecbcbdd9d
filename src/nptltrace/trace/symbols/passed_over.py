"""Which frames are passed over to find the call site: wrappers of the thread library.

The built-in patterns are in `wrappers.toml`. Those of the user come from the options and the
settings; all of them match functions and modules alike.
"""

from __future__ import annotations

import re
from fnmatch import translate
from functools import cache, cached_property
from typing import TYPE_CHECKING

from nptltrace.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["PassedOver", "bare_name", "patterns"]

_SOURCES = (".py", ".java", ".kt", ".scala", ".groovy")
_OPENING, _CLOSING = "<([", ">)]"


class PassedOver:
    """The rule by which frames are passed over.

    Args:
        patterns: The user's own, beside the built-in ones.
    """

    def __init__(self, patterns: Sequence[str] = ()) -> None:
        self._given = tuple(patterns)
        self._known: dict[tuple[str, str], bool] = {}

    @cached_property
    def patterns(self) -> tuple[str, ...]:
        """All of them."""
        functions, modules, sources = _built_in()
        return (*functions, *modules, *sources, *self._given)

    @cached_property
    def _functions(self) -> re.Pattern[str]:
        return _matcher((*_built_in()[0], *self._given))

    @cached_property
    def _modules(self) -> re.Pattern[str]:
        return _matcher((*_built_in()[1], *self._given))

    @cached_property
    def _sources(self) -> re.Pattern[str]:
        return _matcher(_built_in()[2])

    @cached_property
    def _own(self) -> re.Pattern[str]:
        return _matcher(self._given)

    def __call__(self, function: str, module: str) -> bool:
        """Return whether a frame is passed over.

        Args:
            function: Its function, demangled, or empty.
            module: File name of its module, or empty; of a function of Python the path of its
                source.
        """
        key = (function, module)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._matches(function, module)
        return known

    def first(self, frames: Iterable[tuple[str, str]]) -> int:
        """Return which of some frames is the call site: 0 where all of them are passed over.

        Args:
            frames: Function and module of each, innermost first.
        """
        return next((n for n, frame in enumerate(frames) if not self(*frame)), 0)

    def _matches(self, function: str, module: str) -> bool:
        if module.startswith("<") or module.endswith(_SOURCES) or "/" in module:
            own = (function, module, module.rpartition("/")[2])
            return bool(self._sources.fullmatch(module) or any(map(self._own.fullmatch, own)))
        if module and self._modules.fullmatch(module):
            return True
        if not function:
            return False
        return bool(
            self._functions.fullmatch(function) or self._functions.fullmatch(bare_name(function))
        )


def patterns(text: str) -> list[str]:
    """Return the patterns of a list with commas between them.

    Raises:
        UsageError: One of them is empty.
    """
    found = [word.strip() for word in text.split(",")]
    if not all(found):
        raise UsageError(f"an empty pattern in {text!r}")
    return found


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


def _matcher(patterns: Iterable[str]) -> re.Pattern[str]:
    return re.compile("|".join(map(translate, patterns)) or "(?!)")


@cache
def _built_in() -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Return the built-in patterns of functions, of modules and of Python's source files."""
    # `ptt record` names the program's own functions without asking for any of this.
    import tomllib
    from importlib.resources import files

    text = files(__package__).joinpath("wrappers.toml").read_text()
    groups = tomllib.loads(text).values()
    functions = [one for group in groups for one in group.get("functions", ())]
    modules = [one for group in groups for one in group.get("modules", ())]
    sources = [one for group in groups for one in group.get("sources", ())]
    return tuple(functions), tuple(modules), tuple(sources)
