"""The checker agrees with plain definitions on random programs."""

from __future__ import annotations

from itertools import permutations, product
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nptltrace.catalog import EVENTS
from nptltrace.findings import kinds as all_kinds
from tests.analysis.story import MAIN, T0, A, Story, kinds, pthread
from tests.trace.builder import Event

LOCKS = [A + 64 * n for n in range(4)]
FEW = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
INVERSION = "lock-order-inversion"


def found(story: Story) -> list[str]:
    with TemporaryDirectory() as place:
        return kinds(story.findings(Path(place)))


# ---- orders ----

# Locks that each thread takes, one inside the other; the threads run one after the other.
sections = st.lists(
    st.tuples(st.integers(1, 3), st.lists(st.sampled_from(LOCKS), max_size=4, unique=True)),
    max_size=7,
)


def has_cycle(taken: list[tuple[int, list[int]]]) -> bool:
    """Return whether orders of different threads, without a common gate, can close a cycle."""
    orders = [
        (thread, held, wanted, frozenset(locks[:n]))
        for thread, locks in taken
        for n, wanted in enumerate(locks)
        for held in locks[:n]
    ]
    for length in (2, 3):
        for threads in permutations((1, 2, 3), length):
            for cycle in product(*([o for o in orders if o[0] == t] for t in threads)):
                closed = all(cycle[i][2] == cycle[(i + 1) % length][1] for i in range(length))
                apart = all(not cycle[i][3] & cycle[k][3] for i in range(length) for k in range(i))
                if closed and apart:
                    return True
    return False


@FEW
@given(sections)
def test_orders(taken: list[tuple[int, list[int]]]) -> None:
    story = Story().create(1, 2, 3)
    for thread, locks in taken:
        story.lock(thread, *locks).unlock(thread, *reversed(locks))
    expected = [INVERSION] if has_cycle(taken) else []
    assert sorted(set(found(story))) == expected


@FEW
@given(sections)
def test_orders_that_joins_keep_apart(taken: list[tuple[int, list[int]]]) -> None:
    """Each thread ends before the next one is created."""
    story = Story()
    for number, (_, locks) in enumerate(taken, 1):
        story.create(number).lock(number, *locks).unlock(number, *reversed(locks))
        story.ended_and_joined(number)
    assert found(story.exit()) == []


# ---- deadlocks ----

# For each thread, the thread with the lock that it waits for, or nothing.
wants = st.lists(st.one_of(st.none(), st.integers(0, 5)), min_size=6, max_size=6)


def cycles(targets: list[int | None]) -> set[frozenset[int]]:
    result = set()
    for start in range(len(targets)):
        path: list[int] = []
        at: int | None = start
        while at is not None and at not in path:
            path.append(at)
            at = targets[at]
        if at == start:
            result.add(frozenset(n + 1 for n in path))
    return result


@FEW
@given(wants, st.permutations(range(6)))
def test_cycles_of_waits(targets: list[int | None], order: list[int]) -> None:
    story = Story().create(*range(1, 7))
    for n in range(6):
        story.lock(n + 1, A + 64 * n)
    for n in order:
        target = targets[n]
        if target is not None:
            story.wait(n + 1, A + 64 * target, target + 1)
    with TemporaryDirectory() as place:
        message = [
            frozenset(f.threads)
            for f in story.findings(Path(place))
            if f.kind in {"deadlock", "self-deadlock"}
        ]
    assert sorted(map(sorted, message)) == sorted(map(sorted, cycles(targets)))


# ---- programs without a fault ----

steps = st.lists(
    st.tuples(
        st.integers(1, 3),
        st.sampled_from(["section", "read", "try", "produce", "consume", "meet"]),
        st.sets(st.sampled_from(LOCKS[:3]), min_size=1),
    ),
    max_size=12,
)
QUEUE, FILLED, TABLE, BARRIER = (A + 0x400 + 64 * n for n in range(4))


@FEW
@given(steps)
def test_a_correct_program_is_not_accused(todo: list[tuple[int, str, set[int]]]) -> None:
    """Threads lock in the order of addresses, wait for everything, and are joined."""
    story = Story().create(1, 2, 3)
    for thread, what, chosen in todo:
        locks, other = sorted(chosen), thread % 3 + 1
        if what == "section":
            story.lock(thread, *locks)
            story.wait(other, locks[0], thread).unlock(thread, *reversed(locks))
            story.waited(other, locks[0]).unlock(other, locks[0])
        elif what == "read":
            story.read(thread, TABLE).read(other, TABLE).leave(thread, TABLE).leave(other, TABLE)
        elif what == "try":
            story.lock(thread, locks[-1]).tried(thread, QUEUE).unlock(thread, QUEUE, locks[-1])
        elif what == "produce":
            story.lock(thread, QUEUE).signal(thread, FILLED).unlock(thread, QUEUE)
        elif what == "consume":
            story.lock(thread, QUEUE).cond_in(thread, FILLED, QUEUE)
            story.lock(other, QUEUE).broadcast(other, FILLED).unlock(other, QUEUE)
            story.cond_out(thread, FILLED, QUEUE).unlock(thread, QUEUE)
        else:
            for tid in (1, 2, 3):
                story.do(tid, "BARRIER_WAIT_IN", BARRIER)
            for tid in (3, 1, 2):
                story.do(tid, "BARRIER_WAIT_OUT", BARRIER, result=-(tid == 3))
    assert found(story.ended_and_joined(1, 2, 3).exit()) == []


# ---- nonsense ----

TYPES = [event for event in EVENTS if event.domain not in {"user", "c11"}]
nonsense = st.lists(
    st.tuples(
        st.integers(1, 4),
        st.integers(0, len(TYPES) - 1),
        st.integers(0, 2),
        st.sampled_from([0, 0, 0, 1, 2, 16, 22, 28, 35, 110, 130]),
    ),
    max_size=150,
)


@settings(FEW, max_examples=150)
@given(nonsense)
def test_events_that_no_program_can_make(events: list[tuple[int, int, int, int]]) -> None:
    """The checker reports findings in full, whatever the trace says."""
    story = Story()
    for thread, number, place, value in events:
        event = TYPES[number]
        fields = {f.name: value for f in event.fields if f.type != "bytes"}
        if "mutex" in fields:
            fields["mutex"] = A
        address = pthread(value % 5) if event.domain == "thread" else A + 64 * place
        story.now += 1000
        story.events.setdefault((MAIN, thread), []).append(
            Event(T0 + story.now, event.name, address, thread, variant=event.variant, fields=fields)
        )
    story._site = 10
    with TemporaryDirectory() as place_of_it:
        for reported in story.findings(Path(place_of_it)):
            assert reported.kind in all_kinds()
            assert reported.message
            assert reported.count >= 1
            assert all(event.text for event in reported.events)
