"""Ruby's mutexes: jumps leave their functions."""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

import nptltrace
from tests.support import ROOT

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Ptt

PROGRAMS = ROOT / "tests" / "programs" / "ruby"


def _has_shared_library() -> bool:
    """Return whether other modules can interpose the functions of this Ruby."""
    if shutil.which("ruby") is None:
        return False
    ask = 'exit(RbConfig::CONFIG["ENABLE_SHARED"] == "yes" && RUBY_VERSION >= "3.1")'
    return subprocess.run(["ruby", "-e", ask], check=False).returncode == 0


pytestmark = pytest.mark.skipif(not _has_shared_library(), reason="needs a shared libruby")


def _record(ptt: Ptt, trace: Path, program: str, *arguments: str) -> tuple[Any, Any]:
    """Record a program, which must print the same as untraced; return report and check."""
    command = ["ruby", str(PROGRAMS / program), *arguments]
    plain = subprocess.run(command, capture_output=True, text=True, check=True)
    done = ptt("record", "-q", "-o", trace, "--", *command)
    assert (done.stdout, done.stderr) == (plain.stdout, plain.stderr)
    ptt("verify", trace)
    with nptltrace.open(trace) as run:
        return run.report(), run.check()


def test_a_mutex_is_released_however_its_block_is_left(ptt: Ptt, tmp_path: Path) -> None:
    report, check = _record(ptt, tmp_path / "t", "mutexes.rb")
    assert [finding for finding in check["findings"] if finding["kind"] != "sleeping-holder"] == []
    locks = [row for row in report["objects"] if row["kind"] == "ruby-mutex"]
    assert sum(lock["cancelled_waits"] for lock in locks) >= 3
    assert any(
        "libruby" in gap["module"] and "global lock" in gap["why"] for gap in check["uncovered"]
    )


def test_locking_a_held_mutex_again_is_refused(ptt: Ptt, tmp_path: Path) -> None:
    _, check = _record(ptt, tmp_path / "t", "mutexes.rb", "again")
    findings = [finding for finding in check["findings"] if finding["kind"] == "self-deadlock"]
    assert [(finding["severity"], finding["count"]) for finding in findings] == [("warning", 2)]


def test_fibers_lock_for_themselves(ptt: Ptt, tmp_path: Path) -> None:
    report, check = _record(ptt, tmp_path / "t", "fibers.rb")
    assert [finding for finding in check["findings"] if finding["kind"] != "sleeping-holder"] == []
    locks = [row for row in report["objects"] if row["kind"] == "ruby-mutex"]
    assert max(lock["holds"] for lock in locks) >= 24


def test_attaching_leaves_older_locks_alone(ptt: Ptt, tmp_path: Path) -> None:
    """Locks already in Ruby's tables stay as they are, and are not covered."""
    threads = (
        "4.times { Thread.new { loop { m.lock; m.sleep(0.0005); m.unlock; m.synchronize { } } } }"
    )
    program = f"$stdout.sync = true; m = Mutex.new; {threads}; puts 1; sleep"
    running = subprocess.Popen(["ruby", "-e", program], stdout=subprocess.PIPE)
    try:
        assert running.stdout
        running.stdout.readline()
        trace = tmp_path / "t"
        ptt("attach", "-q", "--for", "0.3", "-o", trace, str(running.pid))
        check = json.loads(ptt("check", "--format", "json", trace).stdout)
    finally:
        running.kill()
        running.communicate()
    assert check["findings"] == []
    assert any("locks" in gap["why"] for gap in check["uncovered"] if "libruby" in gap["module"])
