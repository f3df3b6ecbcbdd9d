"""The options for a window, processes, threads, objects and call sites work in every command."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Compiler, Ptt, Recorder

# In each of two processes, two threads take two locks in opposite orders, at two call sites.
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
    # A reading of the scheduler behind a part can shorten a wait in the part.
    options = ("-l", "3", "--sched", "none")
    ptt("record", "-o", directory / "run.ptt", *options, "--", program)
    return directory / "run.ptt"


def run(ptt: Ptt, command: str, trace: Path, *options: str) -> Any:
    """Run a command and return its exit status and output."""
    last = {"sql": ["from waits"], "diff": [str(trace)]}.get(command, [])
    return ptt(*COMMANDS[command], *options, trace, *last, status=None)


def ids(ptt: Ptt, trace: Path) -> tuple[list[int], list[int]]:
    """Return the processes, and the threads of the first process."""
    reported = json.loads(ptt("stat", "--format", "json", trace).stdout)["processes"]
    return [item["pid"] for item in reported], [thread["tid"] for thread in reported[0]["threads"]]


@pytest.mark.parametrize("command", COMMANDS)
def test_an_option_that_matches_nothing_is_reported(ptt: Ptt, trace: Path, command: str) -> None:
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
        ("--object", "no_such_lock", "no global variable, alias or lock is called no_such_lock"),
        ("--object", "reed", "called reed; did you mean red?"),
        ("--from", "soon", "is not a duration"),
    ],
)
def test_a_wrong_value_is_an_error_of_one_line(
    ptt: Ptt, trace: Path, command: str, case: tuple[str, str, str]
) -> None:
    option, value, message = case
    done = run(ptt, command, trace, option, value)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_stat_counts_the_events_that_view_shows(ptt: Ptt, trace: Path) -> None:
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
        reported = json.loads(ptt("stat", "--format", "json", *options, trace).stdout)
        assert reported["events"] == len(shown), options
        assert reported["event_types"] == {
            name: sum(event["event"] == name for event in shown) for name in reported["event_types"]
        }
        threads = {
            (process["pid"], thread["tid"]): (
                thread["events"],
                thread["start_ns"],
                thread["end_ns"],
            )
            for process in reported["processes"]
            for thread in process["threads"]
        }
        for (pid, tid), (events, start, end) in threads.items():
            times = [e["ts_ns"] for e in shown if (e["pid"], e["tid"]) == (pid, tid)]
            assert (events, start, end) == (len(times), min(times), max(times))


def test_tables_have_the_rows_that_report_counts(ptt: Ptt, trace: Path) -> None:
    pids, tids = ids(ptt, trace)
    for options in (
        ("--pid", str(pids[1])), ("--tid", str(tids[1])), ("--object", "red"), ("--site", "pair"),
    ):  # fmt: skip
        reported = json.loads(run(ptt, "report", trace, *options).stdout)
        query = (
            "select count(*) filter (class = 'contended') as waits, "
            "(select count(*) from holds) as holds from waits"
        )
        (row,) = json.loads(ptt("sql", "--format", "json", *options, trace, query).stdout)
        assert (row["waits"], row["holds"]) == (reported["waits"], reported["holds"]), options
        assert reported["holds"] > 0
        rows = list(csv.DictReader(io.StringIO(run(ptt, "export", trace, *options).stdout)))
        assert sum(row["class"] == "contended" for row in rows) == reported["waits"]
        compared = json.loads(run(ptt, "diff", trace, *options).stdout)["total"]
        assert compared["holds"]["before"] == compared["holds"]["after"] == reported["holds"]
        live = json.loads(run(ptt, "top", trace, *options).stdout)
        assert (live["waits"], live["held_ns"]) == (reported["waits"], reported["held_ns"])


def test_figures_of_one_name_are_the_same_number(ptt: Ptt, trace: Path) -> None:
    pids, tids = ids(ptt, trace)
    for options in (
        (), ("--pid", str(pids[1])), ("--tid", str(tids[1])), ("--object", "red"),
        ("--site", "pair"), ("--object", "red", *middle(ptt, trace)),
    ):  # fmt: skip

        def rows(view: str, chosen: tuple[str, ...] = options) -> list[dict[str, Any]]:
            done = ptt("sql", "--format", "json", *chosen, trace, f"from {view}")
            found: list[dict[str, Any]] = json.loads(done.stdout)
            return found

        reported = json.loads(run(ptt, "report", trace, *options).stdout)
        threads = {(thread["pid"], thread["tid"]): thread for thread in reported["threads"]}
        asked = rows("idle_vs_contended")
        assert {(row["pid"], row["tid"]) for row in asked} == set(threads), options
        objects = {(item["pid"], item["object"]): item for item in reported["objects"]}
        pairs = [(row, threads[row["pid"], row["tid"]]) for row in asked] + [
            (row, objects.pop((row["pid"], row["object"])))
            for row in rows("contention_by_object")
            if (row["pid"], row["object"]) in objects
        ]
        assert not objects
        for row, one in pairs:
            both = row.keys() & one.keys()
            assert {name: row[name] for name in both} == {name: one[name] for name in both}


def test_holders_outside_the_part_have_names(ptt: Ptt, trace: Path) -> None:
    query = "select tid, owner_tid, owner_name from named_waits where owner_tid is not null"
    waits = json.loads(ptt("sql", "--format", "json", trace, query).stdout)
    assert waits
    tid = waits[0]["tid"]
    chosen = json.loads(ptt("sql", "--format", "json", "--tid", str(tid), trace, query).stdout)
    assert {row["tid"] for row in chosen} == {tid}
    assert all(row["owner_name"] for row in chosen)


def test_all_tables_can_show_one_process(ptt: Ptt, trace: Path) -> None:
    from nptltrace.analysis.sql.schema import TABLES

    pid = ids(ptt, trace)[0][1]
    queries = "; ".join(f"from {name}" for name in TABLES)
    text = ptt("sql", "--format", "json", "--pid", str(pid), trace, queries).stdout
    for name, table in TABLES.items():
        rows, end = json.JSONDecoder().raw_decode(text)
        text = text[end:].lstrip()
        if "pid" in table.names:
            assert {row["pid"] for row in rows} <= {pid, None}, name
    assert not text


def test_findings_can_be_limited_to_one_process(ptt: Ptt, trace: Path) -> None:
    pids, _ = ids(ptt, trace)

    def found(*options: str) -> list[dict[str, Any]]:
        document = json.loads(run(ptt, "check", trace, *options).stdout)
        return [
            finding for finding in document["findings"] if finding["kind"] == "lock-order-inversion"
        ]

    assert {item["pid"] for item in found()} == set(pids)
    assert {item["pid"] for item in found("--pid", str(pids[0]))} == {pids[0]}
    (tid, *_) = found("--pid", str(pids[1]))[0]["threads"]
    assert [item["pid"] for item in found("--tid", str(tid))] == [pids[1]]
    assert len(found("--object", "red")) == len(found("--site", "pair")) == 2
    moment = found()[0]["ts_ns"]
    assert not found("--from", f"{moment + 10**9}ns")
    assert found("--from", f"{moment}ns", "--to", f"{moment + 1}ns")
    query = "select pid from findings where kind = 'lock-order-inversion'"
    rows = ptt("sql", "--format", "json", "--pid", str(pids[0]), trace, query).stdout
    assert json.loads(rows) == [{"pid": pids[0]}]


def middle(ptt: Ptt, trace: Path) -> tuple[str, str, str, str]:
    """Return the options for the part between the first and the last quarter of the events."""
    lines = ptt("view", "--format", "jsonl", "--object", "red,blue", trace).stdout.splitlines()
    begin, end = (json.loads(lines[len(lines) * n // 4])["ts_ns"] for n in (1, 3))
    return ("--from", f"{begin}ns", "--to", f"{end}ns")


def test_cut_writes_the_events_that_view_shows(ptt: Ptt, trace: Path, tmp_path: Path) -> None:
    pids, _ = ids(ptt, trace)
    for number, options in enumerate((
        ("--object", "red"), ("--site", "pair"), ("--object", "blue", "--pid", str(pids[1])),
        ("--object", "red,blue", *middle(ptt, trace)),
    )):  # fmt: skip
        part = tmp_path / f"{number}.ptt"
        ptt("cut", *options, "-o", part, trace)
        shown = ptt("view", "--format", "jsonl", *options, trace).stdout
        assert shown.strip()
        assert ptt("view", "--format", "jsonl", *options, part).stdout == shown
        types = json.loads(ptt("stat", "--format", "json", part).stdout)["event_types"]
        assert "--from" in options or types["THREAD_BEGIN"] == (2 if "--pid" in options else 4)


def test_report_of_a_cut_equals_the_report_with_the_options_of_the_cut(
    ptt: Ptt, trace: Path, tmp_path: Path
) -> None:
    options = ("--object", "red", *middle(ptt, trace))
    ptt("cut", *options, "-o", tmp_path / "part.ptt", trace)
    ptt("split", *options, "-o", tmp_path / "parts", trace)
    for pid in ids(ptt, trace)[0]:
        one = ("--pid", str(pid))
        expected = json.loads(run(ptt, "report", trace, *options, *one).stdout)
        written = [json.loads(run(ptt, "report", tmp_path / "part.ptt", *one).stdout)]
        if (tmp_path / "parts" / f"{pid}.ptt").exists():
            written.append(json.loads(run(ptt, "report", tmp_path / "parts" / f"{pid}.ptt").stdout))
        for report in written:
            for name in ("waits", "wait_ns", "held_ns", "holds"):
                assert report[name] == expected[name], name


def test_check_draws_no_conclusion_from_events_that_a_cut_lacks(
    ptt: Ptt, trace: Path, tmp_path: Path
) -> None:
    ptt("cut", "--site", "pair", "-o", tmp_path / "part.ptt", trace)
    done = run(ptt, "check", tmp_path / "part.ptt")
    assert json.loads(done.stdout)["findings"] == []
    assert "findings that need all events" in done.stderr


def test_top_ends_at_the_end_of_the_window(ptt: Ptt, trace: Path) -> None:
    to = middle(ptt, trace)[2:]
    whole, part = (json.loads(run(ptt, "top", trace, *options).stdout) for options in ((), to))
    assert part["ts_ns"] == int(to[1].removesuffix("ns")) < whole["ts_ns"]
    assert part["total_waits"] <= whole["total_waits"]


def test_split_writes_only_the_chosen_part(ptt: Ptt, trace: Path, tmp_path: Path) -> None:
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


FIGURES = ("waits", "wait_ns", "held_ns", "holds", "elapsed_ns")


def figures(ptt: Ptt, *words: str | Path) -> list[int]:
    """Return the figures of a report on waits and holds."""
    reported = json.loads(ptt("report", "--format", "json", *words).stdout)
    return [reported[name] for name in FIGURES]


def test_merge_restores_a_window_that_was_split(ptt: Ptt, trace: Path, tmp_path: Path) -> None:
    window = middle(ptt, trace)
    ptt("cut", *window, "-o", tmp_path / "part.ptt", trace)
    for number, (source, options) in enumerate(((trace, window), (tmp_path / "part.ptt", ()))):
        for by in ("process", "thread"):
            pieces, whole = tmp_path / f"{by}{number}", tmp_path / f"{by}{number}.ptt"
            ptt("split", "--by", by, *options, "-o", pieces, source)
            ptt("merge", "-o", whole, *sorted(pieces.iterdir()))
            assert figures(ptt, whole) == figures(ptt, *window, trace), (source, by)


def test_merge_of_consecutive_windows_restores_the_trace(
    ptt: Ptt, trace: Path, tmp_path: Path
) -> None:
    window = middle(ptt, trace)
    ptt("cut", "--to", window[1], "-o", tmp_path / "a.ptt", trace)
    ptt("cut", "--from", window[1], "-o", tmp_path / "b.ptt", trace)
    both = (tmp_path / "a.ptt", tmp_path / "b.ptt")
    ptt("merge", "-o", tmp_path / "whole.ptt", *both)
    assert figures(ptt, tmp_path / "whole.ptt") == figures(ptt, trace)
    ptt("merge", *window, "-o", tmp_path / "part.ptt", *both)
    assert figures(ptt, tmp_path / "part.ptt") == figures(ptt, *window, trace)


def test_merge_takes_the_options_for_a_part(ptt: Ptt, trace: Path, tmp_path: Path) -> None:
    _, tids = ids(ptt, trace)
    ptt("record", "-o", tmp_path / "two.ptt", "-l", "3", "--", "true")
    two = (trace, tmp_path / "two.ptt")
    for number, options in enumerate((
        middle(ptt, trace), ("--object", "red"), ("--site", "pair"), ("--tid", str(tids[1])),
        ("--object", "red", *middle(ptt, trace)),
    )):  # fmt: skip
        part = tmp_path / f"{number}.ptt"
        ptt("merge", *options, "-o", part, *two)
        # The holder may have taken the lock at another site, outside the part.
        count = 2 if "--site" in options else 3
        assert figures(ptt, part)[:count] == figures(ptt, *options, *two)[:count], options
    done = ptt("merge", "--tid", "999999", "-o", tmp_path / "none.ptt", *two)
    assert "no thread matches --tid 999999" in done.stderr
    done = ptt("merge", "--pid", "x", "-o", tmp_path / "none.ptt", *two, status=2)
    assert "--pid takes numbers" in done.stderr


# The parent uses no lock, so only events of the child tell of the child's lock.
CHILD = r"""
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t red = PTHREAD_MUTEX_INITIALIZER;

static void *hold(void *unused)
{
	pthread_mutex_lock(&red);
	usleep(20000);
	pthread_mutex_unlock(&red);
	return unused;
}

int main(void)
{
	pthread_t a, b;

	if (fork() != 0)
		return wait(NULL) < 0;
	pthread_create(&a, NULL, hold, NULL);
	usleep(5000);
	pthread_create(&b, NULL, hold, NULL);
	pthread_join(a, NULL);
	return pthread_join(b, NULL);
}
"""


def test_a_cut_has_the_hold_of_a_child_in_which_it_begins(
    ptt: Ptt, compile_c: Compiler, record: Recorder, tmp_path: Path
) -> None:
    trace = record(compile_c(CHILD))
    lines = ptt("view", "--format", "jsonl", trace).stdout.splitlines()
    events = [json.loads(line) for line in lines]
    (taken,) = (e["ts_ns"] for e in events if e["event"] == "MUTEX_TAKEN" and e.get("wait_ns"))
    window = ("--from", f"{taken + 5_000_000}ns")
    ptt("cut", *window, "-o", tmp_path / "part.ptt", trace)
    found = figures(ptt, tmp_path / "part.ptt")
    assert found == figures(ptt, *window, trace)
    assert found[FIGURES.index("holds")] == 1
