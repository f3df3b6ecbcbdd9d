"""Finds the program, checks whether it can be traced, and starts it with the tracer."""

from __future__ import annotations

import errno
import os
import signal
import stat
import struct
import sys
from pathlib import Path

from nptltrace import _paths
from nptltrace._files.elf import read_elf
from nptltrace.errors import PttError, UsageError
from nptltrace.recording.settings.levels import Levels

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import NoReturn

    from nptltrace._files.elf import Elf
    from nptltrace.recording.settings.options import HandlerChoice, RecordOptions

__all__ = [
    "CannotRun",
    "Child",
    "environment",
    "execute",
    "find_program",
    "resolve_handler",
    "run_on",
    "why_untraceable",
    "with_interpreter",
]

NOT_FOUND = 127
NOT_EXECUTABLE = 126
_SCRIPT_DEPTH = 4
_PARANOID = 2
_SHELLS = frozenset({"sh", "dash", "bash", "zsh", "ksh", "mksh", "busybox", "fish"})


class CannotRun(PttError):  # noqa: N818 -- the name is a sentence
    """The program does not exist or cannot be executed; the exit status is the shell's."""

    def __init__(self, message: str, exit_status: int) -> None:
        self.exit_status = exit_status
        super().__init__(message)


def find_program(name: str) -> Path:
    """Return the file of a program, found like a shell finds it.

    Raises:
        CannotRun: There is no such file (status 127), or it is not executable (126).
    """
    if "/" in name:
        candidates = [Path(name)]
    else:
        path = os.environ.get("PATH", os.defpath)
        candidates = [Path(place or ".") / name for place in path.split(os.pathsep)]
    refused = ""
    for candidate in candidates:
        try:
            mode = candidate.stat().st_mode
        except PermissionError as error:
            # Like execvp(3): the search goes on behind a directory without permission.
            refused = refused or f"{candidate}: {error.strerror}"
            continue
        except OSError:
            continue
        if not stat.S_ISREG(mode):
            if stat.S_ISDIR(mode) and "/" in name:
                raise CannotRun(f"{name}: is a directory", NOT_EXECUTABLE)
            continue
        if os.access(candidate, os.X_OK):
            return candidate
        refused = refused or f"{candidate}: not executable"
    if refused:
        raise CannotRun(refused, NOT_EXECUTABLE)
    raise CannotRun(f"{name}: program not found", NOT_FOUND)


def with_interpreter(command: Sequence[str]) -> tuple[str, ...]:
    """Return a command, with this Python in front of a Python script without a `#!` line.

    As for Python itself, a name without a directory is a script in the current directory.
    """
    name = command[0]
    if name.endswith(".py") and Path(name).is_file() and not _names_interpreter(name):
        return sys.executable, *command
    return tuple(command)


def _names_interpreter(script: str) -> bool:
    """Return whether the kernel can execute a script: it is executable and has a `#!` line."""
    try:
        with find_program(script).open("rb") as file:
            return file.read(2) == b"#!"
    except (CannotRun, OSError):
        return False


def why_untraceable(program: Path, depth: int = 0) -> str | None:
    """Return why a program cannot be traced, or None if it can be traced."""
    try:
        elf = read_elf(program)
        if elf is None or not elf.segments:
            return _why_script_untraceable(program, depth)
        status = program.stat()
    except PermissionError:
        return None  # executable but not readable: the dynamic linker reports errors
    except OSError as error:
        return error.strerror or str(error)
    return _why_elf_untraceable(program, elf, status)


def _why_elf_untraceable(program: Path, elf: Elf, status: os.stat_result) -> str | None:
    try:
        ours = read_elf("/proc/self/exe")
    except FileNotFoundError:
        return "/proc is not mounted, and a recording needs it to follow processes"
    if ours and (elf.bits, elf.little, elf.machine) != (ours.bits, ours.little, ours.machine):
        return f"it is built for another architecture ({_architecture(elf.machine, elf.bits)})"
    if not elf.interpreter:
        return "it is statically linked"
    if "musl" in Path(elf.interpreter).name:
        return "it uses another C library (musl)"
    if _gains_privileges(program, status):
        return "it runs with other privileges than yours (setuid, setgid or capabilities)"
    return None


def _why_script_untraceable(program: Path, depth: int) -> str | None:
    """Return why the interpreter of a script cannot be traced, or None if it can be traced."""
    with program.open("rb") as file:
        line = file.readline(256)
    if not line.startswith(b"#!"):
        return None  # the kernel decides
    words = os.fsdecode(line[2:]).split(maxsplit=1)
    if not words or depth >= _SCRIPT_DEPTH or not Path(words[0]).exists():
        return None
    why = why_untraceable(Path(words[0]), depth + 1)
    return why and f"its interpreter {words[0]} cannot be: {why.removeprefix('it ')}"


def _architecture(machine: int, bits: int) -> str:
    names = {3: "i386", 40: "arm", 62: "x86-64", 183: "aarch64", 243: "riscv", 21: "ppc64"}
    return f"{names.get(machine, f'machine {machine}')}, {bits} bits"


