"""`ptt sql`: formats, sources of queries, files, errors and the prompt."""

from __future__ import annotations

import csv
import io
import json
import os
import pty
import select
import signal
import subprocess
from typing import TYPE_CHECKING, Self
from uuid import uuid4

import pyarrow.parquet
import pytest

from tests.trace.builder import Builder, Event

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Ptt

T0 = 10**12
QUERY = "select tid, class, dur_ns, null as nothing, [tid] as list from waits order by tid"


def trace_of(path: Path, process: int = 100) -> Path:
    made = Builder(path)
    made.uuid = uuid4()
    wait = {"owner": 1}
    taken = {"result": 0, "wait_ns": 80}
    made.thread(1, [Event(T0, "MUTEX_TAKEN", 64, 5), Event(T0 + 100, "MUTEX_FREE", 64, 6)])
    made.thread(
        2,
        [
            Event(T0 + 20, "MUTEX_WAIT", 64, 7, fields=wait),
            Event(T0 + 100, "MUTEX_TAKEN", 64, 7, variant="WAITED", fields=taken),
        ],
    )
    made.processes = [{"process": {"index": 0, "pid": process, "exe": "/bin/x", "cmdline": ["x"]}}]
    return made.write()


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    return trace_of(tmp_path / "run.ptt")


def test_the_default_output_is_a_table(ptt: Ptt, trace: Path) -> None:
    done = ptt("sql", trace, QUERY)
    assert done.stdout == (
        "tid  class      dur_ns  nothing  list\n  2  contended      80  -        [2]\n"
    )


def test_formats_for_machines_keep_values(ptt: Ptt, trace: Path) -> None:
    expected = {"tid": 2, "class": "contended", "dur_ns": 80, "nothing": None, "list": [2]}
    assert json.loads(ptt("sql", trace, QUERY, "--format", "json").stdout) == [expected]
    (line,) = ptt("sql", "--format", "jsonl", trace, QUERY).stdout.splitlines()
    assert json.loads(line) == expected
    table = list(csv.reader(io.StringIO(ptt("sql", trace, QUERY, "--format", "csv").stdout)))
    assert table == [list(expected), ["2", "contended", "80", "", "[2]"]]


def test_addresses_are_written_as_in_other_commands(ptt: Ptt, trace: Path) -> None:
    query = "select addr, addr + 1 as sum, null::ubigint as site from objects where kind = 'mutex'"
    (row,) = json.loads(ptt("sql", trace, query, "--format", "json").stdout)
    assert row == {"addr": f"{row['sum'] - 1:#x}", "sum": row["sum"], "site": None}
    report = json.loads(ptt("report", trace, "--format", "json").stdout)
    assert row["addr"] in [item["object"] for item in report["objects"]]
    (line,) = csv.DictReader(io.StringIO(ptt("sql", trace, query, "--format", "csv").stdout))
    assert line["addr"] == row["addr"]


def test_formats_without_a_value_write_a_substitute(ptt: Ptt, trace: Path) -> None:
    query = "select 1.5::decimal(4, 2) d, 'a\nb' s, 'nan'::double n, {'x': 1} st, 1 as a, 2 as a"
    (row,) = json.loads(ptt("sql", trace, query, "--format", "json").stdout)
    assert row == {"d": 1.5, "s": "a\nb", "n": None, "st": {"x": 1}, "a": 1, "a_2": 2}
    assert "a\\nb" in ptt("sql", trace, query).stdout


def test_a_name_stands_for_its_rows(ptt: Ptt, trace: Path) -> None:
    for name in ("waits", "named_waits"):
        whole = ptt("sql", trace, f"from {name}", "--format", "csv").stdout
        assert ptt("sql", trace, name, "--format", "csv").stdout == whole
        assert len(whole.splitlines()) == 2


def test_options_stand_anywhere(ptt: Ptt, trace: Path) -> None:
    query = "select 1 as a"
    for words in (
        (trace, query, "--format", "csv"),
        (trace, "--format", "csv", query),
        ("--format", "csv", trace, query),
        (trace, "-v", query, "--format", "csv"),
    ):
        assert ptt("sql", *words).stdout == "a\n1\n"


def test_a_query_without_rows(ptt: Ptt, trace: Path) -> None:
    query = "select tid from waits where tid = 77"
    assert ptt("sql", trace, query).stdout == "tid\n"
    assert json.loads(ptt("sql", trace, query, "--format", "json").stdout) == []
    assert ptt("sql", trace, query, "--format", "csv").stdout == "tid\n"


