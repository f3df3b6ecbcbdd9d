"""`ptt export --to paje`, read by pajeng and by ViTE."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.export.programs import PROGRAMS, known, waits, wakeups
from tests.support import clean_environment

Exported = Callable[[str, str], Path]
_VERB = {"contended": "waits for", "idle": "is idle at", "join": "joins",
         "timeout": "times out at", "cancelled": "gives up", "gil": "waits for GIL at",
         "unknown": "waits unknown at"}  # fmt: skip

_OF_THE_FORMAT = {"Time", "Type", "Container", "StartContainer", "EndContainer", "Value", "Key"}


def _dump(path: Path) -> list[list[str]]:
    """Return the fields of the lines of pj_dump, which must accept the file."""
    if shutil.which("pj_dump") is None:
        pytest.skip("pajeng is not installed")
    if shutil.which("pj_validate") is not None:
        subprocess.run(["pj_validate", path], check=True, timeout=60)
    done = subprocess.run(
        ["pj_dump", "-u", "-l", "9", path],
        capture_output=True, encoding="utf-8", check=False, timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    return [line.split(", ") for line in done.stdout.splitlines()]


def _ns(seconds: str) -> int:
    whole, _, fraction = seconds.partition(".")
    assert len(fraction) == 9
    return int(whole) * 10**9 + int(fraction)


def _tid(container: str) -> int:
    """Return the kernel id in the name of a thread's container, as in `worker 123 #4`."""
    match = re.search(r" (\d+) #\d+$", container)
    assert match is not None
    return int(match[1])


@pytest.mark.parametrize("name", PROGRAMS)
def test_pajeng_reads_every_wait_and_wakeup(
    exported: Exported, recorded: Callable[[str], Path], name: str
) -> None:
    trace = recorded(name)
    lines = _dump(exported("paje", name))
    states = {
        int(line[8].removeprefix("W")): (_ns(line[3]), _ns(line[5]), line[7])
        for line in lines
        if line[0] == "State" and line[2] in {"State", "Waiting"} and len(line) > 8
    }
    expected = waits(trace)
    assert len(states) == len(expected)
    for wait, _, begin, duration, kind in expected:
        assert states[wait][:2] == (begin, duration)
        assert states[wait][2].startswith(_VERB[kind] + " ")
    links = sorted(
        (int(line[9].removeprefix("W")), _tid(line[7]), _tid(line[8]), _ns(line[3]), _ns(line[4]))
        for line in lines
        if line[:3] == ["Link", "0", "Wakes"]
    )
    assert links == wakeups(trace)


def test_fields_have_the_names_of_the_columns(exported: Exported) -> None:
    head = exported("paje", "mix").read_text().partition("PajePushState")[2]
    fields = set(re.findall(r"^%\s+(\w+) \w+$", head, re.MULTILINE))
    own = {re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower() for name in fields - _OF_THE_FORMAT}
    assert {"wait_id", "owner_site", "waker_site", "release_site", "queue_depth"} <= own
    assert own <= known()


def test_objects_have_owners_and_queues(
    exported: Exported, recorded: Callable[[str], Path]
) -> None:
    from nptltrace.analysis.model import model_tables
    from nptltrace.api import Traceset

    trace = recorded("contention")
    lines = _dump(exported("paje", "contention"))
    tables = model_tables(Traceset(trace))
    held = [line for line in lines if line[0] == "State" and line[2].startswith("Held")]
    assert len(held) == tables.holds.num_rows
    most: dict[int, float] = {}
    for line in lines:
        if line[0] == "Variable":
            row = int(line[1].rpartition("#")[2])
            most[row] = max(most.get(row, 0), float(line[6]))
    waited = {row["lock_id"] for row in tables.waits.to_pylist() if row["kind"] != "thread"}
    assert {row for row, depth in most.items() if depth} == waited


@pytest.mark.parametrize("name", PROGRAMS)
def test_vite_reads_the_export(exported: Exported, tmp_path: Path, name: str) -> None:
    if shutil.which("vite") is None or shutil.which("pj_dump") is None:
        pytest.skip("ViTE is not installed")
    out = exported("paje", name)
    drawn = tmp_path / "out.svg"
    done = subprocess.run(
        ["vite", "-e", drawn, out],
        env=clean_environment(QT_QPA_PLATFORM="offscreen", HOME=str(tmp_path)),
        capture_output=True, encoding="utf-8", errors="replace", check=False, timeout=120,
    )  # fmt: skip
    assert "0 errors and 0 warnings" in done.stdout + done.stderr
    assert "<rect" in drawn.read_text()


def test_names_with_any_bytes_are_exported(
    exported: Exported, recorded: Callable[[str], Path]
) -> None:
    lines = _dump(exported("paje", "hostile"))
    names = {line[6].rsplit(" ", 2)[0] for line in lines if line[:1] == ["Container"]}
    assert {"'q\\u'o<t>&", "a b c d", "%EndEventDef", "]}},{{[", "\u00e9\u4e2d"} <= names
    waiting = [
        line for line in lines if line[0] == "State" and line[2] == "State" and len(line) > 8
    ]
    assert len(waiting) == len(waits(recorded("hostile")))
