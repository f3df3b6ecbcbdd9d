"""A traced program replaces files of its session directory with other kinds of files."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nptltrace.recording.files.uncovered import futex_modules

if TYPE_CHECKING:
    from tests.support import Ptt, Recorder

# Replaces the files of its own process.
_REPLACES = """
import os, sys, threading
with open("/proc/self/maps") as maps:
    session = os.path.dirname(next(line.split()[-1] for line in maps if "/segment" in line))
for name in sorted(os.listdir(session)):
    if name not in ("segment", "session.json"):
        os.unlink(f"{session}/{name}")
        if sys.argv[1] == "folder":
            os.makedirs(f"{session}/{name}/inner")
        elif sys.argv[1] == "pipe":
            os.mkfifo(f"{session}/{name}")
        else:
            os.truncate(os.open(f"{session}/{name}", os.O_CREAT | os.O_WRONLY), 1 << 38)
thread = threading.Thread(target=int)
thread.start()
thread.join()
"""


def test_modules_that_cannot_be_read_are_listed(tmp_path: Path) -> None:
    pipe, large, code = tmp_path / "pipe.so", tmp_path / "large.so", tmp_path / "code.so"
    os.mkfifo(pipe)
    with large.open("wb") as file:
        file.truncate(1 << 40)
    # The instruction crosses the boundary of two pieces of the file as it is read.
    code.write_bytes(bytes((1 << 20) - 2) + b"\xbf\xca\x00\x00\x00" + b"\x40\x0c\x80\x52")
    plain = tmp_path / "plain.so"
    plain.write_bytes(bytes(1 << 21))
    listed = [pipe, large, code, tmp_path / "gone.so"]
    lines = "".join(f"\tsyscall\t{path}\n" for path in [*listed, plain])
    (tmp_path / "uncovered-1-1").write_text(f"{lines}\tsyscall\ta\0b\n")
    assert futex_modules(tmp_path) == [*map(str, listed), "a\0b"]


def test_other_kinds_of_files_are_passed_over(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "uncovered-1-1")
    (tmp_path / "other").write_text("\tfutex\tlinked.so\n")
    (tmp_path / "uncovered-2-2").symlink_to(tmp_path / "other")
    (tmp_path / "uncovered-3-3").write_text("\tfutex\tlibx.so\n")
    (tmp_path / "uncovered-4-4").mkdir()
    before = len(list(Path("/proc/self/fd").iterdir()))
    assert futex_modules(tmp_path) == ["libx.so"]
    assert len(list(Path("/proc/self/fd").iterdir())) == before


@pytest.mark.parametrize("kind", ["folder", "pipe", "sparse file"])
def test_a_program_may_replace_its_session_files(record: Recorder, ptt: Ptt, kind: str) -> None:
    trace = record(sys.executable, "-c", _REPLACES, kind)
    assert "level 2, recorded" in (text := ptt("stat", trace).stdout)
    assert "killed" not in text
