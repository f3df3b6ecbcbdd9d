"""What events say of threads, as a line of text that is kept beside the levels of detail."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, TypedDict

from nptltrace.trace.threads import ThreadNames
from nptltrace.ui.shapes import fits

if TYPE_CHECKING:
    from nptltrace.trace.source import Source

__all__ = ["kept_threads", "text_of_threads"]


class _Told(TypedDict):
    """Lists of what `ThreadNames` has.

    Names by thread; names that were given; process, `pthread_t`, thread; thread, creator; process,
    call site.
    """

    named: list[int]
    names: list[str]
    pthreads: list[list[int]]
    creators: list[list[int]]
    entries: list[list[int]]


def text_of_threads(told: ThreadNames) -> str:
    """Return it as one line of JSON."""
    found: _Told = {
        "named": list(told.names),
        "names": list(told.names.values()),
        "pthreads": [[*key, *had] for key, threads in told.pthreads.items() for had in threads],
        "creators": [list(pair) for pair in told.creators.items()],
        "entries": [list(pair) for pair in told.entries],
    }
    return json.dumps(found)


def kept_threads(text: bytes, source: Source) -> ThreadNames | None:
    """Return what a line says; None if it cannot be of these traces.

    Raises:
        ValueError: It is no JSON.
    """
    found = json.loads(text)
    threads, processes = len(source.threads()), len(source.processes())
    limits = {
        "pthreads": (processes, 2**64, 2**63, threads),
        "creators": (threads, threads),
        "entries": (processes, 2**64),
    }
    if not (
        fits(_Told, found)
        and len(found["named"]) == len(found["names"])
        and all(0 <= number < threads for number in found["named"])
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
        names=dict(zip(found["named"], found["names"], strict=True)),
        pthreads=pthreads,
        creators=dict(found["creators"]),
        entries={(process, site) for process, site in found["entries"]},
    )
