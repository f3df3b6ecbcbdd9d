"""The handler `file`: one big buffer that becomes a trace when the program ends."""

from __future__ import annotations

import json
import re
import subprocess
from typing import TYPE_CHECKING

import pytest

from nptltrace.recording.files.tsdl_writer import RECORDS, Calibration, metadata_text
from tests.handlers.helpers import agreed_counts, babeltrace, run_traced, stat

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support import Compiler, Ptt, Recorder


@pytest.mark.parametrize("threads", [1, 8])
def test_counts_are_exact(
    ptt: Ptt, program: Callable[[str], Path], trace_dir: Path, threads: int
) -> None:
    done = run_traced(ptt, f"file:{trace_dir}", program("lock_count"), str(threads), "20000")
    assert (done.stdout, done.stderr) == (f"{threads * 20000}\n", "")
    counts = agreed_counts(ptt, trace_dir)
    assert counts["MUTEX_TAKEN"] == counts["MUTEX_FREE"] == threads * 20000
    assert counts["THREAD_END"] == threads


def test_the_handler_works_through_ptt_record(
    ptt: Ptt, program: Callable[[str], Path], trace_dir: Path
) -> None:
    message = ptt(
        "record", "--handler", "file", "-o", trace_dir, "--", program("lock_count"), "2", "500"
    ).stderr
    counts = agreed_counts(ptt, trace_dir)
    assert counts["MUTEX_FREE"] == 1000
    assert f"recorded {counts.total()} events from 1 process, 3 threads" in message


def test_full_buffer_keeps_the_beginning(
    ptt: Ptt, program: Callable[[str], Path], trace_dir: Path
) -> None:
    done = run_traced(ptt, f"file:file={trace_dir},size=64K", program("lock_count"), "1", "20000")
    assert done.stdout == "20000\n"
    lost_message = re.fullmatch(
        r"ptt: file: the buffer was full; (\d+) later events are not in .*\n", done.stderr
    )
    assert lost_message
    counts, lost = stat(ptt, trace_dir)
    assert lost == int(lost_message[1])
    assert counts.total() + lost == 40000 + 7
    # No event is missing between the first event and the last.
    assert counts["MUTEX_TAKEN"] - counts["MUTEX_FREE"] in {0, 1}
    assert counts["PROCESS_EXIT"] == 0
    assert babeltrace(trace_dir)[0] == counts


def test_signal_handlers_may_trace(
    ptt: Ptt, program: Callable[[str], Path], trace_dir: Path
) -> None:
    done = run_traced(ptt, f"file:{trace_dir}", program("signal_storm"), "4", "10000")
    assert agreed_counts(ptt, trace_dir)["SEM_POST"] == int(done.stdout)


def test_a_forked_child_writes_its_own_trace(
    ptt: Ptt, compile_c: Compiler, trace_dir: Path
) -> None:
    prog = compile_c(
        """
        #include <pthread.h>
        #include <sys/wait.h>
        #include <stdio.h>
        #include <unistd.h>
        static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
        static void work(int n)
        {
            while (n--) {
                pthread_mutex_lock(&lock);
                pthread_mutex_unlock(&lock);
            }
        }
        int main(void)
        {
            work(10);
            pid_t child = fork();
            work(child ? 20 : 30);
            if (child) {
                waitpid(child, NULL, 0);
                printf("%d\\n", child);
            }
            return 0;
        }
        """
    )
    done = run_traced(ptt, f"file:{trace_dir}", prog)
    child = trace_dir.with_name(f"{trace_dir.name}-{int(done.stdout)}")
    assert agreed_counts(ptt, trace_dir)["MUTEX_FREE"] == 30
    assert agreed_counts(ptt, child)["MUTEX_FREE"] == 30
    assert {path.name for path in trace_dir.parent.iterdir()} >= {trace_dir.name, child.name}


def test_an_executed_program_writes_its_own_trace(
    ptt: Ptt, program: Callable[[str], Path], trace_dir: Path
) -> None:
    prog = program("lock_count")
    run_traced(ptt, f"file:{trace_dir}", "sh", "-c", f"{prog} 1 5; exec {prog} 1 7")
    traces = [path for path in trace_dir.parent.glob("run.ptt*") if (path / "metadata").exists()]
    frees = sorted(stat(ptt, path)[0]["MUTEX_FREE"] for path in traces)
    # The shell itself, which started the first program and became the second.
    assert frees == [0, 5, 7]


def test_existing_trace_is_not_overwritten(
    ptt: Ptt, program: Callable[[str], Path], trace_dir: Path
) -> None:
    for pairs in ("3", "4"):
        run_traced(ptt, f"file:{trace_dir}", program("lock_count"), "1", pairs)
    assert stat(ptt, trace_dir)[0]["MUTEX_FREE"] == 3
    assert len(list(trace_dir.parent.glob("run.ptt-*"))) == 1


