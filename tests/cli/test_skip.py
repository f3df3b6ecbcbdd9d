"""`--skip`: all commands skip functions and modules, from the option or from the settings."""

from __future__ import annotations

import errno
import json
from typing import TYPE_CHECKING

import pytest

from nptltrace.cli.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support import Compiler, Ptt, Recorder

QUERY = """select distinct sites.site from waits join stacks using (run_id, stack_id)
    join sites using (run_id, site_id) where kind = 'mutex'"""
CALLERS = {"read_row", "write_row", "flush_log", "take_snapshot", "drop_table"}


@pytest.fixture(scope="module")
def trace(
    tmp_path_factory: pytest.TempPathFactory, ptt: Ptt, program: Callable[[str], Path]
) -> Path:
    out = tmp_path_factory.mktemp("skip") / "run.ptt"
    ptt("record", "-o", out, "--", program("five_callers"))
    return out


def site_names(ptt: Ptt, trace: Path, *options: str, env: dict[str, str] | None = None) -> set[str]:
    """Return the call sites of waits for the mutex, in a report."""
    command = ("report", "--by", "site", "--format", "json", "--object", "g_lock")
    document = json.loads(ptt(*command, *options, trace, env=env).stdout)
    return {site["site"] for site in document["sites"] if site["waits"]}


class TestOption:
    """Callers replace a wrapper as call sites if the trace has stacks."""

    def test_a_report_skips_wrappers(self, ptt: Ptt, trace: Path) -> None:
        (name,) = site_names(ptt, trace)
        assert name.startswith("db_lock+")
        skipped = site_names(ptt, trace, "--skip", "db_*,libother.so*")
        assert {name.partition("+")[0] for name in skipped} == CALLERS

    @pytest.mark.parametrize(
        "command",
        [
            ("view", "--event", "MUTEX_WAIT"),
            ("view", "--event", "MUTEX_WAIT", "--format", "jsonl"),
            ("sql", "--format", "csv"),
        ],
    )
    def test_other_commands_skip_wrappers(
        self, ptt: Ptt, trace: Path, command: tuple[str, ...]
    ) -> None:
        query = [QUERY] if command[0] == "sql" else []
        for options, skipped in (((), False), (("--skip", "db_lock"), True)):
            text = ptt(*command, *options, trace, *query).stdout
            assert all((f"{caller}+" in text) is skipped for caller in CALLERS)

    def test_a_stack_of_wrappers_alone_keeps_its_site(self, ptt: Ptt, trace: Path) -> None:
        assert site_names(ptt, trace, "--skip", "*") == site_names(ptt, trace)

    def test_an_empty_pattern_is_refused(self, ptt: Ptt, trace: Path) -> None:
        done = ptt("report", "--skip", "a,", trace, status=2)
        assert "an empty pattern in 'a,'" in done.stderr


class TestSettings:
    """`ptt config --skip` remembers patterns for all commands."""

    def test_patterns_are_remembered_and_forgotten(
        self, ptt: Ptt, trace: Path, tmp_path: Path
    ) -> None:
        env = {"XDG_CONFIG_HOME": str(tmp_path)}
        done = ptt("config", "--skip", 'db_lock,"odd"', "--settings", env=env)
        assert done.stdout == f"{tmp_path}/nptltrace/settings.toml\n"
        found = site_names(ptt, trace, env=env)
        assert {name.partition("+")[0] for name in found} == CALLERS
        ptt("config", "--skip", "", env=env)
        assert all("db_lock" in name for name in site_names(ptt, trace, env=env))

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("skip = 3", "skip must be a list of patterns"),
            ("skip = [", "settings.toml: "),
            ("skipped = []", "there is no setting 'skipped'"),
        ],
    )
    def test_a_damaged_settings_file_is_reported(
        self, ptt: Ptt, trace: Path, tmp_path: Path, text: str, message: str
    ) -> None:
        path = tmp_path / "nptltrace" / "settings.toml"
        path.parent.mkdir()
        path.write_text(text)
        done = ptt("report", trace, env={"XDG_CONFIG_HOME": str(tmp_path)}, status=2)
        assert message in done.stderr
        assert len(done.stderr.splitlines()) == 1

    def test_a_settings_directory_without_permission_is_empty(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        """For example, HOME may still be the home of root, with no settings of this user."""

        def refuse(path: Path, *_: object) -> str:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))

        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
        monkeypatch.setattr("pathlib.Path.read_text", refuse)
        assert Settings.read() == Settings()
        Settings.path().parent.mkdir()
        Settings.path().touch()
        with pytest.raises(PermissionError):
            Settings.read()


