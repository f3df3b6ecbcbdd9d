"""The watch over a tree of processes: cheap looks at all, and close looks where threads rest."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from nptltrace._units import plural
from nptltrace.guard.allowance import Allowance
from nptltrace.guard.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Callable

    from nptltrace.guard.evidence import Cause, Judge
    from nptltrace.guard.tree import Tree

__all__ = ["Watch"]

# The time between two steps: the least, for each process, and the longest. The time until the
# second look.
_PERIOD_S, _FOR_EACH_S, _LONGEST_S, _SECOND_S = 0.45, 0.0065, 3.0, 0.2
# Close looks may use this share of a processor, and as many seconds at once.
_SHARE, _AT_ONCE_S = 0.01, 3.0
# After a longer pause, the guard itself was stopped: the pause says nothing about the program.
_PAUSE_S = 10.0


class Watch:
    """A watch over a tree.

    Args:
        tree: The processes.
        idle_s: Report locks that threads wait for after this time without progress, in s.
        after_s: Report the tree after this time, in s.
        say: Called with a remark for the user.
    """

    def __init__(
        self, tree: Tree, idle_s: float | None, after_s: float | None, say: Callable[[str], None]
    ) -> None:
        self.tree = tree
        self._idle_s, self._after_s, self._say = idle_s, after_s, say
        self._progress = Progress()
        self._allowance = Allowance(_SHARE, _AT_ONCE_S)
        self._judge: Judge | None = None
        self._queue: dict[int, None] = {}  # in the order of arrival
        self._asked_idle_s: dict[int, float] = {}
        self._told: set[str] = set()
        self._stepped_s = 0.0
        self._reports = 0
        self.began_s = 0.0

    def step(self, now_s: float) -> list[Cause]:
        """Look at the tree.

        Args:
            now_s: The time of `time.monotonic()`.

        Returns:
            The reasons for a report now.
        """
        if not self._stepped_s:
            self.began_s = now_s
            self._progress.add(self.tree.members, now_s)
        elif now_s - self._stepped_s > _PAUSE_S:
            self.began_s += now_s - self._stepped_s
            self._progress.pause(now_s - self._stepped_s)
        self._stepped_s = now_s
        self.search(at_once=False)
        rested, gone = self._progress.look(now_s)
        for pid in gone:
            self.tree.leave(pid)
            self._queue.pop(pid, None)
            if self._judge is not None:
                self._judge.leave(pid)
        self._queue.update(dict.fromkeys(rested))
        self._allowance.grow(now_s)
        causes = self._second_looks()
        self._look_for_progress(now_s)
        self._first_looks()
        causes = causes or self.time_limit(now_s)
        for cause in causes:
            self.judge.report(cause)
        self._reports += len(causes)
        return causes

    def time_limit(self, now_s: float) -> list[Cause]:
        """Return the end of the time as the reason for a report, if there was no report before.

        Args:
            now_s: The time of `time.monotonic()`.
        """
        if self._after_s is None or now_s - self.began_s < self._after_s:
            return []
        after_s, self._after_s = self._after_s, None
        if self._reports:
            return []
        from nptltrace.guard.evidence import Cause

        text = f"the program has not ended after {after_s:g} s"
        return [Cause("after", "time-limit", text, 0)]

    @property
    def pause_s(self) -> float:
        """The time until the next step."""
        if self._judge is not None and self._judge.suspects:
            return _SECOND_S
        return min(max(_PERIOD_S, _FOR_EACH_S * len(self.tree.members)), _LONGEST_S)

    def search(self, *, at_once: bool = True) -> None:
        """Add new processes of the tree.

        Args:
            at_once: Search now, whatever it costs.
        """
        now_s = time.monotonic()
        self._progress.add(self.tree.search(now_s, at_once=at_once), now_s)

    @property
    def judge(self) -> Judge:
        """The judge. The modules for close looks are loaded when they are needed."""
        if self._judge is None:
            from nptltrace.guard.evidence import Judge

            self._judge = Judge()
        return self._judge

    def _first_looks(self) -> None:
        queued = [*self._queue]
        for pid in queued:
            if not self._allowance.left:
                break
            del self._queue[pid]
            if self.tree.is_same(pid):
                with self._allowance:
                    places = self.judge.first(pid)
                self._progress.excuse(pid, places)
        if queued and not self._queue:
            self._say_refused()

    def _second_looks(self) -> list[Cause]:
        causes: list[Cause] = []
        for pid in self._judge.suspects if self._judge is not None else []:
            with self._allowance:
                cause = self.judge.second(pid)
            # A process of a reported set is in the same hang.
            if cause is not None and not any(self._is_part(cause, other) for other in causes):
                causes.append(cause)
        return causes

    def _look_for_progress(self, now_s: float) -> None:
        """Look at the locks that threads wait for in trees without progress."""
        if self._idle_s is None:
            return
        trees: dict[int, list[int]] = {}
        for pid, root in self.tree.roots.items():
            trees.setdefault(root, []).append(pid)
        for root, pids in trees.items():
            moved_s = self._progress.moved_s(pids)
            if now_s - moved_s < self._idle_s or self._asked_idle_s.get(root) == moved_s:
                continue
            self._asked_idle_s[root] = moved_s
            with self._allowance:
                self.judge.without_progress(pids, self._idle_s)
        self._asked_idle_s = {root: at for root, at in self._asked_idle_s.items() if root in trees}

    def _say_refused(self) -> None:
        """Say which processes cannot be watched: one line for each reason."""
        by_reason: dict[str, list[int]] = {}
        for pid, why in self.judge.refused.items():
            if "has ended" not in why and "no process" not in why:
                by_reason.setdefault(why.partition(": ")[2] or why, []).append(pid)
        for reason, (pid, *others) in by_reason.items():
            if reason in self._told:
                continue
            self._told.add(reason)
            count = len(others)
            more = f" and {count} more {plural(count, 'process', 'processes')}" if count else ""
            self._say(f"cannot look into process {pid}{more}: {reason}")

    def _is_part(self, cause: Cause, other: Cause) -> bool:
        """Return whether two causes are about the same threads, or about the same tree at rest."""
        if cause.what == other.what == "idle":
            return self.tree.roots.get(cause.pid) == self.tree.roots.get(other.pid)
        threads = [
            {(seen.pid, seen.thread.tid) for verdict in each.verdicts for seen in verdict.threads}
            for each in (cause, other)
        ]
        return bool(threads[0] & threads[1])
