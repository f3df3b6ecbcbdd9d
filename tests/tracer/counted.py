"""Runs programs under the tracer with the tests' own handler, and reads the recorded events."""

from __future__ import annotations

import struct
import subprocess
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from nptltrace.catalog import BY_ID
from tests.support import clean_environment

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = ["Event", "Process", "Run", "Runner"]

RECORD = struct.Struct("<IBBBBQQI36s")
_SCALARS = {"u8": "B", "u16": "H", "u32": "I", "tid": "I", "s32": "i", "u64": "Q", "s64": "q"}
_SCALARS |= {"ns": "Q"}


@dataclass(frozen=True, slots=True)
class Event:
    """One event as the handler received it.

    Attributes:
        tid: The thread.
        name: Name in the catalogue.
        object: Address.
        fields: The scalar fields by name.
        text: The variable field, if the event has one.
        variant: The catalogue's variant, if several events share this name.
    """

    tid: int
    name: str
    object: int
    fields: dict[str, int]
    text: str = ""
    variant: str = ""


def _decode(raw: tuple[int, ...], data: bytes) -> Event:
    tid, _source, domain, number, _ready, address, _site, size = raw
    kind = BY_ID[domain << 6 | number]
    fields: dict[str, int] = {}
    text = ""
    for item in kind.fields:
        at = item.offset - 16
        if item.type == "ptr":
            fields[item.name] = int.from_bytes(data[at : at + 6], "little")
        elif item.type == "bytes":
            text = data[at : size - 16].rstrip(b"\0").decode()
        else:
            (fields[item.name],) = struct.unpack_from("<" + _SCALARS[item.type], data, at)
    return Event(tid, kind.name, address, fields, text, kind.variant)


@dataclass(frozen=True, slots=True)
class Process:
    """The events of one process image."""

    pid: int
    events: list[Event]

    def names(self) -> Counter[str]:
        """Return the number of events of each name."""
        return Counter(event.name for event in self.events)

    def of(self, *names: str) -> list[Event]:
        """Return the events of these names."""
        return [event for event in self.events if event.name in names]

    def of_program(self, *names: str) -> list[Event]:
        """Return events on the program's own variables; libraries lie at higher addresses."""
        return [event for event in self.of(*names) if event.object < 0x7000_0000_0000]

    def domain(self, prefix: str, *, tid: int | None = None) -> list[str]:
        """Return the names that start with `prefix`, in order."""
        return [
            event.name
            for event in self.events
            if event.name.startswith(prefix) and tid in (None, event.tid)
        ]

    def check_pairs(self) -> None:
        """Insist that each thread leaves its calls in the opposite order of entry."""
        stacks: dict[int, list[Event]] = {}
        for event in self.events:
            stack = stacks.setdefault(event.tid, [])
            if event.name.endswith("_IN"):
                stack.append(event)
            elif event.name.endswith("_OUT"):
                assert stack, f"{event} without its _IN"
                entered = stack.pop()
                assert entered.name[:-3] == event.name[:-4], f"{event} after {entered}"
        for stack in stacks.values():
            # These calls never return: exits, and a sleep that lasts until the process ends.
            left = [e for e in stack if "_EXIT_" not in e.name and e.name != "SYS_CALL_IN"]
            assert not left, f"never left: {left}"


@dataclass(frozen=True, slots=True)
class Run:
    """Output, status and events of a program and its children."""

    stdout: str
    stderr: str
    status: int
    processes: list[Process] = field(default_factory=list)

    @property
    def only(self) -> Process:
        """The events of the process; there must be only one process."""
        (process,) = self.processes
        return process


@dataclass(frozen=True, slots=True)
class Runner:
    """Runs programs untraced and traced.

    Attributes:
        preload: The tracer.
        handler: The counting handler.
        directory: Where the records go.
        before: Command that runs programs of another processor, such as an emulator.
    """

    preload: Path
    handler: Path
    directory: Path
    before: tuple[str, ...] = ()

    def plain(self, *command: str | Path) -> Run:
        """Run COMMAND without the tracer."""
        return self._run(command, {})

    def __call__(
        self,
        *command: str | Path,
        level: int = 3,
        tracing_arg: str = "",
        env: Mapping[str, str] | None = None,
    ) -> Run:
        """Run COMMAND traced."""
        records = self.directory / f"records-{len(list(self.directory.iterdir()))}"
        records.mkdir()
        trace = f"{self.handler}:{records}:{level}:{tracing_arg}"
        run = self._run(
            command,
            {"LD_PRELOAD": str(self.preload), "PTHREAD_NPTL_TRACE": trace, **(env or {})},
        )
        for path in sorted(records.iterdir()):
            run.processes.append(self._read(path))
            path.unlink()
        return run

    def _run(self, command: tuple[str | Path, ...], env: dict[str, str]) -> Run:
        done = subprocess.run(
            [*self.before, *command],
            env=clean_environment(**env),
            capture_output=True,
            encoding="utf-8",
            timeout=120,
            check=False,
        )
        return Run(done.stdout, done.stderr, done.returncode)

    @staticmethod
    def _read(path: Path) -> Process:
        data = path.read_bytes()
        assert not any(data[-RECORD.size :]), "more events than the handler has room for"
        events: list[Event] = []
        for *raw, fields in RECORD.iter_unpack(data[: len(data) // RECORD.size * RECORD.size]):
            if not raw[0]:
                break
            assert raw[4] == 1, "a record that was never finished"
            events.append(_decode(tuple(raw), fields))
        return Process(int(path.name.split("-")[1]), events)
