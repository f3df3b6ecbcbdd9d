"""Locks of the C library's streams: the stream, and the holder."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.hang.looking import asleep, running

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support import Ptt

PROGRAM = """
    #define _GNU_SOURCE
    #include <pthread.h>
    #include <stdio.h>
    #include <stdlib.h>
    #include <unistd.h>
    static FILE *opened;
    static pthread_barrier_t both;
    static void *reads(void *stream)
    {
        char line[80];
        fgets(line, sizeof(line), stream);
        return 0;
    }
    static void *keeps(void *unused)
    {
        flockfile(opened);
        pthread_barrier_wait(&both);
        for (;;)
            pause();
    }
    static void *writes(void *unused)
    {
        fputs("more", opened);
        return 0;
    }
    int main(void)
    {
        pthread_t thread;
        int ends[2];
        opened = tmpfile();
        pthread_barrier_init(&both, 0, 2);
        if (pipe(ends) || dup2(ends[0], 0))
            abort();
        pthread_create(&thread, 0, keeps, 0);
        pthread_setname_np(thread, "keeps");
        pthread_barrier_wait(&both);
        pthread_create(&thread, 0, writes, 0);
        pthread_setname_np(thread, "writes");
        pthread_create(&thread, 0, reads, stdin);
        pthread_setname_np(thread, "reads");
        usleep(100000);
        ungetc('a', stdin);
    }
"""


@pytest.mark.parametrize("flags", [(), ("-static",)], ids=["dynamic", "static"])
def test_a_stream_has_a_name_and_a_holder(
    flags: tuple[str, ...], ptt: Ptt, compile_c: Callable[..., Path]
) -> None:
    program = compile_c(PROGRAM, "-g", *flags)
    with running(program) as pid:
        answer = asleep(ptt, pid, 4)
    tids = {thread["name"]: thread["tid"] for thread in answer["threads"]}
    waits = {
        thread["tid"]: thread["waits_for"]
        for thread in answer["threads"]
        if thread["waits_for"]["kind"] == "stream"
    }
    assert {tid: (wait["name"], wait["owner_tid"]) for tid, wait in waits.items()} == {
        int(pid): ("stdin", tids["reads"]), tids["writes"]: ("of fd 3", tids["keeps"]),
    }  # fmt: skip
