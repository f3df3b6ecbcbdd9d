"""Waits for file locks: the waiting call, and the process with the lock if it is traced."""

from __future__ import annotations

import fcntl
import json
import subprocess
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support import ROOT

if TYPE_CHECKING:
    from tests.support import Compiler, Ptt, Recorder

LOCKS = Path("/proc/locks")

PROGRAM = ROOT / "tests" / "programs" / "file_lock.c"


def _report(ptt: Ptt, trace: Path) -> dict[str, Any]:
    report: dict[str, Any] = json.loads(ptt("report", "--format", "json", trace).stdout)
    return report


@pytest.mark.parametrize("how", ["flock", "lockf", "fcntl", "ofd"])
@pytest.mark.parametrize("flags", [(), ("-D_FILE_OFFSET_BITS=64",)], ids=["", "64"])
def test_a_traced_process_is_blamed_for_its_file_lock(
    how: str, flags: tuple[str, ...], compile_c: Compiler, ptt: Ptt, tmp_path: Path
) -> None:
    program, trace = compile_c(PROGRAM, *flags), tmp_path / "run.ptt"
    done = ptt("record", "-o", trace, "--", program, how, tmp_path / "file")
    report = _report(ptt, trace)
    (lock,) = [row for row in report["objects"] if row["kind"] == "file-lock"]
    assert lock["waits"] == 1
    assert lock["wait_max_ns"] == pytest.approx(int(done.stdout), rel=0.1)
    (blamed,) = lock["blamed"]
    assert blamed["site"].startswith(("give_back", "request"))
    parents = {thread["pid"] for thread in report["threads"] if not thread["waits"]}
    assert {blamed["pid"]} == parents
    assert report["unknown_waits"] == 0
    assert json.loads(ptt("check", "--format", "json", trace).stdout)["findings"] == []


def _let_go_when_awaited(path: Path, lock: Any) -> None:
    waiter = "-> FLOCK  ADVISORY  WRITE"
    inode = f":{path.stat().st_ino} "
    for _ in range(3000):
        locks = LOCKS.read_text(encoding="ascii").splitlines()
        if any(waiter in line and inode in line for line in locks):
            break
        time.sleep(0.01)
    time.sleep(0.05)
    fcntl.flock(lock, fcntl.LOCK_UN)


def test_a_file_lock_of_an_untraced_process_blames_no_thread(
    compile_c: Compiler, record: Recorder, ptt: Ptt, tmp_path: Path
) -> None:
    path = tmp_path / "file"
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        other = threading.Thread(target=_let_go_when_awaited, args=(path, lock))
        other.start()
        trace = record(compile_c(PROGRAM), "flock", path, "wait")
        other.join()
    report = _report(ptt, trace)
    (lock_found,) = [row for row in report["objects"] if row["kind"] == "file-lock"]
    assert lock_found["waits"] == 1
    assert lock_found["wait_ns"] > 40_000_000
    # no process of the trace held the lock
    assert [holder["tid"] for holder in lock_found["blamed"]] in ([], [None])
    assert "file-lock" in ptt("report", trace).stdout


def test_calls_are_refused_as_untraced(compile_c: Compiler, record: Recorder) -> None:
    program = compile_c(
        "#include <errno.h>\n#include <fcntl.h>\n#include <sys/file.h>\n#include <unistd.h>\n"
        "int main(void)\n{\n"
        "\terrno = 0;\n"
        "\tif (flock(-1, LOCK_EX) != -1 || errno != EBADF) return 1;\n"
        "\tif (lockf(-1, F_LOCK, 0) != -1 || errno != EBADF) return 2;\n"
        "\tif (fcntl(0, F_SETLKW, (void *)1) != -1 || errno != EFAULT) return 3;\n"
        "\tif (fcntl(-1, F_GETFD) != -1 || errno != EBADF) return 4;\n"
        "\terrno = 7;\n"
        '\tint file = open("refused", O_RDWR | O_CREAT, 0600);\n'
        "\tif (flock(file, LOCK_EX) || flock(file, LOCK_UN) || errno != 7) return 5;\n"
        '\treturn unlink("refused");\n}\n'
    )
    record(program)


CANCELLED = """
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>
static int fd;
static int locks(void)
{
	struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	return HOW;
}
static void *cancelled(void *unused)
{
	pthread_cancel(pthread_self());
	locks();
	return unused;
}
int main(void)
{
	char path[] = "/tmp/cancelled-XXXXXX";
	pthread_t thread;
	void *result;
	fd = mkstemp(path);
	unlink(path);
	pthread_create(&thread, NULL, cancelled, NULL);
	pthread_join(thread, &result);
	return result == PTHREAD_CANCELED;
}
"""


@pytest.mark.parametrize(
    ("how", "cancels"),
    [("fcntl(fd, F_SETLKW, &all)", 1), ("lockf(fd, F_LOCK, 0)", 1), ("flock(fd, LOCK_EX)", 0)],
)
def test_file_lock_calls_act_on_a_pending_cancellation(
    how: str, cancels: int, compile_c: Compiler, ptt: Ptt, tmp_path: Path
) -> None:
    program = compile_c(CANCELLED, f"-DHOW={how}")
    assert subprocess.run([program], check=False).returncode == cancels
    ptt("record", "-o", tmp_path / "run.ptt", "--", program, status=cancels)
