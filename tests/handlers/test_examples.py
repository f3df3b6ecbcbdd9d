"""The examples: a user's own handler, and programs with their own events."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.handlers.helpers import babeltrace, run_traced
from tests.support import ROOT, clean_environment

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support import Ptt

EXAMPLES = ROOT / "examples"


def _build(source: Path, line: str, include: Path, directory: Path) -> None:
    """Run the command line in the head of an example."""
    assert f" *     {line}\n" in source.read_text()
    shutil.copy(source, directory)
    env = clean_environment(CPATH=str(include))
    done = subprocess.run(
        shlex.split(line),
        cwd=directory,
        env=env,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_the_example_handler_works(
    ptt: Ptt, program: Callable[[str], Path], tmp_path: Path, native_stage: Path
) -> None:
    _build(
        EXAMPLES / "handlers" / "contention.c",
        "cc -O2 -Wall -shared -fPIC -o libcontention.so contention.c",
        native_stage / "include",
        tmp_path,
    )
    done = run_traced(
        ptt, "./libcontention.so:1:2", program("lock_count"), "8", "5000", cwd=tmp_path
    )
    head, row = done.stderr.splitlines()
    assert head.split()[:3] == ["mutex", "taken", "waits"]
    assert int(row.split()[1]) == 40000
    assert done.stdout == "40000\n"
    # And by name through the recorder, in a directory that the dynamic linker searches.
    message = ptt(
        "record", "--handler", "contention", "--", program("lock_count"), "2", "10",
        cwd=tmp_path, env={"LD_LIBRARY_PATH": str(tmp_path)},
    ).stderr  # fmt: skip
    assert re.search(r"0x[0-9a-f]+ +20 ", message)


@pytest.mark.parametrize(
    "example",
    [
        ("orders.c", "cc -pthread -o orders orders.c", "100 orders shipped\n", 202),
        ("phases.cpp", "c++ -pthread -o phases phases.cpp", "1998000\n", 12),
    ],
)
def test_programs_can_record_their_own_events(
    ptt: Ptt, tmp_path: Path, native_stage: Path, example: tuple[str, str, str, int]
) -> None:
    name, line, output, events = example
    _build(EXAMPLES / "user_events" / name, line, native_stage / "include", tmp_path)
    prog = tmp_path / name.partition(".")[0]
    alone = subprocess.run(
        [prog], env=clean_environment(), capture_output=True, encoding="utf-8", check=True
    )
    assert (alone.stdout, alone.stderr) == (output, "")
    for handler in ("ring", "shared", "file"):
        trace = tmp_path / handler
        done = ptt("record", "--handler", handler, "-o", trace, "--", prog)
        assert done.stdout == output
        counts, message = babeltrace(trace)
        assert counts["USER"] == events
        assert message == ""


def test_python_can_record_its_own_events(ptt: Ptt, tmp_path: Path) -> None:
    script = [sys.executable, str(EXAMPLES / "user_events" / "steps.py")]
    alone = subprocess.run(
        script, env=ptt.environment(), capture_output=True, encoding="utf-8", check=True
    )
    assert (alone.stdout, alone.stderr) == ("3 steps\n", "")
    for handler in ("ring", "shared"):
        trace = tmp_path / handler
        ptt("record", "--handler", handler, "-l", "1", "-o", trace, "--", *script)
        lines = ptt("view", trace).stdout.splitlines()
        message = sorted(re.findall(r'says: event (\d\.\d), "(.*?)"', "\n".join(lines)))
        assert message == [
            ("0.0", "step 0 begins"),
            ("0.0", "step 0 is done"),
            ("0.0", "step 1 begins"),
            ("0.0", "step 1 is done"),
            ("0.0", "step 2 begins"),
            ("0.0", "step 2 is done"),
            ("1.2", "all done"),
        ]
        # Python makes the call through a C function, but that function is never the call site.
        ends = tuple(
            f"at {f} (steps.py:{n})" for f, n in (("work", 15), ("work", 17), ("<module>", 25))
        )
        made = [line for line in lines if " says: " in line]
        assert all(line.endswith(ends if handler == "ring" else '"') for line in made), made


def test_python_events_are_cheap_and_checked(ptt: Ptt) -> None:
    code = """
import sys, nptltrace
nptltrace.user_event("x")
assert not {"numpy", "pyarrow", "rich", "argparse"} & set(sys.modules)
from nptltrace.user import is_traced
assert not is_traced()
for wrong in ({"domain": 128}, {"event": -1}):
    try:
        nptltrace.user_event("x", **wrong)
    except ValueError:
        continue
    raise AssertionError(wrong)
"""
    subprocess.run([sys.executable, "-c", code], env=ptt.environment(), check=True)


def test_long_and_binary_data_is_kept(ptt: Ptt, tmp_path: Path) -> None:
    code = "from nptltrace import user_event as say; say(bytes(range(256)) * 40); say(''); say('é')"
    command = [sys.executable, "-c", code]
    for handler in ("ring", "shared", "file"):
        trace = tmp_path / handler
        ptt("record", "--handler", handler, "-l", "user=1,0", "-o", trace, "--", *command)
        lines = ptt("view", "--format", "raw", trace).stdout.splitlines()
        users = [line for line in lines if " USER " in line]
        sizes = [re.search(r" size=(\d+)", line) for line in users]
        assert [int(size[1]) for size in sizes if size] == [10240, 0, 2]
        read = subprocess.run(["babeltrace2", trace], capture_output=True, check=True)
        assert read.stderr == b""
