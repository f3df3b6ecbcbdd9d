"""Prints events as lines: reads, filters, names and formats them batch by batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nptltrace._binding import libpttread, libpttread_text
from nptltrace._escaping import for_terminal, readable
from nptltrace.trace.code.call_site import stack_sites
from nptltrace.trace.symbols.frames import stack_texts

if TYPE_CHECKING:
    from collections.abc import Callable

    from nptltrace.trace.selection import Selection
    from nptltrace.trace.symbols.lookup import Symbols
    from nptltrace.trace.traceset import Traceset

__all__ = ["CSV_HEADER", "STYLES", "Printer"]

STYLES = {
    "text": libpttread_text.TEXT,
    "raw": libpttread_text.RAW,
    "jsonl": libpttread_text.JSONL,
    "csv": libpttread_text.CSV,
}
CSV_HEADER = "ts_ns,pid,tid,thread_name,cpu,source,event,object,object_name,site,site_name,fields\n"
# The first batch is one page, printed at once. Later batches fit in the processor's cache.
_FIRST, _BATCH = 512, 16384
# The column of the frames of stacks.
_INDENT = " " * 37
# Bytes of packets to search for thread names beforehand: so many that no reader notices the delay.
_SEARCHED = 64 << 20


class Printer:
    """Prints the events of a traceset.

    Args:
        source: The opened traces.
        symbols: Names addresses.
        selection: Which events to print.
        style: A key of `STYLES`.
        write: Takes the lines, as bytes.
        start: Skip this many of the selected events.
        count: Print at most this many events; None for all.
        stacks: Whether to print the stack of each event below it.
    """

    def __init__(
        self,
        source: Traceset,
        symbols: Symbols,
        selection: Selection,
        *,
        style: str,
        write: Callable[[memoryview], object],
        start: int = 0,
        count: int | None = None,
        stacks: bool = False,
    ) -> None:
        self._source = source
        self._symbols = symbols
        self._selection = selection
        self._style = STYLES[style]
        self._shown = for_terminal if self._style == libpttread_text.TEXT else readable
        self._write = write
        self._skip = start
        self._left = count
        self._stacks = stacks
        self.printed = 0
        self.cursor = libpttread.Cursor(source.reader)
        self.names = libpttread_text.Names(source.reader)
        self._filter: libpttread.Filter | None = None
        self._first = libpttread.Buffer(_FIRST)
        self._batch = libpttread.Buffer(_BATCH)
        self._ranged: set[int] = set()
        self._learnt = 0
        self.renew()

    @property
    def done(self) -> bool:
        """Whether `count` events are printed."""
        return self._left is not None and self._left <= 0

    def renew(self) -> None:
        """Take in new processes, threads and names."""
        self._filter = (
            self._selection.build(self._source, self._symbols) if self._selection else None
        )
        processes = self._source.processes
        self.names.show_process(on=len({process.pid for process in processes}) > 1)
        if self._source.reader.thread_count() != self._learnt:
            self._learnt = self._source.reader.thread_count()
            self._source.names.learn(_SEARCHED)
        for thread in range(len(self._source.thread_ids)):
            for since_ns, name in self._source.names.turns(thread):
                self.names.set_thread(thread, since_ns, self._shown(name))
        for (process_number, pthread), threads in self._source.names.known.pthreads.items():
            for since, thread in threads:
                self.names.set_pthread(process_number, pthread, since, thread)
        for number, process in enumerate(processes):
            for address, text in self._symbols.aliases.addresses.items():
                self.names.set(libpttread_text.OBJECT, number, address, self._shown(text))
            if number not in self._ranged and process.modules:
                self._ranged.add(number)
                for start, end in self._symbols.ranges(number):
                    self.names.add_range(number, start, end)

    def run(self) -> None:
        """Print up to the limit of the cursor, or to the end of the trace."""
        buffer = self._batch if self.printed else self._first
        while not self.done and self.cursor.read(buffer):
            if self._filter is not None:
                self._filter.apply(self._source.reader, buffer)
            self.print_events(buffer)
            buffer = self._first if self._stacks else self._batch

    def print_events(self, buffer: libpttread.Buffer) -> None:
        """Print the events of a buffer, as far as `start` and `count` allow."""
        if self._skip >= buffer.count:
            self._skip -= buffer.count
            return
        if self._skip:
            buffer.drop(self._skip)
            self._skip = 0
        if self._left is not None:
            buffer.count = min(buffer.count, self._left)
            self._left -= buffer.count
        self.printed += buffer.count
        self.name(buffer)
        if self._stacks:
            self._print_with_stacks(buffer)
        else:
            self._print(buffer)

    def _print(self, buffer: libpttread.Buffer) -> None:
        for lines in self.names.text(buffer, self._style):
            self._write(lines)

    def _print_with_stacks(self, buffer: libpttread.Buffer) -> None:
        """Print events up to the next event with a stack, then the stack, and so on."""
        count = buffer.count
        while count:
            stacks = buffer.arrays["stack"]
            at = next((n for n in range(count) if stacks[n]), count - 1)
            frames = self._frames(buffer, at) if stacks[at] else b""
            buffer.count = at + 1
            self._print(buffer)
            self._write(memoryview(frames))
            buffer.count, count = count, count - at - 1
            if count:
                buffer.drop(at + 1)

    def _frames(self, buffer: libpttread.Buffer, at: int) -> bytes:
        """Return the callers of the call site of an event, a line for each frame."""
        process, _ = self._source.thread_ids[buffer.arrays["thread"][at]]
        stacks = self._source.processes[process].stacks
        sites = stack_sites(stacks, buffer.arrays["stack"][at])
        frames = stack_texts(self._symbols, process, sites, buffer.arrays["site"][at])
        return "".join(f"{_INDENT}{self._shown(frame)}\n" for frame in frames[1:]).encode()

    def name(self, buffer: libpttread.Buffer) -> None:
        """Look up the names that these events need."""
        for kind, process, address in self.names.missing(buffer):
            if kind == libpttread_text.SITE:
                text = self._symbols.site_name(process, address)
            elif kind == libpttread_text.OBJECT:
                text = self._symbols.object_name(process, address)
            else:
                text = self._symbols.code_name(process, address)
            if text:
                self.names.set(kind, process, address, self._shown(text))
