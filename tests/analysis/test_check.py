"""Each rule of `ptt check` except cycles: programs with the bug, and correct programs like them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import nptltrace
from nptltrace.analysis.findings import find, findings
from nptltrace.analysis.sql.schema import TABLES
from nptltrace.api import Traceset
from tests.analysis.story import (
    HEAP,
    MAIN,
    A,
    B,
    C,
    D,
    E,
    Story,
    crossed,
    found,
    kinds,
    two,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

EPERM, EBUSY, EINVAL, ETIMEDOUT, EOWNERDEAD = 1, 16, 22, 110, 130
LOCK_IN, UNLOCK_IN, DESTROY_IN = 20, 28, 18


# ---- wake-ups ----


def signalled_before() -> Story:
    story = two().lock(1, A).signal(1, B).unlock(1, A).ended_and_joined(1)
    return story.lock(2, A).cond_in(2, B, A).join_in(MAIN, 2)


def broadcast_before() -> Story:
    story = two().lock(1, A).broadcast(1, B).unlock(1, A).ended_and_joined(1)
    return story.lock(2, A).cond_in(2, B, A).join_in(MAIN, 2)


def signalled_without_mutex() -> Story:
    """Another thread goes on, but no wait is safe if the signaller does not lock the mutex."""
    return two().signal(1, B).lock(2, A).cond_in(2, B, A).join_in(MAIN, 2)


@pytest.mark.parametrize("story", [signalled_before, broadcast_before, signalled_without_mutex])
def test_lost_wakeup(tmp_path: Path, story: Callable[[], Story]) -> None:
    (only,) = story().findings(tmp_path)
    assert only.kind == "lost-wakeup"
    assert set(only.objects) == {A, B}
    assert only.threads == [1, 2]


def somebody_is_at_work() -> Story:
    return two().lock(1, A).signal(1, B).unlock(1, A).lock(2, A).cond_in(2, B, A)


def idle_at_the_end() -> Story:
    """The worker has nothing to do after a signal that nobody needed."""
    return two().signal(1, B).lock(2, A).cond_in(2, B, A).exit()


def idle_worker() -> Story:
    """The worker has taken the signalled item, and waits for more."""
    story = two().lock(1, A).signal(1, B).unlock(1, A).ended_and_joined(1)
    story.lock(2, A).unlock(2, A).lock(2, A).cond_in(2, B, A)
    return story.join_in(MAIN, 2)


def taken_by_another() -> Story:
    story = Story().create(1, 2, 3).lock(1, A).signal(1, B).unlock(1, A).ended_and_joined(1)
    story.lock(3, A).unlock(3, A).lock(2, A).cond_in(2, B, A).ended_and_joined(3)
    return story.join_in(MAIN, 2)


def heard_it() -> Story:
    story = two().lock(2, A).cond_in(2, B, A).lock(1, A).signal(1, B).unlock(1, A)
    story.cond_out(2, B, A).cond_in(2, B, A).ended_and_joined(1)
    return story.join_in(MAIN, 2)


def waits_with_a_limit() -> Story:
    story = two().lock(1, A).signal(1, B).unlock(1, A).ended_and_joined(1)
    return story.lock(2, A).cond_in(2, B, A, timed=True).join_in(MAIN, 2)


def waits_for_a_post() -> Story:
    """A signal handler may post."""
    story = two().lock(1, A).signal(1, B).unlock(1, A).ended_and_joined(1)
    return story.lock(2, A).cond_in(2, B, A).do(MAIN, "SEM_WAIT", C)


@pytest.mark.parametrize(
    "story",
    [
        somebody_is_at_work, idle_at_the_end, idle_worker, taken_by_another, heard_it,
        waits_with_a_limit, waits_for_a_post,
    ],
)  # fmt: skip
def test_no_lost_wakeup(tmp_path: Path, story: Callable[[], Story]) -> None:
    assert "lost-wakeup" not in found(story(), tmp_path)


# ---- nobody is left ----


def nested_monitor() -> Story:
    """The thread that could signal needs a lock that the waiter keeps."""
    story = two().lock(1, A).lock(1, B).cond_in(1, C, B).wait(2, A, 1)
    return story.join_in(MAIN, 1)


@pytest.mark.parametrize("story", [idle_worker, taken_by_another, heard_it, nested_monitor])
def test_stuck(tmp_path: Path, story: Callable[[], Story]) -> None:
    (only,) = story().findings(tmp_path)
    assert (only.kind, only.severity) == ("stuck", "error")
    assert MAIN in only.threads


def waits_for_shared() -> Story:
    """Another process may signal."""
    story = two().do(MAIN, "COND_INIT", B, shared=1).ended_and_joined(1)
    return story.lock(2, A).cond_in(2, B, A).join_in(MAIN, 2)


def a_signal_is_on_its_way() -> Story:
    """The process was killed before the thread went on."""
    story = Story().create(1, 2, 3)
    for tid in (2, 3):
        story.lock(tid, A).cond_in(tid, B, A)
    return story.lock(1, A).signal(1, B).unlock(1, A).ended_and_joined(1).join_in(MAIN, 2)


def one_thread_does_something_else() -> Story:
    return two().lock(2, A).cond_in(2, B, A).join_in(MAIN, 2)


def waits_by_system_call() -> Story:
    story = two().ended_and_joined(1).lock(2, A).cond_in(2, B, A)
    return story.do(MAIN, "FUTEX_WAIT_IN", C, value=0, timeout_ns=0)


@pytest.mark.parametrize(
    "story",
    [
        waits_for_shared, a_signal_is_on_its_way, one_thread_does_something_else,
        waits_by_system_call, waits_with_a_limit, waits_for_a_post, idle_at_the_end,
    ],
)  # fmt: skip
def test_not_stuck(tmp_path: Path, story: Callable[[], Story]) -> None:
    assert found(story(), tmp_path) == []


# ---- owners of locks ----


def stranger() -> Story:
    return two().lock(1, A).unlock(2, A)


def stranger_is_refused() -> Story:
    return two().lock(1, A).refused(2, A, UNLOCK_IN, EPERM).unlock(1, A)


def writer_of_another() -> Story:
    return two().write(1, A).leave(2, A)


@pytest.mark.parametrize("story", [stranger, stranger_is_refused, writer_of_another])
def test_unlock_not_owner(tmp_path: Path, story: Callable[[], Story]) -> None:
    (only,) = story().findings(tmp_path)
    assert only.kind == "unlock-not-owner"
    assert only.threads == [1, 2]


def twice() -> Story:
    return two().lock(1, A).unlock(1, A, A)


def never_locked() -> Story:
    return two().unlock(1, A)


def nobodys_refused() -> Story:
    return two().lock(1, A).unlock(1, A).refused(1, A, UNLOCK_IN, EPERM)


def after_a_timeout() -> Story:
    story = two().lock(2, A).wait(1, A, timed=1).gave_up(1, A).unlock(2, A)
    return story.unlock(1, A)


@pytest.mark.parametrize("story", [twice, never_locked, nobodys_refused, after_a_timeout])
def test_unlock_unlocked(tmp_path: Path, story: Callable[[], Story]) -> None:
    assert found(story(), tmp_path) == ["unlock-unlocked"]


def begins_in_the_middle() -> Story:
    return Story(main=False).unlock(1, A).unlock(2, B)


def locked_by_the_parent() -> Story:
    story = Story().lock(MAIN, A)
    story.processes[200] = {"index": 1, "ppid": MAIN, "parent": 0}
    story.do(200, "PROCESS_START", 200, pid=200).do(200, "MUTEX_FREE", A, pid=200)
    return story.unlock(MAIN, A)


def owner_died() -> Story:
    story = two().do(MAIN, "MUTEX_INIT", A, robust=1).lock(1, A).end(1).join(MAIN, 1)
    return story.waited(2, A, EOWNERDEAD).unlock(2, A)


def ids_used_again() -> Story:
    """A thread has the id and the pthread_t of a joined thread."""
    story = Story().create(1).lock(1, A).unlock(1, A).ended_and_joined(1)
    return story.create(1).lock(1, B, A).unlock(1, A, B).ended_and_joined(1).exit()


@pytest.mark.parametrize(
    "story", [begins_in_the_middle, locked_by_the_parent, owner_died, ids_used_again]
)
def test_no_wrong_unlock(tmp_path: Path, story: Callable[[], Story]) -> None:
    assert found(story(), tmp_path) == []


# ---- lives of objects ----


def held_by_another() -> Story:
    return two().write(1, A).do(2, "RWLOCK_DESTROY", A)


def held_and_refused() -> Story:
    return two().lock(1, A).refused(2, A, DESTROY_IN, EBUSY).unlock(1, A)


def waited_for() -> Story:
    return two().lock(1, A).cond_in(1, B, A).do(2, "COND_DESTROY", B)


@pytest.mark.parametrize("story", [held_by_another, held_and_refused, waited_for])
def test_destroy_locked(tmp_path: Path, story: Callable[[], Story]) -> None:
    (only,) = story().findings(tmp_path)
    # The library refused the call, so it did no harm.
    severity = "warning" if story is held_and_refused else "error"
    assert (only.kind, only.severity) == ("destroy-locked", severity)


def broadcast_and_destroyed() -> Story:
    story = two().lock(1, A).cond_in(1, B, A).broadcast(2, B).do(2, "COND_DESTROY", B)
    return story.cond_out(1, B, A).unlock(1, A)


def destroyed_by_the_last() -> Story:
    return two().lock(1, A).unlock(1, A).do(2, "MUTEX_DESTROY", A)


def left_while_destroyed() -> Story:
    story = two().do(MAIN, "BARRIER_INIT", E, count=2)
    for tid in (1, 2):
        story.do(tid, "BARRIER_WAIT_IN", E)
    story.do(1, "BARRIER_WAIT_OUT", E, result=-1).do(1, "BARRIER_DESTROY", E)
    return story.do(2, "BARRIER_WAIT_OUT", E)


def initialized_anew() -> Story:
    """A thread could lock the mutex, so the program initialized it again, maybe without a call."""
    return two().do(1, "MUTEX_DESTROY", A).lock(2, A).unlock(2, A)


def used_again_on_the_heap() -> Story:
    return two().do(1, "RWLOCK_DESTROY", HEAP).write(2, HEAP).leave(2, HEAP)


@pytest.mark.parametrize(
    "story",
    [
        broadcast_and_destroyed, destroyed_by_the_last, left_while_destroyed, initialized_anew,
        used_again_on_the_heap,
    ],
)  # fmt: skip
def test_correct_lives_of_objects_are_no_finding(
    tmp_path: Path, story: Callable[[], Story]
) -> None:
    assert found(story(), tmp_path) == []


def signalled_after() -> Story:
    return two().do(MAIN, "COND_INIT", A).do(MAIN, "COND_DESTROY", A).signal(1, A)


def posted_after() -> Story:
    return two().do(MAIN, "SEM_INIT", A).do(MAIN, "SEM_DESTROY", A).do(1, "SEM_POST", A)


def locked_after() -> Story:
    story = two().do(MAIN, "MUTEX_INIT", HEAP).do(MAIN, "MUTEX_DESTROY", HEAP)
    return story.refused(1, HEAP, LOCK_IN, EINVAL)


def destroyed_twice() -> Story:
    return two().do(1, "RWLOCK_DESTROY", A).do(2, "RWLOCK_DESTROY", A)


@pytest.mark.parametrize("story", [posted_after, locked_after])
def test_use_after_destroy(tmp_path: Path, story: Callable[[], Story]) -> None:
    assert found(story(), tmp_path) == ["use-after-destroy"]


@pytest.mark.parametrize("story", [signalled_after, destroyed_twice])
def test_use_of_an_object_that_may_be_new_is_a_suspect(
    tmp_path: Path, story: Callable[[], Story]
) -> None:
    (only,) = story().findings(tmp_path)
    assert (only.kind, only.suspect) == ("use-after-destroy", True)


# ---- mutexes of conditions ----


def without_lock() -> Story:
    story = two().cond_in(1, B, A).signal(2, B).cond_out(1, B, A)
    return story.unlock(1, A)


def with_the_lock_of_another() -> Story:
    story = two().lock(2, A).cond_in(1, B, A).signal(2, B).unlock(2, A)
    return story.cond_out(1, B, A).unlock(1, A)


def refused_to_wait() -> Story:
    story = two().do(1, "COND_WAIT_IN", B, mutex=A)
    return story.do(1, "COND_WAIT_OUT", B, result=EPERM)


@pytest.mark.parametrize("story", [without_lock, with_the_lock_of_another, refused_to_wait])
def test_cond_wait_unlocked_mutex(tmp_path: Path, story: Callable[[], Story]) -> None:
    assert found(story(), tmp_path) == ["cond-wait-unlocked-mutex"]


def both_wait() -> Story:
    return two().lock(1, A).lock(2, B).cond_in(1, C, A).cond_in(2, C, B)


def a_timed_waiter_is_woken() -> Story:
    story = two().lock(1, A).lock(2, B).cond_in(1, C, A, timed=True).cond_in(2, C, B)
    story.broadcast(MAIN, C)
    return story.cond_out(1, C, A, timed=True).cond_out(2, C, B).unlock(1, A).unlock(2, B)


@pytest.mark.parametrize("story", [both_wait, a_timed_waiter_is_woken])
def test_cond_two_mutexes(tmp_path: Path, story: Callable[[], Story]) -> None:
    (only,) = story().findings(tmp_path)
    assert only.kind == "cond-two-mutexes"
    assert sorted(only.objects) == [A, B, C]


def one_after_the_other() -> Story:
    story = two().lock(1, A).lock(2, B).cond_in(1, C, A).signal(MAIN, C)
    return story.cond_in(2, C, B).cond_out(1, C, A)


def first_waiter_timed_out() -> Story:
    story = two().lock(1, A).lock(2, B).cond_in(1, C, A, timed=True).cond_in(2, C, B)
    return story.cond_out(1, C, A, timed=True, result=ETIMEDOUT)


@pytest.mark.parametrize("story", [one_after_the_other, first_waiter_timed_out])
def test_two_mutexes_in_turn_are_no_finding(tmp_path: Path, story: Callable[[], Story]) -> None:
    assert "cond-two-mutexes" not in found(story(), tmp_path)


# ---- ends ----


def test_exit_holding_lock(tmp_path: Path) -> None:
    story = two().lock(1, A, A).unlock(1, A).read(2, B).ended_and_joined(1, 2).exit()
    assert found(story, tmp_path) == ["exit-holding-lock"] * 2


def test_the_program_may_end_with_locks_held(tmp_path: Path) -> None:
    assert found(two().lock(1, A).lock(MAIN, B).exit(), tmp_path) == []


def test_thread_leak(tmp_path: Path) -> None:
    (only,) = two().end(1).end(2).join(MAIN, 2).exit().findings(tmp_path)
    assert only.kind == "thread-leak"
    assert only.threads == [1]
    assert len(only.sites) == 1


def still_at_work() -> Story:
    return two().exit()


def killed() -> Story:
    return two().end(1).end(2)


def detached() -> Story:
    story = Story().create(1, detached=1).create(2).do(2, "THREAD_DETACH", 0x7FFF00002000)
    return story.end(1).end(2).exit()


@pytest.mark.parametrize("story", [still_at_work, killed, detached])
def test_no_thread_leak(tmp_path: Path, story: Callable[[], Story]) -> None:
    assert found(story(), tmp_path) == []


def barrier_for_three() -> Story:
    story = two().do(MAIN, "BARRIER_INIT", E, count=3)
    return story.do(1, "BARRIER_WAIT_IN", E).do(2, "BARRIER_WAIT_IN", E)


def test_barrier_stuck(tmp_path: Path) -> None:
    (only,) = barrier_for_three().join_in(MAIN, 1).findings(tmp_path)
    assert only.kind == "barrier-stuck"
    assert sorted(only.threads) == [1, 2]
    assert "1 of 3 will not come" in only.message


def test_a_thread_may_still_come_to_a_barrier(tmp_path: Path) -> None:
    assert found(barrier_for_three(), tmp_path) == []


# ---- time ----


def test_long_hold(tmp_path: Path) -> None:
    story = two().lock(1, A).wait(2, A, 1).sleep(2 * 10**9).unlock(1, A).waited(2, A)
    story.wait(1, A, 2).sleep(10**6).unlock(2, A).waited(1, A).unlock(1, A)
    (only,) = story.findings(tmp_path)
    assert only.kind == "long-hold"
    assert only.threads == [1]
    assert "2 s" in only.message
    assert kinds(story.findings(tmp_path, long_hold_ns=3 * 10**9)) == []
    assert kinds(story.findings(tmp_path, long_hold_ns=10**6)) == ["long-hold"] * 2


def test_a_long_hold_without_a_waiter_is_no_finding(tmp_path: Path) -> None:
    story = two().wait(2, A, 1).waited(2, A).unlock(2, A)
    assert found(story.lock(1, A).sleep(2 * 10**9).unlock(1, A), tmp_path) == []


def test_a_condition_wait_does_not_hold_the_mutex(tmp_path: Path) -> None:
    story = two().lock(1, A).cond_in(1, B, A).sleep(2 * 10**9).lock(2, A).signal(2, B)
    assert found(story.unlock(2, A).cond_out(1, B, A).unlock(1, A), tmp_path) == []


def inversion(protocol: int = 0) -> Story:
    story = two().do(MAIN, "MUTEX_INIT", A, protocol=protocol)
    story.do(1, "THREAD_PRIORITY", 0x7FFF00001000, policy=1, priority=5)
    story.do(2, "THREAD_PRIORITY", 0x7FFF00002000, policy=1, priority=20)
    story.lock(1, A).wait(2, A, 1).sleep(10**7).unlock(1, A)
    return story.waited(2, A).unlock(2, A)


def test_priority_inversion(tmp_path: Path) -> None:
    (only,) = inversion().findings(tmp_path)
    assert only.kind == "priority-inversion"
    assert only.threads == [1, 2]


def test_inherited_priority(tmp_path: Path) -> None:
    assert found(inversion(1), tmp_path) == []


# ---- incomplete traces ----


def test_a_lost_release_makes_no_deadlock(tmp_path: Path) -> None:
    """An event of the lock shows that another thread has it by now."""
    story = Story().create(1, 2, 3).lock(1, A).lock(2, B).wait(1, B, 3).wait(2, A, 1)
    story.discarded = 1
    assert found(story, tmp_path) == []


def test_lost_events_hide_only_findings_that_need_them(tmp_path: Path) -> None:
    """A finding that needs none of the lost events is still reported."""
    story = crossed().unlock(MAIN, C).lock(MAIN, D)
    story.discarded = 3
    result = find(Traceset(story.write_to(tmp_path / "made.ptt")))
    assert kinds(result.findings) == ["deadlock"]
    assert result.partial
    assert result.lost >= 3


@pytest.mark.parametrize(
    "session",
    [
        {"level_changed": True},
        {"part": "thread"},
        {"uncovered": [{"module": "libx.so", "why": "static pthread"}]},
    ],
)
def test_an_incomplete_trace_has_no_findings(tmp_path: Path, session: dict[str, Any]) -> None:
    story = two().both(1, A, B).both(2, B, A).unlock(1, C)
    story.session |= session
    assert found(story, tmp_path) == []


def test_a_running_recording_has_no_findings_about_its_end(tmp_path: Path) -> None:
    story = barrier_for_three().join_in(MAIN, 1)
    story.session["state"] = "running"
    assert found(story, tmp_path) == []


@pytest.mark.parametrize("records", [False, True])
def test_classic_records_have_the_same_findings(tmp_path: Path, records: bool) -> None:  # noqa: FBT001
    trace = crossed().write_to(tmp_path / "made.ptt", records=records)
    assert "deadlock" in kinds(find(Traceset(trace)).findings)


def test_equal_findings_are_reported_once(tmp_path: Path) -> None:
    story = two()
    for _ in range(50):
        story.do(1, "MUTEX_FREE", A, site=7).lock(1, A).unlock(1, A)
    reported = [f for f in story.findings(tmp_path) if f.kind == "unlock-unlocked"]
    assert len(reported) <= 1


def test_orders_of_a_deadlock_are_not_reported_again(tmp_path: Path) -> None:
    """A third thread took two of the locks in one of the orders before."""
    assert found(crossed(Story().create(1, 2, 3).both(3, A, B)), tmp_path) == ["deadlock"]


def test_the_table_of_findings(tmp_path: Path) -> None:
    trace = crossed(two().unlock(1, C)).write_to(tmp_path / "made.ptt")
    table = findings(Traceset(trace))
    names = [name for name in TABLES["findings"].names if name not in {"run_id", "pid"}]
    assert table.schema == TABLES["findings"].schema(names)
    rows = table.to_pylist()
    assert [row["kind"] for row in rows] == ["unlock-unlocked", "deadlock"]
    assert rows[0]["objects"][0].startswith("0x")
    assert rows[0]["events"][0]["tid"] in {1, 2}


def test_an_empty_trace(tmp_path: Path) -> None:
    trace = Story().write_to(tmp_path / "made.ptt")
    assert findings(Traceset(trace)).num_rows == 0


# ---- recordings from the beginning ----


def test_first_event_is_a_contended_wait(tmp_path: Path) -> None:
    """The level says that holds are recorded, before an event shows it."""
    story = two().wait(1, A, 2).waited(1, A).unlock(1, A)
    assert found(story, tmp_path) == []
    with nptltrace.open(tmp_path / "made.ptt") as trace:
        assert trace.table("holds")["tid"].to_pylist() == [1]
