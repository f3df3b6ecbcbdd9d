"""Imports modules late or in part, since most commands spend their time on imports.

A stand-in takes the place of a module, and imports the module when somebody asks the stand-in for a
name that it does not have. So the rest of the package imports NumPy and Arrow like any other
module, and a command that does not use them does not pay for them.

Libraries import parts of the standard library for `help()`, for translations, or for functions
that `ptt` does not call. A stand-in has the few names that a library needs while it is imported.
"""

from __future__ import annotations

import os
import sys
from _thread import RLock
from importlib import import_module
from types import ModuleType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from importlib.machinery import ModuleSpec
    from typing import Any

__all__ = ["import_late", "import_now", "import_whole"]


# While a thread imports with stand-ins in the place of other modules, no other thread begins to.
_IMPORTING = RLock()


class _Late(ModuleType):
    """Stands in for a module, which is imported when somebody asks for a name that is not here.

    Args:
        name: The name of the module.
        load: Imports the module and returns it, where more is to be done than to import it.
        names: Names that are here before the module is imported.
    """

    def __init__(self, name: str, load: Callable[[], ModuleType] | None, **names: Any) -> None:
        super().__init__(name)
        vars(self).update(names, _load=load or (lambda: import_module(name)), __path__=_Path(self))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module(), name)

    def _module(self) -> ModuleType:
        """Import the module, and have its names here too."""
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        module: ModuleType = vars(self)["_load"]()
        vars(self).update(vars(module))
        return module


class _Path:
    """The `__path__` of a stand-in, for imports of what is inside a package."""

    def __init__(self, stand_in: _Late) -> None:
        self._stand_in = stand_in

    def __iter__(self) -> Iterator[str]:
        del self._stand_in.__path__
        return iter(self._stand_in.__path__)


def _stand_in(name: str, load: Callable[[], ModuleType] | None = None, **names: Any) -> _Late:
    """Put a stand-in in the place of a module that is not imported yet."""
    stand_in = _Late(name, load, **names)
    sys.modules.setdefault(name, stand_in)
    return stand_in


def _import(name: str, without: Mapping[str, Mapping[str, Any]]) -> Any:
    """Import a module while stand-ins are in the place of other modules.

    Args:
        name: The module to import.
        without: Which modules, and what their stand-ins have until the module is imported. Later
            the module finds the modules themselves behind the stand-ins.
    """
    if name in sys.modules:
        return import_module(name)  # waits if another thread imports it at this moment
    with _IMPORTING:
        before = {other: sys.modules.get(other) for other in without}
        stand_ins = {other: _Late(other, None, **names) for other, names in without.items()}
        sys.modules.update(stand_ins)
        try:
            return import_module(name)
        finally:
            for other, stand_in in stand_ins.items():
                for known in without[other]:
                    vars(stand_in).pop(known, None)
                module = before[other]
                if module is not None:
                    sys.modules[other] = module
                elif sys.modules.get(other) is stand_in:
                    del sys.modules[other]


def _quote_from_bytes(*args: Any, **named: Any) -> str:
    from urllib.parse import quote_from_bytes

    return quote_from_bytes(*args, **named)


# argparse looks for translations, of which there are none.
_import(
    "argparse", {"gettext": {"gettext": str, "ngettext": lambda one, many, n: (many, one)[n == 1]}}
)
# pathlib makes URLs of paths.
_import("pathlib", {"urllib.parse": {"quote_from_bytes": _quote_from_bytes}})


def _module_name(path: str) -> str | None:
    """Return the name of the module in a file, as `inspect.getmodulename` does."""
    from importlib.machinery import all_suffixes

    name = os.path.basename(path)  # noqa: PTH119 -- of many files
    for suffix in sorted(all_suffixes(), key=len, reverse=True):
        if name.endswith(suffix):
            return name.removesuffix(suffix)
    return None


def import_late() -> None:
    """Have libraries imported when something of them is used.

    To start two threads takes a third of the processor time that it takes to import numpy, and
    large machines have hundreds of processors. Programs that are run get `os.environ`, where the
    setting does not stand.
    """
    if "OPENBLAS_NUM_THREADS" not in os.environ:
        os.putenv("OPENBLAS_NUM_THREADS", "1")
    _stand_in("typing", TYPE_CHECKING=False)
    _stand_in("inspect", getmodulename=_module_name)
    _stand_in("platform", system=lambda: os.uname().sysname)
    _stand_in("numpy", _numpy)
    _stand_in("pyarrow", _pyarrow)
    _stand_in("duckdb", _duckdb)


def import_now() -> None:
    """Import what there are stand-ins for, before a command starts threads.

    To import modules while stand-ins are in the place of others is for one thread.
    """
    while late := [module for module in sys.modules.values() if isinstance(module, _Late)]:
        for module in late:
            try:
                module._module()  # noqa: SLF001 -- of this module
            except ModuleNotFoundError:
                continue  # who needs it will say so


