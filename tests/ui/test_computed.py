"""`computed_once`: computing a value of an instance does not block other instances."""

from __future__ import annotations

from threading import Event, Thread

from nptltrace.ui.queries.rows import computed_once

PATIENCE_S = 60.0


class Slow:
    """Has a value that is not ready before `goes_on` is set."""

    def __init__(self, begun: Event, goes_on: Event) -> None:
        self.begun, self.goes_on, self.times = begun, goes_on, 0

    @computed_once
    def value(self) -> bool:
        """Whether `goes_on` was set in time."""
        self.times += 1
        self.begun.set()
        return self.goes_on.wait(PATIENCE_S)


def test_instances_do_not_wait_for_one_another() -> None:
    first, second = Slow(Event(), Event()), Slow(Event(), Event())
    second.goes_on.set()
    other = Thread(target=lambda: first.value)
    other.start()
    assert first.begun.wait(PATIENCE_S)
    asks = Thread(target=lambda: second.value)
    asks.start()
    asks.join(PATIENCE_S / 4)
    assert not asks.is_alive()
    first.goes_on.set()
    other.join()
    assert first.value
    assert second.value
    assert (first.times, second.times) == (1, 1)
