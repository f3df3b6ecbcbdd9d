"""Session directories, in shared memory: of this recorder, and of recorders that were killed.

The recorder locks its session directory. The lock shows others that the recorder lives; its process
id means nothing in another PID namespace. PTT removes no locked session, and no files that neither
recorders nor traced processes create.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from pathlib import Path

from nptltrace._dataclasses import dataclass
from nptltrace._files import trace_directories
from nptltrace._files.directories import Directory
from nptltrace._files.whole import json_of, read_whole
from nptltrace._processes import START, STATE, THREADS, stat_fields
from nptltrace.errors import PttError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "LEVELS_CHANGED",
    "SNAPSHOT_FILES",
    "LeftOver",
    "SessionDir",
    "belongs",
    "claim",
    "is_killed",
    "left_overs",
    "names_in",
    "recorder_of",
    "session_of_recorder",
    "start_time",
    "threads_behind_first",
    "trace_of_session",
]

# A file in the session directory: somebody changed levels. It outlives the processes.
LEVELS_CHANGED = "levels-changed"
# Files in the session directory that begin like this: requests of `ptt snapshot`, and answers.
SNAPSHOT_FILES = "snapshot-"

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 -- the directories in it are private
PREFIX = "ptt"
_NOTE = "session.json"
# A file in the session directory: the user was told that the recorder was killed.
_TOLD = "told"
_FILES = ("segment", _NOTE, _TOLD, LEVELS_CHANGED, "attach")
_FILES_BY_IMAGE = (
    "maps-", "modules-", "python-", "cmdline-", "exe-", "control-", "uncovered-", SNAPSHOT_FILES,
)  # fmt: skip
# Left-over sessions with a trace in another mount namespace are kept for this time.
_ELSEWHERE_S = 86400.0
_ATTEMPTS, _ATTEMPT_S = 20, 0.01


def threads_behind_first(pid: int) -> int | None:
    """Return the number of other threads if the first thread of a process has ended, else None."""
    _, fields = stat_fields(pid)
    return int(fields[THREADS]) - 1 if fields and fields[STATE] in {"Z", "X"} else None


def start_time(pid: int) -> int | None:
    """Return when a process started, in ticks since boot; None if there is no such process."""
    _, fields = stat_fields(pid)
    # The first thread of a process may end before the others.
    has_ended = not fields or (fields[STATE] in {"Z", "X"} and int(fields[THREADS]) <= 1)
    return None if has_ended else int(fields[START])


def _identity(status: os.stat_result) -> str:
    return f"{status.st_dev:x}-{status.st_ino:x}"


def standard_error() -> str:
    """Return what identifies this process's standard error, as `ptt_may_complain` reads it."""
    try:
        return _identity(os.fstat(2))
    except OSError:
        return "0-0"


