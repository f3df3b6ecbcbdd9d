"""Core files give the same answers as the process, later and without the process."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import struct
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from nptltrace.analysis.vocabulary.document_types import Hang
from nptltrace.ui.shapes import fits
from tests.hang.looking import CASES, asleep, running, threads_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support import Ptt

Seen = dict[str, Any]


def kernel_core(
    ptt: Ptt, place: Path, program: Path, case: str, threads: int = 0
) -> tuple[Seen, Path]:
    """End a hanging process with a core file; return the core file and the earlier answer."""
    pattern = Path("/proc/sys/kernel/core_pattern").read_text(encoding="utf-8").strip()
    if pattern.startswith(("|", "/")):
        pytest.skip("core files go to another place (kernel.core_pattern)")
    hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
    process = subprocess.Popen(
        [program, case], cwd=place,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (hard, hard)),  # noqa: PLW1509 -- no threads here
    )  # fmt: skip
    try:
        seen = asleep(ptt, str(process.pid), threads or threads_of(case))
    finally:
        process.send_signal(signal.SIGABRT)
        process.wait()
    cores = list(place.glob("*core*"))
    if not cores:
        pytest.skip("the kernel writes no core file here (ulimit -c)")
    return seen, cores[0]


def of_core(ptt: Ptt, core: Path, *options: str | Path) -> Seen:
    done = ptt("hang", "--format", "json", *options, core, status=None)
    answer: Seen = json.loads(done.stdout)
    assert done.returncode == (1 if answer["findings"] else 0)
    assert fits(Hang, answer)
    return answer


def same(seen: Seen, found: Seen) -> None:
    """Assert that a core file gives the process's answer, except for names of threads."""
    assert found["pid"] == seen["pid"]
    for thread in (*seen["threads"], *found["threads"]):
        thread["name"], thread["moved"] = "", None
        # With all registers, the unwinder may go further than without them.
        thread["stack"] = [frame for frame in thread["stack"] if "waits.c:" in frame]
    for finding in (*seen["findings"], *found["findings"]):
        del finding["message"], finding["title"]
    assert found["threads"] == seen["threads"]
    assert found["findings"] == seen["findings"]


@pytest.mark.parametrize(
    ("case", "way"),
    [*((case, "optimized") for case in CASES), ("mutexes", "static"), ("stuck", "static")],
)
def test_core_files_of_the_kernel_give_the_same_answer(
    case: str, way: str, ptt: Ptt, program: Callable[[str], Path], tmp_path: Path
) -> None:
    seen, core = kernel_core(ptt, tmp_path, program(way), case)
    same(seen, of_core(ptt, core))
    assert "ended by SIGABRT" in ptt("hang", core, status=1).stdout


@pytest.mark.parametrize("flags", [(), ("-static",)], ids=["dynamic", "static"])
def test_a_program_with_signal_handlers_is_not_certainly_stuck(
    flags: tuple[str, ...], ptt: Ptt, compile_c: Callable[..., Path], tmp_path: Path
) -> None:
    """The file lacks the signal handlers; a static program's code shows its calls."""
    program = compile_c(
        """
        #include <semaphore.h>
        #include <signal.h>
        #include <string.h>
        static sem_t empty;
        static void wake(int number)
        {
            (void)number;
            sem_post(&empty);
        }
        int main(int count, char **arguments)
        {
            if (count > 1 && !strcmp(arguments[1], "handled"))
                signal(SIGUSR1, wake);
            return sem_wait(&empty);
        }
    """,
        *flags,
    )
    with running(program, "handled") as pid:
        (warning,) = asleep(ptt, pid, 1)["findings"]
    assert warning["severity"] == "warning"
    assert "unless the handler of SIGUSR1 wakes one" in warning["message"]
    seen, core = kernel_core(ptt, tmp_path, program, "plain", threads=1)
    assert [finding["kind"] for finding in seen["findings"]] == ["stuck"]
    assert of_core(ptt, core)["findings"] == []


