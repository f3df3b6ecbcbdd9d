"""A wild store of the program may hit the shared buffers; the recorder must survive it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Compiler, Ptt

# Writes random words to a part of the segment: seed, first byte, byte after the last, how many.
PROGRAM = """
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static char *find_segment(void)
{
    char line[512], *begin = NULL;
    FILE *maps = fopen("/proc/self/maps", "r");

    while (!begin && fgets(line, sizeof(line), maps))
        if (strstr(line, "/segment"))
            begin = (char *)strtoul(line, NULL, 16);
    fclose(maps);
    return begin;
}

int main(int argc, char **argv)
{
    char *segment = find_segment();
    long first = atol(argv[2]), size = atol(argv[3]) - first, count = atol(argv[4]);

    if (argc < 5 || !segment)
        return 1;
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
    srand(atoi(argv[1]));
    for (long i = 0; i < count; i++) {
        uint32_t value[] = {UINT32_MAX, 0, (uint32_t)(rand() % 64), (uint32_t)rand()};

        memcpy(segment + first + rand() % (size / 4) * 4, &value[rand() % 4], 4);
        if (i % 50 == 0)
            usleep(500);
    }
    usleep(20000);
    _exit(7);
}
"""
STATUS = 7
HEAD = (16, 384)
TABLES = (384, 600_000)


@pytest.mark.parametrize(
    ("handler", "part", "seed"),
    [
        ("ring", HEAD, 0),
        ("ring", HEAD, 1),
        ("ring", TABLES, 0),
        pytest.param("shared", HEAD, 0, marks=pytest.mark.slow),
        pytest.param("shared", TABLES, 0, marks=pytest.mark.slow),
    ],
)
def test_recorder_survives(  # noqa: PLR0917 -- fixtures
    ptt: Ptt, compile_c: Compiler, tmp_path: Path, handler: str, part: tuple[int, int], seed: int
) -> None:
    """The recorder ends with the program's status, and its trace can be opened."""
    trace = tmp_path / "trace"
    program = compile_c(PROGRAM)
    numbers = [str(number) for number in (seed, *part, 2000)]
    ptt("record", "--handler", handler, "-o", trace, "--", program, *numbers, status=STATUS)
    assert json.loads((trace / "info" / "session.json").read_text())["state"] == "complete"
    ptt("stat", trace)
