"""The program, or its user, shortens the file of the buffers: `ptt record` goes on."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Compiler, Ptt, Result

# Events; then the file is cut to SIZE bytes, after the recorder's death with a third argument.
PROGRAM = """
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    char line[512], *path = NULL;
    FILE *maps = fopen("/proc/self/maps", "r");
    pid_t recorder = getppid();

    while (!path && fgets(line, sizeof(line), maps))
        if (strstr(line, "/segment"))
            path = strchr(line, '/');
    path[strcspn(path, "\\n")] = '\\0';
    for (int i = 0; i < 5000; i++) {
        pthread_mutex_lock(&mutex);
        pthread_mutex_unlock(&mutex);
    }
    if (argc > 2) {
        kill(recorder, SIGKILL);
        while (getppid() == recorder)
            usleep(1000);
    }
    if (truncate(path, atol(argv[1])))
        return 1;
    _exit(7);
}
"""
STATUS, KILLED = 7, -9
REMARK = "shortened the buffers"


def described(trace: Path) -> tuple[str, bool]:
    facts = json.loads((trace / "info" / "session.json").read_text())
    return facts["state"], facts.get("buffers_shortened", False)


def readable(ptt: Ptt, trace: Path) -> Result:
    ptt("check", trace, status=None)
    stat = ptt("stat", trace)
    assert "no events lost" not in stat.stdout
    return stat


@pytest.mark.parametrize(
    ("handler", "size"), [("ring", 0), ("ring", 4096), ("ring", 3_000_000), ("shared", 4096)]
)
def test_the_recorder_survives_a_shortened_segment(
    ptt: Ptt, compile_c: Compiler, tmp_path: Path, handler: str, size: int
) -> None:
    trace, program = tmp_path / "trace", compile_c(PROGRAM)
    command = ("record", "--handler", handler, "-o", trace, "--", program, str(size))
    done = ptt(*command, status=STATUS)
    assert REMARK in done.stderr
    assert described(trace) == ("recovered", True)
    assert REMARK in readable(ptt, trace).stderr


@pytest.mark.parametrize("size", [0, 200, 4096, 6_000_000])
def test_a_shortened_segment_is_recovered(
    ptt: Ptt, compile_c: Compiler, tmp_path: Path, size: int
) -> None:
    trace, program = tmp_path / "trace", compile_c(PROGRAM)
    ptt("record", "-o", trace, "--", program, str(size), "late", status=KILLED)
    ptt("recover", trace)
    assert described(trace)[0] == "recovered"
    readable(ptt, trace)
    assert "nothing to recover" in ptt("recover", trace).stderr
