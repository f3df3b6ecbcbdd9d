"""Follows the traced processes from begin to end, and logs facts about them."""

from __future__ import annotations

import bisect
import contextlib
import json
import os
import select
import time
from pathlib import Path

from nptltrace._binding.headers import ptt_abi
from nptltrace._binding.libpttcollect import read_clock
from nptltrace._files.whole import read_whole
from nptltrace._paths import PRELOAD, handlers_dir
from nptltrace.recording.files.session import start_time
from nptltrace.recording.files.uncovered import futex_modules, uncovered, untraced
from nptltrace.recording.mappings import (
    Modules,
    codes_of_log,
    modules_of_log,
    program_of_maps,
    shared_of_maps,
)
from nptltrace.recording.python_targets import targets_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TextIO

    from nptltrace._binding.headers.ptt_abi import Process as Entry
    from nptltrace._binding.libpttcollect import Collector, ThreadEntry
    from nptltrace.recording.files.session import SessionDir

__all__ = ["ProcessLog", "ProcessWatch"]

_NO_PARENT = 0xFFFFFFFF
# The delay between the report of an exec and the first look at the new program.
_EXEC_NS = 100_000_000
# After an exec, a program loads its libraries for at most this long before the tracer begins.
_LOAD_NS = 10_000_000_000
# The tracer joins in less than this after it has loaded the handler.
_JOIN_NS = 1_000_000_000
# The maps of a process are read at this age, and then whenever its age has doubled.
_LOOK_NS = 500_000_000
# The time limit of a pass over names of threads.
_NAMES_NS = 10_000_000
# The shortest time between two readings of the maps because of calls from unknown addresses.
_STRANGE_NS = 50_000_000
# An entry without a report after this time belongs to a process that was killed, if it is gone.
_STILLBORN_NS = 1_000_000_000
# The greatest difference between the clocks of two processors.
_TICKS_APART = 1 << 26


class ProcessLog:
    """Appends to `info/processes.jsonl`: a JSON object per line; later lines add to earlier lines.

    Args:
        fd: A file descriptor in append mode.
    """

    def __init__(self, fd: int) -> None:
        self._file: TextIO = os.fdopen(fd, "a", encoding="utf-8", errors="surrogateescape")

    def add(self, kind: str, index: int, **values: Any) -> None:
        """Append a line about process image `index`."""
        line = {kind: {("index" if kind == "process" else "process"): index, **values}}
        # On a full disk, facts about processes are lost, but the recording goes on.
        with contextlib.suppress(OSError):
            self._file.write(json.dumps(line, separators=(",", ":")) + "\n")
            self._file.flush()

    def close(self) -> None:
        """Close the file."""
        with contextlib.suppress(OSError):
            self._file.close()


class _Process:
    """A process image that has not ended yet."""

    def __init__(self, place: int, entry: Entry, pid: int, pidfd: int | None) -> None:
        self.index = entry.image
        self.entry = place
        self.pid = pid
        self.inner_pid = entry.pid
        self.namespace = entry.pid_namespace
        self.parent = None if entry.parent == _NO_PARENT else entry.parent
        self.start = start_time(pid)
        self.learnt_ns = time.time_ns()
        self.pidfd = pidfd
        self.has_our_files = False  # same root directory and mounts as the recorder
        self.named: set[tuple[int, int, int]] = set()  # threads with a known name
        self.maps = ""
        self.exe = ""
        self.logged = 0  # bytes read of its list of modules
        self.coded = 0  # bytes read of its list of code objects
        self.called_from: list[tuple[int, int]] = []
        self.modules: list[dict[str, Any]] = []
        self.shared: list[dict[str, Any]] = []
        self.seen_ns = time.monotonic_ns()
        self.look_ns = self.seen_ns
        self.strange_ns = 0  # not before this time, calls from unknown addresses are looked up

    @property
    def began_ns(self) -> int:
        """A time after the begin of the process, in ns since 1970."""
        if self.start is None:
            return self.learnt_ns
        boot_ns = time.time_ns() - time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        return boot_ns + (self.start + 1) * 1_000_000_000 // os.sysconf("SC_CLK_TCK")

    def knows(self, address: int) -> bool:
        """Return whether there is a module at an address."""
        at = bisect.bisect_right(self.called_from, (address, 2**64)) - 1
        return at >= 0 and address < self.called_from[at][1]

    def called(self, modules: list[dict[str, Any]]) -> None:
        """Add the address ranges of modules."""
        ranges = {(int(m["start"], 16), int(m["end"], 16)) for m in modules}
        self.called_from = sorted(ranges.union(self.called_from))