def test_queries_from_standard_input(ptt: Ptt, trace: Path) -> None:
    text = "create temp table t as select 7 as a;\nselect a from t;\n-- the end\nselect 8 as b;"
    assert ptt("sql", trace, stdin=text).stdout == "a\n7\n\nb\n8\n"
    assert ptt("sql", trace, stdin="").stdout == ""


def test_a_query_can_read_several_traces(ptt: Ptt, trace: Path, tmp_path: Path) -> None:
    other = trace_of(tmp_path / "other.ptt", process=200)
    query = "select pid, count(*) as n from waits join runs using (run_id) group by all order by 1"
    assert ptt("sql", trace, other, query, "--format", "csv").stdout == "pid,n\n100,1\n200,1\n"


def test_options_choose_a_part_of_the_trace(ptt: Ptt, trace: Path) -> None:
    query = "select count(*) as n from events"
    assert ptt("sql", trace, query, "--from", "50ns", "--format", "csv").stdout == "n\n2\n"


def test_aliases_name_objects(ptt: Ptt, trace: Path, tmp_path: Path) -> None:
    aliases = tmp_path / "aliases"
    aliases.write_text("0x40 the_lock\n")
    query = "select name, name_source from objects"
    done = ptt("sql", trace, query, "--alias", aliases, "--format", "csv")
    assert done.stdout == "name,name_source\nthe_lock,alias\n"


def test_answers_go_to_files(ptt: Ptt, trace: Path, tmp_path: Path) -> None:
    for name in ("a.parquet", "a.csv", "a.json", "a.jsonl", "a.txt"):
        done = ptt("sql", trace, QUERY, "-o", tmp_path / name)
        assert (done.stdout, done.stderr) == ("", f"ptt: wrote 1 row to {tmp_path / name}\n")
    assert pyarrow.parquet.read_table(tmp_path / "a.parquet")["dur_ns"].to_pylist() == [80]
    assert json.loads((tmp_path / "a.json").read_text())[0]["dur_ns"] == 80
    assert (tmp_path / "a.csv").read_text().startswith("tid,class")
    done = ptt("sql", trace, QUERY, "-o", tmp_path / "a.csv", status=2)
    assert "exists (--force replaces it)" in done.stderr
    ptt("sql", trace, "select 1 as one", "-o", tmp_path / "a.csv", "--force")
    assert (tmp_path / "a.csv").read_text() == "one\n1\n"


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (("select objekt from named_waits",), "did you mean object"),
        (("select 1,\nnope from waits",), "(line 2, column 1)"),
        (("selec",), "selec is neither a trace nor a query"),
        (("",), "the query is empty"),
        (("select 1", "-o", "x.xls"), "x.xls: the name must end in one of .parquet, .csv"),
        (("create temp table t (a int)", "-o", "x.csv"), "has no result"),
        (("select 1; select 2", "-o", "x.csv"), "-o needs one query"),
    ],
)
def test_errors_are_one_line(
    ptt: Ptt, trace: Path, tmp_path: Path, arguments: tuple[str, ...], what: str
) -> None:
    done = ptt("sql", trace, *arguments, status=2, cwd=tmp_path)
    assert done.stderr.startswith("ptt: error: ")
    assert what in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_missing_trace_is_an_error(ptt: Ptt, tmp_path: Path) -> None:
    done = ptt("sql", tmp_path / "no.ptt", status=2)
    assert done.stderr == f"ptt: error: {tmp_path}/no.ptt: does not exist\n"


def test_an_interrupt_ends_a_query(ptt: Ptt, trace: Path) -> None:
    """The interrupt also ends a query that is not from the terminal."""
    query = "select 'begun'; select count(*) from range(1000000000000) a(i) where hash(i) = 3"
    process = subprocess.Popen(
        ptt.command("sql", trace, query, "--format", "csv"),
        stdout=subprocess.PIPE, env=ptt.environment({"PYTHONUNBUFFERED": "1"}),
    )  # fmt: skip
    assert process.stdout is not None
    with process.stdout:
        assert process.stdout.readline() == b"'begun'\n"
        # The second query may or may not have started by then.
        process.send_signal(signal.SIGINT)
        assert process.wait(200) == 130


