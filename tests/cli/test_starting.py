"""The start of `ptt`: no more threads than are at work, and programs do not notice."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Ptt, Recorder

# As it is unless a user has chosen something.
UNSET = {"OPENBLAS_NUM_THREADS": None}
PROGRAM = """
import atexit, os, sys
from nptltrace.cli import entry

atexit.register(lambda: print("numpy" in sys.modules, len(os.listdir("/proc/self/task"))))
entry()
"""


def test_libraries_start_no_thread_for_each_processor(ptt: Ptt, record: Recorder) -> None:
    trace = record("true")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, "stat", trace],
        env=ptt.environment(UNSET), capture_output=True, encoding="utf-8", timeout=60, check=True,
    )  # fmt: skip
    assert done.stdout.splitlines()[-1] == "True 1"


def test_pandas_is_not_imported_by_what_has_no_use_for_it(ptt: Ptt, record: Recorder) -> None:
    trace = str(record("true"))
    for command in (["sql", trace, "from events"], ["export", "--to", "chrome", "-o", "-", trace]):
        done = subprocess.run(
            [sys.executable, "-X", "importtime", "-m", "nptltrace", *command],
            env=ptt.environment(), capture_output=True, encoding="utf-8", timeout=60, check=True,
        )  # fmt: skip
        modules = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
        assert "pyarrow.lib" in modules
        assert not any(name.startswith("pandas.") for name in modules)


def test_what_imports_pandas_itself_gets_its_tables(ptt: Ptt) -> None:
    program = """
from nptltrace.cli.imports import import_pyarrow

import_pyarrow()
import pyarrow as pa
table = pa.table({"a": pa.array([1, None])}).to_pandas()
print(type(table).__name__, pa.Table.from_pandas(table)["a"].null_count)
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=ptt.environment(), capture_output=True, encoding="utf-8", timeout=60, check=True,
    )  # fmt: skip
    assert done.stdout == "DataFrame 1\n"


def test_a_program_does_not_get_what_keeps_them_from_it(ptt: Ptt, tmp_path: Path) -> None:
    program = "import os; print(os.environ.get('OPENBLAS_NUM_THREADS'))"
    command = ["record", "-o", str(tmp_path / "run.ptt"), sys.executable, "-c", program]
    said = ptt(*command, env=UNSET).stdout
    assert said.splitlines() == ["None"]
