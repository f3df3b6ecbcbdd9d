"""Imports argparse, pathlib and pyarrow without what they import and `ptt` has no use for.

argparse looks for translations, of which there are none; pathlib makes URLs of paths. To import
gettext and `urllib.parse` for that took a fifteenth of the time to record a program that ends at
once. While the two are imported, something else stands in the place of these modules, which are
imported as always by what asks for them later.

pyarrow, which is imported only by what needs it, looks for pandas when it converts anything for the
first time, in case it is given something of pandas. Where that is installed, it took a third of the
time of a query.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from typing import Any

__all__ = ["import_pyarrow"]


def _one_or_many(one: str, many: str, count: int) -> str:
    return one if count == 1 else many


def _quote_from_bytes(*args: Any, **named: Any) -> str:
    from urllib.parse import quote_from_bytes

    return quote_from_bytes(*args, **named)


def _import(name: str, without: str, **functions: object) -> None:
    """Import a module with these functions in the place of another module that it imports."""
    if name in sys.modules or without in sys.modules:
        return
    stand_in = sys.modules[without] = ModuleType(without)
    vars(stand_in).update(functions)
    try:
        import_module(name)
    finally:
        del sys.modules[without]


_import("argparse", without="gettext", gettext=str, ngettext=_one_or_many)
_import("pathlib", without="urllib.parse", quote_from_bytes=_quote_from_bytes)


class _NoPandas:
    """A finder that says of pandas, and of nothing else, that it is not installed."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """See `importlib.abc.MetaPathFinder`."""
        del path, target
        if name == "pandas":
            raise ModuleNotFoundError(name=name)
        return None


def import_pyarrow() -> None:
    """Import pyarrow, and have it look for pandas in vain.

    What imports pandas itself later can do so, and pyarrow makes tables of pandas for it.
    """
    finder: Any = _NoPandas
    sys.meta_path.insert(0, finder)
    try:
        import_module("pyarrow").array([None])
    finally:
        sys.meta_path.remove(finder)
