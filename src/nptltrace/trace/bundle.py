"""Names inside a trace, `info/symbols.jsonl`: what it takes to read it where no symbols are.

A line is one address of one module, known by its build-id (by its path where it has none), with
the functions, lines or variable there. Only addresses that occur in the trace are kept, so it is
small.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from nptltrace.errors import PttError
from nptltrace.trace import _names, _native
from nptltrace.trace.code import Frame
from nptltrace.trace.whole import read_whole

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from nptltrace.trace.source import Source, TraceFiles
    from nptltrace.trace.symbols import Location, Symbols

__all__ = ["Bundled", "Code", "Key", "copy_bundle", "read_bundle", "write_bundle"]

_KINDS = {_native.SITE: "site", _native.OBJECT: "variable", _native.CODE: "code"}
_BATCH = 16384


class Key(NamedTuple):
    """An address that does not depend on where a module was loaded.

    Attributes:
        module: Build-id of the module, or its path where it has none.
        kind: `site` (where a call returns to), `code` (a function) or `variable`.
        offset: Where in the module, as its own symbol table counts.
    """

    module: str
    kind: str
    offset: int


@dataclass(frozen=True, slots=True)
class Code:
    """What is known of a code address.

    Attributes:
        module: File name of the module.
        build_id: Of the module, or empty.
        offset: Bytes from the start of the function.
        frames: The functions there, the deepest inlined one first.
    """

    module: str
    build_id: str
    offset: int
    frames: tuple[Frame, ...]


@dataclass(slots=True)
class Bundled:
    """What was put into a trace.

    Attributes:
        names: How many addresses have a name.
        lines: How many of them have a source line.
        nameless: Modules, by path, with addresses that have no name.
        size: Bytes of the file.
    """

    names: int = 0
    lines: int = 0
    nameless: dict[str, int] = field(default_factory=dict)
    size: int = 0


def _lines(trace: Path) -> list[dict[str, Any]]:
    """Return the lines of a trace's names; those that make no sense are left out."""
    try:
        data = read_whole(trace / "info" / "symbols.jsonl").decode("utf-8", "replace")
    except OSError:
        return []
    found = []
    for line in data.splitlines():
        try:
            item = json.loads(line)
            _read(item)
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
            continue
        found.append(item)
    return found


def read_bundle(trace: Path) -> dict[Key, Code | str]:
    """Return the names inside a trace: code, or the name of a variable."""
    return dict(_read(item) for item in _lines(trace))


def _read(item: dict[str, Any]) -> tuple[Key, Code | str]:
    """Return what one line says."""
    kind, module, build_id = str(item["kind"]), str(item["module"]), str(item.get("build_id", ""))
    key = Key(build_id or module, kind, int(item["at"], 16))
    if kind == "variable":
        return key, str(item["name"])
    frames = tuple(
        Frame(str(f["function"]), str(f.get("path", "")), int(f.get("line", 0)))
        for f in item["frames"]
    )
    if kind not in {"site", "code"} or not frames:
        raise ValueError
    return key, Code(module.rpartition("/")[2], build_id, int(item["offset"]), frames)


def write_bundle(source: Source, symbols: Symbols) -> list[Bundled]:
    """Put the names of all addresses that occur into each trace.

    Returns:
        What was put there, for each trace.

    Raises:
        PttError: A trace cannot be written to.
    """
    lines = [{_read(item)[0]: item for item in _lines(t.path)} for t in source.traces]
    done = [Bundled() for _ in source.traces]
    owners = [trace for trace, _, _ in source.reader.processes()]
    for kind, process, address in _occurring(source, symbols):
        owner = owners[process]
        key, line = _line(symbols, kind, process, address)
        if key is not None and line is not None:
            lines[owner][key] = line
        elif kind != _native.OBJECT:
            module = symbols.module_at(process, address)
            if module is not None:
                nameless = done[owner].nameless
                nameless[module.path] = nameless.get(module.path, 0) + 1
    for trace, known, result in zip(source.traces, lines, done, strict=True):
        result.names = len(known)
        result.lines = sum(any(f.get("line") for f in v.get("frames", ())) for v in known.values())
        result.size = _write(trace.path, known.values())
    return done


def _write(trace: Path, lines: Iterable[dict[str, Any]]) -> int:
    """Write the lines of a trace's names; return how many bytes they take.

    Raises:
        PttError: The trace cannot be written to.
    """
    text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
    path = trace / "info" / "symbols.jsonl"
    new = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(exist_ok=True)
        new.write_text(text, encoding="utf-8")
        new.replace(path)
    except OSError as error:
        new.unlink(missing_ok=True)
        raise PttError(f"cannot write {path}: {error.strerror}") from None
    return len(text)


def _occurring(source: Source, symbols: Symbols) -> Iterable[tuple[int, int, int]]:
    """Yield (kind, process, address) of all that may have a name, each once."""
    names, cursor = _names.Names(source.reader), _native.Cursor(source.reader)
    for number in range(len(source.processes())):
        for start, end in symbols.ranges(number):
            names.add_range(number, start, end)
    buffer = _native.Buffer(_BATCH)
    while cursor.read(buffer):
        yield from names.missing(buffer)


def _line(
    symbols: Symbols, kind: int, process: int, address: int
) -> tuple[Key | None, dict[str, Any] | None]:
    """Return the line of one address, None if it has no name."""
    if kind == _native.OBJECT:
        key, name = symbols.variable(process, address)
    else:
        location = symbols.location(process, address, after_call=kind == _native.SITE)
        module = symbols.module_at(process, address)
        if module is None or not location.function:
            return None, None
        key = Key(module.build_id or module.path, _KINDS[kind], location.module_offset)
        return key, {
            **_head(key, module.path, module.build_id),
            "offset": location.offset,
            "frames": [_frame(frame) for frame in _frames(location)],
        }
    module = symbols.module_at(process, address)
    if key is None or module is None or not name:
        return None, None
    return key, {**_head(key, module.path, module.build_id), "name": name}


def _head(key: Key, path: str, build_id: str) -> dict[str, Any]:
    head = {"kind": key.kind, "module": path, "at": hex(key.offset)}
    return head | ({"build_id": build_id} if build_id else {})


def _frames(location: Location) -> list[Frame]:
    return [*location.inlined, Frame(location.function, location.path, location.line)]


def _frame(frame: Frame) -> dict[str, Any]:
    known: dict[str, Any] = {"function": frame.function}
    if frame.path:
        known |= {"path": frame.path, "line": frame.line}
    return known


def copy_bundle(traces: Iterable[TraceFiles], target: Path) -> None:
    """Carry the names of several traces over to one that was made of them."""
    lines = {json.dumps(line): line for trace in traces for line in _lines(trace.path)}
    if lines:
        _write(target, lines.values())
