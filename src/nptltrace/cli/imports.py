"""Imports modules late or in part, because most commands spend their time on imports.

A stand-in takes the place of a module in `sys.modules`. It imports the module on the first access
to a name that the stand-in does not have. So the package imports NumPy and Arrow like any other
module, and commands that do not use them do not pay for them.

Libraries import parts of the standard library for `help()`, for translations, or for functions
that `ptt` does not call. A stand-in has the few names that a library needs during its import.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found] # built in, and needs no enumerations
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


# Only one thread at a time imports with stand-ins in the place of other modules.
_IMPORTING = RLock()


class _Late(ModuleType):
    """A stand-in for a module, which is imported on the first access to an unknown name.

    Args:
        name: The name of the module.
        load: Imports the module and returns it, if that is more than an import.
        names: Names that the stand-in has before the module is imported.
    """

    def __init__(self, name: str, load: Callable[[], ModuleType] | None, **names: Any) -> None:
        super().__init__(name)
        vars(self).update(names, _load=load or (lambda: import_module(name)), __path__=_Path(self))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module(), name)

    def _module(self) -> ModuleType:
        """Import the module, and copy its names into the stand-in."""
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        # Extension modules turn an interrupt of their imports into errors of their own, such as
        # NumPy's ImportError. So the interrupt waits until the module is imported.
        before = _signal.pthread_sigmask(_signal.SIG_BLOCK, [_signal.SIGINT])
        try:
            module: ModuleType = vars(self)["_load"]()
        finally:
            _signal.pthread_sigmask(_signal.SIG_SETMASK, before)
        vars(self).update(vars(module))
        return module


class _Path:
    """The `__path__` of a stand-in, for imports of submodules."""

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
        without: The other modules, each with the names of its stand-in during the import. Later,
            the stand-ins give access to the modules themselves.
    """
    if name in sys.modules:
        return import_module(name)  # waits for another thread that imports it at this moment
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


# argparse looks for translations; there are none.
_import(
    "argparse", {"gettext": {"gettext": str, "ngettext": lambda one, many, n: (many, one)[n == 1]}}
)
# pathlib makes URLs of paths, handles paths of Windows, and matches patterns of names.
_import(
    "pathlib",
    {"urllib.parse": {"quote_from_bytes": _quote_from_bytes}, "ntpath": {}, "fnmatch": {}},
)


def _module_name(path: str) -> str | None:
    """Return the name of the module in a file, like `inspect.getmodulename`."""
    from importlib.machinery import all_suffixes

    name = os.path.basename(path)  # noqa: PTH119 -- of many files
    for suffix in sorted(all_suffixes(), key=len, reverse=True):
        if name.endswith(suffix):
            return name.removesuffix(suffix)
    return None


def import_late() -> None:
    """Import libraries on their first use.

    NumPy's BLAS library gets one thread: the start of two threads takes a third of the processor
    time of the import of NumPy, and large machines have hundreds of processors. The setting is not
    in `os.environ`, so that child programs do not inherit it.
    """
    if "OPENBLAS_NUM_THREADS" not in os.environ:
        os.putenv("OPENBLAS_NUM_THREADS", "1")
    _stand_in("typing", TYPE_CHECKING=False)
    _stand_in("inspect", getmodulename=_module_name)
    _stand_in("platform", system=lambda: os.uname().sysname)
    _stand_in("numpy", _numpy)
    _stand_in("pyarrow", _pyarrow, compute=_stand_in("pyarrow.compute", _compute))
    # DuckDB compares classes with these two. It uses the rest to leave out rows.
    classes = {name: _OfDataset(name, (), {}) for name in ("Dataset", "Scanner")}
    _stand_in("pyarrow.dataset", **classes)
    _stand_in("duckdb", _duckdb)


def import_now() -> None:
    """Import the modules of all stand-ins, before a command starts threads.

    Only one thread may import modules while stand-ins are in the place of other modules.
    """
    while late := [module for module in sys.modules.values() if isinstance(module, _Late)]:
        for module in late:
            try:
                module._module()  # noqa: SLF001 -- of this module
            except ModuleNotFoundError:
                continue  # the user of the module reports the error


def import_whole(name: str) -> None:
    """Import a library without stand-ins, before the first use of the library."""
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
        # Functions of numpy and Arrow test whether each array is masked.
        numpy.ma = _Late("numpy.ma", None, is_masked=_is_masked, MaskedArray=_MaskedArray())
    module: ModuleType = numpy
    return module


class _MaskedArray:
    """A stand-in for `numpy.ma.MaskedArray`: no object is a masked array before its import."""

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
    """A finder that reports pandas, and no other module, as not installed."""

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
    """Import pyarrow without pandas.

    pyarrow looks for pandas, and imports it, at its first conversion. A program can still import
    pandas later, and pyarrow then converts tables to pandas.
    """
    if "pyarrow" in sys.modules:  # imported without a stand-in
        return sys.modules["pyarrow"]
    finder: Any = _NoPandas
    sys.meta_path.insert(0, finder)
    try:
        pyarrow = _import("pyarrow", {"socket": {}, "textwrap": {}})
        pyarrow.array([None])
    finally:
        sys.meta_path.remove(finder)
    _stand_in("ssl")  # pyarrow imports it for files on the network
    module: ModuleType = pyarrow
    return module


class _OfDataset(type):
    """The class of stand-ins for classes of `pyarrow.dataset`."""

    def __instancecheck__(cls, value: object) -> bool:
        module = sys.modules["pyarrow.dataset"]
        real = cls if isinstance(module, _Late) else getattr(module, cls.__name__, cls)
        return super().__instancecheck__(value) or (real is not cls and isinstance(value, real))

    def __getattr__(cls, name: str) -> Any:
        module = sys.modules["pyarrow.dataset"]
        if isinstance(module, _Late):
            module = module._module()  # noqa: SLF001 -- of this module
        return getattr(getattr(module, cls.__name__), name)


class _Parameter:
    """A stand-in for `inspect.Parameter`."""

    POSITIONAL_ONLY = VAR_POSITIONAL = KEYWORD_ONLY = 0

    def __init__(self, *_: object, **__: object) -> None:
        pass


class _Signature:
    """A stand-in for a signature without parameters."""

    parameters: Mapping[str, object] = {}


def _compute() -> ModuleType:
    """Import pyarrow.compute without texts for `help()`, which take most of the time."""
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
    """Return the version of an installed distribution, like `importlib.metadata.version`."""
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
    """Make a class a data class when its first object is created, unless that is too late."""
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
    """Import duckdb; a query uses few of its classes."""
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
