"""What a trace says beside its packets: `info/session.json` and `info/processes.jsonl`.

Both files are written while the program runs, so every part may be missing; a line that is cut
off or damaged is skipped, and what the others say still counts.
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


# No command line makes it as large.
_SESSION_MAX = 1 << 26
# What ids, and times in nanoseconds, are below.
_ID, _TIME = 1 << 32, 1 << 63


@dataclass(frozen=True, slots=True)
class SharedMemory:
    """Memory that other processes may have mapped too.

    Attributes:
        start: First address.
        end: First address behind it.
        file: What identifies it on the host as long as it exists: device and inode.
        offset: Where in it `start` is.
    """

    start: int
    end: int
    file: str
    offset: int


@dataclass(slots=True)
class Process:
    """A process image.

    Attributes:
        index: Its number in the trace; packets name it.
        pid: Process id, as the recorder knew it.
        inner_pid: The process id in the PID namespace of the process.
        ppid: Process id of the parent.
        parent: Number of the image that forked it, or None.
        exe: The program.
        cmdline: Its arguments.
        start_unix_ns: When it began, or None.
        end_unix_ns: When it was seen to have ended, or None.
        alive_unix_ns: When it was last seen alive, or None.
        status: How it ended, in the recorder's words, or None.
        modules: The modules that are or were mapped into it; see `map`.
        shared: Pieces of memory that other processes may have mapped too, in the order in which
            they came.
        sites: Addresses behind site ids.
        stacks: By number of a call stack, the number of the caller's stack and the return address.
        codes: Code objects of Python by the numbers that they have in stacks.
        thread_names: Names of threads by thread id, each with the tick at which it had the name,
            or None; the last one counts.
        raw: Everything the lines said, also what no attribute has.
        known: The modules that looks at the process have found.
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
        """Which module lies where."""
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
        """Take in what one line says: what was found in a look, or what is new."""
        # Later lists do not know what was unloaded, earlier ones what was loaded.
        late = None if self.modules else 0
        for module in modules:
            what = replace(module, since=None)
            if module.since is None and what not in self.known:
                self.known.add(what)
                self.modules.append(replace(module, since=late))
            elif module.since is not None:
                self.modules.append(module)


@dataclass(frozen=True, slots=True)
class Session:
    """How the trace was recorded.

    Attributes:
        raw: The whole document; empty when there is none.
    """

    raw: dict[str, Any]

    @property
    def state(self) -> str:
        """`running`, `complete`, `recovered`, or empty when nobody says."""
        return str(self.raw.get("state", ""))

    @property
    def level(self) -> str:
        """The detail level as it was asked for."""
        return str(self.raw.get("level", ""))

    @property
    def nptl(self) -> str:
        """The thread library: `stock`, what a trace-enabled one calls itself, or empty."""
        return self.string("nptl")

    @property
    def window(self) -> tuple[int | None, int | None]:
        """When the part of a recording that was cut out begins and ends, in ticks; None for all."""
        found = self.raw.get("window")
        if not isinstance(found, list) or len(found) != 2:  # noqa: PLR2004 -- begin and end
            return None, None
        begin, end = (ticks if isinstance(ticks, int) else None for ticks in found)
        return begin, end

    @property
    def domains(self) -> dict[int, int]:
        """By process, of what kinds of objects changes of state are recorded, as bits.

        Only the events before a trace that was cut out of another say so.
        """
        found = self.raw.get("domains")
        if not isinstance(found, dict):
            return {}
        return {
            int(index): kinds
            for index, kinds in found.items()
            if index.isdecimal() and isinstance(kinds, int) and 0 <= kinds < 2**32
        }

    @property
    def filter(self) -> str:
        """Which events were recorded only, as it was asked for; empty for all."""
        return self.string("filter")

    @property
    def filtered_out(self) -> list[str]:
        """Names of the event types that were left out."""
        found = self.raw.get("filtered_out", [])
        return [str(name) for name in found] if isinstance(found, list) else []

    @property
    def losses(self) -> dict[str, int]:
        """Lost events by cause."""
        found = self.raw.get("lost", self.raw.get("losses", {}))
        if isinstance(found, int):
            return {"lost": found} if found else {}
        if not isinstance(found, dict):
            return {}
        return {str(cause): n for cause, n in found.items() if isinstance(n, int) and n}

    @property
    def untraced_processes(self) -> int:
        """Processes that found no room among those that were traced at that time."""
        return self.number("untraced_processes") or 0

    @property
    def lock_types(self) -> list[str]:
        """What the user's own kinds of locks are called, in the order of their numbers."""
        found = self.raw.get("lock_types", [])
        return [str(name) for name in found] if isinstance(found, list) else []

    @property
    def uncovered(self) -> list[dict[str, Any]]:
        """Modules whose thread calls PTT could not trace, and why."""
        found = self.raw.get("uncovered", [])
        return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []

    @property
    def futex_modules(self) -> list[str]:
        """Modules that have locks of Rust or C++20 compiled into them."""
        found = self.raw.get("futex_modules", [])
        return [str(path) for path in found] if isinstance(found, list) else []

    def number(self, *path: str) -> int | None:
        """Return an integer of the document, or None."""
        value: Any = self.raw
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    def string(self, *path: str) -> str:
        """Return a string of the document, or the empty one."""
        value: Any = self.raw
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        return value if isinstance(value, str) else ""


