"""Runtimes of other languages: Ruby's mutexes have owners; others are said to have none."""

from __future__ import annotations

import json
import shutil
import time
from typing import TYPE_CHECKING, Any

import pytest

from tests.hang.looking import running
from tests.support import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support import Compiler, Ptt

CROSSED = ROOT / "tests" / "programs" / "ruby" / "crossed.rb"


def _seen(ptt: Ptt, pid: str, so: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    """Return the answer of `ptt hang` when the program has reached its final state."""
    until = time.monotonic() + 20
    while True:
        answer: dict[str, Any] = json.loads(
            ptt("hang", "--format", "json", pid, status=None).stdout
        )
        if so(answer) or time.monotonic() > until:
            return answer


@pytest.mark.skipif(shutil.which("ruby") is None, reason="needs Ruby")
def test_ruby_mutexes_have_owners(ptt: Ptt) -> None:
    with running("ruby", CROSSED) as pid:
        answer = _seen(ptt, pid, lambda answer: answer["findings"])
    named = {thread["name"]: thread for thread in answer["threads"]}
    first = next(thread for thread in answer["threads"] if str(thread["tid"]) == pid)
    assert [finding["kind"] for finding in answer["findings"]] == ["deadlock"]
    assert set(answer["findings"][0]["threads"]) == {first["tid"], named["other"]["tid"]}
    waits = {name: thread["waits_for"] for name, thread in named.items()}
    assert waits["waiter"]["kind"] == "lock"
    assert waits["waiter"]["owner_tid"] == named["holder"]["tid"]
    assert waits["waiter"]["name"].startswith("Mutex@")
    assert not {waits[name]["owner_tid"] for name in ("queue", "condition", "holder")} - {None}
    assert answer["uncovered"] == []


def test_locks_without_owners_are_uncovered(compile_c: Compiler, ptt: Ptt) -> None:
    source = """
        #include <unistd.h>
        __attribute__((section(".go.buildinfo"), used)) char info[32];
        int main(void) { return pause(); }
    """
    program = compile_c(source, name="of_go")
    with running(program) as pid:
        answer = _seen(ptt, pid, lambda answer: answer["threads"][0]["waits_for"])
        text = ptt("hang", pid).stdout
    why = "the owners of mutexes and channels of Go are unknown"
    assert answer["uncovered"] == [{"module": str(program), "why": why}]
    assert "not covered:" in text
