"""`ptt confirm`: deadlocks that ordinary runs do not show, and lock orders that cannot deadlock."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from nptltrace.confirm import confirming
from nptltrace.confirm.candidates import Candidate, Place, Role
from nptltrace.confirm.plan import Delays, Plan
from nptltrace.confirm.steered_run import run_steered
from nptltrace.confirm.steps import Steps
from nptltrace.errors import PttError
from tests.support import ALL, Compiler

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support import Ptt

LATENT = Path(__file__).parent.parent / "programs" / "latent.c"


@pytest.fixture(scope="module")
def latent(tmp_path_factory: pytest.TempPathFactory, native_stage: Path) -> Path:
    """The program, with a build-id."""
    folder = tmp_path_factory.mktemp("latent")
    return Compiler(folder, native_stage / "include")(LATENT)


@pytest.fixture(scope="module")
def traced(
    latent: Path, tmp_path_factory: pytest.TempPathFactory, native_stage: Path
) -> Callable[[str], Path]:
    """Traces of ordinary runs by mode, each recorded once."""
    from tests.support import Ptt as Runner

    folder = tmp_path_factory.mktemp("ordinary")

    def trace(mode: str) -> Path:
        place = folder / f"{mode}.ptt"
        if not place.exists():
            ran = Runner(native_stage)("record", "-q", "-o", place, "--", latent, mode)
            assert ran.stdout == "done\n" or mode == "shared"
        return place

    return trace


def confirmed(ptt: Ptt, trace: Path, *command: str | Path, **wanted: Any) -> dict[str, Any]:
    """Confirm the warnings of a trace, and return the only candidate's result."""
    runs = wanted.pop("runs", 6)
    ran = ptt(
        "confirm", "--format", "json", "--runs", str(runs), trace, "--", *command,
        cwd=trace.parent, **wanted,
    )  # fmt: skip
    (candidate,) = json.loads(ran.stdout)["candidates"]
    result: dict[str, Any] = candidate
    return result


@pytest.mark.alone
@pytest.mark.parametrize(
    "mode",
    ["two", "c11", "shared", *(["three", "four", "rwlocks", "mixed", "many", "retaken"] * ALL)],
)
def test_a_latent_deadlock_is_confirmed(
    ptt: Ptt, latent: Path, traced: Callable[[str], Path], mode: str
) -> None:
    trace = traced(mode)
    result = confirmed(ptt, trace, latent, mode, status=1)
    assert result["outcome"] == "confirmed"
    assert result["findings"][0]["kind"] == "deadlock"
    # In these modes, the threads use the same call sites.
    assert result["met"] or mode not in {"c11", "rwlocks"}
    checked = ptt("check", "--kind", "deadlock", trace.parent / result["trace"], status=1)
    assert "error: deadlock" in checked.stdout


@pytest.mark.alone
@pytest.mark.parametrize("mode", ["flagged", *(["counted"] * ALL)])
def test_lock_orders_that_the_trace_cannot_exclude_are_refuted(
    ptt: Ptt, latent: Path, traced: Callable[[str], Path], mode: str
) -> None:
    result = confirmed(ptt, traced(mode), latent, mode, runs=2)
    assert result["outcome"] == "refuted"
    assert result["runs"] == 2
    assert result["met"] == 0
    assert not result["findings"]


@pytest.mark.alone
@pytest.mark.parametrize("mode", ["early", "careful"])
def test_only_a_wait_without_a_condition_loses_its_signal(
    ptt: Ptt, latent: Path, traced: Callable[[str], Path], mode: str
) -> None:
    lost, trace = mode == "early", traced(mode)
    words = ["--kind", "lost-wakeup", "--format", "json", "--runs", "6" if lost else "2"]
    ran = ptt("confirm", *words, trace, "--", latent, mode, cwd=trace.parent, status=int(lost))
    (candidate,) = json.loads(ran.stdout)["candidates"]
    assert candidate["outcome"] == ("confirmed" if lost else "refuted")
    # In both programs, the signal came first.
    assert candidate["met"] >= 1
    assert [f["kind"] for f in candidate["findings"]][:1] == ["lost-wakeup"] * lost


