"""`ptt view`, `stat`, `cut`, `split` and `merge`, on traces written without a tracer."""

from __future__ import annotations

import csv
import json
import re
import subprocess
import time
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest

from nptltrace.api import Traceset
from tests.trace.builder import Builder, Event, rewrite_uuid
from tests.trace.conftest import T0, pair, small

if TYPE_CHECKING:
    import os
    from pathlib import Path

    from tests.support import Compiler, Ptt, Recorder

TOTAL = 17


def lines(ptt: Ptt, *args: str | os.PathLike[str]) -> list[dict[str, Any]]:
    out = ptt("view", "--format", "jsonl", *args).stdout
    return [json.loads(line) for line in out.splitlines()]


def babeltrace(trace: Path) -> int:
    """Return the number of events that babeltrace2 finds; it must not warn."""
    done = subprocess.run(
        ["babeltrace2", str(trace)],
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        check=True,
    )
    assert done.stderr == ""
    return len(done.stdout.splitlines())


def test_view_prints_text(small_trace: Path, ptt: Ptt) -> None:
    out = ptt("view", small_trace).stdout.splitlines()
    assert len(out) == TOTAL
    assert "thread 101 begins as 0x7f0011" in out[0]
    assert out[1].split()[:3] == ["0.000000033", "101", "wörker-one"]
    assert out[1].endswith(" at 0x401000")
    assert "until 0.000012345" in "".join(out)
    assert "after 666.000 us, result = 110 (ETIMEDOUT)" in "".join(out)
    assert 'says: event 1.2, "hello "w"\\x0a\\xff' in "".join(out)


@pytest.mark.parametrize(
    ("size", "shown"), [(10, '"ab' + 8 * r"\x00" + '" '), (11, '"ab" and 9 zero bytes ')]
)
def test_zeros_at_the_end_of_data_are_kept(
    ptt: Ptt, record: Recorder, compile_c: Compiler, size: int, shown: str
) -> None:
    program = compile_c(
        f"""
        #include <nptl_trace.h>
        int main(void)
        {{
            static char data[{size}] = "ab";
            struct nptl_trace_event event = {{.param = data, .param_size = sizeof(data)}};

            nptl_trace_send_user_event(event);
            return 0;
        }}
        """
    )
    text = ptt("view", "--event", "USER", record(program)).stdout
    assert f"says: event 0.0, {shown}" in text


def test_view_prints_jsonl(small_trace: Path, ptt: Ptt) -> None:
    rows = lines(ptt, small_trace)
    assert len(rows) == TOTAL
    assert rows[1] == {
        "ts_ns": 33, "pid": 100, "tid": 101, "cpu": 1, "source": "nptl", "event": "MUTEX_TAKEN",
        "object": "0x4040", "site": "0x401000", "site_name": "", "thread_name": "wörker-one",
    }  # fmt: skip
    by_name = {row["event"]: row for row in rows}
    assert by_name["COND_TIMEDWAIT_IN"]["mutex"] == "0x4040"
    assert by_name["COND_TIMEDWAIT_OUT"]["wait_ns"] == 666_000
    assert by_name["COND_SIGNAL_OUT"]["result"] == -1
    assert by_name["USER"]["source"] == "user"
    assert by_name["USER"]["data"] == 'hello "w"\n\ufffd' * 9
    assert by_name["THREAD_NAME"]["name"] == "wörker-one"
    assert "name_pieces" not in by_name["THREAD_NAME"]


def test_a_reused_thread_address_is_another_thread(tmp_path: Path, ptt: Ptt) -> None:
    """Also before the new thread runs, with a filter, and from the middle of the trace on."""
    made = Builder(tmp_path / "again.ptt")

    def lives(tid: int, start: int, serial: int) -> None:
        fields = {"start_routine": 0x1234, "creator": 100, "serial": serial}
        made.thread(
            tid,
            [
                Event(T0 + start, "THREAD_BEGIN", 0x7F0011, fields=fields),
                Event(T0 + start + 10, "THREAD_NAME", 0x7F0011, fields={"name": b"own"}),
            ],
        )

    def creates(at: int, serial: int) -> list[Event]:
        fields = {"start_routine": 0x1234, "detached": 0, "serial": serial}
        return [
            Event(T0 + at, "NEW_THREAD_CREATED", 0x7F0011, fields=fields),
            Event(T0 + at + 5, "THREAD_NAME", 0x7F0011, fields={"name": b"given"}),
        ]

    made.thread(100, creates(10, 1) + creates(110, 2) + creates(215, 3))
    lives(101, 20, 1)
    lives(102, 120, 2)
    lives(103, 210, 3)  # begins before the event of its creation
    made.processes = [{"process": {"index": 0, "pid": 100, "ppid": 1, "exe": "x", "cmdline": []}}]
    trace = made.write()

    def named(*options: str) -> list[int]:
        text = ptt("view", "--event", "THREAD_NAME", *options, trace).stdout
        return [int(tid) for tid in re.findall(r"thread (\d+)[^\n]* is named", text)]

    created = re.findall(r"created thread (\d+)", ptt("view", trace).stdout)
    assert [int(tid) for tid in created] == [101, 102, 103]
    assert named() == [101, 101, 102, 102, 103, 103]
    assert named("--from", "100ns") == [102, 102, 103, 103]