class ProcessWatch:
    """Watches the process images of a recording.

    Args:
        collector: The collector with the process table.
        session: The session, where the processes leave their memory maps.
        log: The log of the trace.
        unix_ns: Converts a value of the trace's clock to Unix time.

    Attributes:
        seen: Number of images so far.
        damaged: Entries that the program overwrote.
        status_of: Returns the exit status of a pid that has ended, or None if it is unknown.
    """

    def __init__(
        self,
        collector: Collector,
        session: SessionDir,
        log: ProcessLog,
        unix_ns: Callable[[int], int],
    ) -> None:
        self._collector = collector
        self._session = session
        self._log = log
        self._unix_ns = unix_ns
        self._modules = Modules()
        self._handlers = f"{handlers_dir().resolve()}/"
        self._live: dict[int, _Process] = {}
        self._claimed: dict[int, int] = {}  # by entry: when the entry was first seen without facts
        self._execing: dict[int, tuple[int, int]] = {}  # by image: deadline, time of the last look
        self._images: dict[int, int] = {}  # by entry: the latest image
        self._places: dict[int, int] = {}  # by image: the entry
        self._starts: dict[int, int] = {}  # by image: the start, as a clock value
        self._new_sites: dict[int, list[str]] = {}  # by image: call sites in unknown modules
        # With thousands of processes, the cost of a look must depend only on the changes.
        self._poll = select.epoll()
        self._of_pid: dict[int, int] = {}  # by pid: the running image
        self._programs: dict[int, str] = {}  # by image: a forked child has its parent's program
        self._without_fd: set[int] = set()
        self._strange: set[int] = set()  # images with calls from unknown addresses
        self._looked_ns = 0  # time of the last look for ended images
        self._by_fd: dict[int, int] = {}
        self._pids: set[int] = set()
        self._known: set[int] = set()
        self._ended: set[int] = set()
        self._recovering = False
        self._first = max(1, collector.start[0] - _TICKS_APART)
        self._pid_most = _pid_most()
        self.seen = 0
        self._untraced: dict[int, tuple[str, int | None]] = {}  # by pid: program and start
        self._vanished: dict[int, str] = {}  # by pid: program of an image that ended in an exec
        self.damaged: set[int] = set()
        self.status_of: Callable[[int], int | None] = lambda _: None

    # ---- queries -------------------------------------------------------------------------------

    @property
    def pids(self) -> set[int]:
        """The pids of all images that were ever seen."""
        return self._pids

    @property
    def live(self) -> list[int]:
        """The pids of images that still run."""
        return [process.pid for process in self._live.values()]

    @property
    def untraced(self) -> list[str]:
        """The programs that traced processes executed and that ran untraced."""
        return [program for program, _ in self._untraced.values()]

    @property
    def unknown(self) -> list[str]:
        """A sentence for each interpreter of a version that PTT does not know."""
        return self._modules.unknown

    @property
    def vanished(self) -> list[str]:
        """The programs that executed a program that ended before the recorder noticed it."""
        return list(self._vanished.values())

    def uncovered(self, *, children: bool) -> dict[str, Any]:
        """Return the facts about calls that are not in the trace.

        Args:
            children: Whether child processes are followed.
        """
        modules = uncovered(self._session.path)
        if children:
            modules = untraced(self.untraced, self.vanished) + modules
        return {
            "uncovered": modules,
            "futex_modules": futex_modules(self._session.path),
            "level_changed": self._session.levels_changed,
        }

    def busy(self) -> bool:
        """Return whether an image runs or has an entry without facts."""
        return bool(self._live or self._claimed)

    def step(self) -> None:
        """Find the images that have begun and ended."""
        self._notice_new()
        self._follow_up()
        self._notice_gone()

    def look_closely(self) -> None:
        """Log facts that take longer to read: names of threads, and shared memory."""
        self._names()
        now = time.monotonic_ns()
        for process in self._live.values() if len(self._live) > 1 else ():
            if now >= process.look_ns:
                # Most memory is mapped early, and there may be thousands of processes.
                process.look_ns = now + max(_LOOK_NS, now - process.seen_ns)
                self._log_shared(process, _maps_of(process.pid))

    def _names(self) -> None:
        """Log the names of new threads."""
        until = time.monotonic_ns() + _NAMES_NS
        names: list[tuple[_Process, ThreadEntry, str]] = []
        named: dict[int, set[tuple[int, int, int]]] = {}
        inside: dict[int, dict[int, str]] = {}  # names in processes with other thread ids
        for entry in self._collector.threads():
            process = self._live.get(entry.process)
            if process is None:
                continue
            known = named.setdefault(process.index, set())
            if entry.identity not in process.named:
                if time.monotonic_ns() > until:
                    continue  # there may be thousands of names; meanwhile writers wait for room
                if process.pid != process.inner_pid and process.index not in inside:
                    inside[process.index] = _tasks(process.pid)
                names.append((process, entry, _name(process, entry.tid, inside)))
            known.add(entry.identity)
        for index, known in named.items():
            self._live[index].named = known
        if names:
            self._log_names(names)

    def _log_names(self, names: list[tuple[_Process, ThreadEntry, str]]) -> None:
        """Log names, with a time when the threads had them.

        Names of threads that have ended are left out: another thread may have got the thread id,
        and the name may be its name.
        """
        clock = read_clock(self._collector.clock).clock
        running = set(self._collector.threads())
        for process, entry, name in names:
            if name and entry in running:
                self._log.add(
                    "thread", process.index, pid=process.pid, tid=entry.tid, name=name, clock=clock
                )

    def sites(self) -> None:
        """Log the announced call sites and stacks."""
        while announced := self._collector.sites():
            by_process: dict[int, dict[str, str]] = {}
            stacks: dict[int, list[tuple[int, int, str]]] = {}
            for process, number, address, caller in announced:
                if address == ptt_abi.PTT_SITE_VOID:
                    continue
                if caller is None:
                    by_process.setdefault(process, {})[str(number)] = hex(address)
                else:
                    stacks.setdefault(process, []).append((number, caller, hex(address)))
            for process, sites in by_process.items():
                self._log.add("sites", process, sites=sites)
                self._new_sites.setdefault(process, []).extend(sites.values())
            for process, frames in stacks.items():
                self._log.add("stacks", process, stacks=frames)
                self._new_sites.setdefault(process, []).extend(
                    address for *_, address in frames if not _is_python(int(address, 16))
                )
            # After the log: if the recorder is killed in between, `ptt recover` logs them again.
            self._collector.sites_taken(len(announced))

    def _follow_up(self) -> None:
        """Log the modules of new call sites: they may be unloaded before the process ends."""
        now = time.monotonic_ns()
        announced, self._new_sites = self._new_sites, {}
        for index, sites in announced.items():
            process = self._live.get(index)
            if process is None:
                continue
            self._log_modules(process)
            self._log_codes(process)
            if not all(process.knows(int(site, 16)) for site in sites):
                self._strange.add(index)
        for process in [self._live[index] for index in self._strange]:
            if now >= process.strange_ns:
                self._strange.discard(process.index)
                maps = _maps_of(process.pid)
                process.strange_ns = now + max(_STRANGE_NS, (now - process.seen_ns) // 8)
                # The maps count only if the process did not execute another program meanwhile.
                self._notice_new()
                runs = process.index in self._live and process.index not in self._execing
                if runs and self._maps_segment(maps):
                    self._log_maps(process, maps)

    def skip(self, known: set[int], ended: set[int]) -> None:
        """Skip the images that a killed recorder logged, and their ends.

        Args:
            known: The logged images.
            ended: The images with a logged end.
        """
        self._known, self._ended, self._recovering = known, ended, True

    def give_up(self) -> None:
        """Treat every image as ended."""
        self._notice_new()
        for index in list(self._live):
            self._gone(index, pid_gone=True, forget_files=False)

    def close(self) -> None:
        """Close the files and file descriptors."""
        for process in self._live.values():
            if process.pidfd is not None:
                os.close(process.pidfd)
        self._poll.close()
        self._log.close()

    # ---- begin of images -----------------------------------------------------------------------

    def _notice_new(self) -> None:
        # In ascending order: an image that executed another image comes first.
        for place, entry in sorted(self._collector.processes(), key=lambda item: item[1].image):
            if entry.state == ptt_abi.PTT_PROCESS_FREE or not self._is_sound(place, entry):
                self._claimed.pop(place, None)
                if entry.state != ptt_abi.PTT_PROCESS_FREE:
                    self.damaged.add(place)
                continue
            if entry.state == ptt_abi.PTT_PROCESS_CLAIMED:
                self._claimed[place] = time.monotonic_ns()
                continue
            self._claimed.pop(place, None)
            if self._images.get(place) != entry.image:
                self._images[place] = entry.image
                self._come(place, entry)
            if entry.state == ptt_abi.PTT_PROCESS_EXECING:
                now = time.monotonic_ns()
                self._execing[entry.image] = now + _LOAD_NS, now
            else:
                self._execing.pop(entry.image, None)
        now = time.monotonic_ns()
        for index in [i for i, since in self._claimed.items() if now - since > _STILLBORN_NS]:
            # If the process is gone, it was killed before it reported anything.
            pid = self._collector.process_pid(index)
            if not pid or start_time(pid) is None:
                del self._claimed[index]
                self._collector.process_gone(index)

    def _is_sound(self, place: int, entry: Entry) -> bool:
        """Return whether an entry is plausible: a wild store of the program may hit entries."""
        if entry.state > ptt_abi.PTT_PROCESS_ENDED or entry.pid > self._pid_most:
            return False
        if entry.state == ptt_abi.PTT_PROCESS_CLAIMED and not entry.start:
            return True  # the process may have written a part of the entry
        now = read_clock(self._collector.clock).clock + _TICKS_APART
        in_time = self._first <= entry.start and (self._recovering or entry.start <= now)
        # An image has one entry. The next image in the same entry has another start.
        last, known_place = self._images.get(place), self._places.get(entry.image)
        is_known = known_place == place and last == entry.image
        is_new = known_place is None and (last is None or self._starts[last] != entry.start)
        return bool(in_time and entry.pid and (is_known or is_new))

    def _come(self, place: int, entry: Entry) -> None:
        index = entry.image
        self._places[index], self._starts[index] = place, entry.start
        pid = self._collector.process_pid(place)
        self._vanished.pop(pid or entry.pid, None)  # the executed program is traced
        self.seen += 1
        # In a recovery, another process may have the pid.
        runs = bool(pid) and (not self._recovering or self._maps_segment(_maps_of(pid)))
        pid = pid or entry.pid
        if index in self._ended:
            self._pids.add(pid)
            self._collector.process_gone(place)
            return
        if runs and pid in self._of_pid:
            self._gone(self._of_pid[pid], pid_gone=False)  # the process executed another program
        try:
            pidfd = os.pidfd_open(pid) if runs else None
        except OSError:
            pidfd = None
        process = _Process(place, entry, pid, pidfd)
        process.start = process.start if runs else None
        process.has_our_files = runs and _has_our_files(pid)
        if pidfd is not None:
            self._poll.register(pidfd, select.EPOLLIN)
            self._by_fd[pidfd] = index
        else:
            self._without_fd.add(index)
        self._live[index] = process
        self._of_pid[pid] = index
        # A process without permission for the session directory leaves no files there.
        maps = _read(self._session.maps(index)) or (_maps_of(pid) if runs else "")
        exe = _read(self._session.exe(index)).removesuffix(" (deleted)")
        exe = exe or self._programs.get(entry.parent, "") or program_of_maps(maps)
        self._programs[index] = exe
        # A program that loads its libraries slowly was taken for an untraced program.
        program, start = self._untraced.get(pid, ("", None))
        if program == exe and process.start in {None, start}:
            self._untraced.pop(pid, None)
        if index not in self._known:
            self._log.add(
                "process",
                index,
                pid=pid,
                inner_pid=entry.pid,
                ppid=entry.ppid,
                parent=process.parent,
                start_unix_ns=self._unix_ns(entry.start),
                start_clock=entry.start,
                **_program(pid if runs else None, exe, _read(self._session.cmdline(index))),
            )
        self._pids.add(pid)
        process.exe = exe
        self._log_maps(process, maps)
        parent = None if process.parent is None else self._live.get(process.parent)
        # The parent may be killed before it writes its map.
        if parent is not None and any(part not in parent.shared for part in process.shared):
            self._log_shared(parent, _maps_of(parent.pid))

    # ---- end of images -------------------------------------------------------------------------

    def _notice_gone(self) -> None:
        now = time.time_ns()
        dead = [self._by_fd[fd] for fd, _ in self._poll.poll(0)] if self._by_fd else []
        dead += [index for index in self._without_fd if not self._runs(self._live[index])]
        for index in sorted(dead):
            self._gone(index, pid_gone=True)
        self._looked_ns = now
        self._notice_exec()

    @staticmethod
    def _runs(process: _Process) -> bool:
        start = start_time(process.pid)
        return start is not None and start == process.start

    def _notice_exec(self) -> None:
        """Find images that executed a program that cannot be traced."""
        now = time.monotonic_ns()
        for index, (until, looked) in list(self._execing.items()):
            if index in self._live and now - looked > _EXEC_NS:
                pid = self._live[index].pid
                maps = _maps_of(pid)
                wait_ns = _JOIN_NS if self._handlers in maps else _LOAD_NS
                self._execing[index] = min(until, now + wait_ns), now
                if self._maps_segment(maps):
                    continue
                with contextlib.suppress(OSError):
                    path = os.fspath(Path(f"/proc/{pid}/exe").readlink())
                    self._untraced[pid] = path.removesuffix(" (deleted)"), start_time(pid)
                if PRELOAD not in maps or now > until:
                    self._gone(index, pid_gone=False)

    def _maps_segment(self, maps: str) -> bool:
        return str(self._session.segment) in maps

    def _gone(self, index: int, *, pid_gone: bool, forget_files: bool = True) -> None:
        process = self._live.pop(index, None)
        if process is None:
            return
        if self._of_pid.get(process.pid) == index:
            del self._of_pid[process.pid]
        self._without_fd.discard(index)
        self._strange.discard(index)
        if process.pidfd is not None:
            self._poll.unregister(process.pidfd)
            del self._by_fd[process.pidfd]
            os.close(process.pidfd)
        self.sites()
        self._new_sites.pop(index, None)
        unseen = self._untraced.get(process.pid, ("", -1))[1] != process.start
        if self._execing.pop(index, None) and pid_gone and unseen and not self._recovering:
            self._vanished[process.pid] = process.exe
        self._collector.process_gone(process.entry)
        self._log_modules(process)
        self._log_codes(process)
        self._log_maps(process, _read(self._session.maps(index)))
        self._log.add(
            "exit",
            index,
            pid=process.pid,
            end_unix_ns=time.time_ns(),
            # The end may be noticed late, but it was not before this time.
            alive_unix_ns=self._looked_ns if self._looked_ns > process.learnt_ns else None,
            status=self.status_of(process.pid) if pid_gone else None,
            executed=not pid_gone,
        )
        if forget_files:
            self._session.forget_image(index)
            if pid_gone:
                self._session.forget_process(process.namespace, process.inner_pid)

    def _log_maps(self, process: _Process, maps: str) -> None:
        if maps == process.maps:
            return
        process.maps = maps
        modules = self._modules.of_maps(maps)
        if modules and modules != process.modules:
            process.modules = modules
            process.called(modules)
            self._log.add("modules", process.index, modules=modules)
        self._log_shared(process, maps)

    def _log_modules(self, process: _Process) -> None:
        """Log the modules that the process itself reported for its call sites."""
        data = _read_from(self._session.modules(process.index), process.logged)
        text = os.fsdecode(data[: data.rfind(b"\n") + 1])
        modules = modules_of_log(text, process.exe, process.maps, process.pid)
        modules = [module | self._modules.runtime(module["path"]) for module in modules]
        if modules:
            process.logged += len(os.fsencode(text))
            process.called(modules)
            self._log.add("modules", process.index, modules=modules)

    def _log_codes(self, process: _Process) -> None:
        """Log the Python functions that the process itself reported for its stacks."""
        data = _read_from(self._session.python(process.index), process.coded)
        codes, size = codes_of_log(data)
        if codes:
            process.coded += size
            self._log.add("codes", process.index, codes=codes)
            # In a recovery, the source files may have changed.
            if process.has_our_files and not self._recovering:
                targets = targets_of(codes, process.began_ns)
                if targets:
                    self._log.add("targets", process.index, targets=targets)

    def _log_shared(self, process: _Process, maps: str) -> None:
        known = process.shared
        new = [part for part in shared_of_maps(maps, str(self._session.path)) if part not in known]
        if new:
            known += new
            self._log.add("shared", process.index, shared=new)


# ---- /proc ------------------------------------------------------------------------------------


def _read(path: str | Path) -> str:
    """Return the text of a file, empty if the file is gone."""
    try:
        data = read_whole(path, follow=False)
    except OSError:
        return ""
    return data.decode("utf-8", "surrogateescape")


def _maps_of(pid: int) -> str:
    """Return the memory map of a process, empty if the process is gone."""
    return _read(f"/proc/{pid}/maps")


def _pid_most() -> int:
    """Return the greatest possible pid."""
    try:
        return int(_read("/proc/sys/kernel/pid_max"))
    except ValueError:
        return 1 << 22


def _has_our_files(pid: int) -> bool:
    """Return whether a process has our root directory and our mount namespace."""
    try:
        return all(
            os.path.samestat(os.stat(f"/proc/{pid}/{name}"), os.stat(f"/proc/self/{name}"))  # noqa: PTH116 -- faster
            for name in ("root", "ns/mnt")
        )
    except OSError:
        return False


def _is_python(address: int) -> bool:
    return ptt_abi.PTT_PYTHON_PLACE <= address < ptt_abi.PTT_PYTHON_PLACE_END


def _read_from(path: Path, offset: int) -> bytes:
    """Return the content of a file from an offset on, empty if there is no file."""
    try:
        return read_whole(path, offset, follow=False)
    except OSError:
        return b""


def _name(process: _Process, tid: int, inside: dict[int, dict[int, str]]) -> str:
    """Return the current name of a thread.

    Args:
        process: The process.
        tid: Id of the thread in the PID namespace of the process.
        inside: Names of threads by that id, for processes in another PID namespace than ours.
    """
    names = inside.get(process.index)
    if names is not None:
        return names.get(tid, "")
    return _read(f"/proc/{process.pid}/task/{tid}/comm").rstrip("\n")


def _tasks(pid: int) -> dict[int, str]:
    """Return the names of a process's threads, by their ids in its PID namespace."""
    names: dict[int, str] = {}
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            lines = dict(line.partition(":\t")[::2] for line in _read(task / "status").splitlines())
            ids = lines.get("NSpid", "").split()
            if ids:
                names[int(ids[-1])] = lines.get("Name", "")
    return names


def _program(pid: int | None, exe: str, cmdline: str) -> dict[str, Any]:
    """Return program, command line and name of an image.

    Args:
        pid: The process if it runs; without it there is no name.
        exe: The program from the session directory, or an empty text.
        cmdline: The command line from the session directory.
    """
    name = ""
    if pid is not None:
        try:
            now = os.fspath(Path(f"/proc/{pid}/exe").readlink()).removesuffix(" (deleted)")
        except OSError:
            now = ""
        exe = exe or now
        if exe == now:
            name = _read(f"/proc/{pid}/comm").rstrip("\n")
    return {"exe": exe, "cmdline": cmdline.split("\0")[:-1], "name": name}
