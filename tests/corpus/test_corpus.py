"""`ptt check` finds each planted bug at its place, and accuses no correct program."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tests.corpus.programs import KINDS, Program, correct, planted
from tests.support import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.corpus.checking import Checked

PLANTED, CORRECT = planted(), correct()
# The default recording takes all programs; each other way of recording takes a share.
WAYS = [("-l", "3"), ("-l", "1"), ("--handler", "shared"), ("-l", "4")]
SHARES = 8


def share(programs: list[Program], which: int) -> list[Program]:
    return programs[which::SHARES]


def name(value: Program | tuple[str, ...]) -> str:
    return value.name if isinstance(value, Program) else " ".join(value)


def assert_found(checked: Checked) -> None:
    assert checked.status == 1, "nothing found"
    assert checked.as_planted(), f"{checked.program.expected}, {checked.came}: {checked.findings}"
    assert not checked.besides(), checked.brief()
    for item in checked.findings:
        # The events name the call sites, so the sentence above them does not.
        assert item["title"]
        assert not any(site in item["title"] for site in item["sites"]), item["title"]


def test_the_corpus_has_enough_programs() -> None:
    kinds = Counter(program.source.parent.name for program in PLANTED)
    assert set(kinds) == set(KINDS)
    assert len(PLANTED) >= 5 * len(KINDS)
    assert len(CORRECT) >= 45


def test_the_page_has_a_verdict_on_each_program() -> None:
    page = (ROOT / "docs" / "reference" / "verdicts.md").read_text(encoding="utf-8")
    rows = Counter(line.split(" | ")[0].strip("| ") for line in page.splitlines())
    # A new kind has no verdicts of other tools yet.
    known = [program for program in PLANTED if rows[program.source.parent.name]]
    for program in (*known, *CORRECT):
        assert rows[program.source.stem] > 0, "benchmarks/verdicts.py makes the page anew"


@pytest.mark.parametrize("program", PLANTED, ids=name)
def test_planted(program: Program, checked: Callable[..., Checked]) -> None:
    assert_found(checked(program))


@pytest.mark.parametrize("program", CORRECT, ids=name)
def test_correct(program: Program, checked: Callable[..., Checked]) -> None:
    came = checked(program)
    assert not came.findings, came.brief()
    assert came.status == 0


@pytest.mark.parametrize("program", share(PLANTED, 0), ids=name)
def test_planted_at_level_3(program: Program, checked: Callable[..., Checked]) -> None:
    assert_found(checked(program, "-l", "3"))


@pytest.mark.parametrize("program", share(PLANTED, 1), ids=name)
def test_planted_by_the_shared_handler(program: Program, checked: Callable[..., Checked]) -> None:
    assert_found(checked(program, "--handler", "shared"))


@pytest.mark.parametrize(
    "program",
    [item for item in PLANTED if item.name in {"deadlock/tellers", "deadlock/ring"}],
    ids=name,
)
def test_deadlocks_at_level_1(program: Program, checked: Callable[..., Checked]) -> None:
    """Level 1 records only waits, with the owner of the lock."""
    came = checked(program, "-l", "1")
    assert program.expected
    threads = {came.came.threads[thread] for thread in program.expected.threads}
    message = [item for item in came.findings if item["kind"] == "deadlock"]
    assert any(threads <= set(item["threads"]) for item in message), came.brief()


@pytest.mark.parametrize(
    ("program", "way"),
    [(program, way) for n, way in enumerate(WAYS) for program in share(CORRECT, n)],
    ids=name,
)
def test_correct_otherwise_recorded(
    program: Program, way: tuple[str, ...], checked: Callable[..., Checked]
) -> None:
    came = checked(program, *way)
    assert not came.findings, came.brief()
