"""Names that are not UTF-8, that control a terminal, or that an encoding does not have."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Compiler, Ptt

# Two threads with the name in the argument take two locks in opposite orders, one thread after the
# other. No traced event orders the two threads.
PROGRAM = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
static pthread_mutex_t locks[2] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
static const char *name;
static int done;
static void *run(void *order)
{
	int mine = (long)order;

	pthread_setname_np(pthread_self(), name);
	while (__atomic_load_n(&done, __ATOMIC_SEQ_CST) != mine)
		sched_yield();
	pthread_mutex_lock(&locks[mine]);
	pthread_mutex_lock(&locks[!mine]);
	pthread_mutex_unlock(&locks[!mine]);
	pthread_mutex_unlock(&locks[mine]);
	__atomic_store_n(&done, mine + 1, __ATOMIC_SEQ_CST);
	return 0;
}
int main(int argc, char **argv)
{
	pthread_t t[2];

	name = argv[argc - 1];
	for (long i = 0; i < 2; i++)
		pthread_create(&t[i], 0, run, (void *)i);
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], 0);
}
"""
RAW = b"\xfe \xffx"
OBEYED = "\x1b[31mred\n\u202e"
TEXT_COMMANDS = ("view", "stat", "report", "check", "verify")


@pytest.fixture
def named(ptt: Ptt, compile_c: Compiler, tmp_path: Path) -> Any:
    """Record the program under a name in bytes; its threads get the name in the argument."""

    def make(name: bytes) -> Path:
        program = os.fsencode(compile_c(PROGRAM, "-pthread"))
        link = os.fsencode(tmp_path) + b"/n\xe9"
        os.symlink(program, link)  # noqa: PTH211 -- bytes
        trace = tmp_path / "odd.ptt"
        command = [os.fsencode(word) for word in ptt.command("record", "-q", "-o", trace, "--")]
        done = subprocess.run(
            [*command, link, name], env=ptt.environment(), capture_output=True, check=False
        )
        assert (done.returncode, done.stderr) == (0, b"")
        return trace

    return make


def test_names_that_are_not_utf8_lose_no_event(ptt: Ptt, named: Any, tmp_path: Path) -> None:
    trace = named(RAW)
    json.loads((trace / "info" / "session.json").read_bytes())
    for command in TEXT_COMMANDS:
        done = ptt(command, trace, status=None)
        assert done.returncode in {0, 1}
        assert done.stderr == ""
    document = json.loads(ptt("stat", trace, "--format", "json").stdout)
    assert document["level"] == "2"
    assert document["processes"][0]["cmdline"][1] == r"\xfe \xffx"
    rows = json.loads(
        ptt("sql", trace, "select exe, cmdline from processes", "--format=json").stdout
    )
    assert rows[0]["exe"].endswith(r"n\xe9") or "programs" in rows[0]["exe"]
    assert r"\xfe \xffx" in rows[0]["cmdline"]
    ptt("sql", trace, "select * from runs, threads, modules")
    for style in ("csv", "parquet", "paje", "perfetto", "chrome"):
        ptt("export", "--to", style, "-o", tmp_path / f"out.{style}", trace)
    ptt("cut", trace, "--count", "5", "-o", tmp_path / "cut.ptt")
    assert ptt("stat", tmp_path / "cut.ptt").stderr.count("damaged") == 0
    ptt("ui", "--export", tmp_path / "page.html", trace)


def test_the_trace_of_a_killed_recorder_is_recovered(ptt: Ptt, named: Any) -> None:
    """The recovery also reads names in raw bytes."""
    trace = named(RAW)
    path = trace / "info" / "session.json"
    facts = path.read_bytes().replace(b"complete", b"running").replace(rb"\udcfe", b"\xfe")
    path.write_bytes(facts)
    ptt("recover", trace)
    assert json.loads(ptt("stat", trace, "--format", "json").stdout)["level"] == "2"
    assert ptt("stat", trace).stderr == ""


