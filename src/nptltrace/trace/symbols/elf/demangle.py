"""Demangles names of functions and variables: of C++, and of both schemes of Rust."""

from __future__ import annotations

import re
from functools import cache

from nptltrace._binding.libc import demangler
from nptltrace.trace.symbols.elf import rust_names

__all__ = ["demangle"]

# Suffixes that optimisers add to the names of copies and parts, and symbol versions.
_ADDED = re.compile(r"(\.(isra|constprop|part|cold|lto_priv|llvm)(\.\d+)*)*(@@?[\w.]+)?$")


def demangle(name: str) -> str:
    """Return a name as in the source; unchanged if it follows no known scheme."""
    name = _ADDED.sub("", name)
    if name.startswith("_R"):
        return rust_names.v0(name) or name
    if not name.startswith("_Z"):
        return name
    return (
        rust_names.legacy(name) or (_cxx()(name.encode()) or b"").decode(errors="replace") or name
    )


_cxx = cache(demangler)
