"""Mangled names of functions and variables as they were written: C++, and both schemes of Rust."""

from __future__ import annotations

import ctypes
import re
from functools import cache
from typing import Any

from nptltrace.trace.symbols import _rust

__all__ = ["demangle"]

# What optimisers add to the name of a copy or of a part that they split off, and symbol versions.
_ADDED = re.compile(r"(\.(isra|constprop|part|cold|lto_priv|llvm)(\.\d+)*)*(@@?[\w.]+)?$")


def demangle(name: str) -> str:
    """Return a name as its author wrote it, or as it is where it follows no known scheme."""
    name = _ADDED.sub("", name)
    if name.startswith("_R"):
        return _rust.v0(name) or name
    if not name.startswith("_Z"):
        return name
    return _rust.legacy(name) or _cxx(name) or name


@cache
def _library() -> Any:
    """Return the function of the C++ library that demangles, or None where there is none."""
    try:
        function = getattr(ctypes.CDLL("libstdc++.so.6"), "__cxa_demangle")
    except (OSError, AttributeError):
        return None
    function.restype = ctypes.c_void_p
    function.argtypes = (ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
    return function


def _cxx(name: str) -> str:
    """Return a C++ name demangled, or empty."""
    function = _library()
    pointer = function(name.encode(), None, None, None) if function is not None else None
    if not pointer:
        return ""
    try:
        return ctypes.string_at(pointer).decode("utf-8", "replace")
    finally:
        free = ctypes.CDLL(None).free
        free.argtypes = (ctypes.c_void_p,)
        free(pointer)
