"""`ptt guard` as the launcher of other people's test runners, and a sample of planted hangs.

`benchmarks/guard.py` judges all planted hangs, and programs that do not hang. The examples of
`docs/how-to/guard-test-suites.md` test ctest and make.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.support import ALL, ROOT

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Ptt

TEST_IN_RUST = """
    extern "C" {
        fn pthread_mutex_lock(mutex: *mut [u64; 8]) -> i32;
    }

    #[test]
    fn takes_twice() {
        let mut stock = [0u64; 8];
        unsafe {
            pthread_mutex_lock(&mut stock);
            pthread_mutex_lock(&mut stock);
        }
    }
"""
PACKAGE = '[package]\nname = "shop"\nversion = "0.1.0"\nedition = "2021"\n'
CODE_IN_GO = """
package shop

/*
#include <pthread.h>

static pthread_mutex_t stock = PTHREAD_MUTEX_INITIALIZER;

static int take(void)
{
	return pthread_mutex_lock(&stock) + pthread_mutex_lock(&stock);
}
*/
import "C"

func take() { C.take() }
"""
TEST_IN_GO = 'package shop\n\nimport "testing"\n\nfunc TestTake(t *testing.T) { take() }\n'


@pytest.fixture
def guard(ptt: Ptt, tmp_path: Path) -> str:
    """The command line of `ptt guard`, as launchers take it."""
    program = tmp_path / "ptt"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m nptltrace "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    return f"{program} guard -o {tmp_path / 'hang'} --then term --"


def run(ptt: Ptt, place: Path, *command: str, **environment: str) -> str:
    """Run a command that fails, and return its error output."""
    done = subprocess.run(
        command, cwd=place, env=ptt.environment({**os.environ, **environment}), check=False,
        capture_output=True, encoding="utf-8", timeout=300,
    )  # fmt: skip
    assert done.returncode != 0, done.stdout
    return done.stderr + done.stdout


@pytest.mark.skipif(not ALL or not shutil.which("cargo"), reason="PTT_TESTS=all, with cargo")
def test_cargo_test(ptt: Ptt, guard: str, tmp_path: Path) -> None:
    (tmp_path / "Cargo.toml").write_text(PACKAGE, encoding="utf-8")
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "lib.rs").write_text(TEST_IN_RUST, encoding="utf-8")
    runner = f"CARGO_TARGET_{platform.machine().upper()}_UNKNOWN_LINUX_GNU_RUNNER"
    said = run(ptt, tmp_path, "cargo", "test", "--offline", "--lib", **{runner: guard})
    assert "ptt: self-deadlock in process" in said
    assert "lib.rs:11" in (tmp_path / "hang" / "stacks.txt").read_text(encoding="utf-8")


@pytest.mark.skipif(not ALL or not shutil.which("go"), reason="PTT_TESTS=all, with Go")
def test_go_test(ptt: Ptt, guard: str, tmp_path: Path) -> None:
    (tmp_path / "go.mod").write_text("module shop\n\ngo 1.19\n", encoding="utf-8")
    (tmp_path / "shop.go").write_text(CODE_IN_GO, encoding="utf-8")
    (tmp_path / "shop_test.go").write_text(TEST_IN_GO, encoding="utf-8")
    said = run(ptt, tmp_path, "go", "test", "-o", "shop.test", "-exec", guard, GOPROXY="off")
    assert "waits for mutex stock, held by thread" in said


def test_planted_hangs_are_reported(tmp_path: Path) -> None:
    """A hang of Python in pytest, as `benchmarks/guard.py` judges it."""
    script = ROOT / "benchmarks" / "guard.py"
    done = subprocess.run(
        [sys.executable, script, "hangs", "-k", "Python: pool", "--way", "pytest", "--limit=60"],
        env={**os.environ, "TMPDIR": str(tmp_path)}, check=False, capture_output=True,
        encoding="utf-8", timeout=200,
    )  # fmt: skip
    assert "1 hangs, 1 reported right" in done.stdout, done.stdout + done.stderr
    assert done.returncode == 0
