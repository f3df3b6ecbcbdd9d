"""`ptt confirm`: deadlocks that ordinary runs do not show, and lock orders that cannot deadlock."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

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


@pytest.mark.parametrize(
    "words",
    [
        [], ["--candidate", "1", "--file", "f", "--", "true"], ["--list", "--file", "f"],
        ["--runs", "0", "TRACE", "--", "true"], ["TRACE"],
        ["--candidate", "9", "TRACE", "--", "true"], ["--list", "TRACE", "--", "true"],
        ["TRACE", "--", "no-such-program"],
    ],
)  # fmt: skip
def test_wrong_usage_is_refused(ptt: Ptt, traced: Callable[[str], Path], words: list[str]) -> None:
    words = [str(traced("gated")) if word == "TRACE" else word for word in words]
    status = 127 if "no-such-program" in words else 2
    assert ptt("confirm", *words, status=status).stderr.startswith("ptt: error: ")
