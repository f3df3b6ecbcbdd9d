"""Answers that may take long. A thread computes them one at a time, while clients ask for them.

A client that asks learns the progress of the work, and asks again. When no client asks any more,
the thread gives the work up after a while.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator

__all__ = ["Jobs", "NotReady"]

# How long a client waits for an answer.
_SOON_S = 0.5
# How often clients are told to ask again.
_SHOWN_S = 0.25
_UNWANTED_S = 5.0
_KEPT = 8


class NotReady(Exception):  # noqa: N818 -- no error: the answer comes later
    """The answer is not there yet.

    Args:
        progress: Progress of the work on the answer, 0 to 1.
    """

    def __init__(self, progress: float) -> None:
        super().__init__(progress)
        self.progress = progress


class _GivenUp(Exception):  # noqa: N818 -- no error: nobody wants the answer
    """Nobody wants the answer any more."""


class _Job:
    """The work on one answer."""

    def __init__(self) -> None:
        self.asked = time.monotonic()
        self.done = Event()
        self.progress = 0.0
        self.error: BaseException | None = None


class Jobs:
    """Computes answers, and keeps the latest answers.

    Args:
        changed: Called now and then during the work on an answer, and when the answer is there.
    """

    def __init__(self, changed: Callable[[], None]) -> None:
        self._changed = changed
        self._lock = Lock()  # protects the attributes below
        self._answers: dict[Hashable, tuple[Any, float]] = {}  # and when it came
        self._jobs: dict[Hashable, _Job] = {}
        self._turn = Lock()
        self._closed = False

    def ask(self, key: Hashable, find: Callable[[Callable[[float], None]], Any]) -> Any:
        """Return an answer.

        Args:
            key: Identifies the question.
            find: Computes the answer. It often calls its argument with the progress, 0 to 1. It
                must not catch exceptions of that call.

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
        """Forget answers of this age or older; 0: all answers, and the answer in work."""
        end = time.monotonic() - age_s
        with self._lock:
            self._answers = {
                key: answer for key, answer in self._answers.items() if answer[1] > end
            }
            if not age_s:
                self._jobs = {}

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Wait until no work goes on, and start no work inside the `with` block."""
        with self._turn:
            yield

    def close(self) -> None:
        """Give up the work, and wait until the thread has ended it."""
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
