"""A picture and its verdicts as a document: the shape of `ptt hang --format json`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nptltrace.analysis.vocabulary.document_types import (
        Finding,
        Hang,
        HangThread,
        HangWait,
    )
    from nptltrace.hang.picture import Picture
    from nptltrace.hang.thread_picture import ThreadPicture
    from nptltrace.hang.verdicts import Verdict

__all__ = ["hang_document"]


def hang_document(
    picture: Picture, verdicts: Sequence[Verdict], unmoved: frozenset[int] | None
) -> Hang:
    """Return the document of a picture.

    Args:
        picture: The threads.
        verdicts: The verdicts about the picture.
        unmoved: The ids of the threads that did not run between two looks; None after one look.
    """
    outer = {seen.thread.inner_tid: seen.thread.tid for seen in picture.threads}
    return {
        "pid": picture.pid,
        "name": picture.name,
        "black_box": picture.black_box,
        "threads": [_thread(seen, outer, unmoved) for seen in picture.threads],
        "findings": [_finding(picture, verdict) for verdict in verdicts],
        "uncovered": [{"module": path, "why": why} for path, why in picture.uncovered],
    }


def _thread(
    seen: ThreadPicture, outer: dict[int, int], unmoved: frozenset[int] | None
) -> HangThread:
    thread = seen.thread
    return {
        "tid": thread.tid,
        "name": thread.name,
        "state": seen.state,
        "moved": None if unmoved is None else thread.tid not in unmoved,
        "waits_for": _wait(seen, outer),
        "held": [
            {
                "object": f"0x{hold.object:x}",
                "kind": hold.kind,
                "name": hold.name,
                "since_ns_ago": hold.since_ns_ago,
                "site": hold.site,
                "stack": list(hold.stack),
            }
            for hold in seen.held
        ],
        "recent": [
            {
                "ns_ago": did.ns_ago,
                "event": did.event,
                "object": f"0x{did.object:x}" if did.object else None,
                "object_name": did.object_name,
                "site": did.site,
            }
            for did in seen.recent
        ],
        "stack": [str(frame) for frame in seen.frames],
    }


def _wait(seen: ThreadPicture, outer: dict[int, int]) -> HangWait | None:
    wait = seen.wait
    if wait is None:
        return None
    return {
        "object": f"0x{wait.object:x}" if wait.object else None,
        "kind": wait.kind if wait.kind != "call" else wait.call,
        "name": seen.object_name,
        "owner_tid": outer.get(wait.owner, wait.owner) if wait.owner else None,
        "timed": wait.timed,
    }


def _finding(picture: Picture, verdict: Verdict) -> Finding:
    waits = [seen for seen in verdict.threads if seen.wait is not None and seen.wait.object]
    return {
        "kind": verdict.kind,
        "severity": verdict.severity,
        "threads": [seen.thread.tid for seen in verdict.threads],
        "objects": [f"0x{seen.wait.object:x}" for seen in waits if seen.wait is not None],
        "sites": [seen.site for seen in verdict.threads],
        "ts_ns": 0,
        "message": verdict.message,
        "title": verdict.title,
        "pid": picture.pid,
        "object_names": [seen.object_name for seen in waits],
        "count": 1,
        "suspect": False,
        "events": [],
    }