@pytest.mark.parametrize(
    ("mode", "reason"),
    [("gated", "hold another lock in common"), ("joined", "one after the other")],
)
def test_lock_orders_that_cannot_deadlock_are_no_candidates(
    ptt: Ptt, latent: Path, traced: Callable[[str], Path], mode: str, reason: str
) -> None:
    trace = traced(mode)
    listed = " ".join(ptt("confirm", "--list", trace).stdout.split())
    assert "cannot happen: " in listed
    assert reason in listed
    ran = ptt("confirm", "--format", "json", trace, "--", latent, mode)
    assert json.loads(ran.stdout) == {"candidates": []}


def test_a_lock_over_many_short_holds_is_held(ptt: Ptt, traced: Callable[[str], Path]) -> None:
    listed = " ".join(ptt("confirm", "--list", traced("outer")).stdout.split())
    assert "1 a thread waits with a lock" in listed
    assert "wait_with_outer" in listed
    kind = ("--kind", "lock-order-inversion")
    listed = " ".join(ptt("confirm", "--list", *kind, traced("sem-gated")).stdout.split())
    assert listed.count("threads ask for locks in a cycle") == 1
    assert "cannot happen: the threads hold another lock in common" in listed


@pytest.mark.alone
def test_a_run_that_sleeps_after_a_meeting_is_ended_and_counted(
    ptt: Ptt, latent: Path, traced: Callable[[str], Path]
) -> None:
    trace = traced("careful")
    words = ["--kind", "lost-wakeup", "--runs", "1"]
    ran = ptt("confirm", *words, trace, "--", latent, "resting", cwd=trace.parent)
    said = " ".join(ran.stdout.split())
    assert "1 run was ended because no thread ran after the threads had met" in said


@pytest.mark.alone
def test_a_path_that_runs_do_not_take_is_not_reached(
    ptt: Ptt, latent: Path, traced: Callable[[str], Path]
) -> None:
    result = confirmed(ptt, traced("two"), latent, "else", runs=1)
    assert result["outcome"] == "not-reached"
    assert all("one_first" in site for site in result["missed"])


@pytest.mark.alone
def test_a_signal_handler_is_not_held_back(
    ptt: Ptt, latent: Path, traced: Callable[[str], Path]
) -> None:
    result = confirmed(ptt, traced("handler"), latent, "handler", runs=1)
    # Its partner waits for it in vain.
    assert result["outcome"] == "refuted"
    assert result["met"] == 0
    trace = traced("handler")
    words = ("--runs", "1", trace, "--", latent, "handler")
    said = ptt("confirm", *words, cwd=trace.parent).stdout
    assert "a thread was not held back: zero_first" in said
    assert "although each" not in said


@pytest.mark.alone
def test_a_file_of_reproduce_shows_the_deadlock_again(
    ptt: Ptt, latent: Path, traced: Callable[[str], Path], tmp_path: Path
) -> None:
    made = ptt("reproduce", "-q", traced("two"), "--", latent, "two", cwd=tmp_path)
    assert made.stdout == f"ptt confirm --file repro.json -- {latent} two\n"
    words = made.stdout.split()[1:]
    shown = ptt(*words, cwd=tmp_path, status=1)
    assert "confirmed in " in shown.stdout
    assert "error: deadlock" in shown.stdout


@pytest.mark.alone
@pytest.mark.skipif(not ALL, reason="runs the program very often")
def test_a_shrunk_file_shows_the_deadlock_with_less_delays(
    ptt: Ptt, latent: Path, traced: Callable[[str], Path], tmp_path: Path
) -> None:
    # Both roles have the same call sites.
    made = ptt("reproduce", "-q", "--shrink", traced("c11"), "--", latent, "c11", cwd=tmp_path)
    plan = json.loads((tmp_path / "repro.json").read_text())
    assert len(plan["held_back"]) == 1
    assert plan["each_ns"] < 100_000_000
    shown = ptt(*made.stdout.split()[1:], cwd=tmp_path, status=1)
    assert "error: deadlock" in shown.stdout


