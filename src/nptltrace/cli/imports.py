"""Imports argparse, pathlib and pyarrow without what they import and `ptt` has no use for.

argparse looks for translations, of which there are none; pathlib makes URLs of paths. To import
gettext and `urllib.parse` for that took a fifteenth of the time to record a program that ends at
once. While the two are imported, something else stands in the place of these modules, which are
imported as always by what asks for them later.

pyarrow, which is imported only by what needs it, looks for pandas when it converts anything for the
first time, in case it is given something of pandas. Where that is installed, it took a third of the
time of a query.

numpy, where a command needs it, makes the types of its annotations, texts for `help()` and threads
for linear algebra. These took half of the time to import it, and `ptt` needs none of them.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from types import ModuleType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from typing import Any

__all__ = ["import_pyarrow", "trim_numpy"]


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


class _Types(ModuleType):
    """Stands in for `numpy._typing` until somebody asks for more than the annotation `NDArray`."""

    NDArray = list

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        sys.modules.pop(self.__name__, None)
        vars(self).update(vars(import_module(self.__name__)))
        return vars(self)[name]


def trim_numpy() -> None:
    """Have numpy, if it is imported later, leave out what no command uses.

    To start two threads takes a third of the processor time that it takes to import numpy, and
    large machines have hundreds of processors. Programs that are run get `os.environ`, where the
    setting does not stand.
    """
    if "numpy" in sys.modules:
        return
    if "OPENBLAS_NUM_THREADS" not in os.environ:
        os.putenv("OPENBLAS_NUM_THREADS", "1")
    for name in ("numpy._core._add_newdocs", "numpy._core._add_newdocs_scalars"):
        sys.modules[name] = ModuleType(name)
    sys.modules["numpy._typing"] = _Types("numpy._typing")
