"""`ptt check`, `ptt sql` and the viewer name the same cycles of locks."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from nptltrace.ui.viewer import Viewer
from tests.corpus.programs import CORPUS
from tests.ui.reference import ask

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Compiler, Ptt, Recorder

QUERY = "select object_names, suppressed from lock_order_cycles"

TRIES = """
#include <pthread.h>
static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER;
static void *backwards(void *unused)
{
    for (int took = 0; !took;) {
        pthread_mutex_lock(&second);
        took = !pthread_mutex_trylock(&first);
        if (took)
            pthread_mutex_unlock(&first);
        pthread_mutex_unlock(&second);
    }
    return unused;
}
int main(void)
{
    pthread_t thread;
    pthread_create(&thread, 0, backwards, 0);
    pthread_mutex_lock(&first);
    pthread_mutex_lock(&second);
    pthread_mutex_unlock(&second);
    pthread_mutex_unlock(&first);
    return pthread_join(thread, 0);
}
"""


def cycles_of_sql(ptt: Ptt, trace: Path) -> dict[frozenset[str], list[str]]:
    rows = json.loads(ptt("sql", trace, QUERY, "--format", "json").stdout)
    return {frozenset(row["object_names"]): row["suppressed"] for row in rows}


def cycles_of_check(ptt: Ptt, trace: Path) -> set[frozenset[str]]:
    findings = json.loads(ptt("check", trace, "--format", "json", status=None).stdout)["findings"]
    kept = [finding for finding in findings if finding["kind"] == "lock-order-inversion"]
    return {frozenset(finding["object_names"]) for finding in kept}


def edges_of_viewer(trace: Path) -> dict[tuple[str, str], list[str]]:
    viewer = Viewer([trace])
    viewer.start()
    viewer.wait_ready()
    try:
        answer: dict[str, Any] = ask(viewer, "order", limit=100)
    finally:
        viewer.close()
    # The viewer names an unnamed lock by the site of its initialization and by its address.
    label = {
        node["row"]: re.sub(
            r"^of .* (0x\w+)$", r"\1", node["label"].removeprefix(f"{node['kind']} ")
        )
        for node in answer["nodes"]
    }
    return {
        (label[edge["held_row"]], label[edge["wanted_row"]]): edge["suppressed"]
        for edge in answer["edges"]
        if edge["in_cycle"]
    }


@pytest.mark.usefixtures("native_in_process")
@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("planted/lock-order-inversion/transfer.c", []),
        ("planted/lock-order-inversion/two_gates.c", []),
        ("correct/gate.c", ["gate"]),
        ("correct/same_thread_cycle.c", ["one-thread"]),
        ("correct/order_by_join.c", ["apart"]),
        (TRIES, ["try"]),
    ],
    ids=["transfer", "two_gates", "gate", "same_thread_cycle", "order_by_join", "tries"],
)
def test_all_name_the_same_cycles(
    ptt: Ptt, compile_c: Compiler, record: Recorder, source: str, why: list[str]
) -> None:
    text = source if source == TRIES else CORPUS / source
    trace = record(compile_c(text, "-pthread", "-I", str(CORPUS)), options=("-l", "3"))
    of_sql = cycles_of_sql(ptt, trace)
    assert of_sql
    assert [set(reasons) >= set(why) and bool(reasons) == bool(why) for reasons in of_sql.values()]
    reported = {locks for locks, reasons in of_sql.items() if not reasons}
    assert reported == cycles_of_check(ptt, trace)
    assert bool(reported) == (not why)
    of_viewer = edges_of_viewer(trace)
    locks = set().union(*of_sql)
    assert {name for pair in of_viewer for name in pair} == locks
    closing = {name for pair, reasons in of_viewer.items() if not reasons for name in pair}
    assert closing == set().union(*reported)
