"""What a report holds: the cause, and the threads of all processes of the tree."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

from nptltrace.errors import PttError, one_line
from nptltrace.guard.evidence import look_at
from nptltrace.hang.black_box import find_box

if TYPE_CHECKING:
    from collections.abc import Collection

    from nptltrace.guard.evidence import Cause, Look

__all__ = ["Report", "collect"]

# Other processes than the hanging one are looked at for this time, and up to this number.
_PATIENCE_S, _MOST = 5.0, 256


class Report(NamedTuple):
    """A report about a tree.

    Attributes:
        cause: The reason.
        looks: The processes. The processes with the hang come first.
        left_out: The processes that are missing, each with the reason.
        passed_s: The time since the begin of the watch in s.
    """

    cause: Cause
    looks: tuple[Look, ...]
    left_out: dict[int, str]
    passed_s: float

    @property
    def pids(self) -> list[int]:
        """All processes of the report."""
        return [*(look.picture.pid for look in self.looks), *self.left_out]


def collect(cause: Cause, pids: Collection[int], passed_s: float) -> Report:
    """Look at all processes of a tree.

    Args:
        cause: The reason for the report.
        pids: The processes.
        passed_s: The time since the begin of the watch in s.
    """
    looks = [*cause.looks]
    known = {look.picture.pid for look in looks}
    # The threads of a finding may be in several processes.
    involved = {seen.pid for verdict in cause.verdicts for seen in verdict.threads}
    left_out: dict[int, str] = {}
    until_s = time.monotonic() + _PATIENCE_S
    for pid in sorted({*pids, *involved} - known, key=lambda pid: (pid not in involved, pid)):
        if len(looks) >= _MOST:
            left_out[pid] = "there are too many processes"
            continue
        if time.monotonic() > until_s:
            left_out[pid] = "the look at the processes took too long"
            continue
        try:
            looks.append(look_at(pid))
        except (PttError, OSError, ValueError) as error:
            left_out[pid] = one_line(error)
    return Report(cause, (*map(_with_box, looks),), left_out, passed_s)


def _with_box(look: Look) -> Look:
    """Return a look with what the black box of the process tells, if it has a box."""
    if find_box(look.process) is None:
        return look
    from nptltrace.hang.black_box.story import with_box

    try:
        return look._replace(picture=with_box(look.process, look.names, look.picture))
    except (PttError, OSError, ValueError):
        return look  # the process has ended meanwhile, or there is no room to copy the box
