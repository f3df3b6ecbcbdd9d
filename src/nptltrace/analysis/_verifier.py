"""The verifier library: one class a handle; see `pttverify.h`."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import TYPE_CHECKING, Any

from nptltrace import _paths
from nptltrace.trace._abi import check, load, made, own

if TYPE_CHECKING:
    from nptltrace._binding.libpttread import Buffer

__all__ = ["NEVER", "SEVERITIES", "EventRow", "ProcessFacts", "Row", "Verifier", "rules", "skips"]

VERSION = 1
NEVER = -(2**63)
SEVERITIES = ("error", "warning")
_EVENTS = 4

_u32, _u64, _i64 = ctypes.c_uint32, ctypes.c_uint64, ctypes.c_int64


class EventRow(ctypes.Structure):
    """An event that shows something; see `struct ptt_verify_event`."""

    _fields_ = (
        ("ts", _i64),
        ("object", _u64),
        ("site", _u64),
        ("payload", _u64),
        ("thread", _u32),
        ("id", _u32),
    )
    ts: int
    object: int
    site: int
    payload: int
    thread: int
    id: int


class Row(ctypes.Structure):
    """A violation; see `struct ptt_verify_violation`."""

    _fields_ = (
        ("object", _u64),
        ("ts", _i64),
        ("count", _u64),
        ("number", _i64 * 2),
        ("rule", _u32),
        ("severity", _u32),
        ("process", _u32),
        ("kind", _u32),
        ("event_count", _u32),
        ("reserved", _u32),
        ("event", EventRow * _EVENTS),
    )
    object: int
    ts: int
    count: int
    number: ctypes.Array[ctypes.c_int64]
    rule: int
    severity: int
    process: int
    kind: int
    event_count: int
    event: ctypes.Array[EventRow]


class ProcessFacts(ctypes.Structure):
    """What is known of a process beside its events; see `struct ptt_verify_process`."""

    _fields_ = (
        ("alive", _i64),
        ("monotonic", _i64),
        ("realtime", _i64),
        ("incomplete", _u32),
        ("reserved", _u32),
    )


_p = ctypes.c_void_p
_PROTOTYPES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "ptt_verify_version": (ctypes.c_int, ()),
    "ptt_verify_create": (_p, ()),
    "ptt_verify_destroy": (None, (_p,)),
    "ptt_verify_process": (ctypes.c_int, (_p, _u32, _p)),
    "ptt_verify_share": (ctypes.c_int, (_p, _u32, _u64, _u64)),
    "ptt_verify_thread": (ctypes.c_int, (_p, _u32, _u32, _u32)),
    "ptt_verify_feed": (ctypes.c_int, (_p, _p, _i64)),
    "ptt_verify_finish": (ctypes.c_int, (_p, _i64)),
    "ptt_verify_violations": (_p, (_p, _p)),
    "ptt_verify_rule_name": (ctypes.c_char_p, (_u32,)),
    "ptt_verify_checks": (_u64, (_p, _u32)),
    "ptt_verify_skip_name": (ctypes.c_char_p, (_u32,)),
    "ptt_verify_skips": (_u64, (_p, _u32)),
}


@cache
def library() -> ctypes.CDLL:
    """Load the verifier library."""
    return load(_paths.verify_library(), _PROTOTYPES, "ptt_verify_version", VERSION)


def _names(function: str) -> tuple[str, ...]:
    found: list[str] = []
    name_of = getattr(library(), function)
    while (name := name_of(len(found))) is not None:
        found.append(name.decode())
    return tuple(found)


@cache
def rules() -> tuple[str, ...]:
    """Return the names of the rules by their number."""
    return _names("ptt_verify_rule_name")


@cache
def skips() -> tuple[str, ...]:
    """Return the names of the reasons to be silent by their number."""
    return _names("ptt_verify_skip_name")


class Verifier:
    """Holds events against the rules, in the order of time."""

    def __init__(self) -> None:
        lib = library()
        self._lib = lib
        self.handle = made("make a verifier", lib.ptt_verify_create())
        own(self, lib.ptt_verify_destroy, self.handle)

    def process(self, number: int, facts: ProcessFacts) -> None:
        """Tell what is known of a process beside its events."""
        status = self._lib.ptt_verify_process(self.handle, number, ctypes.byref(facts))
        check("follow a process", status)

    def share(self, process: int, start: int, end: int) -> None:
        """Tell of memory that other processes may have as well."""
        status = self._lib.ptt_verify_share(self.handle, process, start, end)
        check("follow shared memory", status)

    def thread(self, number: int, process: int, tid: int) -> None:
        """Tell which thread the reader's number means."""
        status = self._lib.ptt_verify_thread(self.handle, number, process, tid)
        check("follow a thread", status)

    def feed(self, buffer: Buffer) -> None:
        """Take in the events of a buffer, which has all columns but `cpu`."""
        status = self._lib.ptt_verify_feed(self.handle, buffer.pointer, buffer.count)
        check("verify the events", status)

    def finish(self, patience_ns: int) -> None:
        """Judge what never ended."""
        check("finish", self._lib.ptt_verify_finish(self.handle, patience_ns))

    def violations(self) -> list[Row]:
        """Return copies of all violations."""
        count = _u64()
        address = self._lib.ptt_verify_violations(self.handle, ctypes.byref(count))
        if not count.value:
            return []
        rows = (Row * count.value).from_address(address)
        return [Row.from_buffer_copy(row) for row in rows]

    def checks(self) -> dict[str, int]:
        """Return how often each rule was applied."""
        ask = self._lib.ptt_verify_checks
        return {name: int(ask(self.handle, n)) for n, name in enumerate(rules())}

    def skipped(self) -> dict[str, int]:
        """Return how often a rule was silent, by reason."""
        ask = self._lib.ptt_verify_skips
        return {name: int(ask(self.handle, n)) for n, name in enumerate(skips())}
