"""What was seen of a running process as text, as wide as the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nptltrace._escaping import readable
from nptltrace._units import plural
from nptltrace.cli.output.text.table import wrap
from nptltrace.hang.verdicts import waits_sentence

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nptltrace.hang.picture import Picture
    from nptltrace.hang.thread_picture import ThreadPicture
    from nptltrace.hang.verdicts import Verdict

__all__ = ["lines"]


def lines(
    picture: Picture,
    found: Sequence[Verdict],
    unmoved: frozenset[int] | None,
    *,
    stacks: bool,
    stoppable: bool,
) -> Iterator[str]:
    """Yield the lines of a picture.

    Args:
        picture: The threads.
        found: What was found.
        unmoved: Ids of the threads that did not run while they were watched, if they were.
        stacks: Show whole stacks, not only where the program called.
        stoppable: The threads that run could be stopped for a look at where they are.
    """
    name = readable(picture.title)
    by_tid = {seen.thread.inner_tid: seen for seen in picture.threads}
    yield f"{name}: {len(picture.threads)} {plural(len(picture.threads), 'thread')}"
    for seen in picture.threads:
        yield from _thread(seen, by_tid, unmoved, stacks=stacks)
    yield ""
    for one in found:
        yield f"{one.severity}: {one.kind} in process {picture.pid}"
        text = readable(one.message)
        yield from wrap(text[:1].upper() + text[1:] + ".", "  ")
        yield ""
    yield f"{name}: {_summary(picture, found)}"
    for path, why in picture.uncovered:
        yield from wrap(readable(f"not covered: {path}: {why}"), "  ")
    if stoppable and not found and any(seen.state == "runnable" for seen in picture.threads):
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


def _summary(picture: Picture, found: Sequence[Verdict]) -> str:
    if found:
        return f"{len(found)} {plural(len(found), 'finding')}: " + ", ".join(o.kind for o in found)
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
