"""What is mapped into a process, from the text of its memory map: modules, and memory it shares."""

from __future__ import annotations

import os

from nptltrace._files.elf import read_elf
from nptltrace.catalog.runtimes import runtime_of_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from nptltrace._files.elf import Elf

__all__ = ["Modules", "modules_of_log", "program_of_maps", "shared_of_maps"]

# Of a process that names ever more files no others are looked into for runtimes.
_FILES_MAX = 4096


class Modules:
    """Turns memory maps into lists of modules; each file is read once."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, str], Elf | None] = {}
        self._runtimes: dict[str, str] = {}

    def of_maps(self, text: str) -> list[dict[str, Any]]:
        """Return the modules of one memory map, as they stand in `info/processes.jsonl`."""
        found: list[dict[str, Any]] = []
        for start, end, offset, inode, path in _file_mappings(text):
            last = found[-1] if found else None
            # A further segment of the same module: of a small file, several have the first page.
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
            found.append({**module, "build_id": elf.build_id, **self.runtime(path)})
        return [{**m, **{name: hex(m[name]) for name in ("start", "end", "bias")}} for m in found]

    def runtime(self, path: str) -> dict[str, str]:
        """Return what is said of the runtime in a module: nothing where there is none."""
        known = self._runtimes.get(path)
        if known is None and len(self._runtimes) < _FILES_MAX:
            known = self._runtimes[path] = runtime_of_file(path)
        return {"runtime": known} if known else {}

    def _elf(self, path: str, inode: str) -> Elf | None:
        key = (path, inode)
        if key not in self._seen:
            try:
                self._seen[key] = read_elf(path)
            except OSError:
                self._seen[key] = None
        return self._seen[key]


def _fields(line: str) -> tuple[int, int, int, str, str, str] | None:
    """Return start, end, offset, device, inode and path of a line; None of one without a file."""
    addresses, _, offset, device, inode, path = (*line.split(maxsplit=5), *[""] * 6)[:6]
    start, _, end = addresses.partition("-")
    try:
        found = int(start, 16), int(end, 16), int(offset, 16), device, inode, path
    except ValueError:
        return None
    return None if inode in {"", "0"} else found


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
    """Return the modules that a process wrote down, as they stand in `info/processes.jsonl`.

    Args:
        text: Whole lines of its file.
        program: Path of the program itself, or of the dynamic linker that was called to run it.
        maps: Its memory map, which has the path of a module without one.
        pid: The process, of which a path may be one below `/proc/self`.
    """
    found: list[dict[str, Any]] = []
    for line in text.splitlines():
        try:
            since, start, end, bias, build_id, path = line.split(" ", 5)
            # the dynamic linker knows it by the link that it followed, the kernel by the file
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
        found.append(module)
    return found


def shared_of_maps(text: str, but: str) -> list[dict[str, Any]]:
    """Return the writable memory that other processes may have mapped too, and what identifies it.

    Args:
        text: The memory map.
        but: What paths of the recorder's own files begin with.
    """
    found: list[dict[str, Any]] = []
    for line in text.splitlines():
        # nearly no line is of such memory, and there may be thousands
        fields = _fields(line) if " rw-s " in line or " rwxs " in line else None
        if fields is None or fields[-1].startswith(but):
            continue
        start, end, offset, device, inode, _ = fields
        found.append(
            {
                "start": f"0x{start:x}",
                "end": f"0x{end:x}",
                "file": f"{device}:{inode}",
                "offset": f"0x{offset:x}",
            }
        )
    return found


def _file_at(text: str, address: int) -> str:
    """Return the path of the file that is mapped at an address; none if no file is."""
    mapped = (path for start, end, *_, path in _file_mappings(text) if start <= address < end)
    return next(mapped, "")


def program_of_maps(text: str) -> str:
    """Return the path of the first mapped file: the program itself."""
    return next((path for *_, path in _file_mappings(text)), "")
