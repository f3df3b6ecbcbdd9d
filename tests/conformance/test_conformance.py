"""Every routine with every error that a test can cause: traced results equal untraced results."""

from __future__ import annotations

import json
import re
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.conformance.runs import differences, routines, run_all
from tests.support import ROOT, hooked_functions

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conformance.runs import Came
    from tests.support import Ptt

_SOURCES = ROOT / "tests" / "conformance"
_SUMMARY = re.compile(r"ptt: recorded \d+ events? from .* \((\d+) lost, .*\)")
_LOST = "select coalesce(sum(count), 0) as lost from lost where cause = 'shared_storage'"
# Routines that the tracer hooks and that have no case of their own, with the reason.
_ELSEWHERE = {
    "_exit": "how the children of the cases of fork end",
    "_Exit": "as _exit",
    "__register_atfork": "what pthread_atfork() calls: see the cases of fork",
    "execvpe": "tests/tracer/test_children.py",
    "mlockall": "tests/tracer/test_memory.py",
    **dict.fromkeys(("fcntl", "fcntl64", "lockf", "lockf64"), "tests/tracer/test_file_locks.py"),
    "pidfd_spawn": "tests/tracer/test_children.py",
    "pidfd_spawnp": "tests/tracer/test_children.py",
    "pthread_key_create": "tests/record/test_thread_ends.py",
    "sched_setattr": "as the system call: tests/tracer/test_more_routines.py",
    **dict.fromkeys(("setns", "unshare"), "tests/attach/test_single_thread_calls.py"),
    "tss_create": "as pthread_key_create",
    **dict.fromkeys(
        re.findall(
            r"^HOOK\([^,]+, (\w+),",
            (ROOT / "native" / "tracer" / "real" / "sleeps.def").read_text(encoding="utf-8"),
            re.MULTILINE,
        ),
        "tests/tracer/test_sleeps.py",
    ),
}


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("conformance") / "conformance"
    command = ["gcc", "-std=gnu11", "-O1", "-g", "-Wall", "-Wextra", "-Wshadow", "-Werror"]
    sources = sorted(_SOURCES.glob("*.c"))
    done = subprocess.run(
        [*command, "-pthread", *sources, "-o", output],
        capture_output=True, encoding="utf-8", check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    return output


@pytest.fixture(scope="module")
def plain(program: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Came]:
    place = tmp_path_factory.mktemp("plain")
    first, _ = run_all(program, routines(program), place / "1")
    assert all(came.status == 0 and came.out for came in first.values())
    return first


def test_untraced_runs_are_repeatable(
    plain: dict[str, Came], program: Path, tmp_path: Path
) -> None:
    again, _ = run_all(program, plain, tmp_path / "again")
    assert differences(plain, again) == []


def test_every_hooked_routine_has_cases(plain: dict[str, Came]) -> None:
    hooked = hooked_functions()
    assert len(hooked) > 80
    assert sorted(hooked - set(plain) - set(_ELSEWHERE)) == []
    assert sum(len(came.out) for came in plain.values()) > 450


@pytest.mark.parametrize("how", ["ring 1", "ring 2", "ring 3", "shared 3", "file 3"])
def test_traced_results_equal_untraced_results(
    how: str, plain: dict[str, Came], program: Path, tmp_path: Path, ptt: Ptt
) -> None:
    handler, level = how.split()
    recorder = ptt.command(
        "record", "--handler", handler, "-l", level, "-o", tmp_path / "run.ptt", "--"
    )
    traced, message = run_all(
        program, plain, tmp_path / "traced", before=recorder, env=ptt.environment()
    )
    assert differences(plain, traced) == []
    if handler == "file":  # the shell leaves by _exit() and so has no trace
        assert "ptt: file:" not in message
    else:
        summary = _SUMMARY.fullmatch(message.splitlines()[-1])
        assert summary, message
        # A child in its parent's memory is not recorded; no other event may be lost.
        (row,) = json.loads(ptt("sql", "--format", "json", tmp_path / "run.ptt", _LOST).stdout)
        assert int(summary[1]) == int(row["lost"])


def test_results_are_equal_without_a_handler(
    plain: dict[str, Came], program: Path, tmp_path: Path, native_stage: Path
) -> None:
    library = str(native_stage / "lib" / "libnptltrace.so")
    loaded, message = run_all(program, plain, tmp_path / "loaded", env={"LD_PRELOAD": library})
    assert differences(plain, loaded) == []
    assert message == ""