def test_csv_and_raw_have_one_row_an_event(small_trace: Path, ptt: Ptt) -> None:
    rows = list(csv.DictReader(ptt("view", "--format", "csv", small_trace).stdout.splitlines()))
    assert len(rows) == TOTAL
    assert rows[1]["event"] == "MUTEX_TAKEN"
    raw = ptt("view", "--format", "raw", small_trace).stdout.splitlines()
    assert raw[1].split(" ") == ["33", "100", "101", "1", "MUTEX_TAKEN", "0x4040", "0x401000"]


@pytest.mark.parametrize(
    ("options", "count"),
    [
        (["--tid", "102"], 6),
        (["--tid", "101,102"], TOTAL),
        (["--tid", "101", "--tid", "102"], 0),
        (["--pid", "1"], 0),
        (["--event", "MUTEX"], 11),
        (["--event", "MUTEX,COND", "--suffix", "_OUT"], 2),
        (["--event", "COND", "--event", "COND_S"], 1),
        (["--object", "0x4080"], 3),
        (["--object", "0x4080,0x4040", "--object", "0x4080"], 3),
        (["--site", "0x401000"], 11),
        (["--from", "500us"], 7),
        (["--to", "100ns"], 5),
        (["--from", "33ns", "--to", "50ns"], 1),
        (["--start", "3", "--count", "5"], 5),
        (["--event", "MUTEX_FREE", "--start", "4"], 1),
        (["--count", "0"], 0),
    ],
)
def test_filters_choose_events(small_trace: Path, ptt: Ptt, options: list[str], count: int) -> None:
    assert len(lines(ptt, *options, small_trace)) == count


@pytest.mark.parametrize(
    "options",
    [
        ["--event", "NONSENSE"],
        ["--tid", "x"],
        ["--object", "no_such"],
        ["--from", "x"],
        ["--count", "-1"],
    ],
)
def test_wrong_filters_are_refused(small_trace: Path, ptt: Ptt, options: list[str]) -> None:
    assert ptt("view", *options, small_trace, status=2).stderr.count("\n") == 1


def test_an_alias_names_a_lock(small_trace: Path, ptt: Ptt, tmp_path: Path) -> None:
    alias = tmp_path / "alias"
    alias.write_text("# the locks\n0x4040 the big lock\n")
    rows = lines(ptt, "--alias", alias, "--object", "the big lock", small_trace)
    assert len(rows) == 11
    assert rows[0]["object_name"] == "the big lock"
    alias.write_text("0x4040\n")
    ptt("view", "--alias", alias, small_trace, status=2)


