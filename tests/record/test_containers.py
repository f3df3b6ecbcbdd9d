"""Recording in containers works without common features, or one line names the missing feature."""

from __future__ import annotations

import re
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support import Ptt, Result

_ROOT = ["--ro-bind", "/", "/", "--dev", "/dev"]
_PROC = ["--proc", "/proc"]
_SPACES = {
    "read-only root": [*_ROOT, *_PROC],
    "tiny /dev/shm": [*_ROOT, *_PROC, "--size", "65536", "--tmpfs", "/dev/shm"],  # noqa: S108 -- not ours
    "read-only /dev/shm": [*_ROOT, *_PROC, "--tmpfs", "/dev/shm", "--remount-ro", "/dev/shm"],  # noqa: S108 -- not ours
    "own PIDs": [*_ROOT, "--unshare-pid", *_PROC],
    "other user": [*_ROOT, *_PROC, "--unshare-user", "--uid", "1234", "--gid", "1234"],
}


def recorded_in(
    space: list[str], ptt: Ptt, program: Path, place: Path, temporary: str | None = None
) -> Result:
    """Record a program in a container that is read-only except for one directory."""
    bwrap = shutil.which("bwrap")
    if bwrap is None:
        pytest.skip("bubblewrap is not installed")
    enter = [bwrap, *space, "--bind", str(place), str(place), "--chdir", str(place)]
    if subprocess.run([*enter, "true"], capture_output=True, check=False).returncode:
        pytest.skip("containers cannot be made here")
    return subprocess.run(
        [*enter, *ptt.command("record", "-o", "run.ptt", "--", program)],
        env=ptt.environment({"TMPDIR": temporary or str(place)}),
        capture_output=True, encoding="utf-8", check=False, timeout=120,
    )  # fmt: skip


@pytest.mark.parametrize("name", _SPACES)
def test_programs_in_containers_are_recorded(
    name: str, ptt: Ptt, program: Callable[[str], Path], tmp_path: Path
) -> None:
    done = recorded_in(_SPACES[name], ptt, program("mutex_kinds"), tmp_path)
    assert done.returncode == 0, done.stderr
    assert re.search(r"recorded [1-9]\d* events from 1 process, .* \(0 lost", done.stderr)
    assert ptt("verify", tmp_path / "run.ptt").stdout


def test_containers_are_recorded_from_outside(
    ptt: Ptt, program: Callable[[str], Path], tmp_path: Path, trace_dir: Path
) -> None:
    space = [*_SPACES["own PIDs"], "--bind", str(tmp_path), str(tmp_path)]
    # The call skips the test if there are no containers.
    recorded_in(space, ptt, program("sem"), tmp_path)
    with_buffers = ["--bind", "/dev/shm", "/dev/shm"]  # noqa: S108 -- where the recorder's are
    for more, seen, line in (
        (with_buffers, True, ""),
        ([], False, "as in a container with a /dev/shm of its own; the program runs untraced\n"),
    ):
        container = ["bwrap", *space, *more, str(program("sem"))]
        done = ptt("record", "--force", "-l", "3", "-o", trace_dir, "--", *container)
        assert line in done.stderr
        assert ("calls sem_init" in ptt("view", trace_dir).stdout) == seen


def test_no_room_for_buffers_is_reported(
    ptt: Ptt, program: Callable[[str], Path], tmp_path: Path
) -> None:
    space = _SPACES["tiny /dev/shm"]
    done = recorded_in(space, ptt, program("mutex_kinds"), tmp_path, temporary="/nowhere")
    assert done.returncode == 0
    (line,) = done.stderr.splitlines()
    assert line.startswith("ptt: cannot record: ")
    assert line.endswith("the program runs untraced")


def test_missing_proc_is_reported(ptt: Ptt, program: Callable[[str], Path], tmp_path: Path) -> None:
    done = recorded_in([*_ROOT, "--tmpfs", "/proc"], ptt, program("mutex_kinds"), tmp_path)
    assert done.returncode == 0
    assert "/proc is not mounted" in done.stderr
    assert "Traceback" not in done.stderr