class SessionDir:
    """The directory that the traced processes and the recorder share.

    Args:
        path: Path of the directory.
        held: The open and locked directory: the lock shows others that the recorder lives.
    """

    def __init__(self, path: Path, held: Directory | None = None) -> None:
        self.path = path
        self._held = held
        self._trace: Path | None = None

    @classmethod
    def create(cls, places: Sequence[Path] = ()) -> SessionDir:
        """Create a session directory in shared memory, or in a directory for temporary files.

        Args:
            places: Directories to try instead, in order.

        Raises:
            PttError: No directory is writable.
        """
        reason: OSError | None = None
        for place in places or cls.places():
            try:
                return cls._made(place)
            except OSError as error:
                reason = error
        raise PttError(f"no place for the trace buffers: {reason}")

    @classmethod
    def _made(cls, place: Path) -> SessionDir:
        while True:
            path = place / f"{PREFIX}-{os.getuid()}-{os.getpid()}-{os.urandom(4).hex()}"
            path.mkdir(mode=0o700)
            # A clean-up of left-over sessions may remove the directory before it is locked.
            with contextlib.suppress(FileNotFoundError):
                held = Directory.open(path)
                if _is_locked_by_us(held):
                    return cls(path, held)
                held.close()

    @staticmethod
    def places() -> list[Path]:
        """Return the parent directories of sessions, best first."""
        # Like tempfile.gettempdir(); the import of tempfile takes longer than this function.
        names = (os.environ.get(name) for name in ("TMPDIR", "TEMP", "TMP"))
        temporary = [Path(name).absolute() for name in (*names, "/tmp", "/var/tmp") if name]  # noqa: S108
        # PTHREAD_NPTL_TRACE, which names the directory, uses these characters as separators.
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
        """Return the file with the Python code objects in the stacks of a process image."""
        return self.path / f"python-{index}"

    def cmdline(self, index: int) -> Path:
        """Return the file with the command line of a process image; arguments end with NUL."""
        return self.path / f"cmdline-{index}"

    def exe(self, index: int) -> Path:
        """Return the file with the path of the program of a process image."""
        return self.path / f"exe-{index}"

    def control(self, namespace: int, pid: int) -> Path:
        """Return the level control page of a process, by its PID namespace and its pid there."""
        return self.path / f"control-{namespace}-{pid}"

    @property
    def arguments(self) -> list[str]:
        """Arguments of the handler.

        1. The path of the session directory.
        2. The identity of its parent directory. A process that does not find the session can tell
           a removed session from another file system in this place.
        3. The identity of the recorder's standard error, so that the tracer writes no messages to
           files of the program.
        4. The trace directory, if its path can be passed.
        """
        arguments = [str(self.path), _identity(self.path.parent.stat()), standard_error()]
        trace = str(self._trace or "")
        return [*arguments, trace] if trace and not set(trace) & set(",:;") else arguments

    @property
    def levels_changed(self) -> bool:
        """Whether somebody changed the levels of a process."""
        return (self.path / LEVELS_CHANGED).exists()

    def note(self, trace: Path) -> None:
        """Write down the trace and the recorder of this session, for `ptt recover`."""
        self._trace = trace.absolute()
        pid = os.getpid()
        text = {
            "trace": str(trace.absolute()),
            "recorder": pid,
            "start": start_time(pid),
            "mounts": _mounts(),
            "login": os.getsid(0),
        }
        with Directory.open(self.path) as directory:
            directory.replace(_NOTE, json.dumps(text))

    def forget_image(self, index: int) -> None:
        """Remove the files of a process image."""
        for path in (
            self.maps(index), self.exe(index), self.cmdline(index), self.modules(index),
            self.python(index),
        ):  # fmt: skip
            _remove(path)

    def forget_process(self, namespace: int, pid: int) -> None:
        """Remove the files of a process that all its images share."""
        _remove(self.control(namespace, pid))

    def remove(self) -> None:
        """Remove the directory and the files of recorders and traced processes in it.

        Mappings of these files stay valid.
        """
        with contextlib.suppress(OSError), Directory.open(self.path) as directory:
            for name in directory.names():
                plain = name.removesuffix(".new").removeprefix(".")
                if plain in _FILES or plain.startswith(_FILES_BY_IMAGE):
                    with contextlib.suppress(OSError):
                        directory.unlink(name)
            self.path.rmdir()
        if self._held is not None:
            self._held.close()


def _remove(path: Path) -> None:
    """Remove a file. A directory in its place, created by the program, stays."""
    with contextlib.suppress(OSError):
        path.unlink()


@dataclass(frozen=True)
class LeftOver:
    """A session with a dead recorder.

    Attributes:
        path: The session directory.
        trace: Its trace directory.
        login: The session id (setsid(2)) of the dead recorder, or 0 if it is unknown.
    """

    path: Path
    trace: Path
    login: int

    def is_near(self, directory: Path) -> bool:
        """Return whether the trace lies in a directory, or is of this process's session."""
        return self.trace.parent == directory or self.login == os.getsid(0)

    def is_news(self) -> bool:
        """Return True once: whether the user has not been told of the session yet."""
        try:
            with Directory.open(self.path) as directory:
                os.close(directory.create(_TOLD))
        except OSError:
            return False
        return True


def session_of_recorder(pid: int) -> Path | None:
    """Return the session directory of a recorder; None if the process is not a recorder."""
    for path in _sessions():
        directory = _own(path)
        if directory is None:
            continue
        with directory:
            note = _note(directory)
        if note is not None and note.recorder == pid and start_time(pid) == note.start:
            return path
    return None


def recorder_of(path: Path) -> int | None:
    """Return the pid of the recorder of a session; None if it is unknown or has ended."""
    note = _note_of(path)
    known = note is not None and note.start is not None
    return note.recorder if note and known and start_time(note.recorder) == note.start else None


def trace_of_session(path: Path) -> Path | None:
    """Return the trace directory of a session; None if it is unknown."""
    note = _note_of(path)
    return None if note is None else Path(note.trace)


def is_killed(trace: Path) -> bool:
    """Return whether the recorder of an unfinished trace is dead.

    False if that is unknown, for example for a trace from another machine.

    Args:
        trace: A trace directory with the state "running".
    """
    session = _session_in(trace)
    dead = _dead(session) if session is not None and belongs(session, trace) else None
    if dead is not None:
        dead[0].close()
    return dead is not None


