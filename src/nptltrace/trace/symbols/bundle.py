"""Reads the names inside a trace, `info/symbols.jsonl`, for systems without its symbols.

A line is one address of one module, with the functions, lines or variable there. The build-id
identifies the module, or else its path. The file is small: it has only the addresses that occur in
the trace. `bundling` writes it.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from nptltrace._dataclasses import dataclass
from nptltrace._files.whole import read_whole
from nptltrace.trace.symbols.elf.code import Frame

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

__all__ = ["Bundles", "Code", "Key", "bundle_lines"]


class Key(NamedTuple):
    """An address in a module, wherever the module was loaded.

    Attributes:
        module: Build-id of the module, or its path if it has no build-id.
        kind: `site` (a return address), `code` (an entry of a function) or `variable`.
        offset: The address in terms of the module's symbol table.
    """

    module: str
    kind: str
    offset: int

    @property
    def has_build_id(self) -> bool:
        """Whether `module` is a build-id."""
        return not self.module.startswith(("/", "["))


@dataclass(frozen=True, slots=True)
class Code:
    """The functions at a code address.

    Attributes:
        module: File name of the module.
        build_id: Build-id of the module, or empty.
        offset: Bytes from the start of the function.
        frames: The functions, the deepest inlined function first.
    """

    module: str
    build_id: str
    offset: int
    frames: tuple[Frame, ...]


def bundle_lines(trace: Path) -> list[tuple[Key, Code | str, dict[str, Any]]]:
    """Return key, name and JSON of each line of names in a trace. Skip damaged lines."""
    try:
        data = read_whole(trace / "info" / "symbols.jsonl").decode("utf-8", "replace")
    except OSError:
        return []
    lines = []
    for line in data.splitlines():
        try:
            item = json.loads(line)
            key, name = _read(item)
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
            continue
        lines.append((key, name, item))
    return lines


class Bundles:
    """The names inside several traces.

    Traces share names of modules with a build-id. A module without a build-id may be another build
    in each trace, so its names count for this trace only.

    Args:
        traces: Directories of the traces, by number.
    """

    def __init__(self, traces: Iterable[Path]) -> None:
        self._own = [{key: name for key, name, _ in bundle_lines(path)} for path in traces]
        self._shared = {
            key: name for names in self._own for key, name in names.items() if key.has_build_id
        }

    def get(self, trace: int, key: Key) -> Code | str | None:
        """Return the name of an address: functions of code, or the name of a variable; or None."""
        return (self._shared if key.has_build_id else self._own[trace]).get(key)

    @property
    def modules(self) -> set[str]:
        """Build-ids or paths of the modules that have names."""
        return {key.module for names in self._own for key in names}

    def of_module(self, trace: int, module: str) -> Iterator[tuple[Key, Code | str]]:
        """Yield keys and names of a module, which is a build-id or a path."""
        for names in (self._shared, self._own[trace]):
            yield from ((key, name) for key, name in names.items() if key.module == module)

    def __bool__(self) -> bool:
        """Return whether there are traces."""
        return bool(self._own)


def _read(item: dict[str, Any]) -> tuple[Key, Code | str]:
    """Return key and name of a line."""
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
