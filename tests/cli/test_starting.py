"""The start of `ptt`: no idle threads, and recorded programs see no change."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Ptt, Recorder

# The environment without a choice of the user.
UNSET = {"OPENBLAS_NUM_THREADS": None}
PROGRAM = """
import atexit, sys, time
from pathlib import Path
from nptltrace.cli import entry

def threads():
    # A thread has the name of the thread that made it, unless it gets another name.
    names = [path.read_text() for path in Path("/proc/self/task").glob("*/comm")]
    return names.count(Path("/proc/self/comm").read_text())

def report():
    # Python joins a thread a moment before the thread leaves the kernel.
    until = time.monotonic() + 20
    while threads() > 1 and time.monotonic() < until:
        time.sleep(0.01)
    print("numpy" in sys.modules, threads())

atexit.register(report)
entry()
"""


def test_libraries_do_not_start_a_thread_for_each_processor(ptt: Ptt, record: Recorder) -> None:
    trace = record("true")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, "report", trace],
        env=ptt.environment(UNSET), capture_output=True, encoding="utf-8", timeout=60, check=True,
    )  # fmt: skip
    assert done.stdout.splitlines()[-1] == "True 1"


_LIGHT = ("dataclasses", "importlib.resources", "tempfile", "tomllib", "logging", "hashlib")
_NUMPY = ("numpy._core._add_newdocs", "numpy._typing", "numpy.ma", "numpy.f2py", "numpy.testing")


@pytest.mark.parametrize(
    ("command", "unused"),
    [
        (["stat"], ("numpy", "pyarrow", "inspect", *_LIGHT)),
        (["view"], ("numpy", "pyarrow", "inspect", *_LIGHT)),
        (["report"], ("duckdb", "pyarrow", "inspect", "tomllib", "importlib.resources", *_NUMPY)),
        (["check"], ("duckdb", "pyarrow", "tomllib", "hashlib", "importlib.metadata", *_NUMPY)),
    ],
)
def test_a_command_imports_only_modules_that_it_uses(
    ptt: Ptt, record: Recorder, command: list[str], unused: tuple[str, ...]
) -> None:
    """On a small trace, imports of libraries take most of the time of a command."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "nptltrace", *command, record("true")],
        env=ptt.environment(), capture_output=True, encoding="utf-8", timeout=60, check=True,
    )  # fmt: skip
    modules = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "nptltrace.trace.traceset" in modules
    assert modules.isdisjoint(unused)


def test_numpy_loads_its_parts_on_demand(ptt: Ptt) -> None:
    program = """
from nptltrace.cli.imports import import_late

import_late()
import numpy as np
from numpy.typing import ArrayLike, NDArray

print(np.linalg.inv(np.eye(2)).tolist(), NDArray[np.int64])
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=ptt.environment(), capture_output=True, encoding="utf-8", timeout=60, check=True,
    )  # fmt: skip
    assert done.stdout.startswith("[[1.0, 0.0], [0.0, 1.0]] numpy.ndarray[")


_UNUSED = {"pyarrow.dataset", "pyarrow.vendored.docscrape", "concurrent.futures"}


def test_libraries_are_imported_in_part(ptt: Ptt, record: Recorder) -> None:
    trace = str(record("true"))
    for command in (["sql", trace, "from events"], ["export", "--to", "chrome", "-o", "-", trace]):
        done = subprocess.run(
            [sys.executable, "-X", "importtime", "-m", "nptltrace", *command],
            env=ptt.environment(), capture_output=True, encoding="utf-8", timeout=60, check=True,
        )  # fmt: skip
        modules = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
        assert "pyarrow.lib" in modules
        assert modules.isdisjoint(_UNUSED)
        assert not any(name.startswith("pandas.") for name in modules)


def test_a_script_that_imports_pandas_gets_data_frames(ptt: Ptt) -> None:
    program = """
from nptltrace.cli.imports import import_late

import_late()
import pyarrow as pa
table = pa.table({"a": pa.array([1, None])}).to_pandas()
print(type(table).__name__, pa.Table.from_pandas(table)["a"].null_count)
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=ptt.environment(), capture_output=True, encoding="utf-8", timeout=60, check=True,
    )  # fmt: skip
    assert done.stdout == "DataFrame 1\n"


def test_a_script_queries_data_sets_of_arrow(ptt: Ptt) -> None:
    program = """
from nptltrace.cli.imports import import_late

import_late()
import duckdb
import pyarrow as pa
import pyarrow.dataset as ds

table = pa.table({"a": [1, 2, 3]})
connection = duckdb.connect()
for name, source in (
    ("tables", table),
    ("scanners", ds.Scanner.from_batches(table.to_batches(), schema=table.schema)),
    ("sets", ds.dataset(table)),
):
    connection.register(name, source)
    print(connection.sql(f"select sum(a) from {name} where a > 1").fetchall())
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=ptt.environment(), capture_output=True, encoding="utf-8", timeout=60, check=True,
    )  # fmt: skip
    assert done.stdout == "[(5,)]\n" * 3


def test_a_recorded_program_does_not_see_the_limits_on_threads(ptt: Ptt, tmp_path: Path) -> None:
    program = "import os; print(os.environ.get('OPENBLAS_NUM_THREADS'))"
    command = ["record", "-o", str(tmp_path / "run.ptt"), sys.executable, "-c", program]
    said = ptt(*command, env=UNSET).stdout
    assert said.splitlines() == ["None"]


def test_a_command_imports_before_it_starts_threads(ptt: Ptt) -> None:
    """A command imports before it starts threads; two threads must not import one module at
    once."""
    script = """
import sys, threading
from nptltrace.cli.imports import _Late, import_late, import_now
import_late()
import_now()
assert not [name for name, module in sys.modules.items() if isinstance(module, _Late)]
import duckdb, numpy, pyarrow.compute
failed, ready = [], threading.Barrier(8)
def use():
    ready.wait()
    try:
        pyarrow.compute.sort_indices(pyarrow.array([2, 1]))
        numpy.ma.masked_array([1, 2], mask=[0, 1]).sum()
        duckdb.connect().execute("select 1").fetchall()
    except Exception as error:
        failed.append(error)
threads = [threading.Thread(target=use) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert not failed, failed
"""
    subprocess.run([sys.executable, "-c", script], env=ptt.environment(), check=True)
