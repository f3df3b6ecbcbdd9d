"""The two directories of a recording: the session's, in shared memory, and the trace's."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path

from nptltrace._values import Values
from nptltrace.errors import PttError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "LEVELS_CHANGED",
    "LeftOver",
    "SessionDir",
    "is_killed",
    "left_overs",
    "make_trace_dir",
    "names_in",
    "start_time",
    "threads_behind_first",
    "trace_files",
    "trace_of_recorder",
    "trace_of_session",
]

# In a session's directory: levels were changed, whatever becomes of the processes.
LEVELS_CHANGED = "levels-changed"

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 -- the directories in it are private
PREFIX = "ptt"


def _stat_of(pid: int) -> list[str]:
    """Return what the kernel says of a process behind its name; nothing if there is none."""
    # An emulator of a processor has a time of its own in the stat of the process that asks.
    paths = (f"/proc/self/task/{pid}/stat", f"/proc/{pid}/stat")
    for path in paths if pid == os.getpid() else paths[1:]:
        with contextlib.suppress(OSError):
            text = Path(path).read_text(encoding="utf-8", errors="replace")
            return text.rpartition(")")[2].split()
    return []


def threads_behind_first(pid: int) -> int | None:
    """Return how many threads run of a process whose first thread has ended; None if it runs."""
    fields = _stat_of(pid)
    return int(fields[17]) - 1 if fields and fields[0] in {"Z", "X"} else None


def start_time(pid: int) -> int | None:
    """Return when a process started, in ticks since boot; None if there is no such process."""
    fields = _stat_of(pid)
    # The first thread of a process may end before the others.
    has_ended = not fields or (fields[0] in {"Z", "X"} and int(fields[17]) <= 1)
    return None if has_ended else int(fields[19])


def _remove_tree(path: Path) -> None:
    """Delete a directory and what is in it, as far as that can be done."""
    # shutil does this too, and brings every compressor of the standard library with it.
    for directory, names, files in os.walk(path, topdown=False):
        for name in files:
            with contextlib.suppress(OSError):
                Path(directory, name).unlink()
        for name in names:
            inner = Path(directory, name)
            with contextlib.suppress(OSError):
                inner.unlink() if inner.is_symlink() else inner.rmdir()
    with contextlib.suppress(OSError):
        path.rmdir()


class SessionDir:
    """The directory that the traced processes and the recorder share.

    Args:
        path: Where it is.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def create(cls, places: Sequence[Path] = ()) -> SessionDir:
        """Make one in shared memory, or, where there is none, in the directory for temporary files.

        Args:
            places: Where to make it, instead.

        Raises:
            PttError: Neither can be written to.
        """
        name = f"{PREFIX}-{os.getuid()}-{os.getpid()}-{os.urandom(4).hex()}"
        reason: OSError | None = None
        for place in places or cls.places():
            try:
                (place / name).mkdir(mode=0o700)
            except OSError as error:
                reason = error
                continue
            return cls(place / name)
        raise PttError(f"no place for the trace buffers: {reason}")

    @staticmethod
    def places() -> list[Path]:
        """Return where a session directory may be, best first."""
        # As tempfile has it, which takes longer to import than all of this takes to run.
        names = (os.environ.get(name) for name in ("TMPDIR", "TEMP", "TMP"))
        temporary = [Path(name).absolute() for name in (*names, "/tmp", "/var/tmp") if name]  # noqa: S108
        # The environment variable that names the directory separates its fields by these.
        usable = [place for place in temporary if not set(":;,") & set(str(place))]
        return [SHARED_MEMORY, *dict.fromkeys(usable)]

    @property
    def segment(self) -> Path:
        """The shared segment."""
        return self.path / "segment"

    def maps(self, index: int) -> Path:
        """Return the file with the memory map of a process image."""
        return self.path / f"maps-{index}"

    def modules(self, index: int) -> Path:
        """Return the file with the modules that calls of a process image came from."""
        return self.path / f"modules-{index}"

    def python(self, index: int) -> Path:
        """Return the file with the code objects of Python in the stacks of a process image."""
        return self.path / f"python-{index}"

    def cmdline(self, index: int) -> Path:
        """Return the file with the command line of a process image, its arguments ended by NUL."""
        return self.path / f"cmdline-{index}"

    def exe(self, index: int) -> Path:
        """Return the file with the path of the program that a process image runs."""
        return self.path / f"exe-{index}"

    def control(self, namespace: int, pid: int) -> Path:
        """Return the level control page of a process, by its own pid and its PID namespace."""
        return self.path / f"control-{namespace}-{pid}"

    @property
    def arguments(self) -> list[str]:
        """What a handler is given: where it is, and which directory that is in.

        A process that does not find it knows by the latter whether it has been removed, or other
        directories are mounted there for this process.
        """
        status = self.path.parent.stat()
        return [str(self.path), f"{status.st_dev:x}-{status.st_ino:x}"]

    @property
    def levels_changed(self) -> bool:
        """Whether somebody changed the levels of a process."""
        return (self.path / LEVELS_CHANGED).exists()

    def note(self, trace: Path) -> None:
        """Leave word of whose session this is, for `ptt recover`."""
        pid = os.getpid()
        text = {"trace": str(trace.absolute()), "recorder": pid, "start": start_time(pid)}
        (self.path / "session.json").write_text(json.dumps(text), encoding="utf-8")

    def remove(self) -> None:
        """Delete it and all that is in it. Processes that have mapped files of it keep them."""
        _remove_tree(self.path)


