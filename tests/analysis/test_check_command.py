"""Output, exit status and options of `ptt check`, also for a program that hangs."""

from __future__ import annotations

import csv
import io
import json
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from tests.analysis.story import A, B, C, Story

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support import Compiler, Ptt


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Return a trace with an order that can deadlock, and the release of a lock that is free."""
    story = Story().create(1, 2).both(1, A, B).both(2, B, A).unlock(1, C)
    return story.write_to(tmp_path / "made.ptt")


def checked(ptt: Ptt, *args: str | Path, status: int = 1) -> list[dict[str, Any]]:
    done = ptt("check", "--format", "json", *args, status=status)
    findings: list[dict[str, Any]] = json.loads(done.stdout)["findings"]
    return findings


def test_json(trace: Path, ptt: Ptt) -> None:
    inversion, unlock = checked(ptt, trace)
    assert inversion["kind"] == "lock-order-inversion"
    assert inversion["severity"] == "warning"
    assert sorted(inversion["threads"]) == [1, 2]
    assert sorted(inversion["objects"]) == [hex(A), hex(B)]
    assert len(inversion["sites"]) == 4
    assert isinstance(inversion["ts_ns"], int)
    assert inversion["message"]
    assert len(inversion["events"]) == 4
    assert set(inversion["events"][0]) == {"ts_ns", "pid", "tid", "text", "site", "stack"}
    assert unlock["kind"] == "unlock-unlocked"
    assert unlock["severity"] == "error"


def test_text_and_csv(trace: Path, ptt: Ptt) -> None:
    text = ptt("check", trace, status=1).stdout
    assert "warning: lock-order-inversion at 0." in text
    assert text.endswith("2 findings: 1 lock-order-inversion, 1 unlock-unlocked\n")
    rows = list(
        csv.DictReader(io.StringIO(ptt("check", "--format", "csv", trace, status=1).stdout))
    )
    assert [row["kind"] for row in rows] == ["lock-order-inversion", "unlock-unlocked"]


def test_nothing_found(tmp_path: Path, ptt: Ptt) -> None:
    trace = Story().create(1).both(1, A, B).write_to(tmp_path / "made.ptt")
    assert ptt("check", trace).stdout == f"{trace}: nothing found\n"
    assert checked(ptt, trace, status=0) == []


def test_a_choice_of_kinds(trace: Path, ptt: Ptt) -> None:
    assert [f["kind"] for f in checked(ptt, "--kind", "unlock-unlocked, deadlock", trace)] == [
        "unlock-unlocked"
    ]
    assert checked(ptt, "--kind", "deadlock", trace, status=0) == []


@pytest.mark.parametrize(
    ("ignored", "left"),
    [
        (["lock-order-inversion"], ["unlock-unlocked"]),
        (["lock-order-inversion:nowhere"], ["lock-order-inversion", "unlock-unlocked"]),
        ([f"*:{C:#x}"], ["lock-order-inversion"]),
        ([f"unlock-unlocked:{C:#x}", "lock-order-inversion"], []),
        (["*"], []),
    ],
)
def test_ignored_findings_are_left_out(
    trace: Path, ptt: Ptt, ignored: list[str], left: list[str]
) -> None:
    options = [word for rule in ignored for word in ("--ignore", rule)]
    assert [f["kind"] for f in checked(ptt, *options, trace, status=bool(left))] == left


def test_suppressions(trace: Path, tmp_path: Path, ptt: Ptt) -> None:
    rules = tmp_path / "known.txt"
    rules.write_text("# known\n\n  lock-order-inversion\n*:0x404080\n")
    assert checked(ptt, "--suppressions", rules, trace, status=0) == []
    rules.write_text("lock-order-inversion\n*:0x404080\nthread-leak\n*:libold.so\n")
    done = ptt("check", "--suppressions", rules, trace)
    assert done.stderr == "ptt: no finding matches *:libold.so\n"


def test_suspects(tmp_path: Path, ptt: Ptt) -> None:
    heap, other = 0x7F0000000040, 0x7F0000000080
    story = Story().create(1, 2).both(1, heap, other).both(2, other, heap)
    trace = story.write_to(tmp_path / "made.ptt")
    done = ptt("check", trace)
    assert "1 possible finding" in done.stderr
    assert [f["kind"] for f in checked(ptt, "--suspects", trace)] == ["lock-order-inversion"]


@pytest.mark.parametrize(
    ("args", "error"),
    [
        (["--kind", "dead-lock"], "there is no kind 'dead-lock'"),
        (["--ignore", "deadlocks:foo"], "there is no kind 'deadlocks'"),
        (["--suppressions", "missing.txt"], "missing.txt: No such file"),
        (["--long-hold", "soon"], "is not a duration"),
    ],
)
def test_wrong_usage(trace: Path, ptt: Ptt, args: list[str], error: str) -> None:
    done = ptt("check", *args, trace, status=2)
    assert error in done.stderr
    assert "Traceback" not in done.stderr


def test_missing_events_are_reported(tmp_path: Path, ptt: Ptt) -> None:
    story = Story().create(1).unlock(1, C)
    story.discarded = 2
    done = ptt("check", story.write_to(tmp_path / "made.ptt"))
    assert "events are missing" in done.stderr
    assert "nothing found" in done.stdout


def test_locks_of_others_are_reported(
    program: Callable[[str], Path], ptt: Ptt, tmp_path: Path
) -> None:
    run = tmp_path / "run.ptt"
    ptt("record", "-o", run, "--", program("futex"), status=None)
    text = " ".join(ptt("check", run).stdout.split())
    assert "not covered: " in text
    assert "for futexes of no lock that is known" in text


@pytest.mark.parametrize(
    ("unwinding", "call", "listed"),
    [
        ("GetLanguageSpecificData", "SYS_futex", True),
        ("GetLanguageSpecificData", "SYS_getpid", False),
        ("DeleteException", "SYS_futex", False),
    ],
)
def test_modules_that_may_have_locks_of_others(
    ptt: Ptt, compile_c: Compiler, tmp_path: Path, unwinding: str, call: str, *, listed: bool
) -> None:
    """Rust's panic tables and futex calls are signs; unwinding, as LuaJIT does it, is no sign."""
    text = f"""
    #include <sys/syscall.h>
    extern long syscall(long, ...);
    extern void _Unwind_{unwinding}(void *);
    int main(int argc, char **argv)
    {{
        if (argc > 2)
            _Unwind_{unwinding}(argv);
        return syscall({call}, 0, 1) < -1;
    }}
    """
    run = tmp_path / "run.ptt"
    ptt("record", "-o", run, "--", compile_c(text))
    assert ("may have locks of Rust or C++20" in ptt("check", run).stdout) is listed


