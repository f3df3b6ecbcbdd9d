"""Kinds of findings that users add: every output has them; each mistake is one line."""

from __future__ import annotations

import csv
import io
import json
import re
import subprocess
import sys
from textwrap import dedent
from typing import TYPE_CHECKING, Any

import pytest

import nptltrace
from nptltrace._binding import libptttrack_facts
from nptltrace.errors import UsageError
from nptltrace.findings import kinds, load
from nptltrace.findings.facts import FACTS
from nptltrace.ui import protocol
from nptltrace.ui.shapes import fits
from nptltrace.ui.viewer import Viewer
from tests.analysis.story import A, B, C, Story
from tests.support import ROOT
from tests.ui.reference import ask

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support import Ptt, Result

RULES = '''
from nptltrace.findings import Found, finding

@finding("held-too-long", severity="warning")
def held_too_long(trace):
    """A thread held a lock for more than 5 us."""
    for hold in trace.sql("from named_holds where dur_ns > 5000").to_pylist():
        yield Found(
            f"thread {hold['tid']} held {hold['object_name']}", hold["t_ns"], hold["process"],
            threads=[hold["tid"]], objects=[hold['object_name']], sites=[hold["site"]],
        )
'''
PLUGIN = '''
from nptltrace.findings import finding

@finding("any-inversion", severity="error")
def any_inversion(trace):
    """An order of locks that can deadlock."""
    for fact in trace.facts("order-cycle"):
        yield fact.found(f"{len(fact.objects)} locks in two orders")
'''


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """A trace with a hold of 20 us, and with the release of a lock that is free."""
    story = Story().create(1).lock(1, A).sleep(20_000).unlock(1, A).lock(1, B).unlock(1, B, C)
    return story.write_to(tmp_path / "made.ptt")


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    path = tmp_path / "my_rules.py"
    path.write_text(RULES)
    return path


@pytest.fixture
def loaded(rules: Path) -> Iterator[None]:
    """Load the rules of the file in this process for one test."""
    from nptltrace.findings import kind as module

    kinds()
    before = dict(module._KINDS)
    load(rules)
    yield
    module._KINDS.clear()
    module._KINDS.update(before)


def checked(ptt: Ptt, *args: str | Path, status: int = 1) -> list[dict[str, Any]]:
    done = ptt("check", "--format", "json", *args, status=status)
    findings: list[dict[str, Any]] = json.loads(done.stdout)["findings"]
    return findings


# ---- every output ----


def test_errors_stand_before_warnings(ptt: Ptt, rules: Path, trace: Path) -> None:
    in_time = [finding["severity"] for finding in checked(ptt, "--rules", rules, trace)]
    text = ptt("check", "--rules", rules, trace, status=1).stdout
    shown = re.findall(r"^(\w+): .* at ", text, re.MULTILINE)
    assert shown == ["error", "warning"]
    assert in_time == ["warning", "error"]


def test_json(ptt: Ptt, trace: Path, rules: Path) -> None:
    own, unlock = checked(ptt, "--rules", rules, trace)
    assert unlock["kind"] == "unlock-unlocked"
    assert own["kind"] == "held-too-long"
    assert own["severity"] == "warning"
    assert own["message"] == f"thread 1 held {A:#x}"
    assert own["threads"] == [1]
    assert own["objects"] == own["object_names"] == [hex(A)]
    assert len(own["sites"]) == 1
    assert isinstance(own["ts_ns"], int)
    assert own["pid"] == 100


def test_text_and_csv(ptt: Ptt, trace: Path, rules: Path) -> None:
    text = ptt("check", "--rules", rules, trace, status=1).stdout
    assert "warning: held-too-long at 0." in text
    assert f"  Thread 1 held {A:#x}.\n" in text
    assert text.endswith("2 findings: 1 held-too-long, 1 unlock-unlocked\n")
    done = ptt("check", "--rules", rules, "--format", "csv", trace, status=1)
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert [row["kind"] for row in rows] == ["held-too-long", "unlock-unlocked"]


