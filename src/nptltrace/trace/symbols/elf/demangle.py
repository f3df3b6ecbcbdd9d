"""Mangled names of functions and variables as they were written: C++, and both schemes of Rust."""

from __future__ import annotations

import re
from functools import cache

from nptltrace._binding.libc import demangler
from nptltrace.trace.symbols.elf import rust_names

__all__ = ["demangle"]

# What optimisers add to the name of a copy or of a part that they split off, and symbol versions.
_ADDED = re.compile(r"(\.(isra|constprop|part|cold|lto_priv|llvm)(\.\d+)*)*(@@?[\w.]+)?$")


def demangle(name: str) -> str:
    """Return a name as its author wrote it, or as it is where it follows no known scheme."""
    name = _ADDED.sub("", name)
    if name.startswith("_R"):
        return rust_names.v0(name) or name
    if not name.startswith("_Z"):
        return name
    return rust_names.legacy(name) or _cxx_name(name) or name


_cxx = cache(demangler)


def _cxx_name(name: str) -> str:
    """Return a C++ name demangled, or empty."""
    return (_cxx()(name.encode()) or b"").decode("utf-8", "replace")