def _gains_privileges(program: Path, status: os.stat_result) -> bool:
    """Return whether the program runs in secure-execution mode; there ld.so ignores LD_PRELOAD."""
    if status.st_mode & stat.S_ISUID and status.st_uid != os.getuid():
        return True
    group = status.st_mode & (stat.S_ISGID | stat.S_IXGRP) == stat.S_ISGID | stat.S_IXGRP
    if group and status.st_gid != os.getgid():
        return True
    if os.getuid() == 0:
        return False
    try:
        return bool(os.getxattr(program, "security.capability"))
    except OSError:
        return False


def how_to_allow_perf(error: int) -> str:
    """Return how to allow records of context switches, as the rest of a sentence."""
    try:
        paranoid = int(Path("/proc/sys/kernel/perf_event_paranoid").read_text("ascii"))
    except (OSError, ValueError):
        return " (this kernel has no perf events)"
    if error not in {errno.EACCES, errno.EPERM}:
        return ""
    if paranoid > _PARANOID:
        return (
            f" (kernel.perf_event_paranoid is {paranoid}: "
            f"`sysctl kernel.perf_event_paranoid={_PARANOID}` as root allows it)"
        )
    return " (a container may forbid it: its seccomp profile has to allow perf_event_open)"


# ---- environment ------------------------------------------------------------------------------


def resolve_handler(choice: HandlerChoice) -> str:
    """Return the handler in the form that the tracer takes: a known name, or an absolute path.

    Raises:
        UsageError: There is no such handler.
    """
    if "/" in choice.name:
        path = Path(choice.name).absolute()
        if not path.is_file():
            raise UsageError(f"handler {choice.name}: no such file")
        if ":" in str(path):
            raise UsageError(
                f"handler {path}: its path holds a ':', which PTHREAD_NPTL_TRACE cannot"
            )
        return str(path)
    known = _paths.handlers()
    if choice.name in known or _on_library_path(choice.name):
        return choice.name
    raise UsageError(f"unknown handler {choice.name!r}: expected {', '.join(known)}, or a path")


def _on_library_path(name: str) -> bool:
    """Return whether the dynamic linker finds a handler by its name."""
    places = [place for place in os.environ.get("LD_LIBRARY_PATH", "").split(":") if place]
    places += [
        "/lib",
        "/usr/lib",
        "/usr/local/lib",
        *map(str, Path("/usr/lib").glob("*-linux-gnu")),
    ]
    files = (f"lib{name}.so", name)
    return any(Path(place, file).is_file() for place in places for file in files)


def environment(
    options: RecordOptions,
    handler: str,
    arguments: Sequence[str],
    control: Path | None,
    locks: str | None = None,
) -> dict[str, str]:
    """Return the environment of the program: the user's environment, and variables for the tracer.

    Args:
        options: Options of the recording.
        handler: The handler, from `resolve_handler`.
        arguments: Arguments of the handler.
        control: Directory of the level control pages; None for a black box, which has no files.
        locks: The shared object for the user's locks.
    """
    items = [f"children={int(options.children)}"]
    if control is not None:
        items.append(f"control={control}")
    levels = Levels(0) if options.delay_ns else options.levels
    if levels.argument:
        items.insert(0, f"level={levels.argument}")
    if options.filter is not None:
        items.insert(0, f"filter={options.filter.argument}")
    if options.java and control is not None:
        items.append(f"java={options.buffers.stack_depth}")
    env = dict(os.environ)
    env["LD_PRELOAD"] = _paths.preload_list(env.get("LD_PRELOAD"), locks)
    # Without this option, AddressSanitizer refuses to start behind a preloaded library.
    asan = env.get("ASAN_OPTIONS")
    env["ASAN_OPTIONS"] = ":".join(filter(None, (asan, "verify_asan_link_order=0")))
    env["PTHREAD_NPTL_TRACE"] = ":".join(
        [handler, ",".join(arguments), str(levels.number), ";".join(items)]
    )
    return env


def run_on(env: dict[str, str], lib_dir: Path) -> None:
    """Make a program and its children use the C library of a directory.

    The directory has only that library. The other libraries and ld.so of the system have the same
    version, and stay in use.
    """
    directories = env.get("LD_LIBRARY_PATH")
    env["LD_LIBRARY_PATH"] = f"{lib_dir}:{directories}" if directories else str(lib_dir)


# ---- the program ------------------------------------------------------------------------------


