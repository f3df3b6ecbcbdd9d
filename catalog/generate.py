#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Generate code and pages from events.toml and the other files of this folder.

`--check` only compares.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from cpython_layouts import c_layouts, load_layouts, py_layouts
from declarations import (
    MARK,
    SLOT,
    SOURCE,
    TYPES,
    load,
    load_hooks,
    load_lll_purposes,
    load_points,
)
from documents import load_documents, py_meanings, py_shapes, py_sources
from futex_names import c_futex_kinds, c_futex_names, doc_futexes, load_futexes
from heads import c_head, note, py_head
from lock_stubs import c_lock_stubs, c_lock_table, c_lock_types, doc_locks, load_locks
from plain_hooks import c_plain_hooks, c_routines
from sleep_hooks import c_sleep_hooks, c_sleep_routines, load_sleeps
from tables import c_rows, load_tables, py_tables
from wrapper_functions import c_wrapper_symbols, load_wrappers, py_wrappers

if TYPE_CHECKING:
    from collections.abc import Iterable

    from declarations import Event, Point
    from futex_names import Futex

ROOT = Path(__file__).resolve().parent.parent


def domains(events: list[Event]) -> dict[str, int]:
    """Domain names and ids in order."""
    return dict(sorted({(e.domain, e.domain_id) for e in events}, key=lambda p: p[1]))


def c_header(events: list[Event]) -> str:
    """The installed header: ids, levels and parameter structs."""
    out = [
        *c_head(
            "nptl_trace_events.h - ids, detail levels and parameter structs of all events.", SOURCE
        ),
        "#ifndef NPTL_TRACE_EVENTS_H",
        "#define NPTL_TRACE_EVENTS_H",
        "",
        "#include <stdint.h>",
        "",
        "/* A 48-bit address, in three halves so that it needs only 2-byte alignment. */",
        "struct nptl_trace_ptr48 {",
        "\tuint16_t lo, mid, hi;",
        "};",
        "",
        "enum nptl_trace_domain {",
    ]
    out += [f"\tNPTL_DOMAIN_{n.upper()} = {i}," for n, i in domains(events).items()]
    out += [
        "\tNPTL_DOMAIN_COUNT = 16",
        "};",
        "",
        "/* Number of the event within its domain. */",
        "enum nptl_trace_number {",
    ]
    out += [f"\tNPTL_EV_{e.symbol} = {e.number}," for e in events]
    out += [
        "};",
        "",
        "/* Lowest detail level that reports the event. */",
        "enum nptl_trace_event_level {",
    ]
    out += [f"\tNPTL_LEVEL_{e.symbol} = {e.level}," for e in events]
    out += [
        "};",
        "",
        "/* The parameters of every NPTL event; events with fields have more. */",
    ]
    out += ["struct nptl_trace_param {", "\tvoid *object;", "\tvoid *site;", "};"]
    for e in events:
        if not e.fields:
            continue
        out += ["", f"struct nptl_trace_{e.symbol.lower()} {{", "\tvoid *object;", "\tvoid *site;"]
        at = SLOT
        for f in e.fields:
            if f.type == "bytes":
                if at % SLOT:
                    out.append(f"\tuint8_t _pad{at}[{SLOT - at % SLOT}];")
                out.append(f"\tchar {f.name}[];")
                at = 0
                continue
            size, ctype = TYPES[f.type][:2]
            if f.offset // SLOT != (at - 1) // SLOT or at == SLOT:
                if at % SLOT:
                    out.append(f"\tuint8_t _pad{at}[{SLOT - at % SLOT}];")
                    at += SLOT - at % SLOT
                out.append(f"\tuint16_t _slot{at // SLOT};")
                at += MARK
            if f.offset > at:
                out.append(f"\tuint8_t _pad{at}[{f.offset - at}];")
            out.append(f"\t{ctype} {f.name};")
            at = f.offset + size
        if at and at % SLOT:
            out.append(f"\tuint8_t _pad{at}[{SLOT - at % SLOT}];")
        out.append("};")
    out += ["", "#endif", ""]
    return "\n".join(out)


