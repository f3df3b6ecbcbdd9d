# SPDX-License-Identifier: MIT
"""Generate the lists of functions between programs and the thread library, from wrappers.toml."""

from __future__ import annotations

import re
import sys
import tomllib
from typing import TYPE_CHECKING

from heads import c_head, py_head

if TYPE_CHECKING:
    from pathlib import Path

SOURCE = "wrappers.toml"

KEYS = {"functions", "analysis_functions", "symbols", "modules", "sources"}
# `ns::Class::*`, `ns::Template<*`, `ns::function*` or `word*`: the symbol follows from the name.
PLAIN = re.compile(r"(\w+::)*\w+(::\*|<\*|\*)?")

Wrappers = dict[str, list[str]]


def load_wrappers(path: Path) -> Wrappers:
    """Read the patterns of all groups, by key."""
    wrappers: Wrappers = {key: [] for key in KEYS}
    for name, group in tomllib.loads(path.read_text(encoding="utf-8")).items():
        for key, patterns in group.items():
            if key not in KEYS:
                sys.exit(f"wrappers.toml: {name} has '{key}', which means nothing")
            wrappers[key] += patterns
    for function in wrappers["functions"]:
        if not PLAIN.fullmatch(function):
            sys.exit(f"wrappers.toml: no symbol follows from {function}: see analysis_functions")
    return wrappers


def symbol_beginnings(function: str) -> list[str]:
    """Return the beginnings of the symbols of a plain pattern, in C and in C++."""
    words = [word for word in function.rstrip("*").split("::") if word]
    scoped = len(words) > 1 or "::" in function or "<" in function
    mangled = [f"{len(word.rstrip('<'))}{word.replace('<', 'I')}" for word in words]
    return ["_ZN" + "".join(mangled)] if scoped else words


def c_wrapper_symbols(wrappers: Wrappers) -> str:
    """The beginnings of the symbols of wrappers, for the tracer."""
    symbols = {begin for name in wrappers["functions"] for begin in symbol_beginnings(name)}
    symbols |= set(wrappers["symbols"])
    shortest = [
        symbol
        for symbol in sorted(symbols)
        if not any(symbol.startswith(other) for other in symbols - {symbol})
    ]
    out = [
        *c_head(
            "wrapper_symbols.h - beginnings of symbols of wrappers of the thread library.", SOURCE
        ),
        "",
        "/* clang-format off */",
    ]
    for array, of_cxx in (("of_cxx", True), ("of_c", False)):
        out.append(f"static const char *const {array}[] = {{")
        out += [f'\t"{symbol}",' for symbol in shortest if symbol.startswith("_Z") == of_cxx]
        out += ["};"]
    return "\n".join([*out, "/* clang-format on */", ""])


def py_wrappers(wrappers: Wrappers) -> str:
    """The patterns that the analysis looks for in stacks."""
    about = "Patterns of functions, modules and sources of wrappers of the thread library."
    out = py_head(about, SOURCE)
    functions = wrappers["functions"] + wrappers["analysis_functions"]
    lists = (("functions", functions), *((key, wrappers[key]) for key in ("modules", "sources")))
    for key, patterns in lists:
        out += [f"{key.upper()}: tuple[str, ...] = ("]
        out += [f'    "{pattern}",' for pattern in dict.fromkeys(patterns)]
        out += [")", ""]
    return "\n".join(out)