class Child:
    """The child process, which waits for `release` and then executes the program.

    Args:
        program: File of the program.
        pid: Process id.
        go: Pipe to the child. The child reads its environment from it and then runs.
        failure: Pipe from the child, with the error number if exec failed.

    Attributes:
        status: Exit status, 128 + n for signal n; None while the child runs.
    """

    def __init__(self, program: Path, pid: int, go: int, failure: int) -> None:
        self.program = program
        self.pid = pid
        self._go = go
        self._failure = failure
        self.status: int | None = None

    @classmethod
    def start(cls, program: Path, command: Sequence[str]) -> Child:
        """Fork. The child waits for `release`."""
        go_read, go_write = os.pipe()
        failure_read, failure_write = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(go_write)
            os.close(failure_read)
            _become(program, command, go_read, failure_write)
        os.close(go_read)
        os.close(failure_write)
        return cls(program, pid, go_write, failure_read)

    def release(self, env: Mapping[str, str]) -> None:
        """Run the program with this environment.

        Raises:
            CannotRun: The kernel refused to execute the program.
        """
        data = b"\0".join(os.fsencode(f"{name}={value}") for name, value in env.items())
        with os.fdopen(self._go, "wb") as pipe:
            pipe.write(data)
        with os.fdopen(self._failure, "rb") as pipe:
            report = pipe.read(4)
        if report:
            self.wait()
            raise _refused(self.program, struct.unpack("i", report)[0])

    def abandon(self) -> None:
        """End the child without running the program."""
        os.close(self._go)
        os.close(self._failure)
        self.wait()

    def poll(self) -> bool:
        """Return whether the child has ended; sets `status`."""
        if self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self._set(status)
        return self.status is not None

    def status_of(self, pid: int) -> int | None:
        """Return the exit status if `pid` is the child and has ended, else None."""
        return self.status if pid == self.pid and self.poll() else None

    def wait(self) -> int:
        """Wait for the end of the child and return its status."""
        while self.status is None:
            self._set(os.waitpid(self.pid, 0)[1])
        return self.status

    def _set(self, status: int) -> None:
        code = os.waitstatus_to_exitcode(status)
        self.status = code if code >= 0 else 128 - code


def _refused(program: Path, code: int) -> CannotRun:
    """Return the error for a program that the kernel refused to execute."""
    status = NOT_FOUND if code == errno.ENOENT else NOT_EXECUTABLE
    why = os.strerror(code)
    if code == errno.ENOENT and program.exists():
        why = "the interpreter that it names does not exist"
    return CannotRun(f"cannot execute {program}: {why}", status)


def execute(program: Path, command: Sequence[str], env: Mapping[str, str]) -> NoReturn:
    """Execute a program in place of this process.

    Raises:
        CannotRun: The kernel refused to execute the program.
    """
    ignored = _ignored_by_shell()
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_IGN if number in ignored else signal.SIG_DFL)
    try:
        _execute(program, command, {os.fsencode(k): os.fsencode(v) for k, v in env.items()})
    except OSError as error:
        raise _refused(program, error.errno or errno.EIO) from None


def _execute(program: Path, command: Sequence[str], env: Mapping[bytes, bytes]) -> NoReturn:
    """Execute a program like execvp(3): the shell runs a script without a `#!` line."""
    try:
        os.execve(program, list(command), env)  # noqa: S606 -- the user's command
    except OSError as error:
        if error.errno != errno.ENOEXEC or not _is_text(program):
            raise
    os.execve("/bin/sh", [command[0], os.fspath(program), *command[1:]], env)  # noqa: S606


def _is_text(program: Path) -> bool:
    """Return whether a shell accepts the file as a script."""
    try:
        with program.open("rb") as file:
            return b"\0" not in file.read(256)
    except OSError:
        return False


def _become(program: Path, command: Sequence[str], go: int, failure: int) -> None:
    """In the child: wait for the environment, then execute the program. Does not return."""
    try:
        # Undo the signal settings of Python and of the recorder.
        for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD):
            signal.signal(number, signal.SIG_IGN if number in _ignored_before else signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, _mask_before)
        with os.fdopen(go, "rb") as pipe:
            data = pipe.read()
        if data:
            pairs = (item.partition(b"=") for item in data.split(b"\0"))
            env = {name: value for name, _, value in pairs}
            _execute(program, command, env)
    except OSError as error:
        os.write(failure, struct.pack("i", error.errno or errno.EIO))
    finally:
        os._exit(NOT_FOUND)


_mask_before: set[signal.Signals] = set()
_ignored_before: set[signal.Signals] = set()


def remember_signals(mask: set[signal.Signals], *, ignored: set[signal.Signals]) -> None:
    """Set the blocked and the ignored signals that programs start with.

    Python ignores SIGPIPE and SIGXFSZ from its start, so the inherited setting is lost. Shells pass
    their own setting on, so it is read from a parent that is a shell. Other parents are assumed to
    reset these signals, like Python's `subprocess` does.

    Args:
        mask: The blocked signals.
        ignored: The ignored signals, without SIGPIPE and SIGXFSZ.
    """
    _mask_before.clear()
    _mask_before.update(mask)
    _ignored_before.clear()
    _ignored_before.update(ignored | _ignored_by_shell())


def _ignored_by_shell() -> set[signal.Signals]:
    parent = Path(f"/proc/{os.getppid()}")
    try:
        if Path(parent / "exe").readlink().name not in _SHELLS:
            return set()
        status = (parent / "status").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return set()
    ignored = int(status.partition("\nSigIgn:\t")[2].partition("\n")[0] or "0", 16)
    hidden = (signal.SIGPIPE, signal.SIGXFSZ)
    return {number for number in hidden if ignored >> (number - 1) & 1}
