"""Names of the threads of opened traces, from events and from the recorder."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING

from nptltrace._escaping import readable
from nptltrace.trace.threads import ALL, ThreadNames, thread_names

if TYPE_CHECKING:
    from nptltrace.trace.open_traces import OpenTraces

__all__ = ["ThreadNaming"]

_COMM_MAX = 15  # bytes of a name that the kernel keeps


class ThreadNaming:
    """Names threads by their numbers in a traceset.

    Args:
        traces: The opened traces.

    Attributes:
        known: Threads from the events that `learn` has searched.
    """

    def __init__(self, traces: OpenTraces) -> None:
        self._traces = traces
        self.known = ThreadNames()
        self._searched = 0  # bytes of packets that were searched for `known`
        self._names: dict[tuple[int, int], str] = {}  # by thread and turn

    def learn(self, budget: int | None = None) -> None:
        """Search the events for names of threads, unless a search went as far before.

        Args:
            budget: Search this many bytes of packets at most; None for all.
        """
        wanted = ALL if budget is None else budget
        if wanted > self._searched:
            self.take_over(
                thread_names(self._traces.reader, self._traces.thread_ids, wanted), wanted
            )

    def take_over(self, names: ThreadNames, searched: int = ALL) -> None:
        """Take over the result of a search.

        Args:
            names: The threads from the search.
            searched: Bytes of packets that the search has read.
        """
        self.known, self._searched = names, searched
        self._names = {}

    def forget(self) -> None:
        """Search again at the next `learn`, since the traces have grown."""
        self._searched = 0
        self._names = {}

    def of(self, thread: int, at_ns: int | None = None) -> str:
        """Return the name of a thread, or the empty string.

        A thread without a name takes the name of its creator.

        Args:
            thread: Number of the thread.
            at_ns: A time in the life of the thread, such as the time of its first event. It tells
                apart threads that had the same id, one after the other. None for the last thread.
        """
        names = self._names  # another thread may forget them meanwhile
        chain = []
        key = thread, self.known.turn(thread, at_ns)
        while key not in names:
            name = names[key] = self._own_name(*key)
            chain.append(key)
            if name:
                break
            key = self.known.creators.get(key, key)
        name = names[key]
        names.update(dict.fromkeys(chain, name))
        return name

    def turns(self, thread: int) -> list[tuple[int, str]]:
        """Return the names of the threads that had one id, one after the other.

        Args:
            thread: Number of these threads.

        Returns:
            Pairs of a time and a name: the id has the name from this time on, in ns. The first
            time is -2**63. Empty for a single thread without a name.
        """
        begins = self.known.begins.get(thread, [])
        if len(begins) < 2:  # noqa: PLR2004 -- a single thread has the id all the time
            name = self.of(thread)
            return [(-(2**63), name)] if name else []
        return [(begin, self.of(thread, begin)) for begin in [-(2**63), *begins]]

    def _own_name(self, thread: int, turn: int) -> str:
        process, tid = self._traces.thread_ids[thread]
        image = self._traces.processes[process]
        name = self.known.names.get((thread, turn)) or self._seen_name(thread, turn)
        # The kernel calls the first thread by the program.
        return name or (
            readable(PurePath(image.exe).name)[:_COMM_MAX] if tid == image.inner_pid else ""
        )

    def _seen_name(self, thread: int, turn: int) -> str:
        """Return the last name of a thread that the recorder saw."""
        process, tid = self._traces.thread_ids[thread]
        seen, several = "", len(self.known.begins.get(thread, ())) > 1
        for ticks, name in self._traces.processes[process].thread_names.get(tid, ()):
            if ticks is not None:
                trace = self._traces.traces[self._traces.trace_of(process)]
                named_turn = self.known.turn(thread, self._traces.time_of(trace, ticks))
            else:
                named_turn = -1 if several else turn
            seen = name if named_turn == turn else seen
        return seen