def c_points(points: list[Point], lll_purposes: list[str]) -> str:
    """The installed header for the build of a thread library."""
    out = [
        *c_head(
            "nptl_trace_points.h - the trace points inside a trace-enabled thread library.", SOURCE
        ),
        "#ifndef NPTL_TRACE_POINTS_H",
        "#define NPTL_TRACE_POINTS_H",
        "",
        "/* The reference page on events has the object and the numbers of each point. */",
        "enum nptl_trace_point {",
    ]
    out += [f"\tNPTL_POINT_{p.name} = {p.number}," for p in points]
    out += [
        "\tNPTL_POINT_COUNT",
        "};",
        "",
        "/* Purpose of a low-level lock: the number in the points lll_*. */",
        "enum nptl_trace_lll {",
    ]
    out += [f"\tNPTL_TRACE_LLL_{purpose.upper()} = {i}," for i, purpose in enumerate(lll_purposes)]
    out += [
        "};",
        "",
        "/* For macros that get the name of a probe: not every probe is a point. */",
    ]
    out += [f"#define NPTL_HAS_POINT_{p.name} 1" for p in points]
    return "\n".join([*out, "", "#endif", ""])


def c_point_table(points: list[Point]) -> str:
    """The tracer's table of the events of each trace point."""
    out = [
        *c_head("point_table.c - the events that are reported for each trace point.", SOURCE),
        '#include "points.h"',
        "",
        "const struct ptt_point ptt_points[NPTL_POINT_COUNT] = {",
    ]
    for p in points:
        if not p.gives:
            continue
        out.append(f"\t[NPTL_POINT_{p.name}] = {{{len(p.gives)}, {{")
        for e in p.gives:
            fields = ", ".join(
                f"{{{f.offset}, {TYPES[f.type][0]}, {p.source(e, f)}}}" for f in e.fields
            )
            out.append(
                f"\t\t{{NPTL_DOMAIN_{e.domain.upper()}, NPTL_EV_{e.symbol}, "
                f"NPTL_LEVEL_{e.symbol}, {e.slots}, {int(p.about_self(e))}, "
                f"{len(e.fields)}, {{{fields or '{0}'}}}}},"
            )
        out.append("\t}},")
    return "\n".join([*out, "};", ""])


def _numbered(name: str, count: str, words: Iterable[str], first: int = 0) -> list[str]:
    """A table of words by the number that events carry."""
    rows = [f'\t[{number}] = "{word}",' for number, word in enumerate(words, start=first)]
    size = f"const unsigned int {count} = {len(rows) + first};"
    return [f"const char *const {name}[] = {{", *rows, "};", size, ""]


def c_table(
    events: list[Event],
    lll_purposes: list[str],
    lock_types: Iterable[str],
    calls: list[str],
    futexes: list[Futex],
) -> str:
    """The C table that the text handler, the classic records and the reader use."""
    out = [
        *c_head("event_table.c - names, fields and sentences of all events.", SOURCE),
        '#include "catalog.h"',
        "",
    ]
    for e in events:
        if e.fields:
            rows = ", ".join(
                f'{{"{f.name}", PTT_FIELD_{f.type.upper()}, {f.offset}}}' for f in e.fields
            )
            out.append(f"static const struct ptt_field fields_{e.id}[] = {{{rows}}};")
    out += ["", "const struct ptt_event_type ptt_event_types[] = {"]
    for e in events:
        fields = f"fields_{e.id}" if e.fields else "0"
        out.append(
            f"\t{{{e.id}, {e.level}, {e.slots}, {int(e.bytes_field is not None)}, "
            f"{len(e.fields)}, {fields}, "
            f'"{e.name}", "{e.object}", "{e.role}", "{e.text}"}},'
        )
    out += [
        "};",
        (
            "const unsigned int ptt_event_type_count = "
            "sizeof(ptt_event_types) / sizeof(ptt_event_types[0]);"
        ),
        "",
    ]
    out += _numbered("ptt_lll_purposes", "ptt_lll_purpose_count", lll_purposes)
    out += _numbered("ptt_lock_types", "ptt_lock_type_count", lock_types, 1)
    out += _numbered("ptt_sys_calls", "ptt_sys_call_count", calls, 1)
    out += c_futex_kinds(futexes)
    names = {i: n for n, i in domains(events).items()}
    out.append("const char *const ptt_domain_names[16] = {")
    out += [f'\t[{i}] = "{n}",' for i, n in names.items()]
    out += ["};", ""]
    return "\n".join(out)


