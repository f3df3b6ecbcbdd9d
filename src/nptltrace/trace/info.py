"""The files beside the packets of a trace: `info/session.json` and `info/processes.jsonl`.

The recorder writes both files while the program runs, so any part may be missing. Lines that are
cut off or damaged are skipped, and the other lines still count.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from nptltrace._binding.headers import ptt_abi
from nptltrace._dataclasses import dataclass, field, replace
from nptltrace._escaping import readable
from nptltrace._files.whole import json_of, read_whole
from nptltrace.catalog.runtimes import AGENT, FUTEXES, library_of, unseen
from nptltrace.trace.code.modules import Module, ModuleMap
from nptltrace.trace.code.python_code import add_targets, read_codes

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator
    from collections.abc import Set as AbstractSet
    from typing import Any

    from nptltrace.trace.code.python_code import PythonCode

__all__ = ["Info", "Process", "Session", "SharedMemory", "read_info"]


# Bytes of the file of a session. No command line makes it as large.
_SESSION_MAX = 1 << 26
# Ids, and times in nanoseconds, are less than these.
_ID, _TIME = 1 << 32, 1 << 63


@dataclass(frozen=True, slots=True)
class SharedMemory:
    """Memory that other processes may have mapped too.

    Attributes:
        start: First address.
        end: First address behind the memory.
        file: Device and inode, which identify the memory on the host while it exists.
        offset: Offset of `start` in the file.
    """

    start: int
    end: int
    file: str
    offset: int


@dataclass(slots=True)
class Process:
    """A process image.

    Attributes:
        index: Number of the image in the trace, as in packets.
        pid: Process id, as the recorder knew it.
        inner_pid: The process id in the PID namespace of the process.
        ppid: Process id of the parent.
        parent: Number of the image that forked it, or None.
        exe: The program.
        cmdline: Its arguments.
        start_unix_ns: When the process began, or None.
        end_unix_ns: When the recorder saw its end, or None.
        alive_unix_ns: When the recorder last saw it alive, or None.
        status: How it ended, in the recorder's words, or None.
        modules: The modules that are or were mapped into it; see `map`.
        shared: Memory that other processes may have mapped too, in order of its appearance.
        sites: Addresses by id of a call site.
        stacks: By number of a call stack, the number of the caller's stack and the return address.
        codes: Code objects of Python by their numbers in stacks.
        thread_names: By thread id, pairs of a name and the tick at which the thread had the name,
            or None; the last pair counts.
        raw: The values of all lines by kind, also values without an attribute.
        known: The modules from lists of all mapped modules.
    """

    index: int
    pid: int = 0
    inner_pid: int = 0
    ppid: int = 0
    parent: int | None = None
    exe: str = ""
    cmdline: list[str] = field(default_factory=list)
    start_unix_ns: int | None = None
    end_unix_ns: int | None = None
    alive_unix_ns: int | None = None
    status: Any = None
    modules: list[Module] = field(default_factory=list)
    known: set[Module] = field(default_factory=set, repr=False)
    _map: ModuleMap | None = field(default=None, repr=False)
    _recorded: tuple[int, AbstractSet[int]] = field(default=(0, frozenset()), repr=False)
    shared: list[SharedMemory] = field(default_factory=list)
    sites: dict[int, int] = field(default_factory=dict)
    stacks: dict[int, tuple[int, int]] = field(default_factory=dict)
    codes: dict[int, PythonCode] = field(default_factory=dict)
    thread_names: dict[int, list[tuple[int | None, str]]] = field(default_factory=dict)
    raw: dict[str, Any] = field(default_factory=dict)

    @property
    def map(self) -> ModuleMap:
        """The modules by address."""
        if self._map is None:
            self._map = ModuleMap(self.modules)
        return self._map

    @property
    def recorded(self) -> AbstractSet[int]:
        """The addresses of call sites."""
        count, recorded = self._recorded
        if count != len(self.sites):
            recorded = set(self.sites.values())
            self._recorded = len(self.sites), recorded
        return recorded

    def add_modules(self, modules: Iterable[Module]) -> None:
        """Take in one line: a list of all mapped modules, or new modules with their times."""
        # Modules of the first list count from the beginning. Later lists do not say since when.
        late = None if self.modules else 0
        for module in modules:
            timeless = replace(module, since=None)
            if module.since is None and timeless not in self.known:
                self.known.add(timeless)
                self.modules.append(replace(module, since=late))
            elif module.since is not None:
                self.modules.append(module)


@dataclass(frozen=True, slots=True)
class Session:
    """How the trace was recorded.

    Attributes:
        raw: The whole document; empty if there is none.
    """

    raw: dict[str, Any]

    @property
    def state(self) -> str:
        """`running`, `complete`, `recovered`, or empty if unknown."""
        return str(self.raw.get("state", ""))

    @property
    def level(self) -> str:
        """The detail level, as the user asked for it."""
        return str(self.raw.get("level", ""))

    @property
    def nptl(self) -> str:
        """The thread library: `stock`, the name of a trace-enabled library, or empty."""
        return self.string("nptl")

    @property
    def window(self) -> tuple[int | None, int | None]:
        """Begin and end, in ticks, of a trace that was cut out of another; None for no limit."""
        window = self.raw.get("window")
        if not isinstance(window, list) or len(window) != 2:  # noqa: PLR2004 -- begin and end
            return None, None
        begin, end = (ticks if isinstance(ticks, int) else None for ticks in window)
        return begin, end

    @property
    def domains(self) -> dict[int, int]:
        """By process, the kinds of objects with recorded changes of state, as bits.

        Only the events before a trace that was cut out of another have it.
        """
        domains = self.raw.get("domains")
        if not isinstance(domains, dict):
            return {}
        return {
            int(index): kinds
            for index, kinds in domains.items()
            if index.isdecimal() and isinstance(kinds, int) and 0 <= kinds < 2**32
        }

    @property
    def filter(self) -> str:
        """The filter of events, as the user asked for it; empty for all events."""
        return self.string("filter")

    @property
    def filtered_out(self) -> list[str]:
        """Names of the event types that the filter left out."""
        return [str(name) for name in self._list("filtered_out")]

    @property
    def losses(self) -> dict[str, int]:
        """Numbers of lost events by cause."""
        losses = self.raw.get("lost", self.raw.get("losses", {}))
        if isinstance(losses, int):
            return {"lost": losses} if losses else {}
        if not isinstance(losses, dict):
            return {}
        return {str(cause): n for cause, n in losses.items() if isinstance(n, int) and n}

    @property
    def untraced_processes(self) -> int:
        """Number of processes that had no room beside the traced processes."""
        return self.number("untraced_processes") or 0

    @property
    def lock_types(self) -> list[str]:
        """Names of the user's own kinds of locks, in the order of their numbers."""
        return [str(name) for name in self._list("lock_types")]

    @property
    def uncovered(self) -> list[dict[str, Any]]:
        """Modules with thread calls that PTT could not trace, and why."""
        return [item for item in self._list("uncovered") if isinstance(item, dict)]

    @property
    def futex_modules(self) -> list[str]:
        """Paths of modules that have locks of Rust or C++20 compiled into them."""
        return [str(path) for path in self._list("futex_modules")]

    def number(self, *path: str) -> int | None:
        """Return the integer at a path of keys in the document, or None."""
        value = self._value(path)
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    def string(self, *path: str) -> str:
        """Return the text at a path of keys in the document, or the empty text."""
        value = self._value(path)
        return value if isinstance(value, str) else ""

    def _list(self, name: str) -> list[Any]:
        value = self.raw.get(name)
        return value if isinstance(value, list) else []

    def _value(self, path: Iterable[str]) -> Any:
        value: Any = self.raw
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        return value