@dataclass(frozen=True, slots=True)
class Info:
    """Everything beside the packets.

    Attributes:
        session: How the trace was recorded.
        processes: The process images by number.
        remarks: What could not be understood, a sentence each.
    """

    session: Session
    processes: dict[int, Process]
    remarks: list[str]

    @property
    def uncovered(self) -> list[dict[str, Any]]:
        """Modules that the trace does not cover as a whole, and why.

        Modules whose thread calls went past the tracer come first, as the session has them.
        """
        attached = "attached" in self.session.raw
        every = [module for process in self.processes.values() for module in process.modules]
        mapped = {one.path: unseen(one.path, one.runtime, attached=attached) for one in every}
        direct = {path: why for path, why in mapped.items() if why}
        direct |= dict.fromkeys(filter(self._has_agent, direct), AGENT)
        # a library may be known by two paths, and what is said of it by its name is more
        known = {library_of(path) for path in direct} - {""}
        others = [path for path in self.session.futex_modules if library_of(path) not in known]
        direct = dict.fromkeys(others, FUTEXES) | direct
        return self.session.uncovered + [
            {"module": path, "why": why} for path, why in direct.items()
        ]

    def _has_agent(self, machine: str) -> bool:
        """Return whether the agent is in all processes that have a machine of Java's mapped."""
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
    """Read the info directory of a trace; what is missing stays empty."""
    directory = Path(trace) / "info"
    remarks: list[str] = []
    raw: dict[str, Any] = {}
    try:
        found = json_of(read_whole(directory / "session.json", most=_SESSION_MAX))
        raw = found if isinstance(found, dict) else {}
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
                    remarks.append("a line of info/processes.jsonl makes no sense and is skipped")
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
            # The last line may be half written at this moment.
            bad += number != len(lines) - 1
            continue
        if isinstance(value, dict):
            yield value
    if bad:
        remarks.append(f"{bad} damaged lines of info/processes.jsonl are skipped")


def _signed(value: Any) -> int:
    """Return a number that may be negative, given as one or as text."""
    number = int(value, 0) if isinstance(value, str) else value
    if isinstance(number, bool) or not isinstance(number, int):
        raise TypeError
    if abs(number) >= 1 << 64:
        raise ValueError
    return number


def _number(value: Any, below: int = 1 << 64) -> int:
    """Return a number that is not negative.

    Raises:
        ValueError: It is too large for what it stands for.
    """
    number = _signed(value)
    if not 0 <= number < below:
        raise ValueError
    return number


def _apply(processes: dict[int, Process], kind: str, value: dict[str, Any]) -> None:
    """Take one line in."""
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
    """Take a line of call sites, of call stacks or of what is in these in."""
    found = value.get("sites", {})
    pairs = found.items() if isinstance(found, dict) else found
    process.sites.update(
        {_number(site, ptt_abi.PTT_SITE_COUNT): _number(address) for site, address in pairs}
    )
    most = ptt_abi.PTT_STACK_COUNT
    process.stacks.update(
        (_number(number, most), (_number(caller, most), _number(address)))
        for number, caller, address in value.get("stacks", ())
    )
    for number, code in read_codes(value.get("codes", ())):
        # One that comes again, as after a recovery, has the targets that it had.
        if process.codes.get(number) != code:
            process.codes[number] = code
    add_targets(process.codes, value.get("targets", ()))


def _apply_process(process: Process, value: dict[str, Any]) -> None:
    """Take a process line in."""
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
    numbers = (_number(item[name]) for name in ("start", "end", "offset"))
    start, end, offset = numbers
    return SharedMemory(start, end, str(item["file"]), offset)


def _inherit(processes: dict[int, Process]) -> None:
    """Give forked children what they took over from their parents: site numbers and modules."""
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