def test_a_closed_pipe_is_no_error(small_trace: Path, ptt: Ptt) -> None:
    command = [*ptt.command("view", small_trace)]
    with subprocess.Popen(
        command, env=ptt.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout
        assert process.stderr
        process.stdout.close()
        assert process.stderr.read() == b""


def test_stat_counts_events(small_trace: Path, ptt: Ptt) -> None:
    found = json.loads(ptt("stat", "--format", "json", small_trace).stdout)
    assert found["events"] == TOTAL
    assert found["lost"] == 0
    assert found["duration_ns"] == (3 * 10**9 + 50) * 10**9 // 2_999_999_123
    (process,) = found["processes"]
    assert (process["pid"], process["ppid"], process["cmdline"]) == (100, 1, ["x", "-y"])
    assert [(t["tid"], t["name"], t["events"]) for t in process["threads"]] == [
        (101, "wörker-one", 11),
        (102, "helper", 6),
    ]
    assert found["event_types"]["MUTEX_TAKEN"] == 6
    assert sum(found["event_types"].values()) == TOTAL
    assert [(o["object"], o["kind"], o["events"]) for o in found["objects"]] == [
        ("0x4040", "mutex", 11),
        ("0x4080", "cond", 3),
    ]
    text = ptt("stat", small_trace).stdout
    assert max(map(len, text.splitlines())) <= 80
    assert "MUTEX_TAKEN" in ptt("stat", "-l").stdout


def test_stat_lists_only_the_busiest_threads_and_objects(small_trace: Path, ptt: Ptt) -> None:
    whole = json.loads(ptt("stat", "--format", "json", small_trace).stdout)
    part = json.loads(ptt("stat", "-n", "1", "--format", "json", small_trace).stdout)
    assert [thread["tid"] for thread in part["processes"][0]["threads"]] == [101]
    assert [item["object"] for item in part["objects"]] == ["0x4040"]
    assert (part["processes"][0]["thread_count"], part["object_count"]) == (2, 2)
    whole["processes"][0]["threads"] = part["processes"][0]["threads"]
    whole["objects"] = part["objects"]
    assert part == whole
    rows = ptt("stat", "-n1", "--format", "csv", small_trace).stdout.splitlines()
    assert {row.split(",")[1] for row in rows} == {"tid", "101"}
    text = ptt("stat", "-n", "1", small_trace).stdout
    assert re.search(r"1 more +6\n", text)
    assert "1 more (-n 0 shows all)" in text
    assert "more" not in ptt("stat", "-n", "0", small_trace).stdout
    thread = json.loads(ptt("stat", "--format", "json", "--tid", "102", small_trace).stdout)
    assert thread["object_count"] == len(thread["objects"])


def test_losses_are_reported(small_trace: Path, ptt: Ptt) -> None:
    session = {"state": "complete", "lost": {"buffers_full": 7, "not_written": 0}}
    (small_trace / "info" / "session.json").write_text(json.dumps(session))
    assert json.loads(ptt("stat", "--format", "json", small_trace).stdout)["lost"] == 7
    assert "7 events lost (buffers_full 7)" in ptt("stat", small_trace).stdout


@pytest.mark.parametrize(
    ("library", "times"),
    [("libgomp.so.1.0.0", 1), ("libgomp-a34b3233.so.1", 1), ("libgompers.so", 0)],
)
def test_runtimes_with_their_own_locks_are_reported(
    tmp_path: Path, ptt: Ptt, library: str, times: int
) -> None:
    made = small(tmp_path / "omp.ptt")
    path = f"/usr/lib/{library}"
    modules = [{"path": path, "build_id": "", "start": "0x10000", "end": "0x20000", "bias": "0x0"}]
    made.processes += [{"modules": {"process": 0, "modules": modules}}] * 2
    trace = made.write()
    uncovered = json.loads(ptt("stat", "--format", "json", trace).stdout)["uncovered"]
    assert [item["module"] for item in uncovered] == [path] * times
    text = ptt("stat", trace).stdout
    assert text.count("waits for tasks, and locks inside the library, are not seen") == times
    assert max(map(len, text.splitlines())) <= 80


def test_counts_agree_with_babeltrace(small_trace: Path) -> None:
    assert babeltrace(small_trace) == TOTAL


def test_classic_records_read_like_packets(small_trace: Path, tmp_path: Path, ptt: Ptt) -> None:
    records = small(tmp_path / "records.ptt").write_records()
    assert babeltrace(records) == TOTAL
    drop = {"site", "cpu", "site_name"}
    keep = [
        [{k: v for k, v in row.items() if k not in drop} for row in lines(ptt, trace)]
        for trace in (small_trace, records)
    ]
    names = [sorted({row.get("thread_name") or "" for row in rows}) for rows in keep]
    assert names[0] == ["helper", "wörker-one"]
    for rows in keep:
        for row in rows:
            row.pop("thread_name", None)
    assert keep[0] == keep[1]


@pytest.mark.parametrize("records", [False, True])
def test_cut_writes_a_part(tmp_path: Path, ptt: Ptt, *, records: bool) -> None:
    made = small(tmp_path / "run.ptt")
    trace = made.write_records() if records else made.write()
    whole = lines(ptt, trace)
    cut = tmp_path / "cut.ptt"
    ptt("cut", "--from", "50ns", "--to", "667us", "-o", cut, trace)
    assert lines(ptt, cut) == [row for row in whole if 50 <= row["ts_ns"] < 667_000]
    assert babeltrace(cut) == len(lines(ptt, cut))
    again = tmp_path / "again.ptt"
    ptt("cut", "--start", "2", "--count", "9", "-o", again, trace)
    # Names stay, although the part lacks the event that set a name.
    assert lines(ptt, again) == whole[2:11]
    assert babeltrace(again) == 9
    ptt("cut", "--start", "2", "-o", again, trace, status=2)
    ptt("cut", "--start", "2", "-o", again, "--force", trace)
    assert babeltrace(again) == TOTAL - 2
    ptt("cut", "-o", tmp_path / "no.ptt", trace, status=2)
    message = ptt("cut", "--from", "1h", "-o", tmp_path / "none.ptt", trace).stderr
    assert message.endswith("none.ptt: there is none in this part\n")


@pytest.mark.parametrize("records", [False, True])
def test_cut_writes_chosen_threads(tmp_path: Path, ptt: Ptt, *, records: bool) -> None:
    made = small(tmp_path / "run.ptt")
    trace = made.write_records() if records else made.write()
    whole = lines(ptt, trace)
    for words, tids in (("101", {101}), ("101,102", {101, 102})):
        cut, late = tmp_path / f"{words}.ptt", tmp_path / f"{words}-late.ptt"
        ptt("cut", "--tid", words, "-o", cut, trace)
        assert lines(ptt, cut) == [row for row in whole if row["tid"] in tids]
        ptt("cut", "--tid", words, "--from", "500us", "-o", late, trace)
        assert lines(ptt, late) == lines(ptt, "--from", "500us", cut)
        session = json.loads((late / "info" / "session.json").read_text())
        assert session["part"] == ("thread" if len(tids) == 1 else None)
    ptt("cut", "--pid", "100", "-o", tmp_path / "process.ptt", trace)
    assert lines(ptt, tmp_path / "process.ptt") == whole
    none = tmp_path / "none.ptt"
    assert "999" in ptt("cut", "--tid", "999", "-o", none, trace).stderr
    assert lines(ptt, none) == []


@pytest.mark.parametrize("records", [False, True])
def test_merge_restores_a_split_trace(tmp_path: Path, ptt: Ptt, *, records: bool) -> None:
    made = small(tmp_path / "run.ptt")
    trace = made.write_records() if records else made.write()
    ptt("split", "--by", "thread", "-o", tmp_path / "parts", trace)
    parts = sorted((tmp_path / "parts").iterdir())
    assert [part.name for part in parts] == ["100-101.ptt", "100-102.ptt"]
    assert [babeltrace(part) for part in parts] == [11, 6]
    assert {row["tid"] for row in lines(ptt, parts[1])} == {102}
    ptt("merge", "-o", tmp_path / "all.ptt", *parts)
    assert lines(ptt, tmp_path / "all.ptt") == lines(ptt, trace)
    assert babeltrace(tmp_path / "all.ptt") == TOTAL
    found = json.loads(ptt("stat", "--format", "json", tmp_path / "all.ptt").stdout)
    assert len(found["processes"]) == 1


def test_merge_joins_two_recordings(tmp_path: Path, ptt: Ptt) -> None:
    first, second = small(tmp_path / "a.ptt").write(), small(tmp_path / "b.ptt").write()
    rewrite_uuid(second, UUID(int=9))
    ptt("merge", "-o", tmp_path / "both.ptt", first, second)
    together = lines(ptt, tmp_path / "both.ptt")
    assert len(together) == 2 * TOTAL == babeltrace(tmp_path / "both.ptt")
    assert together == lines(ptt, first, second)
    found = json.loads(ptt("stat", "--format", "json", tmp_path / "both.ptt").stdout)
    assert len(found["processes"]) == 2


def test_view_follows_a_live_recording(tmp_path: Path, ptt: Ptt) -> None:
    made = small(tmp_path / "run.ptt")
    made.session = {"state": "running"}
    trace = made.write()
    later = [pair(T0 + 4 * 10**9 + i * 1000)[0] for i in range(5)]
    with subprocess.Popen(
        ptt.command("view", "--follow", "--format", "raw", trace),
        env=ptt.environment(), stdout=subprocess.PIPE, encoding="utf-8",
    ) as process:  # fmt: skip
        assert process.stdout
        shown = [process.stdout.readline() for _ in range(TOTAL - 1)]
        made.thread(103, later)
        made.write()
        time.sleep(0.5)
        made.session = {"state": "complete"}
        made.write_info()
        shown += process.stdout.read().splitlines(keepends=True)
        assert process.wait(timeout=120) == 0
    assert len(shown) == TOTAL + 5
    assert [line.split()[2] for line in shown[-5:]] == ["103"] * 5


def test_the_package_opens_traces(small_trace: Path) -> None:
    import nptltrace

    ts = nptltrace.open(small_trace)
    assert isinstance(ts, Traceset)
    table = ts.middle_time(fields=["wait_ns", "name"])
    assert table.num_rows == TOTAL
    assert [v for v in table["wait_ns"].to_pylist() if v is not None] == [666_000, 1500]
    assert [v for v in table["name"].to_pylist() if v is not None] == ["wörker-one"]
    # Only its creation tells of the third thread.
    assert ts.threads()["name"].to_pylist() == ["wörker-one", "", "helper"]