def test_findings_from_the_package(trace: Path) -> None:
    import nptltrace

    kinds = nptltrace.open(trace).findings()["kind"].to_pylist()
    assert sorted(kinds) == ["lock-order-inversion", "unlock-unlocked"]


# ---- programs that hang ----


def test_a_program_that_was_killed_while_it_hung(
    program: Callable[[str], Path], tmp_path: Path, ptt: Ptt
) -> None:
    trace = tmp_path / "hang.ptt"
    command = ptt.command("record", "-q", "-o", trace, "--", program("deadlock"))
    with subprocess.Popen(command, env=ptt.environment(), stdout=subprocess.PIPE) as recorder:
        while not (trace / "info" / "processes.jsonl").exists():
            assert recorder.poll() is None
        with subprocess.Popen(
            ptt.command("check", "--follow", trace), env=ptt.environment(),
            stdout=subprocess.PIPE, encoding="utf-8",
        ) as follower:  # fmt: skip
            assert follower.stdout
            # It reports the deadlock while the program still hangs.
            while "deadlock" not in (line := follower.stdout.readline()):
                assert line
            assert recorder.poll() is None
            recorder.terminate()
            assert "deadlock" in follower.stdout.read()
            assert follower.wait(timeout=60) == 1
        recorder.wait(timeout=60)
    assert "deadlock" in [f["kind"] for f in checked(ptt, trace)]
