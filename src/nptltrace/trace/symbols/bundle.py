"""Names inside a trace, `info/symbols.jsonl`: what it takes to read it where no symbols are.

A line is one address of one module, known by its build-id (by its path where it has none), with
the functions, lines or variable there. Only addresses that occur in the trace are kept, so it is
small. `bundling` writes them.
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
    """An address that does not depend on where a module was loaded.

    Attributes:
        module: Build-id of the module, or its path where it has none.
        kind: `site` (where a call returns to), `code` (a function) or `variable`.
        offset: Where in the module, as its own symbol table counts.
    """

    module: str
    kind: str
    offset: int

    @property
    def has_build_id(self) -> bool:
        """Whether it is known of which build of the module the address is."""
        return not self.module.startswith(("/", "["))


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

    A file without a build-id may be another build in each trace, which has its names to itself.

    Args:
        traces: The directories, by number.
    """

    def __init__(self, traces: Iterable[Path]) -> None:
        self._own = [{key: name for key, name, _ in bundle_lines(path)} for path in traces]
        self._shared = {
            key: name for names in self._own for key, name in names.items() if key.has_build_id
        }

    def get(self, trace: int, key: Key) -> Code | str | None:
        """Return what a trace, or any of them, says of an address."""
        return (self._shared if key.has_build_id else self._own[trace]).get(key)

    @property
    def modules(self) -> set[str]:
        """The modules that a name is known of, by their build-ids or paths."""
        return {key.module for names in self._own for key in names}

    def of_module(self, trace: int, module: str) -> Iterator[tuple[Key, Code | str]]:
        """Yield what is known of a module, by its build-id or its path."""
        for names in (self._shared, self._own[trace]):
            yield from ((key, name) for key, name in names.items() if key.module == module)

    def __bool__(self) -> bool:
        """Return whether there are traces."""
        return bool(self._own)


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