@dataclass(frozen=True, slots=True)
class Info:
    """Everything beside the packets.

    Attributes:
        session: How the trace was recorded.
        processes: The process images by number.
        remarks: A sentence for each part that could not be read.
    """

    session: Session
    processes: dict[int, Process]
    remarks: list[str]

    @property
    def uncovered(self) -> list[dict[str, Any]]:
        """Modules that the trace does not cover fully, and why.

        The modules that the session lists come first: their thread calls bypassed the tracer.
        """
        attached = "attached" in self.session.raw
        modules = [module for process in self.processes.values() for module in process.modules]
        reasons = {m.path: unseen(m.path, m.runtime, attached=attached) for m in modules}
        direct = {path: why for path, why in reasons.items() if why}
        direct |= dict.fromkeys(filter(self._has_agent, direct), AGENT)
        # A library may have two paths. The reason by its name says more.
        known = {library_of(path) for path in direct} - {""}
        others = [path for path in self.session.futex_modules if library_of(path) not in known]
        direct = dict.fromkeys(others, FUTEXES) | direct
        return self.session.uncovered + [
            {"module": path, "why": why} for path, why in direct.items()
        ]

    def _has_agent(self, machine: str) -> bool:
        """Return whether all processes with this Java virtual machine have the agent."""
        if library_of(machine) != "libjvm":
            return False
        mapped = [
            {module.path for module in process.modules} for process in self.processes.values()
        ]
        return all(
            any(library_of(path) == "libpttjava" for path in paths)
            for paths in mapped
            if machine in paths
        )


