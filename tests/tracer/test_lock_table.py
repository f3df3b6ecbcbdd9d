"""The finding for each kind of lock: docs/reference/lock-table.md, row by row."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

import nptltrace
from tests.support import ROOT

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Ptt


def _gcc() -> int:
    """Return the version of GCC; 0 if there is none."""
    if shutil.which("g++") is None:
        return 0
    done = subprocess.run(["g++", "-dumpversion"], capture_output=True, text=True, check=True)
    return int(done.stdout.partition(".")[0])


PROGRAMS = ROOT / "tests" / "programs"
TABLE = PROGRAMS / "lock_table"
_CC = (
    "gcc",
    "-O1",
    "-g",
    "-pthread",
    PROGRAMS / "library_locks.c",
    "-o",
    "locks",
    "-Wl,--no-as-needed",
)
_CXX = ("g++", "-std=c++20", "-O1", "-g", "-pthread", TABLE / "locks.cc", "-o", "locks")
_OMP = ("-fopenmp", "-O1", "-g", PROGRAMS / "openmp.c")
_OMP_LINE = " ".join(map(str, _OMP))
_LINK = "gcc openmp.o -o locks -l:libomp.so.5"  # Debian's Clang has no link name for the library
_CARGO = ("sh", "-c", f"cp -r {TABLE}/parking_lot/. {TABLE}/locks.rs . && cargo build -q --offline")
# Since GCC 16, a semaphore's acquire() is inlined completely into its caller.
_NOT_INLINED = ("-O0",) if _gcc() >= 16 else ()
_RUBY = (
    ("ruby", "-e", 'exit(RbConfig::CONFIG["ENABLE_SHARED"] == "yes")'),
    ("ruby", TABLE / "locks.rb"),
)
_PYTHON = (sys.executable, TABLE / "locks.py")
# How the programs of a row are built, and the command that runs them.
BUILT: dict[str, tuple[tuple[str | Path, ...], tuple[str | Path, ...]]] = {
    "C": (_CC, ("./locks",)),
    "C++ `std::mutex`": (_CXX, ("./locks",)),
    "C++20 `std::counting_semaphore`": ((*_CXX, *_NOT_INLINED, "-DSEMAPHORE"), ("./locks",)),
    "Boost": ((*_CXX, "-DBOOST", "-lboost_thread"), ("./locks",)),
    "Abseil": ((*_CXX, "-DABSL", "-labsl_synchronization"), ("./locks",)),
    "TBB": ((*_CXX, "-DTBB", "-ltbb"), ("./locks",)),
    "Rust `std::sync`": (("rustc", "-O", "-g", TABLE / "locks.rs", "-o", "locks"), ("./locks",)),
    "Rust `parking_lot`": (_CARGO, ("./target/debug/locks",)),
    "GLib": ((*_CC, "-DGLIB", "-l:libglib-2.0.so.0"), ("./locks",)),
    "Qt 5": ((*_CC, "-DQT", "-l:libQt5Core.so.5"), ("./locks",)),
    "OpenMP locks of GCC": ((*_CC, "-DOMP", "-l:libgomp.so.1"), ("./locks",)),
    "OpenMP locks of Clang": ((*_CC, "-DOMP", "-l:libomp.so.5"), ("./locks",)),
    "OpenMP regions of GCC": (("gcc", *_OMP, "-o", "locks"), ("./locks",)),
    "OpenMP regions of Clang": (("sh", "-c", f"clang {_OMP_LINE} -c && {_LINK}"), ("./locks",)),
    "Python to 3.12": (("true" if sys.version_info < (3, 13) else "false",), _PYTHON),
    "Python from 3.13 on": (("true" if sys.version_info >= (3, 13) else "false",), _PYTHON),
    "Java monitors": (("javac", "-d", ".", TABLE / "Locks.java"), ("java", "-cp", ".", "Locks")),
    "Ruby `Mutex`": _RUBY,
    "Ruby `Monitor`": _RUBY,
    "Go, locks of its C": (("go", "build", "-o", "locks", TABLE / "cgo/locks.go"), ("./locks",)),
}
BUILT["Java `ReentrantLock`"] = BUILT["Java monitors"]
PAGE = (ROOT / "docs" / "reference" / "lock-table.md").read_text(encoding="utf-8")
ROWS = [
    [cell.strip() for cell in line.split("|")[1:-1]] for line in PAGE.splitlines() if "|" in line
]
CELLS = [
    (row[0], what, cell)
    for row in ROWS[2:]
    for what, cell in zip(("deadlock", "orders", "contend", "pool"), row[1:], strict=True)
    if cell != "–"
]
# A Java machine starts slowly, and its unknown cells are the same for all programs.
CELLS = [
    cell
    for cell in CELLS
    if not cell[0].startswith("Java") or "found" in cell or cell[1] == "deadlock"
]
FINDINGS = {"deadlock": {"deadlock", "stuck"}, "orders": {"lock-order-inversion"}}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path | None]:
    """Directories by row, built when needed; None if the row cannot be built here."""
    known: dict[str, Path | None] = {}
    made: dict[tuple[str | Path, ...], Path | None] = {}
    for row, (command, _) in BUILT.items():
        if command not in made:
            made[command] = _build(command, tmp_path_factory.mktemp("row"))
        known[row] = made[command]
    return known


def _build(command: tuple[str | Path, ...], place: Path) -> Path | None:
    if shutil.which(str(command[0])) is None:
        return None
    done = subprocess.run(command, cwd=place, capture_output=True, check=False)
    return None if done.returncode else place


def _run(row: str, what: str, built: dict[str, Path | None], ptt: Ptt) -> tuple[Any, Any, int]:
    """Record a program; return its report, its findings, and its own measure of its wait."""
    place = built[row]
    if place is None:
        pytest.skip(f"{BUILT[row][0][0]} builds nothing of this here")
    more = ("locks",) if "Reentrant" in row or row == "Ruby `Monitor`" else ()
    trace = place / f"{what}.ptt"
    command = (*BUILT[row][1], what, *more)
    # a signal may end a deadlock
    done = ptt("record", "--force", "-o", trace, "--", *command, cwd=place, status=None)
    assert done.returncode in ({0, 128 + signal.SIGALRM} if what == "deadlock" else {0})
    with nptltrace.open(trace) as run:
        return run.report(), run.check(), int(done.stdout.strip() or 0)


def _is_found(what: str, report: Any, check: Any, truth_ns: int) -> bool:
    if what in FINDINGS:
        return not FINDINGS[what].isdisjoint(finding["kind"] for finding in check["findings"])
    if what == "contend":
        longest = max((row["wait_max_ns"] for row in report["objects"]), default=0)
        return bool(abs(longest - truth_ns) <= truth_ns / 10)
    longest = max((row["wait_max_ns"] for row in report["objects"]), default=0)
    return bool(report["idle_ns"] > longest and not report["unknown_waits"])


@pytest.mark.usefixtures("native_in_process")
@pytest.mark.parametrize(("row", "what", "cell"), CELLS)
def test_each_cell_of_the_table_is_right(
    row: str, what: str, cell: str, built: dict[str, Path | None], ptt: Ptt
) -> None:
    report, check, truth_ns = _run(row, what, built, ptt)
    assert _is_found(what, report, check, truth_ns) == (cell == "found")
    if cell == "unknown":
        # then the text says "in what is covered"
        assert what in FINDINGS or report["unknown_waits"] or report["uncovered"]
        assert check["futex_waits"] or check["uncovered"]


@pytest.mark.usefixtures("native_in_process")
@pytest.mark.parametrize("row", BUILT)
def test_correct_programs_have_no_findings(
    row: str, built: dict[str, Path | None], ptt: Ptt
) -> None:
    _, check, _ = _run(row, "correct", built, ptt)
    assert check["findings"] == []
