"""The handler `text`: one sentence per event."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tests.handlers.helpers import run_traced

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support import Compiler, Ptt

LINE = re.compile(r"ptt: \d+\.\d{6} \d+ .*")


@pytest.mark.parametrize("threads", [1, 8])
def test_counts_are_exact_and_lines_whole(
    ptt: Ptt, program: Callable[[str], Path], threads: int
) -> None:
    done = run_traced(ptt, "text", program("lock_count"), str(threads), "1000")
    lines = done.stderr.splitlines()
    assert all(LINE.fullmatch(line) for line in lines)
    message = Counter(
        word for line in lines for word in ("took", "released") if f" {word} mutex" in line
    )
    assert message == {"took": threads * 1000, "released": threads * 1000}
    assert sum(" begins as " in line for line in lines) == threads


def test_sites_are_modules_and_offsets(ptt: Ptt, program: Callable[[str], Path]) -> None:
    prog = program("lock_count")
    lines = run_traced(ptt, "text", prog, "1", "1").stderr.splitlines()
    [site] = [line.rsplit(" at ", 1)[1] for line in lines if "released mutex" in line]
    module, _, offset = site.partition("+")
    assert module == "lock_count"
    where = subprocess.run(
        ["addr2line", "-f", "-e", str(prog), hex(int(offset, 16) - 1)],
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    assert where.stdout.startswith("work\n")


def test_sentences_go_to_a_file(ptt: Ptt, program: Callable[[str], Path], tmp_path: Path) -> None:
    for _ in range(2):
        done = run_traced(ptt, f"text:{tmp_path}/events.txt", program("lock_count"), "1", "1")
        assert (done.stdout, done.stderr) == ("1\n", "")
    text = (tmp_path / "events.txt").read_text()
    assert text.count("released mutex") == 2  # the second run appended


def test_an_impossible_file_is_reported(ptt: Ptt, program: Callable[[str], Path]) -> None:
    done = run_traced(ptt, "text:/nowhere/x", program("lock_count"), "1", "1")
    assert done.stdout == "1\n"
    assert done.stderr == (
        "ptt: text: cannot write /nowhere/x: No such file or directory; the program runs untraced\n"
    )


def test_program_sees_its_own_descriptors_and_errno(
    ptt: Ptt, compile_c: Compiler, tmp_path: Path
) -> None:
    prog = compile_c(
        """
        #include <errno.h>
        #include <fcntl.h>
        #include <pthread.h>
        #include <stdio.h>
        #include <unistd.h>
        int main(void)
        {
            pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
            int fd = open("/dev/null", O_RDONLY);
            close(2); /* lines can no longer be written */
            errno = 4711;
            pthread_mutex_lock(&lock);
            pthread_mutex_unlock(&lock);
            printf("%d %d\\n", fd, errno);
            return 0;
        }
        """
    )
    for variable in ("text", f"text:{tmp_path}/events.txt"):
        assert run_traced(ptt, variable, prog).stdout == "3 4711\n"


def test_waits_and_calls_read_as_sentences(
    ptt: Ptt, program: Callable[[str], Path], tmp_path: Path
) -> None:
    lines = run_traced(ptt, "text::3", program("lock_count"), "1", "1").stderr.splitlines()
    text = "\n".join(re.sub(r"0x[0-9a-f]+|\d+", "N", line.split(" ", 3)[3]) for line in lines)
    assert "thread N calls pthread_mutex_lock, mutex = N at lock_count+N" in text
    assert "thread N returns from pthread_mutex_lock, mutex = N, result = N at lock_count+N" in text
    assert "thread N joined thread N after N ns, result = N" in text