class LeftOver(Values):
    """A session whose recorder is dead.

    Attributes:
        path: The session directory.
        trace: Its trace directory.
    """

    path: Path
    trace: Path


def trace_of_recorder(pid: int) -> Path | None:
    """Return the trace directory that a recorder writes; None for what is no recorder."""
    for place in SessionDir.places():
        for path in place.glob(f"{PREFIX}-{os.getuid()}-*"):
            note = _note(path)
            if note is not None and note.recorder == pid and start_time(pid) == note.start:
                return Path(note.trace)
    return None


def trace_of_session(path: Path) -> Path | None:
    """Return the trace directory that belongs to a session's; None where nobody says."""
    note = _note(path)
    return None if note is None else Path(note.trace)


def is_killed(trace: Path) -> bool:
    """Return whether the recorder of an unfinished trace is dead.

    Where that cannot be known, as of a trace from another machine, it is not.

    Args:
        trace: A trace directory that says that it is being recorded.
    """
    try:
        facts = json.loads((trace / "info" / "session.json").read_text("utf-8", "surrogateescape"))
        session = Path(facts["session_dir"])
    except (OSError, ValueError, KeyError, TypeError):
        return False
    return _left_over(session) is not None


def left_overs() -> list[LeftOver]:
    """Return the sessions of this user whose recorder was killed; delete those without a trace."""
    found: list[LeftOver] = []
    ours = f"{PREFIX}-{os.getuid()}-"
    for place in SessionDir.places():
        for name in names_in(place):
            if not name.startswith(ours):
                continue
            left = _left_over(place / name)
            if left is not None and left.trace.is_dir():
                found.append(left)
            elif left is not None or _is_abandoned(place / name):
                SessionDir(place / name).remove()
    return found


def names_in(directory: Path) -> list[str]:
    """Return what is in a directory. A pattern would have to be compiled, which takes longer."""
    try:
        return os.listdir(directory)  # noqa: PTH208 -- names
    except OSError:
        return []


def _left_over(path: Path) -> LeftOver | None:
    """Return what a session directory is if nobody records into it any more."""
    try:
        if path.stat().st_uid != os.getuid():
            return None
    except OSError:
        return None
    note = _note(path)
    if note is None or start_time(note.recorder) == note.start:
        return None
    return LeftOver(path, Path(note.trace))


class _Note(Values):
    """What `SessionDir.note` wrote."""

    trace: str
    recorder: int
    start: int | None


def _note(path: Path) -> _Note | None:
    """Return whose session this is, or None if it does not say so, or not yet."""
    try:
        note = json.loads((path / "session.json").read_text(encoding="utf-8"))
        return _Note(trace=str(note["trace"]), recorder=int(note["recorder"]), start=note["start"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _is_abandoned(path: Path) -> bool:
    """Was the recorder killed before it had said whose session this is?"""
    pid = path.name.split("-")[2]
    try:
        ours = path.stat().st_uid == os.getuid() and not (path / "session.json").exists()
    except OSError:
        return False
    return ours and pid.isdigit() and start_time(int(pid)) is None


# What stands beside the streams; the last is what the viewer keeps.
_KEPT = ("metadata", "info", ".ptt-view")


def trace_files(directory: Path) -> list[Path]:
    """Return the files and directories in a trace directory that a recording makes, or a viewer."""
    return [
        *(directory / name for name in names_in(directory) if name.startswith("stream-")),
        *(path for path in map(directory.joinpath, _KEPT) if path.exists()),
    ]


def make_trace_dir(path: Path, *, force: bool) -> bool:
    """Make the trace directory, or empty it with `force`.

    Returns:
        Whether the directory is new.

    Raises:
        UsageError: It holds something, and `force` is not given, or it is no trace.
    """
    try:
        path.mkdir(parents=True)
    except FileExistsError:
        if not path.is_dir():
            raise UsageError(f"{path} is not a directory") from None
    except OSError as error:
        raise PttError(f"cannot make the trace directory {path}: {error.strerror}") from None
    else:
        (path / "info").mkdir()
        return True
    present = list(path.iterdir())
    if present and not force:
        raise UsageError(f"{path} is not empty; --force replaces what is in it")
    ours = trace_files(path)
    # the file handler's mark stays where its process was killed before the first packet
    unfinished = {
        item
        for item in present
        if item.name == ".claimed" or (item.name[0] == "." and item.suffix == ".new")
    }
    foreign = sorted(set(present).difference(ours, unfinished))
    if foreign:
        raise UsageError(f"{path} holds other things than a trace, such as {foreign[0].name}")
    for item in present:
        if item.is_dir():
            _remove_tree(item)
        else:
            item.unlink()
    (path / "info").mkdir()
    return False
