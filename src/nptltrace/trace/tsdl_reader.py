"""Reads identity, clock and environment from the TSDL metadata of a trace (CTF 1.8)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID

from nptltrace._dataclasses import dataclass, field
from nptltrace._files.signature import signed
from nptltrace._files.whole import read_whole
from nptltrace.errors import TraceFormatError

if TYPE_CHECKING:
    import os

__all__ = ["Clock", "Metadata", "read_metadata"]

NS = 10**9

# Other tracers write metadata in packets, which begin with this number.
_PACKETIZED = {b"\x57\x1d\xd1\x75", b"\x75\xd1\x1d\x57"}
# The patterns never backtrack: a damaged text would take time by the square of its length.
_VALUE = r'(?:"((?:[^"\\]|\\.)*+)"|(-?\d++))'
_PAIR = re.compile(rf"(?<!\w)([A-Za-z_]\w*+)\s*+:?=\s*+{_VALUE}\s*+;")
# Bytes of metadata. Even the longest command line makes it smaller.
_LARGEST = 1 << 24
_DIGITS_MAX = 40


@dataclass(frozen=True, slots=True)
class Clock:
    """The clock of a trace.

    Attributes:
        name: The name in the metadata.
        uuid: Identity of the clock, which other traces of the clock share; None if unknown.
        frequency: Ticks per second.
        offset_s: Whole seconds of the Unix time of tick 0.
        offset: The rest of this time, in ticks.
    """

    name: str
    uuid: UUID | None
    frequency: int
    offset_s: int
    offset: int

    def unix_ns(self, ticks: int) -> int:
        """Return the Unix time of a tick, in ns."""
        return self.offset_s * NS + (self.offset + ticks) * NS // self.frequency

    def ticks(self, unix_ns: int) -> int:
        """Return the last tick that is not after a Unix time in ns."""
        return (unix_ns - self.offset_s * NS) * self.frequency // NS - self.offset


@dataclass(frozen=True, slots=True)
class Metadata:
    """The metadata of a trace.

    Attributes:
        text: The whole text.
        uuid: Identity of the trace, which each packet repeats.
        clock: The clock of the trace.
        env: The environment block: tracer, program and machine.
    """

    text: str
    uuid: UUID
    clock: Clock
    env: dict[str, str | int] = field(default_factory=dict)


def read_metadata(trace: str | os.PathLike[str]) -> Metadata:
    """Read the metadata of a trace directory.

    Raises:
        TraceFormatError: There is no metadata, or it does not describe a PTT trace.
    """
    directory = Path(trace)
    if not directory.is_dir():
        what = "is not a trace directory" if directory.exists() else "does not exist"
        raise TraceFormatError(directory, None, what)
    path = directory / "metadata"
    try:
        data = read_whole(path, most=_LARGEST)
    except FileNotFoundError:
        raise TraceFormatError(directory, None, "is not a trace: it has no metadata file") from None
    except OSError as error:
        raise TraceFormatError(path, None, error.strerror or "cannot be read") from None
    if data[:4] in _PACKETIZED:
        raise TraceFormatError(path, 0, "was written by another tracer: metadata in packets")
    text = data.decode("utf-8", "replace")
    if not text.strip():
        raise TraceFormatError(path, 0, "is empty")
    # The reader finds out by itself whether stream files are compact; copies of a trace are plain.
    text = signed(text, compact=False)
    if not text.lstrip().startswith("/* CTF 1.8"):
        raise TraceFormatError(path, 0, "is not CTF 1.8 metadata")
    if '"MUTEX_TAKEN"' not in text:
        raise TraceFormatError(path, None, "describes a trace of another tracer")
    return _parse(path, text)


def _parse(path: Path, text: str) -> Metadata:
    """Read the blocks trace, clock and env of the text."""
    trace, clock = _pairs(_block(text, "trace")), _pairs(_block(text, "clock"))
    try:
        uuid = UUID(str(trace["uuid"]))
    except (KeyError, ValueError):
        raise TraceFormatError(path, None, "has no uuid of the trace") from None
    frequency = _whole(path, clock, "freq", NS)
    if frequency <= 0:
        raise TraceFormatError(path, None, "has a clock without a positive frequency")
    try:
        clock_uuid = UUID(str(clock["uuid"])) if "uuid" in clock else None
    except ValueError:
        clock_uuid = None
    offset_s, offset = _whole(path, clock, "offset_s", 0), _whole(path, clock, "offset", 0)
    name = str(clock.get("name", ""))
    return Metadata(
        text,
        uuid,
        Clock(name, clock_uuid, frequency, offset_s, offset),
        _pairs(_block(text, "env")),
    )


def _whole(path: Path, pairs: dict[str, str | int], name: str, otherwise: int) -> int:
    """Return a number of the clock block."""
    value = pairs.get(name, otherwise)
    if not isinstance(value, int) or not -(2**62) < value < 2**62:
        raise TraceFormatError(path, None, f"the clock's {name} is not a possible number")
    return value


def _block(text: str, name: str) -> str:
    """Return the text between the braces of the first block of that name."""
    start = re.search(rf"(?m)^[ \t]*+{name}\s*+\{{", text)
    if start is None:
        return ""
    depth, at = 1, start.end()
    # Strings may hold braces. Damaged strings have no end.
    for token in re.finditer(r'"(?:[^"\\]|\\.)*+"?|[{}]', text[at:]):
        depth += {"{": 1, "}": -1}.get(token[0], 0)
        if depth == 0:
            return text[at : at + token.start()]
    return text[at:]


def _pairs(block: str) -> dict[str, str | int]:
    """Return the assignments of a block."""
    pairs: dict[str, str | int] = {}
    for name, quoted, number in _PAIR.findall(block):
        # Python refuses to convert thousands of digits. They stay text.
        is_number = 0 < len(number) <= _DIGITS_MAX
        text = re.sub(r"\\(.)", lambda escape: "\n" if escape[1] == "n" else escape[1], quoted)
        pairs.setdefault(name, int(number) if is_number else number or text)
    return pairs
