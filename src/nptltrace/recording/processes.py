"""Follows the traced processes from first to last, and writes down what is known of them."""

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

    from nptltrace._binding.headers.collect import Process as Entry
    from nptltrace._binding.libpttcollect import Collector, ThreadEntry
    from nptltrace.recording.files.session import SessionDir

__all__ = ["ProcessLog", "ProcessWatch"]

_NO_PARENT = 0xFFFFFFFF
# A process that executes another program is looked at so long after it said so.
_EXEC_NS = 100_000_000
# It loads its libraries for so long at most, before the tracer in it begins.
_LOAD_NS = 10_000_000_000
# The tracer has loaded the handler by then. It joins in much less, if it can.
_JOIN_NS = 1_000_000_000
# The maps of a process are read when it is so old, and again whenever it is twice as old.
_LOOK_NS = 500_000_000
# So long at most names of threads are read at a time.
_NAMES_NS = 10_000_000
# So long at least the maps are not read again for calls from where nothing was mapped before.
_STRANGE_NS = 50_000_000
# One that has an entry and says nothing else for so long, and is not there, never will.
_STILLBORN_NS = 1_000_000_000
# Clocks of processors may differ by so much.
_TICKS_APART = 1 << 26


class ProcessLog:
    """Appends to `info/processes.jsonl`, a JSON object a line; later lines add to earlier ones.

    Args:
        fd: A descriptor that writes at the end of the file.
    """

    def __init__(self, fd: int) -> None:
        self._file: TextIO = os.fdopen(fd, "a", encoding="utf-8", errors="surrogateescape")

    def add(self, kind: str, index: int, **values: Any) -> None:
        """Append a line about process image `index`."""
        line = {kind: {("index" if kind == "process" else "process"): index, **values}}
        # A full disk loses what is known of processes, not the recording.
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
        self.has_our_files = False  # a path leads to the same file as here
        self.named: set[tuple[int, int, int]] = set()  # threads whose names were looked at
        self.maps = ""
        self.exe = ""
        self.logged = 0  # bytes of its own list of modules
        self.coded = 0  # bytes of its list of code objects
        self.called_from: list[tuple[int, int]] = []
        self.modules: list[dict[str, Any]] = []
        self.shared: list[dict[str, Any]] = []
        self.seen_ns = time.monotonic_ns()
        self.look_ns = self.seen_ns
        self.strange_ns = 0  # until then such calls are not followed up; each time it takes longer

    @property
    def began_ns(self) -> int:
        """When the process began, at the latest, as Unix time."""
        if self.start is None:
            return self.learnt_ns
        boot_ns = time.time_ns() - time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        return boot_ns + (self.start + 1) * 1_000_000_000 // os.sysconf("SC_CLK_TCK")

    def knows(self, address: int) -> bool:
        """Is there a module at an address?"""
        at = bisect.bisect_right(self.called_from, (address, 2**64)) - 1
        return at >= 0 and address < self.called_from[at][1]

    def called(self, modules: list[dict[str, Any]]) -> None:
        """Take in where modules lie."""
        ranges = {(int(m["start"], 16), int(m["end"], 16)) for m in modules}
        self.called_from = sorted(ranges.union(self.called_from))