@pytest.mark.parametrize("where", ["own", "shared"])
def test_a_futex_in_shared_memory_may_be_woken_by_other_processes(
    where: str, ptt: Ptt, compile_c: Callable[..., Path], tmp_path: Path
) -> None:
    """C++20 marks no futex as private; its address shows that it is, also in a core file."""
    program = compile_c(
        """
        #include <linux/futex.h>
        #include <sys/mman.h>
        #include <sys/syscall.h>
        #include <unistd.h>
        static int own;
        int main(int count, char **arguments)
        {
            int *word = &own;
            if (count > 1 && *arguments[1] == 's')
                word = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
            syscall(SYS_futex, word, FUTEX_WAIT, 0, NULL, NULL, 0);
        }
    """
    )
    seen, core = kernel_core(ptt, tmp_path, program, where, threads=1)
    assert [finding["kind"] for finding in seen["findings"]] == ["stuck"]
    assert len(of_core(ptt, core)["findings"]) == (where == "own")


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the code is for x86-64")
@pytest.mark.parametrize("flags", [("-O0",), ("-O0", "-static")], ids=["dynamic", "static"])
def test_a_mutex_is_named_by_the_code_alone(
    flags: tuple[str, ...], ptt: Ptt, compile_c: Callable[..., Path], tmp_path: Path
) -> None:
    """The kernel refuses a priority-inheritance mutex, and the library forgets the mutex."""
    program = compile_c(
        """
        #include <pthread.h>
        pthread_mutex_t bus;
        int main(void)
        {
            pthread_mutexattr_t attr;
            pthread_mutexattr_init(&attr);
            pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT);
            pthread_mutex_init(&bus, &attr);
            pthread_mutex_lock(&bus);
            pthread_mutex_lock(&bus);
            return 0;
        }
    """,
        *flags,
    )
    seen, core = kernel_core(ptt, tmp_path, program, "", threads=1)
    for answer in (seen, of_core(ptt, core)):
        (finding,) = answer["findings"]
        assert (finding["kind"], finding["object_names"]) == ("self-deadlock", ["bus"])


@pytest.mark.skipif(shutil.which("gcore") is None, reason="gcore (gdb) is not installed")
@pytest.mark.parametrize("case", ["mutexes", "stuck"])
def test_core_files_of_gdb_give_the_same_answer(
    case: str, ptt: Ptt, program: Callable[[str], Path], tmp_path: Path
) -> None:
    with running(program("optimized"), case) as pid:
        seen = asleep(ptt, pid, 3)
        subprocess.run(["gcore", "-o", tmp_path / "c", pid], check=True, capture_output=True)
    same(seen, of_core(ptt, tmp_path / f"c.{pid}"))


def test_a_core_file_without_its_program_has_no_names(
    ptt: Ptt, program: Callable[[str], Path], tmp_path: Path
) -> None:
    """The core file shows the deadlock; names need the program, and refuse another program."""
    copy = tmp_path / "copy"
    shutil.copy(program("plain"), copy)
    _, core = kernel_core(ptt, tmp_path, copy, "mutexes")
    copy.unlink()
    shutil.copy(program("optimized"), copy)
    answer = of_core(ptt, core)
    assert [finding["kind"] for finding in answer["findings"]] == ["deadlock"]
    assert {thread["waits_for"]["name"] for thread in answer["threads"]} == {""}
    copy.unlink()
    named = of_core(ptt, core, "--exe", program("plain"))
    assert {t["waits_for"]["name"] for t in named["threads"]} == {"left", "right", ""}
    message = ptt("hang", "--exe", program("optimized"), core, status=2).stderr
    assert "is not the program of" in message


