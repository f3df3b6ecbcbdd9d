"""`ptt check` finds what is planted, where it is planted, and accuses no correct program."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from tests.corpus.programs import KINDS, Program, correct, planted

if TYPE_CHECKING:
    from tests.corpus.conftest import Checked, Checker

PLANTED, CORRECT = planted(), correct()
# Every program at the default level; the other levels and the other recording share them out.
SPREAD = [("-l", "3"), ("-l", "1"), ("--handler", "shared"), ("-l", "4")]


def spread(programs: list[Program], which: int) -> list[Program]:
    return programs[which :: len(SPREAD)]


def name(program: Program) -> str:
    return program.name


def brief(findings: list[dict[str, Any]]) -> str:
    return "\n".join(f"{item['kind']}: {item['message']} {item['sites']}" for item in findings)


def found_as_planted(checked: Checked) -> None:
    """Insist on one finding that tells threads, objects and lines, and on no other accusation."""
    program, findings, came = checked.program, checked.findings, checked.came
    expected = program.expected
    assert expected
    assert checked.status == 1, f"{program.name}: nothing found"
    threads = {came.threads[thread] for thread in expected.threads}
    objects = {came.objects[name] for name in expected.objects}
    lines = [f"({program.source.name}:{line})" for line in expected.lines]
    if program.source.suffix == ".cc" and not any(
        f"({program.source.name}:" in site for item in findings for site in item["sites"]
    ):
        lines = []  # the call stands in a header of the library, which was inlined
    said = [
        item
        for item in findings
        if item["kind"] in expected.kinds
        and threads <= set(item["threads"])
        and objects <= set(item["objects"])
        and all(any(line in site for site in item["sites"]) for line in lines)
    ]
    assert said, (
        f"{program.name}: expected {expected.kinds} of {threads}, {objects}, {lines}; "
        f"found {findings}"
    )
    others = [
        item
        for item in findings
        if item["kind"] not in expected.kinds and item["kind"] not in program.also
    ]
    assert not others, f"{program.name}: {brief(others)}"


def test_the_corpus_is_as_large_as_it_is_to_be() -> None:
    kinds = Counter(program.source.parent.name for program in PLANTED)
    assert set(kinds) == set(KINDS)
    assert min(kinds.values()) >= 2
    assert len(CORRECT) >= 45


@pytest.mark.parametrize("program", PLANTED, ids=name)
def test_planted(program: Program, checked: Checker) -> None:
    found_as_planted(checked(program))


@pytest.mark.parametrize("program", CORRECT, ids=name)
def test_correct(program: Program, checked: Checker) -> None:
    came = checked(program)
    assert not came.findings, brief(came.findings)
    assert came.status == 0


@pytest.mark.parametrize("program", spread(PLANTED, 0), ids=name)
def test_planted_at_level_3(program: Program, checked: Checker) -> None:
    found_as_planted(checked(program, "-l", "3"))


@pytest.mark.parametrize("program", spread(PLANTED, 1), ids=name)
def test_planted_by_the_shared_handler(program: Program, checked: Checker) -> None:
    found_as_planted(checked(program, "--handler", "shared"))


@pytest.mark.parametrize(
    "program", [item for item in PLANTED if item.name.startswith("deadlock/")][::3], ids=name
)
def test_deadlocks_at_level_1(program: Program, checked: Checker) -> None:
    """Only waits are recorded, with who owned what was waited for."""
    came = checked(program, "-l", "1")
    assert program.expected
    threads = {came.came.threads[thread] for thread in program.expected.threads}
    said = [item for item in came.findings if item["kind"] in program.expected.kinds]
    assert any(threads <= set(item["threads"]) for item in said), brief(came.findings)


@pytest.mark.parametrize(
    ("program", "options"),
    [(program, options) for n, options in enumerate(SPREAD) for program in spread(CORRECT, n)],
    ids=lambda value: value.name if isinstance(value, Program) else " ".join(value),
)
def test_correct_otherwise_recorded(
    program: Program, options: tuple[str, ...], checked: Checker
) -> None:
    came = checked(program, *options)
    assert not came.findings, brief(came.findings)