class ProcessWatch:
    """Knows the process images of a recording.

    Args:
        collector: Whose process table is watched.
        session: Where the processes leave their memory maps.
        log: Where to write what is found out.
        unix_ns: Turns a value of the trace's clock into the time of day.

    Attributes:
        seen: How many images there were.
        damaged: The entries that the program overwrote, so that they say nothing.
        status_of: Asks for the exit status of a pid that has ended, if anybody can know it.
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
        self._claimed: dict[int, int] = {}  # when entries were first seen that say nothing yet
        self._execing: dict[int, tuple[int, int]] = {}  # images: to wait until then, the last look
        self._images: dict[int, int] = {}  # that came last, by entry
        self._places: dict[int, int] = {}  # the entry of each image that ever came
        self._starts: dict[int, int] = {}  # when each of them began
        self._new_sites: dict[int, list[str]] = {}  # of which it is not known yet in what they lie
        # With thousands of processes a look must cost no more than what it finds.
        self._poll = select.epoll()
        self._of_pid: dict[int, int] = {}  # the image that runs in a process
        self._programs: dict[int, str] = {}  # by image: children of a fork have their parent's
        self._without_fd: set[int] = set()
        self._strange: set[int] = set()  # with calls from where no module is known
        self._looked_ns = 0  # when those that live were last seen to
        self._by_fd: dict[int, int] = {}
        self._pids: set[int] = set()
        self._known: set[int] = set()
        self._ended: set[int] = set()
        self._recovering = False
        self._first = max(1, collector.start[0] - _TICKS_APART)
        self._pid_most = _pid_most()
        self.seen = 0
        self._untraced: dict[int, tuple[str, int | None]] = {}  # programs and starts, by pid
        self._vanished: dict[int, str] = {}  # programs of images that ended in another, by pid
        self.damaged: set[int] = set()
        self.status_of: Callable[[int], int | None] = lambda _: None

    # ---- what others ask -----------------------------------------------------------------------

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
        """The programs that images executed and that run untraced."""
        return [program for program, _ in self._untraced.values()]

    @property
    def vanished(self) -> list[str]:
        """The programs of images that executed a program which nobody has seen."""
        return list(self._vanished.values())

    def busy(self) -> bool:
        """Return whether an image runs, or is just about to appear."""
        return bool(self._live or self._claimed)

    def step(self) -> None:
        """Find the processes that have begun and ended."""
        self._notice_new()
        self._follow_up()
        self._notice_gone()

    def look_closely(self) -> None:
        """Find what takes longer to read: names of threads, memory that processes share."""
        self._names()
        now = time.monotonic_ns()
        for process in self._live.values() if len(self._live) > 1 else ():
            if now >= process.look_ns:
                # Most memory is mapped early, and there may be a thousand processes.
                process.look_ns = now + max(_LOOK_NS, now - process.seen_ns)
                self._log_shared(process, _read(f"/proc/{process.pid}/maps"))

    def _names(self) -> None:
        """Write down the names of threads that have not been seen before."""
        until = time.monotonic_ns() + _NAMES_NS
        names: list[tuple[_Process, ThreadEntry, str]] = []
        named: dict[int, set[tuple[int, int, int]]] = {}
        inside: dict[int, dict[int, str]] = {}  # names in processes whose threads have other ids
        for entry in self._collector.threads():
            process = self._live.get(entry.process)
            if process is None:
                continue
            known = named.setdefault(process.index, set())
            if entry.identity not in process.named:
                if time.monotonic_ns() > until:
                    continue  # there may be thousands, and the others wait for room
                if process.pid != process.inner_pid and process.index not in inside:
                    inside[process.index] = _tasks(process.pid)
                names.append((process, entry, _name(process, entry.tid, inside)))
            known.add(entry.identity)
        for index, known in named.items():
            self._live[index].named = known
        if names:
            self._log_names(names)

    def _log_names(self, names: list[tuple[_Process, ThreadEntry, str]]) -> None:
        """Write names down with a time at which the threads had them.

        The id of a thread that has ended may be that of another one by now, whose name it was.
        """
        clock = read_clock(self._collector.clock).clock
        there = set(self._collector.threads())
        for process, entry, name in names:
            if name and entry in there:
                self._log.add(
                    "thread", process.index, pid=process.pid, tid=entry.tid, name=name, clock=clock
                )

    def sites(self) -> None:
        """Write down the call sites and stacks that have been announced."""
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
            # Only now: a recorder killed in between leaves them to the recovery.
            self._collector.sites_taken(len(announced))

    def _follow_up(self) -> None:
        """Look what was loaded where calls came from: it may be unloaded before the end."""
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
                maps = _read(f"/proc/{process.pid}/maps")
                process.strange_ns = now + max(_STRANGE_NS, (now - process.seen_ns) // 8)
                # Only if it is not about to execute another program, or has done so.
                self._notice_new()
                runs = process.index in self._live and process.index not in self._execing
                if runs and str(self._session.segment) in maps:
                    self._log_maps(process, maps)

    def skip(self, known: set[int], ended: set[int]) -> None:
        """Leave out what a former recorder has written down: images, and those that had ended."""
        self._known, self._ended, self._recovering = known, ended, True

    def give_up(self) -> None:
        """Treat every image as ended: nobody waits any longer."""
        self._notice_new()
        for index in list(self._live):
            self._gone(index, pid_gone=True, forget_files=False)

    def close(self) -> None:
        """Close what is open."""
        for process in self._live.values():
            if process.pidfd is not None:
                os.close(process.pidfd)
        self._poll.close()
        self._log.close()

    # ---- coming --------------------------------------------------------------------------------

    def _notice_new(self) -> None:
        # Of two images of a process, the one that executed the other comes first.
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
            # Was it killed before it had reported anything about itself?
            pid = self._collector.process_pid(index)
            if not pid or start_time(pid) is None:
                del self._claimed[index]
                self._collector.process_gone(index)

    def _is_sound(self, place: int, entry: Entry) -> bool:
        """May an entry be what a process said of itself? A wild store of the program may hit it."""
        if entry.state > ptt_abi.PTT_PROCESS_ENDED or entry.pid > self._pid_most:
            return False
        if entry.state == ptt_abi.PTT_PROCESS_CLAIMED and not entry.start:
            return True  # it may have said a part of it
        now = read_clock(self._collector.clock).clock + _TICKS_APART
        in_time = self._first <= entry.start and (self._recovering or entry.start <= now)
        # An image has one entry, and another image in the entry began later.
        last, there = self._images.get(place), self._places.get(entry.image)
        is_one = there == place and last == entry.image
        is_new = there is None and (last is None or self._starts[last] != entry.start)
        return bool(in_time and entry.pid and (is_one or is_new))

    def _come(self, place: int, entry: Entry) -> None:
        index = entry.image
        self._places[index], self._starts[index] = place, entry.start
        pid = self._collector.process_pid(place)
        self._vanished.pop(pid or entry.pid, None)  # the program that was executed is traced
        self.seen += 1
        # Long after the event, the pid may be somebody else's.
        there = bool(pid) and (not self._recovering or self._still_maps_segment(pid))
        pid = pid or entry.pid
        if index in self._ended:
            self._pids.add(pid)
            self._collector.process_gone(place)
            return
        if there and pid in self._of_pid:
            self._gone(self._of_pid[pid], pid_gone=False)  # it has executed another program
        try:
            pidfd = os.pidfd_open(pid) if there else None
        except OSError:
            pidfd = None
        process = _Process(place, entry, pid, pidfd)
        process.start = process.start if there else None
        process.has_our_files = there and _has_our_files(pid)
        if pidfd is not None:
            self._poll.register(pidfd, select.EPOLLIN)
            self._by_fd[pidfd] = index
        else:
            self._without_fd.add(index)
        self._live[index] = process
        self._of_pid[pid] = index
        # One that may not write into the session's directory has left nothing there.
        maps = _read(self._session.maps(index)) or (_read(f"/proc/{pid}/maps") if there else "")
        exe = _read(self._session.exe(index)).removesuffix(" (deleted)")
        exe = exe or self._programs.get(entry.parent, "") or program_of_maps(maps)
        self._programs[index] = exe
        # A program that took long to load its libraries was thought to run untraced.
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
                **_program(pid if there else None, exe, _read(self._session.cmdline(index))),
            )
        self._pids.add(pid)
        process.exe = exe
        self._log_maps(process, maps)
        parent = None if process.parent is None else self._live.get(process.parent)
        # The parent may be killed, and then writes down no map of its own.
        if parent is not None and any(part not in parent.shared for part in process.shared):
            self._log_shared(parent, _read(f"/proc/{parent.pid}/maps"))

    # ---- going ---------------------------------------------------------------------------------

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
        """Find images that were replaced by a program that cannot be traced."""
        now = time.monotonic_ns()
        for index, (until, looked) in list(self._execing.items()):
            if index in self._live and now - looked > _EXEC_NS:
                pid = self._live[index].pid
                maps = _read(f"/proc/{pid}/maps")
                wait_ns = _JOIN_NS if self._handlers in maps else _LOAD_NS
                self._execing[index] = min(until, now + wait_ns), now
                if str(self._session.segment) in maps:
                    continue
                with contextlib.suppress(OSError):
                    path = os.fspath(Path(f"/proc/{pid}/exe").readlink())
                    self._untraced[pid] = path.removesuffix(" (deleted)"), start_time(pid)
                if PRELOAD not in maps or now > until:
                    self._gone(index, pid_gone=False)

    def _still_maps_segment(self, pid: int) -> bool:
        return str(self._session.segment) in _read(f"/proc/{pid}/maps")

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
            # What is noticed late may have happened long ago, but not before this.
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
        """Write down what the process itself says of where its calls come from."""
        data = _read_from(self._session.modules(process.index), process.logged)
        text = os.fsdecode(data[: data.rfind(b"\n") + 1])
        modules = modules_of_log(text, process.exe, process.maps, process.pid)
        modules = [module | self._modules.runtime(module["path"]) for module in modules]
        if modules:
            process.logged += len(os.fsencode(text))
            process.called(modules)
            self._log.add("modules", process.index, modules=modules)

    def _log_codes(self, process: _Process) -> None:
        """Write down what the process itself says of the functions of Python in its stacks."""
        data = _read_from(self._session.python(process.index), process.coded)
        codes, size = codes_of_log(data)
        if codes:
            process.coded += size
            self._log.add("codes", process.index, codes=codes)
            # Long after the event, sources say nothing of what ran then.
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
    """Return the text of a file that may be gone at any moment."""
    try:
        data = read_whole(path, follow=False)
    except OSError:
        return ""
    return data.decode("utf-8", "surrogateescape")


def _pid_most() -> int:
    """Return the greatest pid that there may be."""
    try:
        return int(_read("/proc/sys/kernel/pid_max"))
    except ValueError:
        return 1 << 22


def _has_our_files(pid: int) -> bool:
    """Return whether a process has the root directory and the mounts that we have."""
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
    """Return what is in a file from an offset on, nothing if there is none."""
    try:
        return read_whole(path, offset, follow=False)
    except OSError:
        return b""


def _name(process: _Process, tid: int, inside: dict[int, dict[int, str]]) -> str:
    """Return the name of a thread now.

    Args:
        process: Whose it is.
        tid: Its id, as the process itself knows it.
        inside: The names of threads of processes in which that is another one than outside.
    """
    known = inside.get(process.index)
    if known is not None:
        return known.get(tid, "")
    return _read(f"/proc/{process.pid}/task/{tid}/comm").rstrip("\n")


def _tasks(pid: int) -> dict[int, str]:
    """Return the names of a process's threads by the ids that they have in its PID namespace."""
    names: dict[int, str] = {}
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            lines = dict(line.partition(":\t")[::2] for line in _read(task / "status").splitlines())
            ids = lines.get("NSpid", "").split()
            if ids:
                names[int(ids[-1])] = lines.get("Name", "")
    return names


def _program(pid: int | None, exe: str, cmdline: str) -> dict[str, Any]:
    """Return what a process runs, by the files that it left, and its name if it still does."""
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