def test_kinds_and_what_is_known(ptt: Ptt, trace: Path, rules: Path, tmp_path: Path) -> None:
    own = ("--rules", rules)
    assert len(checked(ptt, *own, "--kind", "held-too-long", trace)) == 1
    assert len(checked(ptt, *own, "--kind", "unlock-unlocked", trace)) == 1
    assert (
        checked(ptt, *own, "--ignore", f"*:{A:#x}", "--ignore", "unlock-unlocked", trace, status=0)
        == []
    )
    known = tmp_path / "known.txt"
    known.write_text("held-too-long\nunlock-unlocked\n")
    assert checked(ptt, *own, "--suppressions", known, trace, status=0) == []
    done = ptt("check", "--kind", "held-too-long", trace, status=2)
    assert "there is no kind 'held-too-long'" in done.stderr


def test_several_files(ptt: Ptt, trace: Path, rules: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.py"
    other.write_text(RULES.replace("held-too-long", "held-long").replace("5000", "50000"))
    findings = checked(ptt, "--rules", rules, "--rules", other, trace)
    assert [finding["kind"] for finding in findings] == ["held-too-long", "unlock-unlocked"]


def test_sql(ptt: Ptt, trace: Path, rules: Path) -> None:
    query = "select kind, severity, message from findings order by kind"
    done = ptt("sql", "--rules", rules, "--format", "json", trace, query)
    assert json.loads(done.stdout)[0] == {
        "kind": "held-too-long",
        "severity": "warning",
        "message": f"thread 1 held {A:#x}",
    }


def test_export(ptt: Ptt, trace: Path, rules: Path, tmp_path: Path) -> None:
    out = tmp_path / "findings.csv"
    ptt("export", "--format", "csv", "--table", "findings", "--rules", rules, "-o", out, trace)
    assert "held-too-long" in out.read_text()


def test_findings_from_the_package(loaded: None, trace: Path) -> None:
    found = nptltrace.open(trace).findings()
    assert found["kind"].to_pylist() == ["held-too-long", "unlock-unlocked"]


def test_the_viewer(trace: Path, rules: Path, loaded: None) -> None:
    def answered() -> protocol.Findings:
        viewer = Viewer([trace])
        viewer.start()
        try:
            answer: protocol.Findings = ask(viewer, "findings")
            return answer
        finally:
            viewer.close()

    answer = answered()
    assert fits(protocol.Findings, answer)
    assert [row["kind"] for row in answer["findings"]] == ["held-too-long", "unlock-unlocked"]
    assert "held-too-long" in answer["kinds"]
    assert answer["failures"] == []
    # Findings of other rules are not shown again.
    rules.write_text(RULES.replace("5000", "50000"))
    load(rules)
    assert [finding["kind"] for finding in answered()["findings"]] == ["unlock-unlocked"]
    rules.write_text(RULES.replace("named_holds", "nothing"))
    load(rules)
    (failure,) = answered()["failures"]
    assert "nothing" in failure


def test_a_file_that_is_loaded_again_replaces_its_kinds(loaded: None, rules: Path) -> None:
    assert "held-too-long" in kinds()
    rules.write_text(RULES.replace("held-too-long", "held-longer"))
    load(rules)
    assert "held-longer" in kinds()
    assert "held-too-long" not in kinds()


# ---- during the recording ----

LOCKED = """
#include <pthread.h>
#include <unistd.h>
pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
int main(void)
{
	pthread_mutex_lock(&lock);
	pthread_mutex_unlock(&lock);
	for (int i = 0; i < 600; i++)
		usleep(100000);
	return 0;
}
"""


def test_follow(ptt: Ptt, compile_c: Any, tmp_path: Path) -> None:
    rules, trace = tmp_path / "rules.py", tmp_path / "run.ptt"
    own = RULES.replace("dur_ns > 5000", "object_name = 'lock'").replace(
        "objects=[hold['object_name']], ", ""
    )
    rules.write_text(own)
    command = ptt.command("record", "-q", "-o", trace, "--", compile_c(LOCKED))
    with subprocess.Popen(command, env=ptt.environment()) as recorder:
        while not (trace / "info" / "processes.jsonl").exists():
            assert recorder.poll() is None
        with subprocess.Popen(
            ptt.command("check", "--follow", "--rules", rules, trace), env=ptt.environment(),
            stdout=subprocess.PIPE, encoding="utf-8",
        ) as follower:  # fmt: skip
            assert follower.stdout
            # It reports the finding while the program still runs.
            while "held lock" not in (line := follower.stdout.readline()):
                assert line
            assert recorder.poll() is None
            recorder.terminate()
            rest = follower.stdout.read()
            assert "held lock" not in rest
            assert "held-too-long" in rest
            assert follower.wait(timeout=60) == 1
        recorder.wait(timeout=60)


# ---- wrong files ----


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("def f(:\n", "line 1: invalid syntax"),
        ("import os\n\nos.nothing\n", "line 3: AttributeError: "),
        ("x = 1\n", "has no function with the decorator @finding"),
        ("raise SystemExit(0)\n", "line 1: SystemExit"),
        (RULES.replace("warning", "fatal"), "line 4: @finding: severity is"),
        (RULES.replace("held-too-long", "Held"), "line 4: @finding: 'Held' must be lower-case"),
        (RULES.replace("held-too-long", "deadlock"), "@finding: there is a kind 'deadlock'"),
        (RULES.replace('"""A thread', '"A thread').replace('us."""', 'us." + ""'), "a docstring"),
        ("\0", "null bytes"),
    ],
)  # fmt: skip
def test_wrong_files(ptt: Ptt, trace: Path, rules: Path, text: str, error: str) -> None:
    rules.write_text(text)
    export = ("export", "--format", "csv", "-o", "-")
    for command in (("check",), ("ui",), ("sql",), export):
        done = ptt(*command, "--rules", rules, trace, status=2)
        assert done.stderr.startswith(f"ptt: error: {rules}")
        assert error in done.stderr
        assert done.stderr.count("\n") == 1


