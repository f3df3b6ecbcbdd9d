"""The mappings of a process: modules, code of Python and Java, and shared memory.

They are read from its memory map, /proc/PID/maps, and from files that the process wrote itself.
"""

from __future__ import annotations

import os

from nptltrace._files.elf import read_elf
from nptltrace.catalog.runtimes import is_unknown_python, runtime_of_file, unseen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from nptltrace._files.elf import Elf

__all__ = ["Modules", "codes_of_log", "modules_of_log", "program_of_maps", "shared_of_maps"]

# A process may name any number of files; only this many are searched for runtimes.
_FILES_MAX = 4096
_ENCODINGS = {0: "utf-8", 1: "latin-1", 2: "utf-16-le", 4: "utf-32-le"}


class Modules:
    """Turns memory maps into lists of modules; each file is read once."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, str], Elf | None] = {}
        self._runtimes: dict[str, str] = {}

    def of_maps(self, text: str) -> list[dict[str, Any]]:
        """Return the modules of one memory map, as they stand in `info/processes.jsonl`."""
        modules: list[dict[str, Any]] = []
        for start, end, offset, inode, path in _file_mappings(text):
            last = modules[-1] if modules else None
            # Another segment of the same module. Several segments of a small file begin at page 0.
            if last and last["path"] == path and (offset or start < last["end"]):
                last["end"] = max(last["end"], end)
                continue
            elf = self._elf(path, inode)
            bias = elf.bias(start, offset) if elf is not None else None
            if elf is None or bias is None:
                continue
            low, high = elf.extent(bias)
            module: dict[str, Any] = {
                "path": path,
                "start": low,
                "end": max(high, end),
                "offset": 0,
                "bias": bias,
            }
            modules.append({**module, "build_id": elf.build_id, **self.runtime(path)})
        return [{**m, **{name: hex(m[name]) for name in ("start", "end", "bias")}} for m in modules]

    @property
    def unknown(self) -> list[str]:
        """A sentence for each interpreter of a version that PTT does not know."""
        return [
            f"{path}: {unseen(path, runtime)}"
            for path, runtime in self._runtimes.items()
            if is_unknown_python(runtime)
        ]

    def runtime(self, path: str) -> dict[str, str]:
        """Return `{"runtime": NAME}` for a module with a runtime, else nothing."""
        runtime = self._runtimes.get(path)
        if runtime is None and len(self._runtimes) < _FILES_MAX:
            runtime = self._runtimes[path] = runtime_of_file(path)
        return {"runtime": runtime} if runtime else {}

    def _elf(self, path: str, inode: str) -> Elf | None:
        key = (path, inode)
        if key not in self._seen:
            try:
                self._seen[key] = read_elf(path)
            except OSError:
                self._seen[key] = None
        return self._seen[key]


def _fields(line: str) -> tuple[int, int, int, str, str, str] | None:
    """Return start, end, offset, device, inode and path of a line; None if it has no file."""
    addresses, _, offset, device, inode, path = (*line.split(maxsplit=5), *[""] * 6)[:6]
    start, _, end = addresses.partition("-")
    try:
        mapping = int(start, 16), int(end, 16), int(offset, 16), device, inode, path
    except ValueError:
        return None
    return None if inode in {"", "0"} else mapping


def _file_mappings(text: str) -> Iterator[tuple[int, int, int, str, str]]:
    """Yield start, end, offset, inode and path of each mapping of a file."""
    for line in text.splitlines():
        fields = _fields(line)
        if fields is None or not fields[-1].startswith("/"):
            continue
        start, end, offset, _, inode, path = fields
        path = path.removesuffix(" (deleted)")
        if not path.startswith(("/dev/", "/memfd:", "/SYSV")):
            yield start, end, offset, inode, path


def modules_of_log(text: str, program: str, maps: str, pid: int) -> list[dict[str, Any]]:
    """Return the modules that a process reported, in the form of `info/processes.jsonl`.

    Args:
        text: Whole lines of the process's file.
        program: Path of the program, or of the dynamic linker if a user called it.
        maps: The memory map of the process: has the paths of modules that were reported without.
        pid: The process: paths may begin with `/proc/self/`.
    """
    modules: list[dict[str, Any]] = []
    for line in text.splitlines():
        try:
            since, start, end, bias, build_id, path = line.split(" ", 5)
            # The dynamic linker reports the path of a link; the kernel has the path of the file.
            path = path.replace("/proc/self/", f"/proc/{pid}/", path.startswith("/proc/self/"))
            path = os.path.realpath(path) if path else _file_at(maps, int(start, 16))
            module: dict[str, Any] = {
                "path": path.removesuffix(" (deleted)") or program,
                "start": f"0x{int(start, 16):x}",
                "end": f"0x{int(end, 16):x}",
                "offset": 0,
                "bias": f"0x{int(bias, 16):x}",
                "build_id": build_id.removesuffix("-"),
                "since_clock": int(since, 16),
            }
        except ValueError:
            continue
        modules.append(module)
    return modules


def codes_of_log(data: bytes) -> tuple[list[list[Any]], int]:
    """Return code objects in the form of `info/processes.jsonl`, and the number of bytes read.

    An incomplete code object at the end is left for the next call.

    Args:
        data: The file of the process, from the end of the last code object on.
    """
    codes: list[list[Any]] = []
    done = 0
    while (newline := data.find(b"\n", done)) >= 0:
        try:
            number, minor, first, *sizes = (int(word, 16) for word in data[done:newline].split())
            file_width, file_size, name_width, name_size, lines_size = sizes
        except ValueError:
            break
        begin = newline + 1
        ends = begin + file_size, begin + file_size + name_size
        end = ends[1] + lines_size
        if data[end : end + 1] != b"\n":
            break
        file = data[begin : ends[0]].decode(_ENCODINGS.get(file_width, "latin-1"), "replace")
        name = data[ends[0] : ends[1]].decode(_ENCODINGS.get(name_width, "latin-1"), "replace")
        codes.append([number, minor, first, file, name, data[ends[1] : end].hex()])
        done = end + 1
    return codes, done


def shared_of_maps(text: str, but: str) -> list[dict[str, Any]]:
    """Return the writable shared mappings, each with device, inode and offset of its file.

    Args:
        text: The memory map.
        but: Leave out paths with this beginning: the recorder's own files.
    """
    mappings: list[dict[str, Any]] = []
    for line in text.splitlines():
        # A cheap test first: few of maybe thousands of lines are shared mappings.
        fields = _fields(line) if " rw-s " in line or " rwxs " in line else None
        if fields is None or fields[-1].startswith(but):
            continue
        start, end, offset, device, inode, _ = fields
        mappings.append(
            {
                "start": f"0x{start:x}",
                "end": f"0x{end:x}",
                "file": f"{device}:{inode}",
                "offset": f"0x{offset:x}",
            }
        )
    return mappings


def _file_at(text: str, address: int) -> str:
    """Return the path of the file that is mapped at an address, or an empty text."""
    mapped = (path for start, end, *_, path in _file_mappings(text) if start <= address < end)
    return next(mapped, "")


def program_of_maps(text: str) -> str:
    """Return the path of the first mapped file, which is the program."""
    return next((path for *_, path in _file_mappings(text)), "")