class Terminal:
    """A terminal with `ptt sql` behind it, which ends at the latest with the `with` statement."""

    def __init__(self, ptt: Ptt, trace: Path, home: Path) -> None:
        main, side = pty.openpty()
        self._main = main
        # A shell in the background may have the tests ignore interrupts.
        own = ["setsid", "--ctty", "--wait", "env", "--default-signal=INT"]
        self._process = subprocess.Popen(
            [*own, *ptt.command("sql", trace)],
            stdin=side, stdout=side, stderr=side,
            env=ptt.environment({"HOME": str(home), "XDG_STATE_HOME": None, "TERM": "dumb"}),
        )  # fmt: skip
        os.close(side)
        self.text = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()  # after a failed test, a query may be endless
        self._process.wait()
        os.close(self._main)

    def expect(self, text: str) -> None:
        """Wait until the terminal shows a text behind the last expected text."""
        assert self._shows(text, 60), f"no {text!r} in {self.text!r}"

    def _shows(self, text: str, patience_s: float) -> bool:
        while text not in self.text:
            if not select.select([self._main], [], [], patience_s)[0]:
                return False
            self.text += os.read(self._main, 4096).decode().replace("\r", "")
        self.text = self.text.partition(text)[2]
        return True

    def type(self, text: str) -> None:
        os.write(self._main, text.encode())

    def interrupt(self) -> None:
        """Type Ctrl-C at a prompt, until there is a new one.

        Python misses an interrupt that comes between the prompt and the wait for a key.
        """
        self.type("\x03")
        while not self._shows("ptt> ", 5):
            self.type("\x03")

    def end(self) -> int:
        """Type Ctrl-D and return the exit status."""
        self.type("\x04")
        return self._process.wait(60)


def test_the_prompt_answers_queries(ptt: Ptt, trace: Path, tmp_path: Path) -> None:
    with Terminal(ptt, trace, tmp_path) as terminal:
        terminal.expect("ptt> ")
        terminal.type("select tid,\n")
        terminal.expect("...> ")
        terminal.type("  dur_ns from waits;\n")
        terminal.expect("tid  dur_ns\n  2      80\n(1 row)\nptt> ")
        terminal.type("select ';' as semicolon;\n")
        terminal.expect("semicolon\n;\n(1 row)\nptt> ")
        terminal.type("select nope from waits;\n")
        terminal.expect("error: ")
        terminal.expect("ptt> ")
        terminal.type(".tables\n")
        terminal.expect("wakeups")
        terminal.expect("contention_by_object")
        terminal.expect("ptt> ")
        terminal.type(".schema waits\n")
        terminal.expect("dur_ns")
        terminal.expect("ptt> ")
        terminal.type(".schema wait_graph\n")
        terminal.expect("wait_graph(at_ns)")
        terminal.expect("ptt> ")
        terminal.type(".format csv\nselect 1 as a, 2 as b;\n")
        terminal.expect("a,b\n1,2\nptt> ")
        terminal.type(".help\n")
        terminal.expect("Ctrl-D")
        terminal.type(".nonsense\n")
        terminal.expect("error: no command .nonsense")
        terminal.expect("ptt> ")
        assert terminal.end() == 0
    assert "select ';' as semicolon;" in (
        tmp_path / ".local" / "state" / "ptt" / "sql-history"
    ).read_text().replace("\\040", " ")


def test_the_prompt_drops_a_query_and_stops(ptt: Ptt, trace: Path, tmp_path: Path) -> None:
    with Terminal(ptt, trace, tmp_path) as terminal:
        terminal.expect("ptt> ")
        terminal.type("select half\n")
        terminal.expect("...> ")
        terminal.interrupt()
        endless = "select count(*) from range(1000000000000) a(i) where hash(i) = 3"
        terminal.type(f"select 'begun'; {endless};\n")
        terminal.expect("(1 row)\n")
        terminal.type("\x03")
        terminal.expect("^C\nptt> ")
        terminal.type("select 6 * 7 as answer;\n")
        terminal.expect("42")
        terminal.expect("ptt> ")
        assert terminal.end() == 0


def test_commands_of_the_prompt_in_a_script(ptt: Ptt, trace: Path) -> None:
    script = "\n.tables\nselect 1 as one;\n.format csv\nselect 2 as\n two;\n.schema lost\n.quit\nno"
    lines = ptt("sql", trace, stdin=script).stdout.splitlines()
    assert any(line.startswith("waits  ") for line in lines)
    assert "one" in lines
    at = lines.index("two")
    assert lines[at + 1] == "2"
    assert lines[at + 2].startswith("lost: ")
    assert ptt("sql", trace, ".tables").stdout.startswith("runs ")
    assert "no command .tabels" in ptt("sql", trace, ".tabels", status=2).stderr
