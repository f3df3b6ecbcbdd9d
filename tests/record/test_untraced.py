"""Untraced programs, and processes without events: the trace says so, and check does not pass."""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.support import small_file_system

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Compiler, Ptt

FORKS = """
import os, sys
for _ in range(20):
    if os.fork() == 0:
        os.execv(sys.argv[1], sys.argv[1:])
while True:
    try:
        os.wait()
    except ChildProcessError:
        break
"""
STATIC = (
    "#include <unistd.h>\nint main(int n, char **v) { usleep(n > 1 ? 400000 : 0); return 0; }\n"
)
IDLE = """
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
static void *sleepy(void *unused)
{
    for (;;)
        poll(NULL, 0, 50);
    return unused;
}
int main(void)
{
    pthread_t thread;

    for (int i = 0; i < 3; i++)
        pthread_create(&thread, NULL, sleepy, NULL);
    puts("ready");
    fflush(stdout);
    sleepy(NULL);
}
"""


def said(ptt: Ptt, trace: Path) -> list[tuple[str, str]]:
    """Return the parts that `ptt check` calls not covered; `report` and `stat` must agree."""
    gaps = json.loads(ptt("check", "--format", "json", trace).stdout)["uncovered"]
    for command in ("check", "report", "stat") if gaps else ():
        text = " ".join(ptt(command, trace).stdout.split())
        for item in gaps:
            assert item["why"] in text
        assert not text.endswith("nothing found")
    return [(item["module"].rpartition("/")[2], item["why"]) for item in gaps]


def test_untraced_programs_are_reported(
    ptt: Ptt, compile_c: Compiler, trace_dir: Path, tmp_path: Path
) -> None:
    try:
        program = compile_c(STATIC, "-static", name="still")
    except AssertionError:
        pytest.skip("no static C library")
    script = tmp_path / "forks.py"
    script.write_text(FORKS)
    # If a program ended before the recorder looked, only its caller is known.
    for command, expected in (
        (["sh", "-c", f"exec {program} slow"], True),
        ([sys.executable, script, program], True),
        ([sys.executable, script, "/bin/true"], False),
    ):
        ptt("record", "--force", "-q", "-o", trace_dir, "--", *command)
        reasons = [why for _, why in said(ptt, trace_dir) if "untraced" in why]
        assert bool(reasons) is expected, reasons


@pytest.mark.skipif(platform.machine() != "x86_64", reason="attach is for x86-64")
def test_an_attached_process_without_events_is_reported(
    ptt: Ptt, compile_c: Compiler, trace_dir: Path
) -> None:
    with subprocess.Popen([compile_c(IDLE)], stdout=subprocess.PIPE) as process:
        assert process.stdout
        process.stdout.readline()
        ptt("attach", "-q", "--for", "200ms", "-o", trace_dir, str(process.pid))
        process.kill()
    [(module, why)] = said(ptt, trace_dir)
    assert module == f"process {process.pid}"
    assert why.startswith("its 4 threads made no call that PTT records in ")


def test_lost_contention_is_not_reported_as_absent(
    ptt: Ptt, tmp_path: Path, compile_c: Compiler
) -> None:
    program = compile_c(
        "#include <pthread.h>\n#include <unistd.h>\n"
        "static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;\n"
        "int main(void) { for (int i = 0; i < 100000; i++) { pthread_mutex_lock(&m);"
        " pthread_mutex_unlock(&m); } return 0; }\n"
    )
    with small_file_system(tmp_path / "small", "128k") as place:
        ptt("record", "-q", "-o", place / "t.ptt", "--", program)
        first = ptt("report", place / "t.ptt").stdout.splitlines()[1]
    assert "nothing was contended" not in first
    assert "the contention is unknown: " in first
