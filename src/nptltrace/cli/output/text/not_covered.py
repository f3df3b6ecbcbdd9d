"""Sentences about what a trace does not cover: modules, futexes, and threads without events."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nptltrace._units import duration, plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from nptltrace.analysis.checking.silent_threads import Lived

__all__ = ["futexes", "left_alone", "modules", "silent", "unknown"]

_FEW = 4
_UNKNOWN_FUTEXES = (
    "futexes of no lock that is known (locks of Rust, of C++20 and others that do without the "
    "thread library)"
)


def modules(uncovered: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield a sentence for each reason why calls of modules are not in the trace.

    Args:
        uncovered: The modules: `Source.uncovered`.
    """
    by_reason: dict[str, dict[str, None]] = {}
    for item in uncovered:
        by_reason.setdefault(str(item.get("why", "?")), {})[str(item.get("module", "?"))] = None
    for why, paths in by_reason.items():
        names = [path.rpartition("/")[2] for path in paths] if len(paths) > 1 else list(paths)
        yield f"{', '.join(dict.fromkeys(names))}: {why}"


def futexes(waits: int) -> Iterator[str]:
    """Yield a sentence if there are waits that findings do not judge.

    Args:
        waits: Number of waits for futexes of unknown locks.
    """
    if waits:
        yield f"{waits:,} {plural(waits, 'wait')} for {_UNKNOWN_FUTEXES}"


def unknown(waits: int, wait_ns: int) -> Iterator[str]:
    """Yield a sentence if there are waits of class `unknown`.

    Args:
        waits: Number of waits.
        wait_ns: Duration of the waits.
    """
    if waits:
        many = f"{waits:,} {plural(waits, 'wait')}"
        yield (
            f"{duration(wait_ns)} in {many} for {_UNKNOWN_FUTEXES}, or for semaphores that are no "
            "locks"
        )


def silent(threads: Sequence[Lived]) -> Iterator[str]:
    """Yield a sentence if there are threads without events for most of the time.

    Args:
        threads: The threads.
    """
    if not threads:
        return
    life = sum(item.life_ns for item in threads)
    share = 100 * sum(item.silent_ns for item in threads) // max(life, 1)
    many = f"{len(threads):,} {plural(len(threads), 'thread')}"
    yield (
        f"{many} had no event for {share} % of the time: they ran, slept in other calls (`ptt "
        "record -l 2,sys=3` shows these), or spun at locks of their own"
    )


def left_alone(processes: Sequence[tuple[int, int]]) -> Iterator[str]:
    """Yield a sentence for each parent about its forked processes without events.

    Args:
        processes: Pairs of a process id and the id of its parent.
    """
    by_parent: dict[int, list[str]] = {}
    for pid, parent in processes:
        by_parent.setdefault(parent, []).append(str(pid))
    for parent, pids in by_parent.items():
        more = f" and {len(pids) - _FEW} more" if len(pids) > _FEW else ""
        named = f"{plural(len(pids), 'process', 'processes')} {', '.join(pids[:_FEW])}{more}"
        them = plural(len(pids), "it", "them")
        yield (
            f"{named} had no event since process {parent} forked {them}; "
            f"a lock that another thread of process {parent} held then stays locked there, and "
            f"`ptt hang` says what a process that still runs waits for"
        )