def test_check_draws_no_conclusion_from_filtered_events(
    ptt: Ptt, compile_c: Compiler, tmp_path: Path
) -> None:
    """The filter leaves out the releases of mutexes."""
    program = compile_c(PROGRAM, "-pthread")
    trace, chosen = tmp_path / "part.ptt", "!MUTEX_FREE"
    words = ptt.command("record", "-q", "-o", trace, "--filter", chosen, "--", program)
    command = [*(os.fsencode(word) for word in words), RAW]
    subprocess.run(command, env=ptt.environment(), check=True)
    assert "exit-holding-lock" not in ptt("check", trace, status=None).stdout


@pytest.mark.parametrize("command", TEXT_COMMANDS)
def test_names_cannot_control_a_terminal(ptt: Ptt, named: Any, command: str) -> None:
    text = ptt(command, named(OBEYED.encode()), status=None).stdout
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert r"\x1b[31mred" in text or command == "verify"
    assert all(character == "\n" or character.isprintable() for character in text)


def test_names_in_raw_lines_cannot_control_a_terminal(ptt: Ptt, named: Any) -> None:
    """Raw lines escape characters that change the direction of text, and blanks."""
    text = ptt("view", "--format", "raw", named(OBEYED.encode())).stdout
    assert "%1b[31mred%0a%e2%80%ae" in text
    assert all(character == "\n" or character.isprintable() for character in text)


def test_data_formats_keep_names_unchanged(ptt: Ptt, named: Any) -> None:
    trace = named(OBEYED.encode())
    events = [
        json.loads(line)
        for line in ptt("view", trace, "--format", "jsonl").stdout.split("\n")
        if line
    ]
    assert OBEYED in {event["thread_name"] for event in events}
    table = csv.DictReader(io.StringIO(ptt("sql", trace, "from threads", "--format", "csv").stdout))
    assert OBEYED in {row["name"] for row in table}


@pytest.mark.parametrize("encoding", ["latin-1", "ascii"])
def test_commands_work_with_any_encoding(ptt: Ptt, named: Any, encoding: str) -> None:
    env = {"PYTHONIOENCODING": encoding}
    trace = named("→".encode())
    for command in ("report", "view", "stat"):
        assert "usage:" in ptt(command, "--help", env=env).stdout
        ptt(command, trace, env=env)
    assert json.loads(ptt("stat", trace, "--format", "json", env=env).stdout)["events"] > 0


def test_names_with_blanks_stay_whole(ptt: Ptt, named: Any, tmp_path: Path) -> None:
    trace = named(b"plain")
    (document,) = json.loads(ptt("check", trace, "--format=json", status=1).stdout)["findings"]
    aliases = tmp_path / "names"
    first, second = document["objects"]
    aliases.write_text(f"{first} local(int, char)::lk\n{second} Reg<int, long>::m\n")
    named_so = ("--alias", aliases)
    (document,) = json.loads(ptt("check", trace, *named_so, "--format=json", status=1).stdout)[
        "findings"
    ]
    assert document["object_names"] == ["local(int, char)::lk", "Reg<int, long>::m"]
    ptt("check", trace, *named_so, "--ignore", "lock-order-inversion:Reg<int")


def test_messages_cannot_control_a_terminal(ptt: Ptt, tmp_path: Path, compile_c: Compiler) -> None:
    trace = tmp_path / OBEYED
    untraceable = tmp_path / f"program {OBEYED}"
    compile_c("int main(void) { return 0; }", "-static").rename(untraceable)
    for result in (
        ptt("record", "-o", tmp_path / "none", "--", untraceable),
        ptt("record", "-o", trace, "--", "true"),
        ptt("record", "-o", trace, "--", "true", status=2),
        ptt("check", tmp_path / OBEYED / OBEYED, status=2),
    ):
        assert r"\x1b[31mred" in result.stderr
        assert all(c == "\n" or c.isprintable() for c in result.stderr)
        assert "red\n" not in result.stderr
