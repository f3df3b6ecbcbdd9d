"""One recorded run of a program with a plan, ended when the program hangs."""

from __future__ import annotations

import os
import tempfile
import time
import warnings
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from nptltrace._dataclasses import dataclass
from nptltrace.confirm.plan import VARIABLE
from nptltrace.errors import PttError
from nptltrace.guard.ending import end
from nptltrace.guard.tree import MARK, Tree, new_mark, stat_of
from nptltrace.guard.watch import Watch
from nptltrace.hang.targets.files import children_of
from nptltrace.recording.api import record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from nptltrace.confirm.plan import Plan
    from nptltrace.recording.api import Recording

__all__ = ["Ended", "private_folder", "run_steered"]

_STANDARD_ERROR = 2
_POLL_S = 0.02
# A program hangs after this time without any use of a processor. It is longer than two delays.
_QUIET_S, _QUIET_DELAYS = 3.0, 2
# The recorder finishes the trace within this time after the end of the program.
_FINISH_S = 30.0


@dataclass(frozen=True, slots=True)
class Ended:
    """How a run ended.

    Attributes:
        status: Exit status of the program, 128 + n for signal n.
        hang: Why it was ended, as a sentence: it hung, or its time was over; empty if it ended by
            itself.
        over_time: Whether its time was over.
        quiet: Whether it was ended because no thread ran after a meeting.
    """

    status: int
    hang: str
    over_time: bool
    quiet: bool


@contextmanager
def private_folder() -> Iterator[Path]:
    """Return a folder of this user alone for the files of a run, removed with all that is left."""
    with tempfile.TemporaryDirectory(prefix="ptt-confirm-", ignore_cleanup_errors=True) as name:
        yield Path(name)


def run_steered(
    command: Sequence[str], trace: Path, plan: Plan, *, limit_s: float, say: Callable[[str], None]
) -> Ended:
    """Record a program with a plan. If the program hangs, end its processes by SIGKILL.

    The standard output of the program goes to the standard error.

    Args:
        command: The program with its arguments.
        trace: The trace directory, which does not exist yet.
        plan: The plan.
        limit_s: The program is ended after this time, in s.
        say: Called with remarks for the user.

    Returns:
        The end of the run. The trace is complete.

    Raises:
        PttError: The program cannot be recorded, or the tracer does not read the plan.
    """
    mark = new_mark()
    env = {**os.environ, VARIABLE: str(plan.path), MARK: mark}
    options = ["-q", "--sched", "none"]
    # The standard output belongs to the results of ptt.
    run = record(command, output=trace, env=env, options=options, stdout=_STANDARD_ERROR)
    watched = _Watched(run, plan, mark, limit_s, say)
    try:
        while not _has_ended(run, watched.pause_s):
            watched.step()
            if watched.hang:
                break
    finally:
        plan.end_delays()
        watched.end()
    status = _status(run)
    if not plan.processes:
        raise PttError("no process has read the plan, so no thread was held back")
    return Ended(status, watched.hang, watched.over_time, watched.quiet)


def _has_ended(run: Recording, pause_s: float) -> bool:
    if run.returncode is None:
        time.sleep(pause_s)
    return run.returncode is not None


def _status(run: Recording) -> int:
    """Return the exit status of the program.

    Raises:
        PttError: The program did not run, or it ran untraced.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        try:
            return run.wait()
        except RuntimeWarning as warning:
            raise PttError(str(warning)) from None


class _Watched:
    """The processes of a recorded program, without the recorder."""

    def __init__(
        self, run: Recording, plan: Plan, mark: str, limit_s: float, say: Callable[[str], None]
    ) -> None:
        self._run, self._plan, self._mark = run, plan, mark
        self._limit_s, self._say = limit_s, say
        self._ticks = -1
        self._ran_s = 0.0
        self._watch: Watch | None = None
        self._due_s = 0.0
        self._quiet_s = max(_QUIET_S, _QUIET_DELAYS * plan.each_ns / 1e9)
        self.hang = ""
        self.over_time = self.quiet = False

    @property
    def pause_s(self) -> float:
        """The time until the next step."""
        return min(_POLL_S, max(self._due_s - time.monotonic(), 0.001))

    def step(self) -> None:
        """Look at the processes, and set `hang` if they hang."""
        now_s = time.monotonic()
        if self._watch is None:
            # The recorder has one child: the program.
            program = children_of(self._run.pid)
            if not program:
                return
            tree = Tree(program, self._mark, apart=[self._run.pid])
            self._watch = Watch(tree, None, self._limit_s, self._say)
        if now_s < self._due_s:
            return
        for cause in self._watch.step(now_s):
            self.hang = cause.text
            self.over_time = cause.what == "after"
        if not self.hang and self._plan.met and self._is_quiet(self._watch.tree, now_s):
            self.hang = f"the threads met, and then no thread ran for {self._quiet_s:g} s"
            self.quiet = True
        self._due_s = now_s + self._watch.pause_s

    def _is_quiet(self, tree: Tree, now_s: float) -> bool:
        """Return whether no process has used a processor for a while.

        A thread that waits for a lost signal could be woken by a signal handler, so no look at the
        processes shows that it hangs. The events of the run show it.
        """
        stats = [stat_of(pid) for pid in tree.members]
        ticks = sum(stat.ticks for stat in stats if stat is not None)
        if ticks != self._ticks:
            self._ticks, self._ran_s = ticks, now_s
        return now_s - self._ran_s >= self._quiet_s

    def end(self) -> None:
        """End the processes that still run, and let the recorder finish the trace."""
        if self._run.returncode is None and self._watch is not None:
            end(self._watch.tree, at_once=True, meanwhile=lambda: self._run.returncode)
        elif self._run.returncode is None:
            self._run.terminate()
        until_s = time.monotonic() + _FINISH_S
        while self._run.returncode is None and time.monotonic() < until_s:
            time.sleep(_POLL_S)
        if self._run.returncode is None:
            # A process that nobody saw still runs. The recorder ends without it.
            self._run.terminate()