def test_relative_path_survives_chdir(ptt: Ptt, tmp_path: Path, compile_c: Compiler) -> None:
    prog = compile_c('#include <unistd.h>\nint main(void) { return chdir("/"); }\n')
    assert run_traced(ptt, "file:here", prog, cwd=tmp_path).returncode == 0
    assert (tmp_path / "here" / "metadata").exists()


def test_the_default_name_has_program_and_pid(
    ptt: Ptt, tmp_path: Path, program: Callable[[str], Path]
) -> None:
    run_traced(ptt, "file", program("lock_count"), "1", "1", cwd=tmp_path)
    assert [p for p in tmp_path.iterdir() if re.fullmatch(r"ptt-lock_count-\d+", p.name)]


@pytest.mark.parametrize(
    ("argument", "reason"),
    [
        ("size=huge", "not a size from 64K to 1T: huge"),
        ("size=1K", "not a size from 64K to 1T: 1K"),
        ("a,b", "unknown argument: b"),
        ("/proc/nowhere/x", "/proc/nowhere/x: No such file or directory"),
    ],
)
def test_wrong_arguments_are_refused(
    ptt: Ptt, program: Callable[[str], Path], tmp_path: Path, argument: str, reason: str
) -> None:
    done = run_traced(ptt, f"file:{argument}", program("lock_count"), "1", "1", cwd=tmp_path)
    assert done.stdout == "1\n"
    assert done.stderr == f"ptt: file: {reason}; the program runs untraced\n"


def test_metadata_equals_the_recorders(
    ptt: Ptt, program: Callable[[str], Path], trace_dir: Path
) -> None:
    run_traced(ptt, f"file:{trace_dir}", program("lock_count"), "1", "1")
    ours = (trace_dir / "metadata").read_text()
    theirs = metadata_text(
        uuid="12345678-1234-1234-1234-123456789012",
        clock_uuid="12345678-1234-1234-1234-123456789012",
        calibration=Calibration(10**9, 5, "monotonic"),
        env={},
        stream_class=RECORDS,
    )

    def essence(text: str) -> str:
        text = re.sub(r'uuid = "[^"]*"', "uuid", text)
        text = re.sub(r"(?s)env \{.*?\n\};", "", text)
        text = re.sub(r"offset(_s)? = \d+", "offset", text)
        text = re.sub(r"typealias [^}]*\} := ptt_time40;", "", text)
        return " ".join(text.split())

    assert essence(ours) == essence(theirs)


def test_wrong_checksum_is_reported_with_its_place(
    ptt: Ptt, program: Callable[[str], Path], trace_dir: Path
) -> None:
    run_traced(ptt, f"file:{trace_dir}", program("lock_count"), "1", "100")
    before = stat(ptt, trace_dir)[0].total()
    stream = trace_dir / "stream-file"
    data = bytearray(stream.read_bytes())
    at = 128  # the first record, after the head of the packet
    for _ in range(5):
        at += 4 * int.from_bytes(data[at + 2 : at + 4], "little")
    data[at + 20] ^= 0x40
    # The packet's CRC covers the file; the damage is older.
    data[92:96] = bytes(4)
    data[92:96] = _crc32c(bytes(data)).to_bytes(4, "little")
    stream.write_bytes(bytes(data))
    done = ptt("stat", trace_dir)
    assert (
        f"stream-file: byte {at}: the checksum of this record is wrong" in done.stdout + done.stderr
    )
    assert stat(ptt, trace_dir)[0].total() == before - 1


def _crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def test_session_says_how_it_was_recorded(
    ptt: Ptt, program: Callable[[str], Path], trace_dir: Path
) -> None:
    prog = program("lock_count")
    run_traced(ptt, f"file:{trace_dir}:3", prog, "1", "2")
    session = json.loads((trace_dir / "info" / "session.json").read_text())
    assert session["state"] == "complete"
    assert session["level"] == "3"
    assert session["command"] == [str(prog), "1", "2"]
    lines = (trace_dir / "info" / "processes.jsonl").read_text().splitlines()
    modules = {
        module["path"]: module["build_id"] for module in json.loads(lines[1])["modules"]["modules"]
    }
    notes = subprocess.run(
        ["readelf", "-n", str(prog)], capture_output=True, encoding="utf-8", check=True
    ).stdout
    assert modules[str(prog)] in notes
    assert modules[str(prog)] != ""


def test_level_three_has_the_calls(
    record: Recorder, ptt: Ptt, program: Callable[[str], Path]
) -> None:
    trace = record(program("lock_count"), "2", "10", options=("--handler", "file", "-l", "3"))
    counts = agreed_counts(ptt, trace)
    assert counts["MUTEX_LOCK_IN"] == counts["MUTEX_LOCK_OUT"] == 20
