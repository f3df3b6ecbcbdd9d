"""The picture of a running process as text, as wide as the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nptltrace._escaping import readable
from nptltrace._units import plural
from nptltrace.cli.output.text.table import wrap
from nptltrace.hang.time_limits import length
from nptltrace.hang.verdicts import waits_sentence

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nptltrace.hang.picture import Picture
    from nptltrace.hang.thread_picture import ThreadPicture
    from nptltrace.hang.verdicts import Verdict

__all__ = ["lines"]

# The history ends with the last event, and is so long at most.
_SECOND_NS, _EVENTS = 1_000_000_000, 40


def lines(
    picture: Picture,
    verdicts: Sequence[Verdict],
    unmoved: frozenset[int] | None,
    *,
    stacks: bool,
    stoppable: bool,
    history: bool = False,
    runs: bool = True,
) -> Iterator[str]:
    """Yield the lines of a picture.

    Args:
        picture: The threads.
        verdicts: The findings.
        unmoved: Ids of the threads that did not run during `--watch`; None without it.
        stacks: Show whole stacks, not only call sites.
        stoppable: Running threads could be stopped, to see where they are.
        history: Show what the threads did in the last second, if the black box tells it.
        runs: The process runs: its black box tells times before now, and not before the last event.
    """
    name = readable(picture.title)
    by_tid = {seen.thread.inner_tid: seen for seen in picture.threads}
    ago = "ago" if runs else "before the last event"
    yield f"{name}: {len(picture.threads)} {plural(len(picture.threads), 'thread')}"
    for seen in picture.threads:
        yield from _thread(seen, by_tid, unmoved, stacks=stacks)
        yield from _held(seen, ago, stacks=stacks)
    yield ""
    if history:
        yield from _history(picture, ago)
    for verdict in verdicts:
        yield f"{verdict.severity}: {verdict.kind} in process {picture.pid}"
        text = readable(f"{verdict.title}{verdict.remark and f'. {verdict.remark}'}")
        yield from wrap(text[:1].upper() + text[1:] + ".", "  ", "  ")
        for wait in verdict.waits:
            yield from wrap(readable(wait), "  - ", "    ")
        yield ""
    yield f"{name}: {_summary(picture, verdicts)}"
    for path, why in picture.uncovered:
        yield from wrap(readable(f"not covered: {path}: {why}"), "  ")
    if stoppable and not verdicts and any(seen.state == "runnable" for seen in picture.threads):
        yield f"where threads are that run: ptt hang --stop {picture.pid}"


def _thread(
    seen: ThreadPicture,
    by_tid: dict[int, ThreadPicture],
    unmoved: frozenset[int] | None,
    *,
    stacks: bool,
) -> Iterator[str]:
    thread = seen.thread
    text = f"{thread} {waits_sentence(seen, by_tid)}"
    if unmoved is not None and thread.tid in unmoved:
        text += "; it did not run while it was watched"
    yield from wrap(readable(text), "  ")
    frames = [str(frame) or "?" for frame in seen.frames] if stacks else [seen.site]
    yield from (f"      {readable(frame)}" for frame in frames if frame)


def _held(seen: ThreadPicture, ago: str, *, stacks: bool) -> Iterator[str]:
    """Yield the objects that a thread holds, from the black box."""
    for hold in seen.held:
        verb = "took" if hold.kind == "semaphore" else "holds"
        how = " for reading" if hold.is_shared else ""
        name = hold.name or hex(hold.object)
        since = f"taken {length(hold.since_ns_ago)} {ago}"
        yield from wrap(readable(f"{verb} {hold.kind} {name}{how}, {since}"), "    ")
        taken = hold.stack if stacks else hold.stack[:1]
        yield from (f"        {readable(frame)}" for frame in taken if frame)


def _history(picture: Picture, ago: str) -> Iterator[str]:
    """Yield the events before the last event of all, from the black box."""
    events = sorted(
        ((did, seen) for seen in picture.threads for did in seen.recent),
        key=lambda pair: -pair[0].ns_ago,
    )
    if not events:
        return
    last = events[-1][0].ns_ago
    yield "what happened last, from the black box:"
    for did, seen in [pair for pair in events if pair[0].ns_ago - last <= _SECOND_NS][-_EVENTS:]:
        what = did.object_name or (hex(did.object) if did.object else "")
        text = f"{length(did.ns_ago)} {ago}  {seen.thread}  {did.event} {what}".rstrip()
        yield readable(f"  {text}  {did.site}".rstrip())
    yield ""


def _summary(picture: Picture, verdicts: Sequence[Verdict]) -> str:
    if verdicts:
        kinds = ", ".join(verdict.kind for verdict in verdicts)
        return f"{len(verdicts)} {plural(len(verdicts), 'finding')}: {kinds}"
    states = [seen.state for seen in picture.threads]
    unknown = sum(
        seen.state == "waiting" and seen.wait is not None and seen.wait.kind == "futex"
        for seen in picture.threads
    )
    counts = [
        f"{count} {words}"
        for words, count in (
            ("can run", states.count("runnable")),
            ("stopped", states.count("stopped")),
            ("asleep in system calls", states.count("asleep")),
            ("waiting for others", states.count("waiting") - unknown),
            ("waiting for what PTT does not know", unknown),
        )
        if count
    ]
    return "nothing found: " + ", ".join(counts)