def test_no_file(ptt: Ptt, trace: Path) -> None:
    done = ptt("check", "--rules", "missing.py", trace, status=2)
    assert done.stderr == "ptt: error: missing.py: No such file or directory\n"


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ("raise KeyError('x')", "line 7): KeyError: 'x'"),
        ("return trace.sql('from nothing')", "line 7): "),
        ("return trace.table('findings')", "cannot read the table findings"),
        ("return trace.sql('from findings')", "cannot read the table findings"),
        ("return trace.facts('nothing')", "there are no facts 'nothing'"),
        ("return [1]", "yielded a int, and not a Found"),
        ("return 5", "TypeError"),
        ("return [Found('x', 0, process=7)]", "there is no process 7"),
        ("return [Found('x', 0, severity='bad')]", "severity is 'error' or 'warning'"),
        ("return [Found('x', 'now')]", "ValueError"),
        ("raise SystemExit(0)", "SystemExit"),
    ],
)
def test_a_rule_that_fails_is_named_and_the_others_go_on(
    ptt: Ptt, trace: Path, tmp_path: Path, body: str, error: str
) -> None:
    rules = tmp_path / "rules.py"
    rules.write_text(
        dedent(f'''
        from nptltrace.findings import Found, finding

        @finding("broken", severity="error")
        def broken(trace):
            """A rule with a mistake."""
            {body}
        ''')
        + RULES.partition("finding\n")[2]
    )
    done = ptt("check", "--format", "json", "--rules", rules, trace, status=2)
    found = [finding["kind"] for finding in json.loads(done.stdout)["findings"]]
    assert found == ["held-too-long", "unlock-unlocked"]
    assert done.stderr.startswith(f"ptt: error: broken ({rules}")
    assert error in done.stderr
    assert "Traceback" not in done.stderr