def test_other_files_are_refused_as_core_files(
    ptt: Ptt, program: Callable[[str], Path], tmp_path: Path
) -> None:
    def refused(data: bytes) -> str:
        path = tmp_path / "file"
        path.write_bytes(data)
        message = ptt("hang", path, status=2)
        assert message.stdout == ""
        assert message.stderr.count("\n") == 1
        return message.stderr

    elf = program("plain").read_bytes()
    assert "is empty" in refused(b"")
    assert "is no core file" in refused(b"#!/bin/sh\n")
    assert "is no core file" in refused(elf[:20])
    assert "is a program or a library" in refused(elf)
    assert "another architecture" in refused(elf[:16] + struct.pack("<HH", 4, 183) + elf[20:])
    assert "another architecture" in refused(b"\x7fELF\x01" + elf[5:])
    assert "zstd -d" in refused(b"\x28\xb5\x2f\xfd" + bytes(100))
    assert "damaged or incomplete" in refused(
        elf[:16] + struct.pack("<HH", 4, 62) + elf[20:32] + bytes(32)
    )
    # As many segments as the first section says, in a sparse file that has room for the segments.
    many = bytearray(elf[:16] + struct.pack("<HH", 4, 62) + elf[20:64]) + bytes(4096 - 64)
    struct.pack_into("<QQ", many, 32, 4096, 64)
    struct.pack_into("<HH", many, 54, 56, 0xFFFF)
    struct.pack_into("<I", many, 64 + 44, 1 << 30)
    (tmp_path / "sparse").write_bytes(many)
    os.truncate(tmp_path / "sparse", 4096 + (56 << 30))
    assert "damaged" in ptt("hang", tmp_path / "sparse", status=2, timeout=30).stderr
    assert "cannot read" in ptt("hang", tmp_path / "nothing", status=2).stderr
    assert "is no file" in ptt("hang", tmp_path, status=2).stderr


def test_repeated_headers_take_no_more_memory(
    ptt: Ptt, program: Callable[[str], Path], tmp_path: Path
) -> None:
    """Headers that all name the same piece of the file take no more memory than the piece."""
    seen, core = kernel_core(ptt, tmp_path, program("plain"), "mutexes")
    data = core.read_bytes()
    at, count = *struct.unpack_from("<Q", data, 32), *struct.unpack_from("<H", data, 56)
    headers = [struct.unpack_from("<IIQQQQQQ", data, at + 56 * n) for n in range(count)]
    (notes,) = (data[h[2] : h[2] + h[5]] for h in headers if h[0] == 4)
    notes += struct.pack("<III", 5, 1 << 20, 0x99) + b"CORE\0\0\0\0" + bytes(1 << 20)
    times = 20_000
    header = bytearray(data[:64])
    struct.pack_into("<Q", header, 32, 64)
    struct.pack_into("<H", header, 56, times)
    same_one = struct.pack("<IIQQQQQQ", 4, 0, 64 + 56 * times, 0, 0, len(notes), 0, 4)
    core.write_bytes(bytes(header) + same_one * times + notes)
    done = ptt("hang", "--format", "json", core, status=None, timeout=30)
    answer: Seen = json.loads(done.stdout)
    assert len(answer["threads"]) == len(seen["threads"])
    # Each header begins a little further on: together they are larger than the file.
    each = [
        struct.pack("<IIQQQQQQ", 4, 0, 64 + 56 * times, 0, 0, len(notes) - 4 * n, 0, 4)
        for n in range(times)
    ]
    core.write_bytes(bytes(header) + b"".join(each) + notes)
    assert "damaged or incomplete" in ptt("hang", core, status=2, timeout=30).stderr


def test_a_truncated_core_file_gives_a_partial_answer(
    ptt: Ptt, program: Callable[[str], Path], tmp_path: Path
) -> None:
    """Half a core file gives half an answer with a remark, and never a crash."""
    _, core = kernel_core(ptt, tmp_path, program("plain"), "mutexes")
    size = core.stat().st_size
    for part in range(9, 0, -1):
        os.truncate(core, size * part // 10)
        done = ptt("hang", core, status=None)
        assert done.returncode in {0, 1}
        assert "is cut short" in done.stderr
    for left in (3000, 1000, 100, 60):
        os.truncate(core, left)
        message = ptt("hang", core, status=2).stderr
        assert message.startswith("ptt: error: ")
        assert message.count("\n") == 1
