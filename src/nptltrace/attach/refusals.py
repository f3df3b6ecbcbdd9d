"""Reasons not to attach to a process: it is left alone unless attaching is known to be safe."""

from __future__ import annotations

import os
import re
import struct
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nptltrace.hang.stack.names import Names
    from nptltrace.hang.targets.process import Process
    from nptltrace.trace.code.modules import Module

__all__ = ["c_library", "owner_of", "why_not", "why_not_itself"]

_ELF64, _X86_64 = 2, 62
_SANITIZERS = re.compile(r"/lib(clang_rt\.)?(a|t|m|l|hwa|ub|rt)san[^/]*\.so")
_SANITIZER_STARTS = ("__asan_init", "__tsan_init", "__msan_init", "__hwasan_init")
_SESSION = re.compile(r"/ptt-\d+-\d+-[0-9a-f]+/attach$")
_ROOM = 1 << 30


def c_library(process: Process) -> Module | None:
    """Return the process's C library; None if the process has no shared glibc."""
    of_glibc = re.compile(r"/libc(\.so\.6|-2\.\d+\.so)$")
    return next((module for module in process.modules if of_glibc.search(module.path)), None)


def why_not(process: Process, names: Names, library: Path) -> str | None:
    """Return why `ptt attach` leaves a process alone, None if it can attach.

    Args:
        process: The process.
        names: The names of its functions.
        library: Path of the tracer.
    """
    # The kernel shows nothing about a first thread that has ended before the other threads.
    place = Path("/proc") / str(process.pid) / "task" / str(process.entry)
    try:
        status = _fields(place / "status")
        # The other files of a process that has ended are empty.
        if reason := _state(process, status):
            return reason
        maps = (place / "maps").read_text(encoding="utf-8", errors="replace")
        with (place / "exe").open("rb") as program:
            head = program.read(20)
        environ = (place / "environ").read_bytes()
        limits = (place / "limits").read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        return f"{error.strerror}: {error.filename}"
    paths = _mapped(maps)
    reasons = (
        _rights(status),
        _program(process, names, head, paths),
        _sanitizer(process, names),
        _other_tools(paths),
        _other_tracers(paths, environ, library),
        _mount_namespace(place, library),
        _address_space(status, limits),
    )
    return next((reason for reason in reasons if reason), None)


def why_not_itself(pid: int, library: Path) -> str | None:
    """Return why a process cannot load the tracer itself and be recorded, None if it can.

    Args:
        pid: The process.
        library: Path of the tracer.
    """
    place = Path("/proc") / str(pid)
    try:
        status = _fields(place / "status")
        paths = _mapped((place / "maps").read_text(encoding="utf-8", errors="replace"))
        environ = (place / "environ").read_bytes()
        limits = (place / "limits").read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        return f"{error.strerror}: {error.filename}"
    reasons = (
        _other_tools(paths),
        _other_tracers(paths, environ, library),
        _address_space(status, limits),
    )
    return next((reason for reason in reasons if reason), None)


def owner_of(pid: int) -> tuple[str, str]:
    """Return the four user ids and the four group ids of a process, separated by white space.

    Raises:
        OSError: There is no such process.
    """
    status = _fields(Path("/proc") / str(pid) / "status")
    return status["Uid"], status["Gid"]


def _fields(path: Path) -> dict[str, str]:
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def _state(process: Process, status: dict[str, str]) -> str | None:
    if process.pid == os.getpid():
        return "it is this very process"
    if status.get("TracerPid", "0") != "0":
        return f"process {status['TracerPid']} traces it (a debugger or strace)"
    if status["State"][:1] in "TtZX":
        return f"it is {status['State'].partition('(')[2].rstrip(')')}"
    return None


def _rights(status: dict[str, str]) -> str | None:
    for name, what in (("Uid", "user"), ("Gid", "group")):
        if len(set(status[name].split())) > 1:
            return f"it runs with the rights of another {what} (setuid, setgid or seteuid)"
    mode, filters = status.get("Seccomp", "0"), status.get("Seccomp_filters", "0")
    ours = _fields(Path("/proc/self/status"))
    if mode == "1":
        return "it has given up system calls (seccomp, strict mode)"
    if mode != "0" and filters != ours.get("Seccomp_filters"):
        return "its filter of system calls (seccomp) may kill it for a system call of the tracer"
    if "shstk" in status.get("x86_Thread_features", ""):
        return "it runs with a shadow stack"
    return None


def _program(process: Process, names: Names, head: bytes, paths: list[str]) -> str | None:
    if process.machine != "x86_64":
        return f"attaching is for x86-64, and this is {process.machine}"
    machine = struct.unpack_from("<H", head, 18)[0] if len(head) == 20 else 0  # noqa: PLR2004
    if head[:4] != b"\x7fELF" or head[4] != _ELF64 or machine != _X86_64:
        return "its program is of another architecture"
    if any("/ld-musl" in path for path in paths):
        return "its C library is musl, and the tracer is for glibc"
    library = c_library(process)
    if library is None:
        return "it is linked statically, so no library can be loaded into it"
    if not names.exported(library, "_dl_find_object"):
        return "its C library is glibc before 2.35, or cannot be read"
    return None


def _mapped(maps: str) -> list[str]:
    """Return the paths of the files that a process has mapped."""
    return sorted({line.split(maxsplit=5)[5] for line in maps.splitlines() if "/" in line})


def _sanitizer(process: Process, names: Names) -> str | None:
    program = process.modules[0]
    if any(names.exported(program, start) for start in _SANITIZER_STARTS):
        return "it runs under a sanitizer"
    return None


def _other_tools(paths: list[str]) -> str | None:
    if any(_SANITIZERS.search(path) for path in paths):
        return "it runs under a sanitizer"
    if any("/vgpreload_" in path for path in paths):
        return "it runs under valgrind"
    return None


def _other_tracers(paths: list[str], environ: bytes, library: Path) -> str | None:
    if any(_SESSION.search(path) for path in paths):
        return "another ptt attach records it"
    if any(f"/{library.name} (deleted)" in path for path in paths):
        return "the file of its tracer has been replaced since it was loaded; restart the process"
    tracers = [path for path in paths if path.endswith(f"/{library.name}")]
    if any(not Path(path).exists() or not library.samefile(path) for path in tracers):
        return f"it has loaded the tracer of another installation, {tracers[0]}"
    if not tracers and b"PTHREAD_NPTL_TRACE=" in environ:
        return "PTHREAD_NPTL_TRACE is in its environment, and the tracer would follow it"
    return None


def _mount_namespace(place: Path, library: Path) -> str | None:
    inside = Path(f"{place}/root{library}")
    try:
        if inside.samefile(library) and Path(f"{place}/root/dev/shm").samefile("/dev/shm"):  # noqa: S108
            return None
    except OSError:
        pass
    return f"it cannot see {library} and /dev/shm; run ptt in the mount namespace of the process"


def _address_space(status: dict[str, str], limits: str) -> str | None:
    limit = re.search(r"^Max address space\s+(\d+)", limits, re.MULTILINE)
    used = int(status.get("VmSize", "0 kB").split()[0]) << 10
    if limit and int(limit[1]) < used + _ROOM:
        return "its limit of address space (ulimit -v) leaves less than 1 GB"
    return None
