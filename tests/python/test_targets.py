"""The variables to which Python programs assign objects, from sources with any contents."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

import pytest

from nptltrace.recording.python_targets import targets_of

if TYPE_CHECKING:
    from pathlib import Path

SOURCE = """\
import threading, queue
lock = threading.Lock()  # for all
named: threading.Lock = threading.Lock()

class Pool:
    @property
    def jobs(
        self,
    ):
        self._lock = Lock()
        self.queues[0] = queue.Queue()
        self.jobs = queue.Queue(int("5"))
        both, more = Lock(), Lock()
        pair = Lock(), Lock()
        inner = wrapped(f(g(x)))
        if not self:
            self.other = collections.deque[int]()
        return Lock()

    def later(self):
        self.late = Lock()
"""


def code(path: Path | str, first: int, function: str) -> list[Any]:
    return [7, 11, first, str(path), function, ""]


def found(path: Path | str, first: int, function: str) -> list[list[Any]]:
    return targets_of([code(path, first, function)], time.time_ns() + 10**9)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "app.py"
    path.write_text(SOURCE)
    return path


def test_only_lines_of_the_function_count(source: Path) -> None:
    assert found(source, 6, "Pool.jobs") == [
        [7, 10, "Pool._lock", "Lock"],
        [7, 12, "Pool.jobs", "Queue"],
        [7, 17, "Pool.other", "deque"],
    ]
    # Before 3.11, PTT finds the class of the function in the source.
    for function in ("Pool.later", "later"):
        assert found(source, 20, function) == [[7, 21, "Pool.late", "Lock"]]


def test_all_lines_of_a_module_count(source: Path) -> None:
    assert [row[1:] for row in found(source, 1, "<module>")][:2] == [
        [2, "app.lock", "Lock"],
        [3, "app.named", "Lock"],
    ]


def test_lines_are_counted_as_in_the_compiler(tmp_path: Path) -> None:
    path = tmp_path / "__init__.py"
    path.write_bytes(b"import threading\r\n\x0c\r\na = threading.Lock()\rb = threading.Lock()\n")
    of = path.parent.name
    assert [row[1:3] for row in found(path, 1, "<module>")] == [[3, f"{of}.a"], [4, f"{of}.b"]]


def test_a_source_that_has_changed_is_not_used(source: Path) -> None:
    began_ns = time.time_ns() - 10**9
    # Unpacked and copied files keep their old modification times.
    os.utime(source, (1, 1))
    assert not targets_of([code(source, 1, "<module>")], began_ns)


@pytest.mark.parametrize("first", [-1, 0, 10**9])
def test_missing_lines_have_no_target(source: Path, first: int) -> None:
    assert not found(source, first, "f")


def test_files_that_are_not_sources_have_no_target(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    binary = tmp_path / "binary.py"
    binary.write_bytes(bytes(range(256)) * 100 + b"\nx = Lock(" + b"(" * 100_000)
    for path in (pipe, tmp_path, tmp_path / "none.py", "<string>", "relative.py", binary):
        assert not found(path, 1, "<module>")
