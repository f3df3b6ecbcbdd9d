# SPDX-License-Identifier: MIT
"""Generate the table of locks that are compiled into programs, from futexes.toml."""

from __future__ import annotations

import re
import sys
import tomllib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from heads import c_head

if TYPE_CHECKING:
    from pathlib import Path

SOURCE = "futexes.toml"

KEYS = {"type", "doc", "waits", "wakes", "hold", "functions", "outer"}
WAITS = ("unknown", "lock", "work")
PIECES = 4  # of a name between its stars, at most


@dataclass(frozen=True, slots=True)
class Futex:
    """A kind of lock.

    Attributes:
        type: Name of the words that threads wait for.
        doc: Description of the lock.
        waits: Meaning of the waits, one of WAITS.
        anyone: Whether a signal handler may end a wait.
        hold: Whether the end of a wait and the next wake-up by its thread are the ends of a hold.
        functions: Patterns of the names of functions that wait.
        outer: Whether an entry that fits a caller of these functions is used instead.
    """

    type: str
    doc: str
    waits: str
    anyone: bool
    hold: bool
    functions: tuple[str, ...]
    outer: bool


def load_futexes(path: Path) -> list[Futex]:
    """Read the kinds. The first kind has number 1."""
    tables: list[dict[str, Any]] = tomllib.loads(path.read_text(encoding="utf-8"))["futex"]
    for table in tables:
        if unknown := sorted(set(table) - KEYS):
            sys.exit(f"futexes.toml: {table['type']} has '{unknown[0]}', which means nothing")
        if table["waits"] not in WAITS or table.get("wakes", "anyone") != "anyone":
            sys.exit(f"futexes.toml: {table['type']}: waits is {', '.join(WAITS)}, wakes is anyone")
        for name in table["functions"]:
            if name.startswith("*") or name.count("*") >= PIECES:
                sys.exit(f"futexes.toml: {name} begins with a star, or has too many")
    return [
        Futex(
            type=table["type"],
            doc=table["doc"],
            waits=table["waits"],
            anyone="wakes" in table,
            hold=table.get("hold", False),
            functions=tuple(
                pattern
                for name in table["functions"]
                # Rust mangles names in two ways.
                for pattern in dict.fromkeys((name, re.sub(r"^_R\*", "_ZN", name)))
            ),
            outer=table.get("outer", False),
        )
        for table in tables
    ]


def c_futex_names(futexes: list[Futex]) -> str:
    """The names of functions, for the tracer."""
    out = [
        *c_head(
            "futex_names.h - the waiting functions of locks that are compiled into programs.",
            SOURCE,
        ),
        "",
        "/* clang-format off */",
        "/* The beginning of a name and later pieces; kind: place in the catalogue, from 1. */",
        "static const struct futex_name {",
        "\tunsigned char kind;",
        f"\tconst char *piece[{PIECES + 1}];",
        "} futex_names[] = {",
    ]
    for number, futex in enumerate(futexes, start=1):
        for name in futex.functions:
            pieces = ", ".join(f'"{piece}"' for piece in name.split("*"))
            out.append(f"\t{{{number}, {{{pieces}}}}},")
    out += ["};", "", "/* By kind: whether the kind of a caller of these functions is used. */"]
    outer = ", ".join(f"[{n}] = 1" for n, futex in enumerate(futexes, start=1) if futex.outer)
    out += [f"static const unsigned char futex_outer[{len(futexes) + 1}] = {{{outer}}};"]
    return "\n".join([*out, "/* clang-format on */", ""])


def c_futex_kinds(futexes: list[Futex]) -> list[str]:
    """The kinds, for readers of a trace."""
    out = ["const struct ptt_futex_kind ptt_futex_kinds[] = {"]
    out += ['\t{"futex", PTT_FUTEX_UNKNOWN, 1, 0},']
    out += [
        f'\t{{"{futex.type}", PTT_FUTEX_{futex.waits.upper()}, '
        f"{int(futex.anyone)}, {int(futex.hold)}}},"
        for futex in futexes
    ]
    return [*out, "};", f"const unsigned int ptt_futex_kind_count = {len(futexes) + 1};", ""]


def doc_futexes(futexes: list[Futex]) -> list[str]:
    """The part of the reference page on these locks."""
    waits = {"lock": "contended", "work": "idle", "unknown": "unknown"}
    out = [
        "",
        "## Locks that are compiled into programs",
        "",
        "The compiler inlines the code that takes and releases these locks. So PTT records only",
        "their waits, by the futex that a thread waits for:",
        "",
        "- The functions that wait tell PTT the type of the lock. The program needs its symbols.",
        "- If a thread releases such a lock for a waiter, PTT takes the thread for the holder.",
        "- Locks of files work the same way. PTT knows them by the calls, without symbols.",
        "",
        "| type | what | class of its waits |",
        "|---|---|---|",
    ]
    out += [f"| `{futex.type}` | {futex.doc} | {waits[futex.waits]} |" for futex in futexes]
    return out
