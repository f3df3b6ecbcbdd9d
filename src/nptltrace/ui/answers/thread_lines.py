"""What events say of threads, as a line of text that is kept beside the levels of detail."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, TypedDict

from nptltrace.trace.threads import ThreadNames
from nptltrace.ui.shapes import fits

if TYPE_CHECKING:
    from nptltrace.trace.traceset import Traceset

__all__ = ["kept_threads", "text_of_threads"]


class _Lists(TypedDict):
    """Lists of what `ThreadNames` has.

    Thread, turn and name; thread, when those with its id began; process, `pthread_t`, since when,
    thread; thread and turn, those of its creator; process, call site.
    """

    named: list[list[int]]
    names: list[str]
    begins: list[list[int]]
    pthreads: list[list[int]]
    creators: list[list[int]]
    entries: list[list[int]]


def text_of_threads(names: ThreadNames) -> str:
    """Return it as one line of JSON."""
    found: _Lists = {
        "named": [list(key) for key in names.names],
        "names": list(names.names.values()),
        "begins": [[thread, *times] for thread, times in names.begins.items()],
        "pthreads": [[*key, *had] for key, threads in names.pthreads.items() for had in threads],
        "creators": [[*key, *by] for key, by in names.creators.items()],
        "entries": [list(pair) for pair in names.entries],
    }
    return json.dumps(found)


def kept_threads(text: bytes, source: Traceset) -> ThreadNames | None:
    """Return what a line says; None if it cannot be of these traces.

    Raises:
        ValueError: It is no JSON.
    """
    found = json.loads(text)
    threads, processes = len(source.thread_ids), len(source.processes)
    limits = {
        "pthreads": (processes, 2**64, 2**63, threads),
        "named": (threads, 2**32),
        "creators": (threads, 2**32, threads, 2**32),
        "entries": (processes, 2**64),
    }
    if not (
        fits(_Lists, found)
        and len(found["named"]) == len(found["names"])
        and all(row and 0 <= row[0] < threads for row in found["begins"])
        and all(
            len(row) == len(most) and all(0 <= n < end for n, end in zip(row, most, strict=True))
            for name, most in limits.items()
            for row in found[name]
        )
    ):
        return None
    pthreads: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for process, at, since, thread in found["pthreads"]:
        pthreads.setdefault((process, at), []).append((since, thread))
    return ThreadNames(
        begins={thread: times for thread, *times in found["begins"]},
        names={
            (thread, turn): name
            for (thread, turn), name in zip(found["named"], found["names"], strict=True)
        },
        pthreads=pthreads,
        creators={(thread, turn): (by, whose) for thread, turn, by, whose in found["creators"]},
        entries={(process, site) for process, site in found["entries"]},
    )
