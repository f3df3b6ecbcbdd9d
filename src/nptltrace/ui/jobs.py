"""Answers that may take long. A thread works them out one at a time, while somebody asks for them.

A client that asks learns how far the work is, and asks again. When no client asks any more, the
work is given up after a while.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator

__all__ = ["Jobs", "NotReady"]

# A client waits so long for an answer.
_SOON_S = 0.5
# So often clients are told that they should ask again.
_SHOWN_S = 0.25
_UNWANTED_S = 5.0
_KEPT = 8


class NotReady(Exception):  # noqa: N818 -- no error: the answer comes later
    """The answer is not there yet.

    Args:
        progress: How far the work on it is, 0 to 1.
    """

    def __init__(self, progress: float) -> None:
        super().__init__(progress)
        self.progress = progress


class _GivenUp(Exception):  # noqa: N818 -- no error: nobody wants the answer
    """Nobody wants the answer any more."""


class _Job:
    """An answer that is worked on."""

    def __init__(self) -> None:
        self.asked = time.monotonic()
        self.done = Event()
        self.progress = 0.0
        self.error: BaseException | None = None


class Jobs:
    """Works out answers, and keeps the last of them.

    Args:
        changed: Called now and then while an answer is worked out, and when it is there.
    """

    def __init__(self, changed: Callable[[], None]) -> None:
        self._changed = changed
        self._lock = Lock()  # held to read or change what follows
        self._answers: dict[Hashable, tuple[Any, float]] = {}  # and when it came
        self._jobs: dict[Hashable, _Job] = {}
        self._turn = Lock()
        self._closed = False

    def ask(self, key: Hashable, find: Callable[[Callable[[float], None]], Any]) -> Any:
        """Return an answer.

        Args:
            key: Stands for the question.
            find: Works the answer out. Often calls its argument with the progress, 0 to 1, and does
                not catch what that raises.

        Raises:
            NotReady: The work takes longer.
        """
        with self._lock:
            if key in self._answers:
                return self._answers[key][0]
            job = self._jobs.get(key)
            if job is None:
                job = self._jobs[key] = _Job()
                Thread(target=self._work, args=(key, job, find), daemon=True).start()
            job.asked = time.monotonic()
        job.done.wait(_SOON_S)
        with self._lock:
            if key in self._answers:
                return self._answers[key][0]
        if job.error is not None:
            raise job.error
        raise NotReady(job.progress)

    def forget(self, age_s: float) -> None:
        """Forget answers that are so old; 0: all answers, and the answer that is worked out."""
        end = time.monotonic() - age_s
        with self._lock:
            self._answers = {
                key: answer for key, answer in self._answers.items() if answer[1] > end
            }
            if not age_s:
                self._jobs = {}

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Wait until nothing is worked out, and let nothing be worked out meanwhile."""
        with self._turn:
            yield

    def close(self) -> None:
        """Give the work up, and wait until it has ended."""
        self._closed = True
        with self._turn:
            pass

    def _work(
        self, key: Hashable, job: _Job, find: Callable[[Callable[[float], None]], Any]
    ) -> None:
        reported = time.monotonic()

        def step(progress: float) -> None:
            nonlocal reported
            now = time.monotonic()
            job.progress = progress
            if self._closed or now - job.asked > _UNWANTED_S or self._jobs.get(key) is not job:
                raise _GivenUp
            if now - reported > _SHOWN_S:
                reported = now
                self._changed()

        try:
            with self._turn:
                step(0.0)
                result = find(step)
        except _GivenUp:
            self._end(key, job)
        except Exception as error:  # noqa: BLE001 -- whoever asks gets it
            job.error = error
            self._end(key, job)
        else:
            self._end(key, job, result)

    def _end(self, key: Hashable, job: _Job, *answer: Any) -> None:
        with self._lock:
            if self._jobs.get(key) is job:
                del self._jobs[key]
                for result in answer:
                    while len(self._answers) >= _KEPT:
                        del self._answers[next(iter(self._answers))]
                    self._answers[key] = (result, time.monotonic())
        job.done.set()
        self._changed()
