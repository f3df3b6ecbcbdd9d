"""The tree of call stacks: what its lines leave out."""

from __future__ import annotations

import pytest

from nptltrace.analysis.report.stacks.trees import ReportStacks, StackFigures
from nptltrace.cli.output.text.stack_text import lines


@pytest.mark.parametrize(
    ("frame", "shown"),
    [
        ("db::Write(Options const&, Batch*)+0x74 (libdb.so)", "db::Write+0x74 (libdb.so)"),
        ("void db::f<int>(int) const+0x1", "db::f<int>+0x1"),
        ("std::function<void (int)>::operator()(int) const+0x2",
         "std::function<void (int)>::operator()+0x2"),
        ("(anonymous namespace)::run(int) (a.cc:12)", "(anonymous namespace)::run (a.cc:12)"),
        ("worker (app.py:12)", "worker (app.py:12)"),
        ("start_thread+0x305 (pthread_create.c:442)", "start_thread+0x305 (pthread_create.c:442)"),
        ("[unknown]", "[unknown]"),
    ],
)  # fmt: skip
def test_functions_stand_without_their_parameters(frame: str, shown: str) -> None:
    found = ReportStacks("waits", [StackFigures((frame,), count=1, ns=5)])
    *_, last = lines(found, name="run.ptt", bottom_up=False, top=None)
    assert last.endswith(f"  {shown}")
    assert last.strip().startswith("5 ns")
