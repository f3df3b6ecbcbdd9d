"""Spark and DuckDB give the same answers from a store; pysail is a Spark without Java."""

from __future__ import annotations

import json
import sys
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pytest

from nptltrace.analysis.sql.views import VIEWS
from tests.fleet.many import multiply
from tests.fleet.test_sliced import contents
from tests.support import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.fleet.conftest import Traces
    from tests.support import Ptt, Recorder

_NEEDED = ("pysail", "pyspark", "sqlglot")
pytestmark = [
    pytest.mark.skipif(
        any(find_spec(name) is None for name in _NEEDED),
        reason="needs pip install pysail pyspark-client sqlglot",
    ),
    pytest.mark.slow,
    pytest.mark.timeout(600),
]

# pysail has no recursion, and some of its discrete percentiles are the next larger value.
WITHOUT = ("blocked_chains", "contention_by_object")
QUERIES = (
    "from gil",
    *(f"from {v.name}" for v in VIEWS if v.parameters is None and v.name not in WITHOUT),
    "select exe, count(*) as runs from runs group by all order by all",
    "select kind, quantile_disc(dur_ns, 1.0) as most from waits group by all order by all",
    "select address(255) as a, format('{} and {}', 1, 'x') as b, avg(2.5)::bigint as c",
    "select count(*) as n from wait_graph(1000000)",
    "select count(*) as n from held_at(1000000)",
)
ASKED = (
    ("report", "--by", "release"),
    ("report", "--by", "host", "--only", "release=1.1"),
    ("check", "--by", "release"),
    ("diff", "--only", "release=1.0", "--against", "release=1.2"),
)


@contextmanager
def server() -> Iterator[str]:
    """Run a server of Spark Connect and give its address."""
    from pysail.spark import SparkConnectServer

    serving = SparkConnectServer(ip="127.0.0.1", port=0)
    serving.start(background=True)
    try:
        ip, port = serving.listening_address
        yield f"sc://{ip}:{port}"
    finally:
        serving.stop()


def answers(ptt: Ptt, store: str, query: str, *options: str) -> list[list[Any]]:
    """Return the rows of each statement of a query, sorted."""
    args = ("sql", "--store", store, query, "--format", "json", *options)
    text, results = ptt(*args, timeout=400).stdout, []
    while text := text.strip():
        rows, end = json.JSONDecoder().raw_decode(text)
        results.append(sorted(rows, key=str))
        text = text[end:]
    return results


def test_both_engines_answer_alike(ptt: Ptt, record: Recorder, traces: Traces, store: str) -> None:
    ptt("fleet", "add", store, *traces.forth, traces.alone, "--label", "release=1.0")
    interpreter = record(sys.executable, ROOT / "tests" / "programs" / "python_convoy.py")
    ptt("fleet", "add", store, traces.reverse, interpreter)
    assert answers(ptt, store, "from gil") != [[]]
    assert multiply(store, 6) == 42
    script = ";\n".join(QUERIES)
    with server() as address:
        spark = ("--engine", "spark", "--remote", address)
        theirs = answers(ptt, store, script, *spark)
        for nonsense, message in (
            ("select nonsense from runs", "nonsense"),
            ("select (", "sqlglot"),
            ("from blocked_chains", "cannot have blocked_chains"),
        ):
            failed = ptt("sql", "--store", store, nonsense, *spark, status=2).stderr
            assert message in failed.splitlines()[-1]
        for asked in ASKED:
            args = (asked[0], store, *asked[1:], "--format", "json")
            ours, answer = (ptt("fleet", *args, *on, status=None) for on in ((), spark))
            assert ours.returncode in {0, 1}, ours.stderr
            assert (answer.returncode, answer.stdout) == (ours.returncode, ours.stdout), asked
    for query, one, other in zip(QUERIES, answers(ptt, store, script), theirs, strict=True):
        assert other == one, query


def test_spark_makes_slices(ptt: Ptt, traces: Traces, tmp_path: Path) -> None:
    whole, slices = str(tmp_path / "whole"), str(tmp_path / "slices")
    ptt("fleet", "add", whole, traces.reverse)
    with server() as address:
        spark = ("--engine", "spark", "--remote", address)
        ptt("fleet", "add", slices, traces.reverse, "--slices", "3", *spark, timeout=300)
    assert contents(slices) == contents(whole)


def test_any_value_of_some_rows_is_in_sparks_grammar() -> None:
    from nptltrace.fleet.spark_sql import statements

    (statement,) = statements(
        "select any_value(name) filter (where number = 1) as one from objects"
    )
    # Spark has no filter behind IGNORE NULLS; pysail takes both.
    assert "any_value(name) filter(where number = 1 and not name is null)" in statement.lower()
