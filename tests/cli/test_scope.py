"""The options for a window, processes, threads, objects and call sites work in every command."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Ptt

# Threads of two processes each hold and want two locks in both orders, at two call sites.
PROGRAM = r"""
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

pthread_mutex_t red = PTHREAD_MUTEX_INITIALIZER, blue = PTHREAD_MUTEX_INITIALIZER;
static volatile int done;

static void pair(pthread_mutex_t *a, pthread_mutex_t *b)
{
	pthread_mutex_lock(a);
	usleep(2000);
	pthread_mutex_lock(b);
	pthread_mutex_unlock(b);
	pthread_mutex_unlock(a);
}

static void *one(void *unused)
{
	pair(&red, &blue);
	done = 1;
	return unused;
}

static void *other(void *unused)
{
	pthread_mutex_lock(&red);
	usleep(2000);
	pthread_mutex_unlock(&red);
	/* No deadlock, and nothing in the trace says why not. */
	while (!done)
		usleep(500);
	pair(&blue, &red);
	return unused;
}

int main(void)
{
	pthread_t a, b;

	if (fork() == 0)
		usleep(1000);
	pthread_create(&a, NULL, one, NULL);
	pthread_create(&b, NULL, other, NULL);
	pthread_join(a, NULL);
	pthread_join(b, NULL);
	wait(NULL);
	return 0;
}
"""
COMMANDS = {
    "stat": ["stat", "--format", "json"],
    "report": ["report", "--format", "json"],
    "check": ["check", "--format", "json"],
    "verify": ["verify", "--format", "json"],
    "sql": ["sql", "--format", "json"],
    "top": ["top", "--format", "json"],
    "view": ["view", "--format", "jsonl"],
    "export": ["export", "--format", "csv", "--table", "waits", "-o", "-"],
    "chrome": ["export", "--format", "chrome", "-o", "-"],
    "diff": ["diff", "--format", "json"],
}


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory, ptt: Ptt, native_stage: Path) -> Path:
    from tests.support import Compiler

    directory = tmp_path_factory.mktemp("scope")
    program = Compiler(directory, native_stage / "include")(PROGRAM)
    ptt("record", "-o", directory / "run.ptt", "-l", "3", "--", program)
    return directory / "run.ptt"


def run(ptt: Ptt, command: str, trace: Path, *options: str) -> Any:
    """Run a command and return what it exits with and prints."""
    last = {"sql": ["from waits"], "diff": [str(trace)]}.get(command, [])
    return ptt(*COMMANDS[command], *options, trace, *last, status=None)


def ids(ptt: Ptt, trace: Path) -> tuple[list[int], list[int]]:
    """Return the processes, and the threads of the first."""
    told = json.loads(ptt("stat", "--format", "json", trace).stdout)["processes"]
    return [one["pid"] for one in told], [thread["tid"] for thread in told[0]["threads"]]


@pytest.mark.parametrize("command", COMMANDS)
def test_what_matches_nothing_is_said(ptt: Ptt, trace: Path, command: str) -> None:
    for option in ("--pid", "--tid"):
        done = run(ptt, command, trace, option, "999999")
        assert done.returncode == 0, done.stderr
        assert f"no thread matches {option} 999999" in done.stderr
    done = run(ptt, command, trace, "--site", "no_such_place")
    assert "no call site matches --site no_such_place" in done.stderr
    if command != "top":
        done = run(ptt, command, trace, "--from", "10h")
        assert "nothing comes after --from" in done.stderr


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    "case",
    [
        ("--pid", "x", "--pid takes numbers"),
        ("--tid", ",", "--tid: an empty value"),
        ("--object", "no_such_lock", "no global variable or alias is called no_such_lock"),
        ("--from", "soon", "is not a duration"),
    ],
)
def test_a_wrong_value_is_one_line(
    ptt: Ptt, trace: Path, command: str, case: tuple[str, str, str]
) -> None:
    option, value, said = case
    done = run(ptt, command, trace, option, value)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_stat_counts_what_view_shows(ptt: Ptt, trace: Path) -> None:
    pids, tids = ids(ptt, trace)
    for options in (
        ("--pid", str(pids[1])), ("--tid", str(tids[1])), ("--object", "red"),
        ("--site", "pair"), ("--event", "MUTEX"), ("--from", "2ms", "--to", "6ms"),
        ("--object", "blue", "--pid", str(pids[0]), "--from", "1ms"),
    ):  # fmt: skip
        shown = [
            json.loads(line)
            for line in ptt("view", "--format", "jsonl", *options, trace).stdout.splitlines()
        ]
        told = json.loads(ptt("stat", "--format", "json", *options, trace).stdout)
        assert told["events"] == len(shown), options
        assert told["event_types"] == {
            name: sum(event["event"] == name for event in shown) for name in told["event_types"]
        }
        threads = {
            (one["pid"], thread["tid"]): (thread["events"], thread["start_ns"], thread["end_ns"])
            for one in told["processes"]
            for thread in one["threads"]
        }
        for (pid, tid), (events, start, end) in threads.items():
            times = [e["ts_ns"] for e in shown if (e["pid"], e["tid"]) == (pid, tid)]
            assert (events, start, end) == (len(times), min(times), max(times))


def test_tables_have_what_report_counts(ptt: Ptt, trace: Path) -> None:
    pids, tids = ids(ptt, trace)
    for options in (
        ("--pid", str(pids[1])), ("--tid", str(tids[1])), ("--object", "red"), ("--site", "pair"),
    ):  # fmt: skip
        told = json.loads(run(ptt, "report", trace, *options).stdout)
        query = (
            "select count(*) filter (class = 'contended') as waits, "
            "(select count(*) from holds) as holds from waits"
        )
        (row,) = json.loads(ptt("sql", "--format", "json", *options, trace, query).stdout)
        assert (row["waits"], row["holds"]) == (told["waits"], told["holds"]), options
        assert told["holds"] > 0
        rows = list(csv.DictReader(io.StringIO(run(ptt, "export", trace, *options).stdout)))
        assert sum(row["class"] == "contended" for row in rows) == told["waits"]
        compared = json.loads(run(ptt, "diff", trace, *options).stdout)["total"]
        assert compared["holds"]["before"] == compared["holds"]["after"] == told["holds"]
        live = json.loads(run(ptt, "top", trace, *options).stdout)
        assert (live["waits"], live["held_ns"]) == (told["waits"], told["held_ns"])


def test_all_tables_of_one_process(ptt: Ptt, trace: Path) -> None:
    from nptltrace.analysis.sql.schema import TABLES

    pid = ids(ptt, trace)[0][1]
    for name, table in TABLES.items():
        rows = json.loads(
            ptt("sql", "--format", "json", "--pid", str(pid), trace, f"from {name}").stdout
        )
        if "pid" in table.names:
            assert {row["pid"] for row in rows} <= {pid, None}, name


def test_findings_of_one_process(ptt: Ptt, trace: Path) -> None:
    pids, _ = ids(ptt, trace)

    def found(*options: str) -> list[dict[str, Any]]:
        document = json.loads(run(ptt, "check", trace, *options).stdout)
        return [one for one in document["findings"] if one["kind"] == "lock-order-inversion"]

    assert {one["pid"] for one in found()} == set(pids)
    assert {one["pid"] for one in found("--pid", str(pids[0]))} == {pids[0]}
    (tid, *_) = found("--pid", str(pids[1]))[0]["threads"]
    assert [one["pid"] for one in found("--tid", str(tid))] == [pids[1]]
    assert len(found("--object", "red")) == len(found("--site", "pair")) == 2
    moment = found()[0]["ts_ns"]
    assert not found("--from", f"{moment + 10**9}ns")
    assert found("--from", f"{moment}ns", "--to", f"{moment + 1}ns")
    query = "select pid from findings where kind = 'lock-order-inversion'"
    rows = ptt("sql", "--format", "json", "--pid", str(pids[0]), trace, query).stdout
    assert json.loads(rows) == [{"pid": pids[0]}]


def test_split_writes_what_is_chosen(ptt: Ptt, trace: Path, tmp_path: Path) -> None:
    pids, tids = ids(ptt, trace)
    ptt("split", "--pid", str(pids[1]), "-o", tmp_path / "one", trace)
    assert [path.name for path in (tmp_path / "one").iterdir()] == [f"{pids[1]}.ptt"]
    ptt("split", "--by", "thread", "--tid", f"{tids[0]},{tids[1]}", "-o", tmp_path / "two", trace)
    assert {path.name for path in (tmp_path / "two").iterdir()} == {
        f"{pids[0]}-{tid}.ptt" for tid in tids[:2]
    }
    none = ptt("split", "--pid", "999999", "-o", tmp_path / "none", trace)
    assert "no thread matches --pid 999999: the trace has processes" in none.stderr
    assert not (tmp_path / "none").exists()
