"""Puts the names of all addresses of a trace into the trace, where `symbols.bundle` reads them."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

from nptltrace._binding import libpttread, libpttread_text
from nptltrace._dataclasses import dataclass, field
from nptltrace._files.directories import Directory
from nptltrace.errors import PttError
from nptltrace.trace.code.call_site import ENTRY, is_entry
from nptltrace.trace.symbols.bundle import Key, bundle_lines
from nptltrace.trace.symbols.elf.code import Frame

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from nptltrace.trace.symbols.lookup import Symbols
    from nptltrace.trace.traceset import TraceFiles, Traceset

__all__ = ["Bundled", "Occurrence", "copy_bundle", "write_bundle"]

_BATCH = 16384

# Kind of name, number of the process, and address.
Occurrence = tuple[int, int, int]


@dataclass(slots=True)
class Bundled:
    """The names that were put into a trace.

    Attributes:
        names: Number of addresses with a name.
        lines: Number of addresses with a source line.
        nameless: Number of addresses without a name, by path of the module.
        size: Size of the file, in bytes.
    """

    names: int = 0
    lines: int = 0
    nameless: dict[str, int] = field(default_factory=dict)
    size: int = 0


def write_bundle(
    source: Traceset,
    symbols: Symbols,
    *,
    only: Callable[[Iterable[Occurrence]], Iterator[Occurrence]] = iter,
    events: int | None = None,
) -> list[Bundled]:
    """Put the names of all its addresses into each trace.

    Args:
        source: The opened traces.
        symbols: Names addresses.
        only: Chooses the addresses to look up, and their order.
        events: Search about this many events for addresses; None for all.

    Returns:
        The result for each trace.

    Raises:
        PttError: A trace cannot be written to.
    """
    lines = [{key: line for key, _, line in bundle_lines(t.path)} for t in source.traces]
    done = [Bundled() for _ in source.traces]
    for kind, process, address in only(_occurring(source, symbols, events)):
        owner = source.trace_of(process)
        key, line = _line(symbols, kind, process, address)
        if key is not None and line is not None:
            lines[owner][key] = line
        elif kind != libpttread_text.OBJECT:
            module = symbols.module_at(process, address)
            if module is not None:
                nameless = done[owner].nameless
                nameless[module.path] = nameless.get(module.path, 0) + 1
    for trace, known, result in zip(source.traces, lines, done, strict=True):
        result.names = len(known)
        result.lines = sum(any(f.get("line") for f in v.get("frames", ())) for v in known.values())
        with Directory.open(trace.path) as directory:
            result.size = _write(directory, known.values())
    return done


def _write(trace: Directory, lines: Iterable[dict[str, Any]]) -> int:
    """Write the names of a trace; return their size in bytes.

    Raises:
        PttError: The trace cannot be written to.
    """
    text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
    try:
        if not trace.has_folder("info"):
            trace.make("info").close()
        with trace.inside("info") as info:
            info.replace("symbols.jsonl", text)
    except OSError as error:
        path = trace.path / "info" / "symbols.jsonl"
        raise PttError(f"cannot write {path}: {error.strerror}") from None
    return len(text)


def _occurring(source: Traceset, symbols: Symbols, events: int | None) -> Iterator[Occurrence]:
    """Yield each address that may have a name once."""
    names, cursor = libpttread_text.Names(source.reader), libpttread.Cursor(source.reader)
    for number in range(len(source.processes)):
        for start, end in symbols.ranges(number):
            names.add_range(number, start, end)
    buffer = libpttread.Buffer(_BATCH)
    seen = 0
    while (events is None or seen < events) and cursor.read(buffer):
        seen += buffer.count
        yield from names.missing(buffer)
    for number, process in enumerate(source.processes):
        for address in {address for _, address in process.stacks.values()}:
            for site in process.map.sites(address):
                yield libpttread_text.SITE, number, site


def _line(
    symbols: Symbols, kind: int, process: int, address: int
) -> tuple[Key | None, dict[str, Any] | None]:
    """Return key and line of an address; None if the address has no name."""
    if kind == libpttread_text.OBJECT:
        key, name = symbols.variable(process, address)
    else:
        site = address | ENTRY if kind == libpttread_text.CODE else address
        location = symbols.location(process, site)
        module = symbols.module_at(process, address)
        if module is None or not location.function:
            return None, None
        what = "code" if is_entry(site) else "site"
        outermost = Frame(location.function, location.path, location.line)
        key = Key(module.build_id or module.path, what, location.module_offset)
        return key, {
            **_head(key, module.path, module.build_id),
            "offset": location.offset,
            "frames": [
                {"function": frame.function}
                | ({"path": frame.path, "line": frame.line} if frame.path else {})
                for frame in (*location.inlined, outermost)
            ],
        }
    module = symbols.module_at(process, address)
    if key is None or module is None or not name:
        return None, None
    return key, {**_head(key, module.path, module.build_id), "name": name}


def _head(key: Key, path: str, build_id: str) -> dict[str, Any]:
    head = {"kind": key.kind, "module": path, "at": hex(key.offset)}
    return head | ({"build_id": build_id} if build_id else {})


def copy_bundle(traces: Iterable[TraceFiles], target: Directory) -> None:
    """Copy the names of several traces to the trace that was merged from them."""
    traces = list(traces)
    ambiguous = _ambiguous(traces)
    lines = {
        json.dumps(line): line
        for trace in traces
        for key, _, line in bundle_lines(trace.path)
        if key.module not in ambiguous
    }
    if lines:
        _write(target, lines.values())


def _ambiguous(traces: Iterable[TraceFiles]) -> set[str]:
    """Return the files without a build-id in several traces: each trace may have another build."""
    count = Counter(
        path
        for trace in traces
        for path in {
            module.path
            for process in trace.info.processes.values()
            for module in process.modules
            if not module.build_id
        }
    )
    return {path for path, number in count.items() if number > 1}
