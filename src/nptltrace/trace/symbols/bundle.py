"""Names inside a trace, `info/symbols.jsonl`: what it takes to read it where no symbols are.

A line is one address of one module, known by its build-id (by its path where it has none), with
the functions, lines or variable there. Only addresses that occur in the trace are kept, so it is
small. `bundling` writes them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from nptltrace.trace.reading.small_files import read_whole
from nptltrace.trace.symbols.code import Frame

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Code", "Key", "bundle_lines", "read_bundle"]


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


def bundle_lines(trace: Path) -> list[tuple[Key, Code | str, dict[str, Any]]]:
    """Return whose each name in a trace is, the name, and its line; not what makes no sense."""
    try:
        data = read_whole(trace / "info" / "symbols.jsonl").decode("utf-8", "replace")
    except OSError:
        return []
    found = []
    for line in data.splitlines():
        try:
            item = json.loads(line)
            key, name = _read(item)
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
            continue
        found.append((key, name, item))
    return found


def read_bundle(trace: Path) -> dict[Key, Code | str]:
    """Return the names inside a trace: code, or the name of a variable."""
    return {key: name for key, name, _ in bundle_lines(trace)}


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
