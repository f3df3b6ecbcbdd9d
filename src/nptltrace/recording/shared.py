"""The handlers that write classic records: `shared`, which is drained, and `file`."""

from __future__ import annotations

import json
import re
import time
from typing import TYPE_CHECKING

from nptltrace._binding.headers.collect import PTT_FAULT_DAMAGED, PTT_FAULT_UNFINISHED
from nptltrace._binding.libpttcollect import SharedCollector, Stats
from nptltrace._files.whole import json_of
from nptltrace.errors import UsageError
from nptltrace.recording.settings.options import Policy

if TYPE_CHECKING:
    from nptltrace._binding.libpttcollect import Collector
    from nptltrace._files.directories import Directory
    from nptltrace.recording.files.session import SessionDir
    from nptltrace.recording.settings.filters import EventFilter
    from nptltrace.recording.settings.options import HandlerChoice, RecordOptions

__all__ = [
    "FileDrain",
    "SharedCollector",
    "SharedDrain",
    "check",
    "fault_lines",
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
    """Return the size of the buffer in bytes, from `--handler shared[:size=SIZE]`.

    Raises:
        UsageError: An argument is not a size from 1 to 16G.

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


def check(options: RecordOptions) -> None:
    """Check the arguments of the handler and the options that it needs.

    Raises:
        UsageError: An argument is wrong, or an option does not fit the handler.
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
    """Return a line for each place in the shared buffer without a whole record; at most 65."""
    count, faults = collector.faults()
    lines = []
    for fault in faults:
        owner = f" of process {fault.pid}" if fault.pid else ""
        lines.append(
            f"shared buffer, word {fault.word}: a record{owner} ({fault.words} words) is "
            f"{_KINDS.get(fault.kind, 'unknown')}"
        )
    if count > len(lines):
        lines.append(f"shared buffer: {count - len(lines)} more such places")
    return lines


class SharedDrain:
    """The `shared` handler: the reading process of the write-and-read mechanism.

    Args:
        collector: Drains the segment.
        session: The session directory.
    """

    def __init__(self, collector: Collector, session: SessionDir) -> None:
        self._collector = collector
        self._session = session

    def arguments(self) -> list[str]:
        """Return the arguments that lead to the session directory."""
        return self._session.arguments

    def step(self, *, flush: bool) -> Stats:
        """Read the buffer if it is half full, a writer waits for room, or `flush` is set."""
        return self._collector.drain(flush=flush)

    def sleep(self, limit: float) -> None:
        """Sleep until the buffer is half full or has no room, at most `limit` seconds."""
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
        chosen: The filter of events, which the handler cannot write down itself; None for all.
    """

    def __init__(self, choice: HandlerChoice, trace: Directory, chosen: EventFilter | None) -> None:
        self._choice = choice
        self._trace = trace
        self._chosen = chosen

    def arguments(self) -> list[str]:
        """Return the trace directory, and the user's arguments."""
        return [f"file={self._trace.path.absolute()}", *self._choice.arguments]

    def step(self, *, flush: bool) -> Stats:  # noqa: ARG002 -- nothing is written before the end
        """Do nothing."""
        return Stats()

    def sleep(self, limit: float) -> None:
        """Sleep a little."""
        time.sleep(min(limit, _SLEEP_MAX))

    def finish(self) -> Stats:
        """Return the counts that the handler wrote into the trace."""
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
            pass  # the program was killed before it wrote a trace
        return stats
