"""Processes in their own PID and mount namespaces: other pids, and files invisible outside."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.hang.looking import asleep

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support import Ptt

UNSHARE = ("unshare", "-Ur", "--pid", "--fork", "--mount", "--mount-proc")
# The program lies in a file system that is mounted only in the namespace.
INSIDE = 'mount -t tmpfs none "$1" && cp "$2" "$1/waits" && exec "$1/waits" "$3"'


def may_unshare() -> bool:
    if shutil.which("unshare") is None:
        return False
    return subprocess.run([*UNSHARE, "true"], capture_output=True, check=False).returncode == 0


pytestmark = pytest.mark.skipif(not may_unshare(), reason="no namespaces can be made here")


def inner_process(name: str, parent: int) -> str:
    """Return the outer pid of the program that a process started."""
    until = time.monotonic() + 30
    while time.monotonic() < until:
        children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
        for child in children:
            if Path(f"/proc/{child}/comm").read_text().strip() == name:
                return child
        time.sleep(0.02)
    pytest.fail("the program did not start")


@pytest.mark.parametrize("case", ["mutexes", "ended", "robust", "stuck"])
def test_names_and_owners_are_known_in_another_namespace(
    case: str, ptt: Ptt, program: Callable[[str], Path], tmp_path: Path
) -> None:
    place = tmp_path / "elsewhere"
    place.mkdir()
    source = program("plain")
    command: list[str | Path] = ["sh", "-c", INSIDE, "sh", place, source, case]
    process = subprocess.Popen([*UNSHARE, *command])
    try:
        pid = inner_process("waits", process.pid)
        answer: dict[str, Any] = asleep(ptt, pid, 2 if case == "ended" else 3)
    finally:
        process.kill()
        subprocess.run(["kill", "-9", pid], check=False, stderr=subprocess.DEVNULL)
        process.wait()
    kinds = [finding["kind"] for finding in answer["findings"]]
    expected = {"ended": "exit-holding-lock", "stuck": "stuck"}
    assert kinds == [expected.get(case, "deadlock")]
    ids = {thread["tid"] for thread in answer["threads"]}
    assert int(pid) in ids, json.dumps(answer)
    if case in {"mutexes", "robust"}:
        owners = {t["waits_for"]["owner_tid"] for t in answer["threads"]}
        assert owners <= ids
        assert {t["waits_for"]["name"] for t in answer["threads"]} == {"left", "right", ""}
    assert all("waits.c:" in site for site in answer["findings"][0]["sites"])


@pytest.mark.parametrize("options", [(), ("--mount",), ("--mount", "--pid", "--fork")])
def test_names_are_known_below_another_root(
    options: tuple[str, ...], ptt: Ptt, program: Callable[[str], Path], tmp_path: Path
) -> None:
    """Under another root directory, the kernel's file names differ from the process's names."""
    shutil.copy(program("static"), tmp_path / "waits")
    command = ["unshare", "-Ur", *options, f"--root={tmp_path}", "/waits", "mutexes"]
    process = subprocess.Popen(command)
    pid = str(process.pid)
    try:
        if "--fork" in options:
            pid = inner_process("waits", process.pid)
        answer = asleep(ptt, pid, 3)
    finally:
        process.kill()
        subprocess.run(["kill", "-9", pid], check=False, stderr=subprocess.DEVNULL)
        process.wait()
    assert {t["waits_for"]["name"] for t in answer["threads"]} == {"left", "right", ""}
    assert all("waits.c:" in site for site in answer["findings"][0]["sites"])
