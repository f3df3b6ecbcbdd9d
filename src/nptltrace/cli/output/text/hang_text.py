"""The picture of a running process as text, as wide as the terminal."""

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
    verdicts: Sequence[Verdict],
    unmoved: frozenset[int] | None,
    *,
    stacks: bool,
    stoppable: bool,
) -> Iterator[str]:
    """Yield the lines of a picture.

    Args:
        picture: The threads.
        verdicts: The findings.
        unmoved: Ids of the threads that did not run during `--watch`; None without it.
        stacks: Show whole stacks, not only call sites.
        stoppable: Running threads could be stopped, to see where they are.
    """
    name = readable(picture.title)
    by_tid = {seen.thread.inner_tid: seen for seen in picture.threads}
    yield f"{name}: {len(picture.threads)} {plural(len(picture.threads), 'thread')}"
    for seen in picture.threads:
        yield from _thread(seen, by_tid, unmoved, stacks=stacks)
    yield ""
    for verdict in verdicts:
        yield f"{verdict.severity}: {verdict.kind} in process {picture.pid}"
        text = readable(verdict.message)
        yield from wrap(text[:1].upper() + text[1:] + ".", "  ")
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