def read_info(trace: str | os.PathLike[str]) -> Info:
    """Read the info directory of a trace. Missing parts stay empty; `remarks` names them."""
    directory = Path(trace) / "info"
    remarks: list[str] = []
    raw: dict[str, Any] = {}
    try:
        document = json_of(read_whole(directory / "session.json", most=_SESSION_MAX))
        raw = document if isinstance(document, dict) else {}
    except FileNotFoundError:
        remarks.append("info/session.json is missing: how it was recorded is not known")
    except (OSError, ValueError):
        remarks.append("info/session.json is damaged: how it was recorded is not known")
    processes: dict[int, Process] = {}
    for line in _lines(directory / "processes.jsonl", remarks):
        for kind, value in line.items():
            if isinstance(value, dict):
                try:
                    _apply(processes, kind, value)
                except (TypeError, ValueError, KeyError, AttributeError, OverflowError):
                    remarks.append("a line of info/processes.jsonl is damaged and skipped")
    _inherit(processes)
    return Info(Session(raw), processes, remarks)


def _lines(path: Path, remarks: list[str]) -> Iterator[dict[str, Any]]:
    """Yield the objects of a file of JSON lines."""
    try:
        data = read_whole(path)
    except FileNotFoundError:
        remarks.append("info/processes.jsonl is missing: programs, modules and names are not known")
        return
    except OSError as error:
        remarks.append(f"info/processes.jsonl cannot be read: {error.strerror}")
        return
    bad = 0
    lines = data.split(b"\n")
    for number, line in enumerate(lines):
        if not line.strip():
            continue
        try:
            value = json_of(line)
        except ValueError:
            # The recorder may be writing the last line now.
            bad += number != len(lines) - 1
            continue
        if isinstance(value, dict):
            yield value
    if bad:
        remarks.append(f"{bad} damaged lines of info/processes.jsonl are skipped")


def _signed(value: Any) -> int:
    """Return a number that may be negative, from a number or a text."""
    number = int(value, 0) if isinstance(value, str) else value
    if isinstance(number, bool) or not isinstance(number, int):
        raise TypeError
    if abs(number) >= 1 << 64:
        raise ValueError
    return number


def _number(value: Any, below: int = 1 << 64) -> int:
    """Return a number that is not negative.

    Raises:
        ValueError: The number is negative or too large.
    """
    number = _signed(value)
    if not 0 <= number < below:
        raise ValueError
    return number