def ctf_int(kind: str) -> str:
    """A TSDL integer of a slot field."""
    return f"integer {{ {TYPES[kind][2]} }}"


# Words of TSDL that cannot be names of fields. Such a name gets an underscore; readers drop it.
TSDL_WORDS = {
    "align", "callsite", "char", "clock", "const", "double", "enum", "env", "event", "float",
    "floating_point", "int", "integer", "long", "short", "signed", "stream", "string", "struct",
    "trace", "typealias", "typedef", "unsigned", "variant", "void",
}  # fmt: skip


def ctf_name(name: str) -> str:
    """The name of a field in TSDL."""
    return f"_{name}" if name.endswith("_pieces") or name in TSDL_WORDS else name


def ctf_slot_fields(e: Event) -> str:
    """TSDL of the continuation slots of an event of stream class 0."""
    mark = "integer { size = 16; align = 16; signed = false; }"
    parts: list[str] = []
    seen = 0
    for f in e.fields:
        if f.type == "bytes":
            piece = (
                f"{mark} _slot; "
                "integer { size = 8; align = 8; signed = false; encoding = UTF8; } text[14];"
            )
            parts.append(f"struct {{ {piece} }} align(128) {f.name}[_{e.fields[-2].name}];")
            continue
        if f.offset // SLOT != seen:
            seen = f.offset // SLOT
            parts.append(f"struct {{ {mark} _more; }} align(128) _slot{seen};")
        parts.append(f"{ctf_int(f.type)} {ctf_name(f.name)};")
    last = e.fields[-1] if e.fields else None
    if last and (last.type == "bytes" or (last.offset + TYPES[last.type][0]) % SLOT):
        # Without this, readers look for another event in the rest of the last slot of a packet.
        parts.append("struct { } align(128) _end;")
    return " ".join(parts)


def ctf_record_fields(e: Event) -> str:
    """TSDL of the arguments of an event of stream class 1: a classic record in 32-bit words."""
    parts: list[str] = []
    for f in e.fields:
        if f.type == "bytes":
            parts.append(
                "integer { size = 8; align = 8; signed = false; encoding = UTF8; } "
                f"{f.name}[_{f.name}_bytes];"
            )
        elif f.name.endswith("_pieces"):
            parts.append(
                "integer { size = 32; align = 32; signed = false; } "
                f"_{f.name.removesuffix('_pieces')}_bytes;"
            )
        else:
            bits = 32 * TYPES[f.type][3]
            sign = "true" if f.type.startswith("s") else "false"
            base = " base = 16;" if f.type == "ptr" else ""
            parts.append(
                f"integer {{ size = {bits}; align = 32; signed = {sign};{base} }} "
                f"{ctf_name(f.name)};"
            )
    parts.append("integer { size = 32; align = 32; signed = false; base = 16; } _checksum;")
    return " ".join(parts)


# PTT_ID_STACK: this is no event. Its object is the number of the stack of the event before it.
STACK_ID = 0x3FD


def metadata_events(events: list[Event], stream: int) -> str:
    """TSDL event classes of one stream class."""
    out: list[str] = []
    for e in events:
        fields = ctf_slot_fields(e) if stream == 0 else ctf_record_fields(e)
        body = f" fields := struct {{ {fields} }};" if fields else ""
        out.append(
            f'event {{ name = "{e.name}"; id = {e.id}; stream_id = {stream}; '
            f"loglevel = {e.level};{body} }};"
        )
    if stream == 0:
        out.append(f'event {{ name = "STACK"; id = {STACK_ID}; stream_id = 0; loglevel = 1; }};')
    return "\n".join(out) + "\n"