def _session_in(trace: Path) -> Path | None:
    """Return the session directory that a trace names, or None. It may be any directory."""
    try:
        return Path(json_of(read_whole(trace / "info" / _NOTE))["session_dir"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def belongs(session: Path, trace: Path) -> bool:
    """Return whether a directory is a session of this user and names the trace.

    The trace may come from somebody else and may name any directory as its session.
    """
    if session not in _sessions():
        return False
    note = _note_of(session)
    try:
        return note is not None and trace.samefile(note.trace)
    except OSError:
        return False


def left_overs() -> list[LeftOver]:
    """Return this user's sessions with a killed recorder; remove the sessions without a trace.

    In another mount namespace, the path of a trace may lead to another trace. So a session from
    there counts only if the trace here names the session.
    """
    sessions: list[LeftOver] = []
    for path in _sessions():
        dead = _dead(path)
        if dead is None:
            continue
        directory, note = dead
        with directory:
            if note is None:
                SessionDir(path).remove()
                continue
            trace, is_here = Path(note.trace), note.mounts == _mounts()
            there = os.path.isdir(trace)  # noqa: PTH112 -- raises nothing
            if there and (is_here or _session_in(trace) == path):
                sessions.append(LeftOver(path, trace, note.login))
            elif not there and (is_here or _age_s(directory) > _ELSEWHERE_S):
                if is_here:
                    trace_directories.remove_candidate(trace)
                SessionDir(path).remove()
    return sessions


def claim(path: Path) -> tuple[SessionDir, Path]:
    """Take over the session of a killed recorder.

    Args:
        path: The session directory.

    Returns:
        The session, which is locked now, and its trace directory.

    Raises:
        UsageError: The session belongs to another user, or the recorder still runs.
    """
    directory = _own(path)
    if directory is None:
        raise UsageError(f"{path} is no directory of trace buffers of yours")
    note = _note(directory)
    if note is None or not Path(note.trace).is_dir():
        directory.close()
        raise UsageError(f"{path}: its trace directory is gone")
    for _ in range(_ATTEMPTS):
        try:
            locked = directory.lock()
        except OSError:
            locked = True  # the file system has no locks; the segment has a lock of its own
        if locked:
            return SessionDir(path, directory), Path(note.trace)
        time.sleep(_ATTEMPT_S)  # another process may hold the lock for a moment to test it
    directory.close()
    raise UsageError(f"{note.trace}: the recorder (pid {note.recorder}) is still at work")


def _sessions() -> list[Path]:
    """Return the paths with the name of a session of this user."""
    ours = f"{PREFIX}-{os.getuid()}-"
    return [
        place / name
        for place in SessionDir.places()
        for name in names_in(place)
        if name.startswith(ours)
    ]


def names_in(directory: Path) -> list[str]:
    """Return the names in a directory. It is faster than a glob, which compiles a pattern."""
    try:
        return os.listdir(directory)  # noqa: PTH208 -- names
    except OSError:
        return []


def _own(path: Path) -> Directory | None:
    """Open a session directory; None if it is not a directory of this user."""
    if not path.name.startswith(f"{PREFIX}-{os.getuid()}-") or path.is_symlink():
        return None
    try:
        directory = Directory.open(path)
    except (OSError, UsageError):
        return None
    if os.fstat(directory.fd).st_uid == os.getuid():
        return directory
    directory.close()
    return None


def _dead(path: Path) -> tuple[Directory, _Note | None] | None:
    """Return a session without a living recorder, locked, and its note; None if it lives."""
    directory = _own(path)
    if directory is None:
        return None
    note = None
    try:
        lives = not directory.lock()
        note = _note(directory)
        if note is not None:
            lives |= start_time(note.recorder) == note.start
        else:
            pid = path.name.split("-")[2]
            lives |= not pid.isdigit() or start_time(int(pid)) is not None
    except OSError:
        lives = True  # unknown
    if not lives:
        return directory, note
    directory.close()
    return None


def _is_locked_by_us(directory: Directory) -> bool:
    """Lock a new session; False if another process was faster, and maybe removed it."""
    try:
        return directory.lock() and os.fstat(directory.fd).st_nlink > 0
    except OSError:
        return True  # the file system has no locks


def _mounts() -> int:
    """Return the number of the mount namespace, or 0. Paths have a meaning only within one."""
    try:
        return os.stat("/proc/self/ns/mnt").st_ino  # noqa: PTH116 -- faster
    except OSError:
        return 0


def _age_s(directory: Directory) -> float:
    return time.time() - os.fstat(directory.fd).st_mtime


@dataclass(frozen=True)
class _Note:
    """The content of the file that `SessionDir.note` writes."""

    trace: str
    recorder: int
    start: int | None
    mounts: int
    login: int


def _note_of(path: Path) -> _Note | None:
    """Return the note in a session directory; None if there is no note or no directory."""
    try:
        with Directory.open(path) as directory:
            return _note(directory)
    except (OSError, UsageError):
        return None


def _note(directory: Directory) -> _Note | None:
    """Return the note in a session directory; None if there is none, or not yet."""
    try:
        note = json_of(directory.read(_NOTE))
        return _Note(
            trace=str(note["trace"]),
            recorder=int(note["recorder"]),
            start=note["start"],
            mounts=note.get("mounts", 0),
            login=note.get("login", 0),
        )
    except (OSError, ValueError, KeyError, TypeError, OverflowError):
        return None