def _apply(processes: dict[int, Process], kind: str, value: dict[str, Any]) -> None:
    """Take in one line."""
    index = _number(value["process"] if "process" in value else value["index"], _ID)
    process = processes.setdefault(index, Process(index))
    process.raw.setdefault(kind, {}).update(value)
    if kind == "process":
        _apply_process(process, value)
    elif kind == "modules":
        process.add_modules(map(_module, value["modules"]))
    elif kind == "shared":
        process.shared += map(_shared, value["shared"])
    elif kind in {"sites", "stacks", "codes", "targets"}:
        _apply_sites(process, value)
    elif kind == "thread":
        if value.get("name"):
            ticks = value.get("clock")
            named = None if ticks is None else _number(ticks), readable(str(value["name"]))
            process.thread_names.setdefault(_number(value["tid"], _ID), []).append(named)
    elif kind == "exit":
        process.status = value.get("status", process.status)
        if value.get("end_unix_ns") is not None:
            process.end_unix_ns = _number(value["end_unix_ns"], _TIME)
        if value.get("alive_unix_ns") is not None:
            process.alive_unix_ns = _number(value["alive_unix_ns"], _TIME)


def _apply_sites(process: Process, value: dict[str, Any]) -> None:
    """Take in a line of call sites, of call stacks, or of code objects in stacks."""
    sites = value.get("sites", {})
    pairs = sites.items() if isinstance(sites, dict) else sites
    process.sites.update(
        {_number(site, ptt_abi.PTT_SITE_COUNT): _number(address) for site, address in pairs}
    )
    most = ptt_abi.PTT_STACK_COUNT
    process.stacks.update(
        (_number(number, most), (_number(caller, most), _number(address)))
        for number, caller, address in value.get("stacks", ())
    )
    for number, code in read_codes(value.get("codes", ())):
        # A code object that comes again, as after a recovery, keeps its targets.
        if process.codes.get(number) != code:
            process.codes[number] = code
    add_targets(process.codes, value.get("targets", ()))


def _apply_process(process: Process, value: dict[str, Any]) -> None:
    """Take in a line about a process."""
    process.pid = _number(value.get("pid", process.pid), _ID)
    process.inner_pid = _number(value.get("inner_pid", process.pid), _ID)
    process.ppid = _number(value.get("ppid", process.ppid), _ID)
    if value.get("parent") is not None:
        process.parent = _number(value["parent"], _ID)
    process.exe = str(value.get("exe") or process.exe)
    arguments = value.get("cmdline")
    if isinstance(arguments, list):
        process.cmdline = [readable(str(argument)) for argument in arguments]
    elif isinstance(arguments, str):
        process.cmdline = readable(arguments).split()
    if value.get("start_unix_ns") is not None:
        process.start_unix_ns = _number(value["start_unix_ns"], _TIME)


def _module(item: dict[str, Any]) -> Module:
    """Return a module from its JSON."""
    bias, since = item.get("bias"), item.get("since_clock")
    return Module(
        path=str(item["path"]),
        build_id=str(item.get("build_id") or ""),
        start=_number(item["start"]),
        end=_number(item["end"]),
        offset=_number(item.get("offset", 0)),
        bias=None if bias is None else _signed(bias),
        since=None if since is None else _number(since),
        runtime=str(item.get("runtime") or ""),
    )


def _shared(item: dict[str, Any]) -> SharedMemory:
    """Return a piece of shared memory from its JSON."""
    start, end, offset = (_number(item[name]) for name in ("start", "end", "offset"))
    return SharedMemory(start, end, str(item["file"]), offset)


def _inherit(processes: dict[int, Process]) -> None:
    """Give forked children the call sites, stacks, code and modules of their parents."""
    for index in sorted(processes):
        child = processes[index]
        parent = processes.get(child.parent) if child.parent is not None else None
        if parent is None or parent is child:
            continue
        child.sites = {**parent.sites, **child.sites}
        child.stacks = {**parent.stacks, **child.stacks}
        child.codes = {**parent.codes, **child.codes}
        child.modules = child.modules or parent.modules
        child.exe = child.exe or parent.exe
        child.cmdline = child.cmdline or parent.cmdline
