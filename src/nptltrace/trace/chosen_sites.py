"""Call sites of opened traces: recorded call sites, and call sites chosen from stacks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nptltrace._binding import libpttread, libpttread_text
from nptltrace.trace.code.call_site import ENTRY

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from nptltrace.trace.open_traces import OpenTraces
    from nptltrace.trace.symbols.frames import ChooseSites, FindSiteUses

__all__ = ["ChosenSites"]

_RECORDS = 1  # the stream class of the handlers shared and file
_BATCH = 16384


class ChosenSites:
    """Chooses the call sites of events that have a stack from the stack.

    Args:
        traces: The opened traces.
    """

    def __init__(self, traces: OpenTraces) -> None:
        self._traces = traces
        self._choose: ChooseSites | None = None
        self._find_uses: FindSiteUses | None = None
        # By process: the searched call sites, and pairs of a call site and its use.
        self._uses: dict[int, tuple[set[int], list[tuple[int, int]]]] = {}
        self._chosen: dict[int, dict[int, int]] = {}  # call sites by process and stack
        self._stacks_seen: dict[int, int] = {}  # numbers of stacks by process
        self._records: (
            tuple[libpttread.Cursor, libpttread_text.Names, set[tuple[int, int]]] | None
        ) = None

    def choose(self, choose: ChooseSites, uses: FindSiteUses | None) -> None:
        """Choose call sites from the stacks, now and after each refresh.

        Args:
            choose: Returns, for a process, call sites by stack, if they differ from the recorded
                call sites.
            uses: Returns the call sites that lie in a wrapper, or in a function that sleeps.
        """
        self._choose, self._find_uses = choose, uses
        self._uses.clear()
        self._stacks_seen.clear()
        self.update()

    def update(self) -> None:
        """Choose call sites from new stacks."""
        for number, process in enumerate(self._traces.processes):
            stacks = len(process.stacks)
            if self._choose is not None and stacks != self._stacks_seen.get(number, 0):
                self._stacks_seen[number] = stacks
                chosen = self._choose(number, process)
                if chosen != self._chosen.get(number, {}):
                    self._chosen[number] = chosen
                    self._traces.reader.set_stack_sites(number, chosen)

    def uses(self) -> Iterator[tuple[int, int, int]]:
        """Yield process, call site and use, `pttmodel.PTT_SITE_…`, of call sites with a use."""
        if self._find_uses is None:
            return
        for number, process in enumerate(self._traces.processes):
            with self._traces.learning:
                searched, with_use = self._uses.setdefault(number, (set(), []))
                new = {*process.recorded, *self.of_process(number)} - searched
                with_use += self._find_uses(number, new)
                searched |= new
            for site, use in with_use:
                yield number, site, use

    def of_stack(self, process: int, stack: int) -> int:
        """Return the call site that was chosen from a stack; 0 for the recorded call site."""
        return self._chosen.get(process, {}).get(stack, 0)

    def of_process(self, process: int) -> Iterable[int]:
        """Return all call sites that were chosen from stacks of a process."""
        return self._chosen.get(process, {}).values()

    def text(self) -> str:
        """Return the choice as text; other choices have other texts."""
        return repr(sorted((n, sorted(sites.items())) for n, sites in self._chosen.items()))

    def everywhere(self) -> set[tuple[int, int]]:
        """Return (process number, call site) of all call sites that are known so far."""
        listed = {
            (number, site | entry)
            for number, process in enumerate(self._traces.processes)
            for address in process.sites.values()
            for site in process.map.sites(address)
            for entry in (0, ENTRY)
        }
        chosen = {(n, site) for n, sites in self._chosen.items() for site in sites.values()}
        return listed | chosen | self._record_sites()

    def _record_sites(self) -> set[tuple[int, int]]:
        """Return call sites from classic records, which hold addresses in place of numbers."""
        reader = self._traces.reader
        streams = range(reader.stream_count())
        if all(reader.stream_info(n).stream_class != _RECORDS for n in streams):
            return set()
        if self._records is None:
            self._records = libpttread.Cursor(reader), libpttread_text.Names(reader), set()
        cursor, names, sites = self._records
        cursor.refresh()
        buffer = libpttread.Buffer(_BATCH)
        while cursor.read(buffer):
            sites |= {
                (process, at)
                for kind, process, at in names.missing(buffer)
                if kind == libpttread_text.SITE
            }
        return sites