def c_string(text: str) -> str:
    """A C string literal, one source line a text line."""
    return "\n".join(
        '\t"' + line.replace("\\", "\\\\").replace('"', '\\"') + '\\n"'
        for line in text.splitlines()
    )


def c_metadata(events: list[Event]) -> str:
    """The TSDL event classes for handlers that write their own trace."""
    out = [
        *c_head(
            "metadata_text.c - CTF event classes, for handlers that write a trace themselves.",
            SOURCE,
        ),
        '#include "catalog.h"',
        "",
        "const char ptt_metadata_record_events[] =",
        c_string(metadata_events(events, 1)) + ";",
        "",
    ]
    return "\n".join(out)


def py_table(events: list[Event]) -> str:
    """The Python table, one row an event. Plain data: recording needs no NumPy."""
    out = [
        *py_head("The event table.", SOURCE),
        "from nptltrace.catalog.types import EventType, Field",
        "",
        "EVENTS: tuple[EventType, ...] = (",
    ]
    for e in events:
        fields = ", ".join(f'Field("{f.name}", "{f.type}", {f.offset})' for f in e.fields)
        comma = "," if len(e.fields) == 1 else ""
        out.append(
            f'    EventType({e.id}, "{e.domain}", "{e.name}", "{e.variant}", {e.level}, '
            f'"{e.role}", "{e.object}", {e.slots}, ({fields}{comma}), "{e.text}"),'
        )
    out += [")", ""]
    return "\n".join(out)


def py_domains(
    events: list[Event],
    lll_purposes: list[str],
    lock_types: tuple[str, ...],
    futexes: list[Futex],
    calls: list[str],
) -> str:
    """The Python table of domains, for code that does not need the events."""
    out = [
        *py_head(
            "The domains of events with their ids, purposes, types of locks and system calls.",
            SOURCE,
        ),
        "DOMAINS: dict[str, int] = {",
    ]
    out += [f'    "{n}": {i},' for n, i in domains(events).items()]
    purposes = ", ".join(f'"{purpose}"' for purpose in lll_purposes)
    types = "".join(f'\n    "{name}",' for name in lock_types)
    out += ["}", "", f"LLL_PURPOSES: tuple[str, ...] = ({purposes})", ""]
    out += [f"LOCK_TYPES: tuple[str, ...] = ({types}\n)", ""]
    kinds = "".join(f'\n    "{name}",' for name in ["futex", *(f.type for f in futexes)])
    out += [f"FUTEX_KINDS: tuple[str, ...] = ({kinds}\n)", ""]
    named = "".join(f'\n    "{name}",' for name in ["", *calls])
    return "\n".join([*out, f"SYS_CALLS: tuple[str, ...] = ({named}\n)", ""])


def doc_points(points: list[Point]) -> list[str]:
    """The part of the reference page on trace points inside the thread library."""
    out = [
        "",
        "## Trace points inside the thread library",
        "",
        (
            "A [trace-enabled thread library](../explanation/inside-the-library.md) calls the "
            "tracer at these points. A point can cause several events."
        ),
        "",
        "| trace point | when | numbers | events |",
        "|---|---|---|---|",
    ]
    for p in points:
        names = ", ".join(f"`{n}`" for n in p.takes) or "–"
        made = ", ".join(f"`{e.name}`" for e in p.gives) or "as the tracer decides"
        out.append(f"| `{p.name}` | {p.doc} | {names} | {made} |")
    return out


def doc_table(events: list[Event], points: list[Point]) -> str:
    """The reference page."""
    out = [
        "# Events",
        "",
        f"<!-- {note(SOURCE)} -->",
        "",
        (
            "This page lists all event types. Every event has a time, process, thread, object and "
            "call site. It has the processor if the kernel gives the processor without a system "
            "call. `ptt view --list-events` prints the same list."
        ),
        "",
        (
            "*level* is the lowest [detail level](levels.md) that records the event. *sentence* is "
            "the text of `ptt view`."
        ),
    ]
    for domain, number in domains(events).items():
        mine = [e for e in events if e.domain == domain]
        out += ["", f"## {domain}", "", f"Domain {number}; the object is a {mine[0].object}.", ""]
        out += ["| event | number | level | fields | sentence |", "|---|---|---|---|---|"]
        for e in mine:
            fields = (
                ", ".join(f"`{f.name}`" for f in e.fields if not f.name.endswith("_pieces")) or "–"
            )
            out.append(
                f"| `{e.name}` | {e.number} | {e.level} | {fields} | {e.text.replace('|', '/')} |"
            )
    return "\n".join([*out, *doc_points(points), ""])