@pytest.mark.parametrize("words", [["-o", "hang.ptt"], ["-o", ".", "--force"], ["-o", "no/file"]])
def test_a_file_that_cannot_be_written_is_refused_first(
    ptt: Ptt, tmp_path: Path, words: list[str]
) -> None:
    ran = ptt("reproduce", *words, "no-trace", "--", "true", cwd=tmp_path, status=2)
    assert ran.stderr.startswith("ptt: error: ")
    assert "no-trace" not in ran.stderr


@pytest.mark.parametrize(
    "text",
    [
        "", "[]", "{}", '{"ptt_reproducer": 2}', "[" * 100_000,
        '{"ptt_reproducer": 1, "candidate": {"kind": "x", "across": false, "roles": []}}',
        '{"ptt_reproducer": 1, "candidate": {"kind": "lost-wakeup", "across": 0, "roles": [1]}}',
    ],
)  # fmt: skip
def test_a_damaged_file_is_refused(ptt: Ptt, latent: Path, tmp_path: Path, text: str) -> None:
    file = tmp_path / "repro.json"
    file.write_text(text)
    ran = ptt("confirm", "--file", file, "--", latent, status=2)
    assert ran.stderr.startswith(f"ptt: error: {file}: no file of ptt reproduce")


def test_hostile_values_in_a_file_are_refused(ptt: Ptt, latent: Path, tmp_path: Path) -> None:
    place = {"build_id": "", "offset": 1, "file": "latent", "text": "t", "python": False}
    strange = {**place, "file": "\ud800"}
    file = tmp_path / "repro.json"
    for asked, held_back in ((strange, [0]), (place, []), (place, [0] * 40), (place, [0, 0])):
        role = {"asked": asked, "held": place, "after": None, "stuck": place, "first": False}
        kind = {"kind": "lock-order-inversion", "across": False, "early": False}
        times = {"each_ns": 1, "total_ns": 1, "early": False}
        document = {"candidate": {**kind, "roles": [role]}, "held_back": held_back, **times}
        file.write_text(json.dumps({"ptt_reproducer": 1, **document}))
        ran = ptt("confirm", "--file", file, "--", latent, status=2)
        assert ran.stderr.startswith(f"ptt: error: {file}: no file of ptt reproduce")
        assert len(ran.stderr.splitlines()) == 1


def test_a_plan_that_nobody_reads_is_an_error(latent: Path, tmp_path: Path) -> None:
    with Plan(tmp_path, Delays(1, 1)) as plan:
        with plan.path.open("r+b") as file:
            file.write(b"other")
        with pytest.raises(PttError, match="no process has read the plan"):
            run_steered([str(latent), "one"], tmp_path / "run.ptt", plan, limit_s=60, say=print)


def test_suspicions_with_the_same_role_are_in_different_plans() -> None:
    a, b, c, d = (Place("", number, "f", "") for number in range(1, 5))
    shared = Role(a, b, None, a)
    waiting = [
        confirming._Pending(Candidate("lock-order-inversion", (first, Role(of, a, None, of))))
        for first, of in ((shared, b), (shared, c), (Role(c, d, None, c), d))
    ]
    groups = confirming._groups(waiting)
    assert groups == [[waiting[0], waiting[2]], [waiting[1]]]


def test_a_search_ends_after_its_steps() -> None:
    said: list[str] = []
    steps = Steps("locks", said.append, most=3)
    assert [*steps.over("ab"), *steps.over("cde"), *steps.over("f")] == ["a", "b", "c"]
    assert said == ["too many locks: not all of them are searched"]


@pytest.mark.parametrize(
    "words",
    [
        [], ["--candidate", "1", "--file", "f", "--", "true"], ["--list", "--file", "f"],
        ["--runs", "0", "TRACE", "--", "true"], ["TRACE"],
        ["--candidate", "9", "TRACE", "--", "true"], ["--list", "TRACE", "--", "true"],
        ["--list", "--runs", "5", "TRACE"], ["--list", "-o", "x", "TRACE"],
        ["TRACE", "--", "no-such-program"],
    ],
)  # fmt: skip
def test_wrong_usage_is_refused(ptt: Ptt, traced: Callable[[str], Path], words: list[str]) -> None:
    words = [str(traced("gated")) if word == "TRACE" else word for word in words]
    status = 127 if "no-such-program" in words else 2
    assert ptt("confirm", *words, status=status).stderr.startswith("ptt: error: ")