class TestView:
    """`ptt view --stacks` prints the callers beneath an event."""

    def test_callers_follow_their_event(self, ptt: Ptt, trace: Path) -> None:
        command = ("view", "--event", "MUTEX", "--object", "g_lock", "--stacks", "--format", "text")
        lines = ptt(*command, trace).stdout.splitlines()
        plain = [line for line in lines if line.lstrip()[0].isdigit()]
        assert plain == ptt(*command[:5], trace).stdout.splitlines()
        waits = [n for n, line in enumerate(lines) if "is blocked" in line]
        assert {lines[n + 1].split("+")[0].strip() for n in waits} == CALLERS
        assert all(lines[n + 2].split("+")[0].strip() == "run" for n in waits)

    def test_stacks_need_text_output(self, ptt: Ptt, trace: Path) -> None:
        done = ptt("view", "--stacks", "--format", "raw", trace, status=2)
        assert "--stacks needs --format text" in done.stderr


class TestByStack:
    """`ptt report --by stack`: a tree from the callers or from the call sites."""

    def test_a_tree_starts_at_the_callers(self, ptt: Ptt, trace: Path) -> None:
        lines = ptt("report", "--by", "stack", "-n", "0", trace).stdout.splitlines()
        assert "contended waits, by waiter" in lines[1]
        for caller in CALLERS:
            (at,) = (n for n, line in enumerate(lines) if f" {caller}+" in line)
            assert lines[at + 1].split()[0].startswith("db_lock+")

    def test_a_tree_can_start_at_the_call_sites(self, ptt: Ptt, trace: Path) -> None:
        command = ("report", "--by", "stack", "--bottom-up", "--object", "g_lock")
        lines = ptt(*command, trace).stdout.splitlines()
        top = [line for line in lines if " db_lock+" in line]
        assert len(top) == 1
        assert " 100.0% " in top[0]
        beneath = lines[lines.index(top[0]) + 1 :]
        names = [line.partition(" (")[0].split()[-1].partition("+")[0] for line in beneath]
        assert set(names) >= CALLERS
        assert names.count("run") == len(CALLERS)

    def test_the_tree_has_json(self, ptt: Ptt, trace: Path) -> None:
        for show, (count, ns, total) in {
            "waits": ("waits", "wait_ns", "wait_ns"),
            "holders": ("waits", "wait_caused_ns", "held_ns"),
            "holds": ("holds", "hold_ns", "hold_ns"),
            "idle": ("idle_waits", "idle_ns", "idle_ns"),
        }.items():
            command = ("report", "--by", "stack", "--show", show, "--format", "json")
            document = json.loads(ptt(*command, trace).stdout)
            assert sum(stack[ns] for stack in document["stacks"]) == document[total]
            assert sum(stack[count] for stack in document["stacks"]) == document[count]
            assert all(stack["stack"] for stack in document["stacks"])

    def test_the_tree_needs_a_trace_with_stacks(self, ptt: Ptt, trace: Path) -> None:
        done = ptt("report", "--show", "holds", trace, status=2)
        assert "--show needs --by stack" in done.stderr


DEADLOCK = """
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t both;
static __attribute__((noinline)) void take(pthread_mutex_t *lock)
{
	pthread_mutex_lock(lock);
	__asm__ volatile("");
}
static __attribute__((noinline)) void *forth(void *arg)
{
	take(&a);
	pthread_barrier_wait(&both);
	take(&b);
	return arg;
}
static __attribute__((noinline)) void *back(void *arg)
{
	take(&b);
	pthread_barrier_wait(&both);
	take(&a);
	return arg;
}
int main(void)
{
	pthread_t one, two;
	pthread_barrier_init(&both, NULL, 2);
	pthread_create(&one, NULL, forth, NULL);
	pthread_create(&two, NULL, back, NULL);
	usleep(300000);
	exit(0);
}
"""


class TestEvidence:
    """The events of a finding have the stacks of both sides."""

    def test_a_deadlock_shows_both_stacks(
        self, ptt: Ptt, compile_c: Compiler, record: Recorder
    ) -> None:
        trace = record(compile_c(DEADLOCK))
        command = ("check", "--kind", "deadlock", "--skip", "take")
        (found,) = json.loads(ptt(*command, "--format", "json", trace, status=1).stdout)["findings"]
        waits = [event for event in found["events"] if "waits for" in event["text"]]
        stacks = [[frame.partition("+")[0] for frame in event["stack"]] for event in waits]
        assert {stack[0] for stack in stacks} == {"forth", "back"}
        assert all(event["stack"][0] == event["site"] for event in waits)
        assert all(event["stack"] for event in found["events"])
        text = ptt(*command, "-v", trace, status=1).stdout
        assert all(frame in text for event in waits for frame in event["stack"])