def outputs(source: Path) -> dict[Path, str]:
    """Every generated file with its text."""
    package = ROOT / "src/nptltrace/catalog"
    events = load(source)
    points = load_points(source, events)
    lll_purposes = load_lll_purposes(source)
    hooks = load_hooks(source, events)
    locks = load_locks(source.with_name("locks.toml"))
    layouts = load_layouts(source.with_name("cpython.toml"))
    futexes = load_futexes(source.with_name("futexes.toml"))
    calls, sleep_hooks = load_sleeps(source.with_name("sleeps.toml"))
    wrappers = load_wrappers(source.with_name("wrappers.toml"))
    tables = load_tables(source.with_name("tables.toml"))
    documents = load_documents(source.with_name("documents.toml"))
    vocabulary = ROOT / "src/nptltrace/analysis/vocabulary"
    return {
        ROOT / "native/include/nptl_trace_events.h": c_header(events),
        ROOT / "native/include/nptl_trace_points.h": c_points(points, lll_purposes),
        ROOT / "native/tracer/hooks/plain.c": c_plain_hooks(hooks),
        ROOT / "native/tracer/real/routines.def": c_routines(hooks),
        ROOT / "native/tracer/hooks/sleeps.c": c_sleep_hooks(sleep_hooks),
        ROOT / "native/tracer/real/sleeps.def": c_sleep_routines(sleep_hooks),
        ROOT / "native/tracer/locks/lock_table.c": c_lock_table(locks),
        ROOT / "native/tracer/locks/stubs.c": c_lock_stubs(locks),
        ROOT / "native/tracer/locks/lock_types.h": c_lock_types(locks, futexes),
        ROOT / "native/tracer/call_site/futex_names.h": c_futex_names(futexes),
        ROOT / "native/tracer/call_site/wrapper_symbols.h": c_wrapper_symbols(wrappers),
        ROOT / "native/tracer/points/point_table.c": c_point_table(points),
        ROOT / "native/catalog/event_table.c": c_table(
            events, lll_purposes, locks.types, calls, futexes
        ),
        ROOT / "native/catalog/metadata_text.c": c_metadata(events),
        ROOT / "native/tracer/call_site/python_layouts.h": c_layouts(layouts),
        package / "_cpython.py": py_layouts(layouts),
        package / "_domains.py": py_domains(events, lll_purposes, locks.types, futexes, calls),
        package / "_events.py": py_table(events),
        package / "_wrappers.py": py_wrappers(wrappers),
        package / "tables.py": py_tables(tables),
        vocabulary / "document_fields.py": py_sources(documents),
        vocabulary / "document_types.py": py_shapes(documents),
        vocabulary / "meanings.py": py_meanings(documents),
        ROOT / "native/tracker/sums/model_rows.h": c_rows(tables),
        package / "slot_events.tsdl": metadata_events(events, 0),
        package / "record_events.tsdl": metadata_events(events, 1),
        ROOT / "docs/reference/locks.md": doc_locks(locks, doc_futexes(futexes)),
        ROOT / "docs/reference/events.md": doc_table(events, points),
    }


def main() -> int:
    """Write the generated files, or with --check say which ones are stale."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit 1 if a file is stale"
    )
    check: bool = parser.parse_args().check
    stale = 0
    for path, text in outputs(ROOT / "catalog/events.toml").items():
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        stale = 1
        if check:
            print(f"{path.relative_to(ROOT)} is stale: run catalog/generate.py", file=sys.stderr)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    return stale if check else 0


if __name__ == "__main__":
    sys.exit(main())
