"""The handlers that write classic records: `shared`, drained while it runs, and `file`."""

from __future__ import annotations

import json
import re
import time
from typing import TYPE_CHECKING, NamedTuple

from nptltrace._binding.headers.collect import PTT_FAULT_DAMAGED, PTT_FAULT_UNFINISHED
from nptltrace._binding.libpttcollect import SharedCollector, Stats
from nptltrace._files.whole import json_of
from nptltrace.errors import UsageError
from nptltrace.recording.settings.options import Policy

if TYPE_CHECKING:
    from pathlib import Path

    from nptltrace._binding.libpttcollect import Collector
    from nptltrace._files.directories import Directory
    from nptltrace.recording.files.session import SessionDir
    from nptltrace.recording.settings.filters import EventFilter
    from nptltrace.recording.settings.options import HandlerChoice, RecordOptions

__all__ = [
    "Fault",
    "FileDrain",
    "SharedCollector",
    "SharedDrain",
    "check",
    "fault_lines",
    "make_collector",
    "shared_size",
]

_SIZE = r"(?i)(\d+)([KMG]?)B?"
_UNITS = {"": 0, "K": 10, "M": 20, "G": 30}
_DEFAULT = 16 << 20
_SIZE_MAX = 1 << 34
_SLEEP_MAX = 0.05
_KINDS = {
    PTT_FAULT_UNFINISHED: "left unfinished",
    PTT_FAULT_DAMAGED: "damaged: its checksum is wrong",
}


def shared_size(choice: HandlerChoice) -> int:
    """Return the size that the arguments of `--handler shared[:size=SIZE]` ask for.

    Example:
        >>> from nptltrace.recording.settings.options import HandlerChoice
        >>> shared_size(HandlerChoice.parse("shared:size=1M"))
        1048576
    """
    size = _DEFAULT
    for argument in choice.arguments:
        name, _, value = argument.partition("=")
        match = re.fullmatch(_SIZE, value)
        if name != "size" or match is None:
            raise UsageError(f"handler shared: expected size=SIZE, not {argument!r}")
        size = int(match[1]) << _UNITS[match[2].upper()]
    if not 0 < size <= _SIZE_MAX:
        raise UsageError("handler shared: the size must be from 1 to 16G")
    return size


class Fault(NamedTuple):
    """A place of the shared buffer where there was no whole record.

    Attributes:
        word: Where, in 32-bit words since the beginning of the recording.
        words: How many were left out.
        what: What is wrong there.
        pid: Whose record it was, or 0 if nobody knows.
    """

    word: int
    words: int
    what: str
    pid: int

    def __str__(self) -> str:
        owner = f" of process {self.pid}" if self.pid else ""
        return (
            f"shared buffer, word {self.word}: a record{owner} ({self.words} words) is {self.what}"
        )


def make_collector(options: RecordOptions, segment: Path, trace: Path) -> Collector:
    """Make the collector of the one buffer."""
    return SharedCollector(
        segment, trace, options.buffers.native(), size=shared_size(options.handler)
    )


def check(options: RecordOptions) -> None:
    """Refuse arguments of the handler, and options, that make no sense together.

    Raises:
        UsageError: They do not.
    """
    if options.handler.name == "shared":
        shared_size(options.handler)
        if options.buffers.policy is not Policy.FLUSH:
            raise UsageError("handler shared needs --stream-full-policy flush")
    if options.handler.name == "file":
        if any(not argument.startswith("size=") for argument in options.handler.arguments):
            raise UsageError("handler file: expected size=SIZE; -o names the trace directory")
        if options.output is not None and set(":,") & set(str(options.output.absolute())):
            raise UsageError(f"handler file: {options.output}: its name may hold no ':' and no ','")


def fault_lines(collector: Collector) -> list[str]:
    """Return a line for each place of the shared buffer that held no record; of many, the first."""
    count, places = collector.faults()
    lines = [
        str(Fault(place.word, place.words, _KINDS.get(place.kind, "unknown"), place.pid))
        for place in places
    ]
    if count > len(lines):
        lines.append(f"shared buffer: {count - len(lines)} more such places")
    return lines


class SharedDrain:
    """The `shared` handler: the reading process of the write-and-read mechanism.

    Args:
        collector: What drains the segment.
        session: The session directory.
    """

    def __init__(self, collector: Collector, session: SessionDir) -> None:
        self._collector = collector
        self._session = session

    def arguments(self) -> list[str]:
        """Return what the session directory says of itself."""
        return self._session.arguments

    def step(self, *, flush: bool) -> Stats:
        """Read the buffer if it is filled to the middle, somebody waits for room, or `flush`."""
        return self._collector.drain(flush=flush)

    def sleep(self, limit: float) -> None:
        """Sleep until a writer reaches the middle of the buffer or finds no room."""
        self._collector.wait(min(limit, _SLEEP_MAX))

    def finish(self) -> Stats:
        """Close the segment and read the rest."""
        self._collector.close()
        return self._collector.finish()


class FileDrain:
    """The `file` handler, which writes the trace itself when the program ends.

    Args:
        choice: The handler, with the user's arguments.
        trace: The trace directory.
        chosen: Which events come to the handler, which knows nothing of it; None for all.
    """

    def __init__(self, choice: HandlerChoice, trace: Directory, chosen: EventFilter | None) -> None:
        self._choice = choice
        self._trace = trace
        self._chosen = chosen

    def arguments(self) -> list[str]:
        """Return the trace directory, and what the user gave."""
        return [f"file={self._trace.path.absolute()}", *self._choice.arguments]

    def step(self, *, flush: bool) -> Stats:  # noqa: ARG002 -- nothing is written before the end
        """Do nothing."""
        return Stats()

    def sleep(self, limit: float) -> None:
        """Sleep a little."""
        time.sleep(min(limit, _SLEEP_MAX))

    def finish(self) -> Stats:
        """Return what the handler says it wrote."""
        stats = Stats()
        try:
            with self._trace.inside("info") as info:
                facts = json_of(info.read("session.json"))
                stats.events, stats.bytes = int(facts["events"]), int(facts["bytes"])
                stats.threads = int(facts["threads"])
                stats.lost_full = int(facts["lost"]["buffers_full"])
                stats.unfinished = int(facts["lost"]["unfinished"])
                if self._chosen is not None:
                    facts |= self._chosen.facts()
                    text = json.dumps(facts, indent=1, ensure_ascii=False) + "\n"
                    info.replace("session.json", text)
        except (OSError, ValueError, KeyError, TypeError):
            pass  # the program was killed: there is no trace
        return stats