def import_whole(name: str) -> None:
    """Import a library with all that it imports, before something of the library is used."""
    if isinstance(sys.modules.get(name), _Late):
        del sys.modules[name]
    import_module(name)


def _numpy() -> ModuleType:
    """Import numpy without texts for `help()` and without the types of its annotations."""
    for name in ("numpy._core._add_newdocs", "numpy._core._add_newdocs_scalars"):
        sys.modules.setdefault(name, ModuleType(name))
    _stand_in("numpy._typing", NDArray=list)
    texts = {"signature": lambda _: None, "cleandoc": str}
    numpy = _import("numpy", {"inspect": texts, "pickle": {}, "textwrap": {}})
    if "numpy.ma" not in sys.modules:
        # Functions of numpy and Arrow ask of each array whether it is masked.
        numpy.ma = _Late("numpy.ma", None, is_masked=_is_masked, MaskedArray=_MaskedArray())
    module: ModuleType = numpy
    return module


class _MaskedArray:
    """Stands in for `numpy.ma.MaskedArray`: nothing is a masked array before somebody makes one."""

    def __instancecheck__(self, value: object) -> bool:
        ma = sys.modules.get("numpy.ma")
        return ma is not None and isinstance(value, ma.MaskedArray)

    def __call__(self, *args: Any, **named: Any) -> Any:
        return import_module("numpy.ma").MaskedArray(*args, **named)

    def __mro_entries__(self, bases: tuple[object, ...]) -> tuple[type]:
        del bases
        return (import_module("numpy.ma").MaskedArray,)

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module("numpy.ma").MaskedArray, name)


def _is_masked(array: object) -> bool:
    ma = sys.modules.get("numpy.ma")
    return ma is not None and ma.is_masked(array)


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


def _pyarrow() -> ModuleType:
    """Import pyarrow, which looks for pandas in vain.

    pyarrow looks for pandas, and imports it, when it converts anything for the first time. What
    imports pandas itself later can do so, and pyarrow makes tables of pandas for it.
    """
    if "pyarrow" in sys.modules:  # whole
        return sys.modules["pyarrow"]
    finder: Any = _NoPandas
    sys.meta_path.insert(0, finder)
    try:
        pyarrow = _import("pyarrow", {"socket": {}, "textwrap": {}})
        pyarrow.array([None])
    finally:
        sys.meta_path.remove(finder)
    if "pyarrow.compute" not in sys.modules:
        pyarrow.compute = _stand_in("pyarrow.compute", _compute)
    _stand_in("ssl")  # which its files on the network import
    module: ModuleType = pyarrow
    return module


class _Parameter:
    """Stands in for `inspect.Parameter`."""

    POSITIONAL_ONLY = VAR_POSITIONAL = KEYWORD_ONLY = 0

    def __init__(self, *_: object, **__: object) -> None:
        pass


class _Signature:
    """Stands in for a signature without parameters."""

    parameters: Mapping[str, object] = {}


def _compute() -> ModuleType:
    """Import pyarrow.compute without texts for `help()`, which take longer than all else of it."""
    texts = {
        "Parameter": _Parameter,
        "Signature": lambda _: None,
        "signature": lambda _: _Signature,
    }
    module: ModuleType = _import(
        "pyarrow.compute",
        {
            "inspect": texts,
            "textwrap": {"dedent": str},
            "pyarrow.vendored.docscrape": {"NumpyDocString": lambda _: {"Parameters": ()}},
        },
    )
    return module


def _version(name: str) -> str:
    """Return the version of an installed distribution, as `importlib.metadata.version` does."""
    for place in sys.path:
        try:
            entries = os.listdir(place or ".")  # noqa: PTH208 -- of names alone
        except OSError:
            continue
        for entry in entries:
            if entry.startswith(f"{name}-") and entry.endswith(".dist-info"):
                return entry[len(name) + 1 : -len(".dist-info")]
    from importlib.metadata import version

    return version(name)


def _late_dataclass(cls: Any = None, **options: Any) -> Any:
    """Have a class become a data class with its first object, unless that is too late."""
    if cls is None:
        return lambda cls: _late_dataclass(cls, **options)
    from dataclasses import dataclass

    if "slots" in options or "__init__" in vars(cls):
        return dataclass(cls, **options)

    def __init__(self: Any, *values: Any, **named: Any) -> None:  # noqa: N807
        for each in reversed(type(self).__mro__):
            wanted = vars(each).get("__late_options__")
            if wanted is not None:
                del each.__late_options__, each.__init__  # type: ignore[attr-defined,misc]
                dataclass(each, **wanted)
        type(self).__init__(self, *values, **named)

    cls.__late_options__, cls.__init__ = options, __init__
    return cls


def _duckdb() -> ModuleType:
    """Import duckdb, of which a query uses few classes."""
    module: ModuleType = _import(
        "duckdb",
        {
            "importlib.metadata": {"version": _version},
            "dataclasses": {"dataclass": _late_dataclass},
            "html": {},
            "secrets": {},
        },
    )
    return module
