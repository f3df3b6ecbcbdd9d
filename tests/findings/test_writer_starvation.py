"""Writers that wait while readers go on taking the lock."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.analysis.story import A, Story

if TYPE_CHECKING:
    from pathlib import Path

    from nptltrace.analysis.findings import Finding

WRITER, READERS = 101, (102, 103)
MS = 1_000_000


def overtaken(
    tmp_path: Path, reads: int, *, apart_ns: int = MS, again: bool = False, ends: bool = True
) -> list[Finding]:
    """Check a writer that waits while two readers take its lock, each before the other leaves it.

    Args:
        tmp_path: Where the trace goes.
        reads: Number of times that the readers take the lock while the writer waits.
        apart_ns: Time between two reads.
        again: The first reader alone takes the lock, again and again without giving it back.
        ends: The writer has the lock in the end.
    """
    story = Story().create(WRITER, *READERS).read(READERS[0], A)
    story.rw_wait(WRITER, A, write=1)
    for turn in range(reads):
        before, following = (READERS[0],) * 2 if again else (READERS[turn % 2], READERS[~turn % 2])
        story.read(following, A).sleep(apart_ns)
        if not again:
            story.leave(before, A)
    if not ends:
        return of_writers(story.findings(tmp_path))
    for _ in range(reads + 1 if again else 1):
        story.leave(READERS[0] if again else READERS[reads % 2], A)
    story.do(WRITER, "RWLOCK_TAKEN_WRITE", A, variant="WAITED", wait_ns=MS).leave(WRITER, A)
    return of_writers(story.ended_and_joined(WRITER, *READERS).exit().findings(tmp_path))


def of_writers(found: list[Finding]) -> list[Finding]:
    return [item for item in found if item.kind == "writer-starvation"]


def test_a_writer_that_many_readers_overtake(tmp_path: Path) -> None:
    [found] = overtaken(tmp_path, 150)
    assert found.severity == "warning"
    assert "waited 150 ms for rwlock" in found.message
    assert "readers took it 150 times" in found.message
    assert set(found.threads) == {WRITER, READERS[0]}


def test_a_writer_that_waits_to_the_end(tmp_path: Path) -> None:
    assert len(overtaken(tmp_path, 150, ends=False)) == 1


def test_a_writer_that_few_readers_overtake(tmp_path: Path) -> None:
    assert not overtaken(tmp_path, 99)


def test_a_writer_that_waits_for_a_moment(tmp_path: Path) -> None:
    assert not overtaken(tmp_path, 150, apart_ns=MS // 10)


def test_a_reader_that_takes_its_lock_again(tmp_path: Path) -> None:
    assert not overtaken(tmp_path, 150, again=True)
