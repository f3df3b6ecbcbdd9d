"""Processes whose threads hold locks that the threads of another one wait for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nptltrace.hang.picture import look
from nptltrace.hang.stack.names import Names, OneProcess
from nptltrace.trace.symbols.lookup import Symbols

if TYPE_CHECKING:
    from nptltrace.hang.picture import Picture
    from nptltrace.hang.targets.target import Target

__all__ = ["with_neighbours"]

# So many processes are looked at.
_MOST = 16


def with_neighbours(process: Target, picture: Picture) -> list[tuple[Target, Picture]]:
    """Return a process, and those that it waits for through shared memory, and so on.

    Those that may not be looked into are left out.

    Args:
        process: The process.
        picture: What was seen of it.
    """
    found = [(process, picture)]
    known = {seen.thread.inner_tid for seen in picture.threads}
    for one, seen_of_it in found:
        for seen in seen_of_it.threads:
            wait = seen.wait
            if wait is None or wait.private or not wait.owner or wait.owner in known:
                continue
            known.add(wait.owner)
            other = one.process_of(wait.owner) if len(found) < _MOST else None
            if other is None:
                continue
            theirs = look(other, Names(Symbols(OneProcess(other))))
            known.update(thread.thread.inner_tid for thread in theirs.threads)
            found.append((other, theirs))
    return found
