"""Deadlocks and lock orders: programs with a bug, and similar correct programs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.analysis.story import (
    HEAP,
    HEAP2,
    MAIN,
    A,
    B,
    C,
    D,
    E,
    Story,
    crossed,
    found,
    pthread,
    two,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

EDEADLK = 35
LOCK_IN = 20
INVERSION = "lock-order-inversion"
STACK = 0x7FFD00000040  # of the first thread


# ---- deadlocks ----


def test_a_refused_join_of_itself(tmp_path: Path) -> None:
    story = Story(main=False)
    story.do(MAIN, "PROCESS_START", MAIN, ppid=1, pthread=pthread(MAIN)).join_in(MAIN, MAIN)
    story.do(MAIN, "THREAD_JOIN_OUT", pthread(MAIN), result=EDEADLK).exit()
    (finding,) = story.findings(tmp_path)
    assert finding.kind == "self-deadlock"
    assert "its own end" in finding.message
    assert finding.message.endswith("refused with EDEADLK")


def test_deadlock_of_two(tmp_path: Path) -> None:
    deadlock = next(f for f in crossed().findings(tmp_path) if f.kind == "deadlock")
    assert sorted(deadlock.threads) == [1, 2]
    assert sorted(deadlock.objects) == [A, B]
    assert deadlock.severity == "error"
    assert deadlock.count == 1
    assert deadlock.message.count(" holds mutex ") == deadlock.message.count("waits for") == 2
    # A call site stands beside the call made there: the check does not call it the site of a hold.
    assert re.search(r"waits for mutex \S+ at \S+, held by ", deadlock.message), deadlock.message
    assert [event.text.split()[0] for event in deadlock.events] == ["took", "waits"] * 2


def ring(n: int) -> Story:
    story = Story().create(*range(1, n + 1))
    for tid in range(1, n + 1):
        story.lock(tid, A + 64 * tid)
    for tid in range(1, n + 1):
        story.wait(tid, A + 64 * (tid % n + 1))
    return story


@pytest.mark.parametrize("length", [2, 3, 5, 40, 4200])
def test_deadlock_of_many(tmp_path: Path, length: int) -> None:
    deadlocks = [f for f in ring(length).findings(tmp_path) if f.kind == "deadlock"]
    assert [len(f.threads) for f in deadlocks] == [length]


def join_under_lock() -> Story:
    return Story().create(1).lock(MAIN, A).join_in(MAIN, 1).wait(1, A)


def join_each_other() -> Story:
    return two().join_in(1, 2).join_in(2, 1)


def join_ring_with_main() -> Story:
    story = Story(main=False)
    story.do(MAIN, "PROCESS_START", MAIN, ppid=1, pthread=pthread(MAIN)).create(1, 2)
    return story.join_in(MAIN, 1).join_in(1, 2).join_in(2, MAIN)


def upgrade_of_two() -> Story:
    return two().read(1, A).read(2, A).rw_wait(1, A, write=1).rw_wait(2, A, write=1)


def writer_between() -> Story:
    return two().read(1, A).rw_wait(2, A, write=1).rw_wait(1, A, write=0)


def reader_and_mutex() -> Story:
    return two().read(1, A).lock(2, B).wait(1, B).rw_wait(2, A, write=1)


def binary_semaphores() -> Story:
    story = two()
    for sem in (A, B):
        story.do(MAIN, "SEM_INIT", sem, value=1)
    story.do(1, "SEM_TAKEN", A).do(2, "SEM_TAKEN", B)
    return story.do(1, "SEM_WAIT", B).do(2, "SEM_WAIT", A)


def woken_without_mutex() -> Story:
    story = two().lock(1, A, B).cond_in(1, C, B).lock(2, B).signal(2, C)
    return story.wait(2, A)


def owners_only() -> Story:
    """Only waits are recorded: the events of the waits name the owners."""
    return two().wait(1, B, 2).wait(2, A, 1)


@pytest.mark.parametrize(
    "story",
    [
        join_under_lock, join_each_other, join_ring_with_main, upgrade_of_two, writer_between,
        reader_and_mutex, binary_semaphores, woken_without_mutex, owners_only,
    ],
)  # fmt: skip
def test_other_deadlocks(tmp_path: Path, story: Callable[[], Story]) -> None:
    assert "deadlock" in found(story(), tmp_path)


def timed_out() -> Story:
    story = two().lock(1, A).lock(2, B).wait(1, B, timed=1).wait(2, A)
    return story.gave_up(1, B).unlock(1, A).waited(2, A).unlock(2, A, B)


def timed_and_over() -> Story:
    """The process was killed while a thread waited with a time limit."""
    return two().lock(1, A).lock(2, B).wait(1, B, timed=1).wait(2, A)


def counting_semaphore() -> Story:
    story = two().do(MAIN, "SEM_INIT", A, value=2).do(1, "SEM_TAKEN", A).lock(2, B)
    return story.do(2, "SEM_WAIT", A).wait(1, B)


def handed_over_semaphore() -> Story:
    story = two().do(MAIN, "SEM_INIT", A, value=1).do(1, "SEM_TAKEN", A).do(2, "SEM_POST", A)
    return story.do(1, "SEM_TAKEN", A).lock(2, B).do(2, "SEM_WAIT", A).wait(1, B)


def joined_who_waits_for_another() -> Story:
    return two().lock(2, A).join_in(MAIN, 1).wait(1, A)


def readers_of_one_lock() -> Story:
    return two().read(1, A).read(2, A).lock(1, B).wait(2, B)


@pytest.mark.parametrize(
    "story",
    [
        timed_out, timed_and_over, counting_semaphore, handed_over_semaphore,
        joined_who_waits_for_another, readers_of_one_lock,
    ],
)  # fmt: skip
def test_no_deadlock(tmp_path: Path, story: Callable[[], Story]) -> None:
    assert "deadlock" not in found(story(), tmp_path)


def test_a_cycle_that_opens_again_is_no_deadlock(tmp_path: Path) -> None:
    """A thread released locks that other threads held, so the waits ended after all."""
    story = crossed().do(MAIN, "MUTEX_FREE", A).waited(2, A).unlock(2, A, B).waited(1, B)
    assert "deadlock" not in found(story.unlock(1, B), tmp_path)


def test_a_deadlock_between_processes(tmp_path: Path) -> None:
    story = Story()
    story.processes[200] = {"index": 1, "ppid": MAIN, "parent": 0}
    story.do(200, "PROCESS_START", 200, pid=200)
    story.do(MAIN, "MUTEX_TAKEN", A).do(200, "MUTEX_TAKEN", B, pid=200)
    story.do(MAIN, "MUTEX_WAIT", B, owner=200).do(200, "MUTEX_WAIT", A, owner=MAIN, pid=200)
    assert "deadlock" in found(story, tmp_path)


def test_a_deadlock_over_shared_memory(tmp_path: Path) -> None:
    """The locks have other addresses in the other process, and no owner to ask."""
    far, story = 0x5000, Story()
    story.processes[200] = {"index": 1, "ppid": 1}
    for pid, start in ((MAIN, A), (200, A + far)):
        part = {"start": hex(start), "end": hex(start + 4096), "file": "0:1:7", "offset": "0x0"}
        story.shared[pid] = [part]
    story.do(200, "PROCESS_START", 200, pid=200)
    story.do(MAIN, "RWLOCK_TAKEN_WRITE", A).do(200, "RWLOCK_TAKEN_WRITE", B + far, pid=200)
    story.do(MAIN, "RWLOCK_WAIT", B, write=1).do(200, "RWLOCK_WAIT", A + far, pid=200, write=1)
    (only,) = story.findings(tmp_path)
    assert only.kind == "deadlock"
    assert sorted(only.threads) == [MAIN, 200]


# ---- a thread and itself ----


def locked_twice() -> Story:
    return two().lock(1, A).wait(1, A, 1)


def refused_to_lock_twice() -> Story:
    return two().lock(1, A).refused(1, A, LOCK_IN, EDEADLK).unlock(1, A)


def upgrade_alone() -> Story:
    return two().read(1, A).rw_wait(1, A, write=1)


def spins_for_itself() -> Story:
    return two().do(1, "SPIN_TAKEN", A).do(1, "SPIN_WAIT", A)


def once_again() -> Story:
    return two().do(1, "ONCE_BEGIN", A).do(1, "ONCE_WAIT", A)


@pytest.mark.parametrize(
    "story", [locked_twice, refused_to_lock_twice, upgrade_alone, spins_for_itself, once_again]
)
def test_self_deadlock(tmp_path: Path, story: Callable[[], Story]) -> None:
    assert found(story(), tmp_path) == ["self-deadlock"]


def recursive() -> Story:
    return two().lock(1, A, A).unlock(1, A, A)


def timed_twice() -> Story:
    return two().lock(1, A).wait(1, A, 1, timed=1).gave_up(1, A).unlock(1, A)


@pytest.mark.parametrize("story", [recursive, timed_twice])
def test_no_self_deadlock(tmp_path: Path, story: Callable[[], Story]) -> None:
    assert found(story(), tmp_path) == []


# ---- orders ----


def test_inversion(tmp_path: Path) -> None:
    (only,) = two().both(1, A, B).both(2, B, A).findings(tmp_path)
    assert only.kind == INVERSION
    assert only.severity == "warning"
    assert sorted(only.threads) == [1, 2]
    assert sorted(only.objects) == [A, B]
    assert len(only.sites) == 4


def three_in_a_ring() -> Story:
    return Story().create(1, 2, 3).both(1, A, B).both(2, B, C).both(3, C, A)


def other_gates() -> Story:
    story = two().lock(1, C).both(1, A, B).unlock(1, C)
    return story.lock(2, D).both(2, B, A).unlock(2, D)


def shared_gate() -> Story:
    """Readers do not keep each other out."""
    story = two().read(1, C).both(1, A, B).leave(1, C)
    return story.read(2, C).both(2, B, A).leave(2, C)


def tried_outside() -> Story:
    return two().tried(1, A).lock(1, B).unlock(1, B, A).both(2, B, A)


def gate_sometimes() -> Story:
    story = two().lock(1, C).both(1, A, B).unlock(1, C).both(1, A, B)
    return story.lock(2, C).both(2, B, A).unlock(2, C)


def read_and_written() -> Story:
    story = two().read(1, A).lock(1, B).unlock(1, B).leave(1, A)
    return story.lock(2, B).write(2, A).leave(2, A).unlock(2, B)


def between_barriers() -> Story:
    """Both orders are in the same round of the barrier."""
    story = meeting(two()).both(1, A, B).both(2, B, A)
    return meeting(story)


def joined_too_late() -> Story:
    story = two().both(1, A, B).both(2, B, A)
    return story.ended_and_joined(1, 2)


def created_earlier() -> Story:
    """The second thread began before the first thread took its locks."""
    return Story().create(1).create(2, by=1).both(1, A, B).both(2, B, A)


def with_a_unit(story: Story, *tids: int) -> Story:
    """Each thread locks two locks of a ring while it has a unit of a semaphore."""
    ring = [A, B, C][: len(tids)]
    for n, tid in enumerate(tids):
        story.do(tid, "SEM_TAKEN", D).both(tid, ring[n], ring[(n + 1) % len(ring)])
        story.do(tid, "SEM_POST", D)
    return story


def units_for_both() -> Story:
    return with_a_unit(two().do(MAIN, "SEM_INIT", D, value=2), 1, 2)


def units_of_another() -> Story:
    """The semaphore hands work over: no thread had a unit of its own."""
    story = with_a_unit(two().do(MAIN, "SEM_INIT", D, value=1), 1, 2)
    return story.do(1, "SEM_POST", D)


def units_of_processes() -> Story:
    """Processes that are not traced may post, too."""
    return with_a_unit(two().do(MAIN, "SEM_INIT", D, value=1, shared=1), 1, 2)


def taken_back_by_a_wait() -> Story:
    story = two().lock(1, A, B).cond_in(1, C, A).lock(2, A).signal(2, C).unlock(2, A)
    story.cond_out(1, C, A).unlock(1, B, A)
    return story.both(2, A, B)


def on_the_stack_of_main() -> Story:
    """The frames of main cannot have changed: it waited for the first thread all the time."""
    story = two().join_in(MAIN, 1).both(1, STACK, STACK + 64).end(1)
    story.do(MAIN, "THREAD_JOIN_OUT", pthread(1)).join_in(MAIN, 2)
    return story.both(2, STACK + 64, STACK)


def initialized_on_the_heap() -> Story:
    story = two().do(MAIN, "MUTEX_INIT", HEAP).do(MAIN, "MUTEX_INIT", HEAP2)
    return story.both(1, HEAP, HEAP2).both(2, HEAP2, HEAP)


@pytest.mark.parametrize(
    "story",
    [
        three_in_a_ring, other_gates, shared_gate, tried_outside, gate_sometimes, read_and_written,
        between_barriers, joined_too_late, created_earlier, taken_back_by_a_wait,
        initialized_on_the_heap, on_the_stack_of_main, units_for_both, units_of_another,
        units_of_processes,
    ],
)  # fmt: skip
def test_inversions(tmp_path: Path, story: Callable[[], Story]) -> None:
    assert found(story(), tmp_path) == [INVERSION]


def meeting(story: Story, barrier: int = E) -> Story:
    """Let threads 1 and 2 meet."""
    for tid in (1, 2):
        story.do(tid, "BARRIER_WAIT_IN", barrier)
    for tid in (2, 1):
        story.do(tid, "BARRIER_WAIT_OUT", barrier, result=-(tid == 2), wait_ns=1)
    return story


def same_order() -> Story:
    return two().both(1, A, B).both(2, A, B)


def one_thread() -> Story:
    return two().both(1, A, B).both(1, B, A)


def gate() -> Story:
    story = two().lock(1, C).both(1, A, B).unlock(1, C)
    return story.lock(2, C).both(2, B, A).unlock(2, C)


def unit_for_one() -> Story:
    return with_a_unit(two().do(MAIN, "SEM_INIT", D, value=1), 1, 2)


def units_for_two_of_three() -> Story:
    return with_a_unit(Story().do(MAIN, "SEM_INIT", D, value=2).create(1, 2, 3), 1, 2, 3)


def tried_inside() -> Story:
    return two().both(1, A, B).lock(2, B).tried(2, A).unlock(2, A, B)


def timed_inside() -> Story:
    story = two().both(1, A, B).lock(1, A).lock(2, B).wait(2, A, timed=1)
    return story.unlock(1, A).waited(2, A).unlock(2, A, B)


def read_both() -> Story:
    story = two()
    for tid, locks in ((1, (A, B)), (2, (B, A))):
        story.read(tid, locks[0]).read(tid, locks[1]).leave(tid, locks[1]).leave(tid, locks[0])
    return story


def joined_before() -> Story:
    return Story().create(1).both(1, A, B).ended_and_joined(1).create(2).both(2, B, A)


def joined_before_by_main() -> Story:
    return Story().create(1).both(1, A, B).ended_and_joined(1).both(MAIN, B, A)


def created_after() -> Story:
    return Story().both(MAIN, A, B).create(1).both(1, B, A)


def created_after_and_said_late() -> Story:
    return Story().both(MAIN, A, B).create(1, late=True).both(1, B, A)


def barrier_between() -> Story:
    return meeting(two().both(1, A, B)).both(2, B, A)


def teams_between() -> Story:
    """As between two regions of OpenMP: main waits for both threads, then wakes them."""
    story = two().both(1, A, B)
    for tid in (1, 2):
        story.do(tid, "BARRIER_ARRIVE", E).do(tid, "COND_WAIT_IN", C, mutex=0)
    story.do(MAIN, "BARRIER_WAIT_IN", E).do(MAIN, "BARRIER_WAIT_OUT", E, result=0, wait_ns=1)
    story.do(MAIN, "COND_BROADCAST", C)
    for tid in (1, 2):
        story.do(tid, "COND_WAIT_OUT", C, result=0, wait_ns=1)
    return story.both(2, B, A)


def two_barriers_between() -> Story:
    return meeting(meeting(two().both(1, A, B))).both(2, B, A)


def created_by_the_created() -> Story:
    return Story().both(MAIN, A, B).create(1).create(2, by=1).both(2, B, A)


def destroyed_between() -> Story:
    story = two().both(1, A, B)
    for lock in (A, B):
        story.do(MAIN, "MUTEX_DESTROY", lock).do(MAIN, "MUTEX_INIT", lock)
    return story.both(2, B, A)


def initialized_between() -> Story:
    story = two().both(1, A, B)
    for lock in (A, B):
        story.do(MAIN, "MUTEX_INIT", lock)
    return story.both(2, B, A)


def on_a_stack_that_moves() -> Story:
    """The first thread did something meanwhile: it may have left a function and called another."""
    return two().both(1, STACK, STACK + 64).lock(MAIN, C).unlock(MAIN, C).both(2, STACK + 64, STACK)


def memory_used_again() -> Story:
    """Nothing says that these are the same locks."""
    return two().both(1, HEAP, HEAP2).both(2, HEAP2, HEAP)


@pytest.mark.parametrize(
    "story",
    [
        same_order, one_thread, gate, unit_for_one, units_for_two_of_three, tried_inside,
        timed_inside, read_both, joined_before,
        joined_before_by_main, created_after, created_after_and_said_late, barrier_between,
        teams_between, two_barriers_between, on_a_stack_that_moves, created_by_the_created,
        destroyed_between, initialized_between, memory_used_again,
    ],
)  # fmt: skip
def test_no_inversion(tmp_path: Path, story: Callable[[], Story]) -> None:
    assert found(story(), tmp_path) == []


def test_suspects_are_distinguished(tmp_path: Path) -> None:
    (only,) = memory_used_again().findings(tmp_path)
    assert only.suspect


def test_many_phases(tmp_path: Path) -> None:
    """The orders meet in one of many phases; each order is neither first nor last there."""
    story = two()
    for phase in range(12):
        story.both(1, A, B)
        if phase == 6:
            story.both(2, B, A)
        meeting(story)
    assert found(story, tmp_path) == [INVERSION]