def test_a_rule_that_is_not_asked_for_does_not_run(ptt: Ptt, trace: Path, rules: Path) -> None:
    rules.write_text(RULES.replace("named_holds", "nothing"))
    assert len(checked(ptt, "--rules", rules, "--kind", "unlock-unlocked", trace)) == 1


def test_sql_refuses_incomplete_findings(ptt: Ptt, trace: Path, rules: Path) -> None:
    rules.write_text(RULES.replace("named_holds", "nothing"))
    done = ptt("sql", "--rules", rules, trace, "from findings", status=2)
    assert "held-too-long" in done.stderr


def test_loading_says_what_is_wrong(rules: Path) -> None:
    rules.write_text("import nothing_of_this_name\n")
    with pytest.raises(UsageError, match="line 1: ModuleNotFoundError"):
        load(rules)


# ---- installed packages ----


def installed(ptt: Ptt, place: Path, text: str, trace: Path, status: int) -> Result:
    """Check a trace with a package that adds a kind."""
    info = place / "plugin-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: plugin\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[nptltrace.findings]\nmine = plugin_of_mine\n")
    (place / "plugin_of_mine.py").write_text(text)
    return ptt("check", trace, status=status, env={"PYTHONPATH": f"{place}:{ROOT / 'src'}"})


def test_entry_points(ptt: Ptt, tmp_path: Path) -> None:
    trace = Story().create(1, 2).both(1, A, B).both(2, B, A).write_to(tmp_path / "made.ptt")
    done = installed(ptt, tmp_path / "site", PLUGIN, trace, 1)
    assert "error: any-inversion" in done.stdout
    assert "2 locks in two orders" in done.stdout.lower()


def test_a_broken_entry_point_is_named(ptt: Ptt, trace: Path, tmp_path: Path) -> None:
    done = installed(ptt, tmp_path / "site", "import nothing_of_this_name\n", trace, 2)
    assert "mine (plugin_of_mine): ModuleNotFoundError" in done.stderr
    assert "unlock-unlocked" in done.stdout


# ---- the kinds of PTT ----


def test_each_kind_of_ptt_is_complete() -> None:
    own = [kind for kind in kinds().values() if kind.group]
    assert len(own) >= 16
    for kind in own:
        assert kind.severity in {"error", "warning"}
        summary, _, rest = kind.text.partition("\n\n")
        assert "\n" not in summary, f"{kind.name}: the first line says what it is"
        assert rest, f"{kind.name}: the rest says what it takes"
        assert kind.file.endswith(f"/{kind.group}/{kind.name.replace('-', '_')}.py")


def test_each_fact_is_described() -> None:
    assert tuple(FACTS) == libptttrack_facts.FACTS


def test_names_of_kinds_need_no_columns(ptt: Ptt) -> None:
    """Help and completion need the names, and must be quick."""
    code = (
        "import sys; from nptltrace.findings import kinds; kinds(); "
        "print({'numpy', 'pyarrow', 'duckdb'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=ptt.environment(), capture_output=True, encoding="utf-8",
        check=False, timeout=60,
    )  # fmt: skip
    assert done.stdout == "set()\n", done.stderr


def test_completion_offers_kinds(ptt: Ptt) -> None:
    assert "lock-order-inversion" in ptt("completion", "bash").stdout


def test_the_page_has_each_kind() -> None:
    from nptltrace.cli.pages.findings_page import MARK, filled

    text = (ROOT / "docs" / "reference" / "findings.md").read_text(encoding="utf-8")
    assert MARK in text
    page = filled(text)
    for name, kind in kinds().items():
        if kind.group:
            assert f"### {name}\n" in page
            assert kind.text in page
