"""Python functions in the stacks of CPython's threads."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nptltrace.hang.stack.cpython import Pythons
from nptltrace.hang.stack.names import Names, OneProcess
from nptltrace.hang.targets.process import Process
from nptltrace.trace.symbols.lookup import Symbols
from tests.hang.looking import asleep, running

if TYPE_CHECKING:
    from tests.support import Ptt

# Several frames of one call of the interpreter, a call from C in between, a line far down in a
# function, a name that is not ASCII, and a generator. One stack has more frames than are walked.
PROGRAM = textwrap.dedent("""\
    import threading

    lock = threading.Lock()
    lock.acquire()


    class Store:
        def take(self):
            total = 0
            for number in range(3):
                total += number



            return lock.acquire()


    def numbers():
        yield Store().take()


    def über(key):
        return next(numbers())


    def work(depth):
        return sorted([1], key=über) if not depth else max([depth - 1], key=work)


    for name, depth in ("a", 0), ("b", 40):
        threading.Thread(target=work, args=[depth], name=name).start()
    threading.Event().wait()
""")
_NAMES = {"python3", *(f"python3.{minor}" for minor in range(8, 16))}
STACK = ["take (prog.py:15)", "numbers (prog.py:19)", "über (prog.py:23)", "work (prog.py:27)"]


def interpreters() -> list[str]:
    """Return this Python, the system's, and the pyenv Pythons with a readable frame layout."""
    kept = Path.home() / ".pyenv/versions"
    pythons = {str(p) for n in range(8, 16) for p in kept.glob(f"3.{n}.*/bin/python")}
    of_system = {str(p.resolve()) for p in Path("/usr/bin").glob("python3*") if p.name in _NAMES}
    return sorted({sys.executable, *pythons, *of_system})


def minor_of(python: str) -> int:
    done = subprocess.run(
        [python, "-c", "import sys; print(sys.version_info[1])"],
        capture_output=True, encoding="utf-8", check=False,
    )  # fmt: skip
    return int(done.stdout or "0")


@pytest.mark.parametrize("python", interpreters())
def test_stacks_have_python_functions(python: str, ptt: Ptt, tmp_path: Path) -> None:
    minor = minor_of(python)
    if not 8 <= minor <= 15:
        pytest.skip(f"frames of Python 3.{minor} are not read")
    program = tmp_path / "prog.py"
    program.write_text(PROGRAM, encoding="utf-8")
    with running(python, program) as pid:
        answer = asleep(ptt, pid, 3)
        text = ptt("hang", pid, status=None).stdout
    names = [thread["name"] for thread in answer["threads"]]
    assert sorted({*names} & {"a", "b"}) == ["a", "b"], names
    stacks = [
        [re.sub(r"^.*\.", "", f.split(" ")[0]) + f" {f.split(' ')[-1]}" for f in thread["stack"]]
        for thread in answer["threads"]
    ]
    workers = [s for s in stacks if "work (prog.py:27)" in s]
    assert len(workers) == 2, json.dumps(answer["threads"], indent=1)
    for stack in workers:
        begin = stack.index(STACK[0])
        assert stack[begin : begin + 4] == STACK
    assert sorted(stack.count(STACK[-1]) for stack in workers) == [1, 41]
    # The line of the program, not the line in Python's library that waits for the program.
    assert f"<module> (prog.py:{PROGRAM.count(chr(10))})" in text
    assert "threading.py" not in text
    if minor >= 11:
        assert "Store.take (prog.py:15)" in text
    assert not any(
        "EvalFrame" in frame for thread in answer["threads"] for frame in thread["stack"]
    )


@pytest.mark.skipif(not Path("/usr/bin/python3").exists(), reason="the system has no Python")
def test_a_program_of_any_name_may_contain_an_interpreter(ptt: Ptt, tmp_path: Path) -> None:
    """Its sleeping threads show their Python functions."""
    server = tmp_path / "server"
    shutil.copy(Path("/usr/bin/python3").resolve(), server)
    program = tmp_path / "prog.py"
    program.write_text(PROGRAM.replace("range(3)", "range(4)"), encoding="utf-8")
    with running(server, program) as pid:
        answer = asleep(ptt, pid, 3)
    stacks = [" ".join(thread["stack"]) for thread in answer["threads"]]
    assert sum("Store.take (prog.py:15)" in stack for stack in stacks) == 2, stacks


@pytest.mark.parametrize("size", [1, 8])
def test_frames_may_disappear_while_they_are_read(
    size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A running thread may free the memory of its frames: then its functions are unknown."""
    python = next((python for python in interpreters() if minor_of(python) == 12), sys.executable)
    with running(python, "-c", "import time; time.sleep(1000)") as pid:
        until = time.monotonic() + 60
        functions: list[object] = []
        while not functions and time.monotonic() < until:
            process = Process(int(pid))
            pythons = Pythons(process, Names(Symbols(OneProcess(process))))
            functions = [*pythons.of(int(pid))]
        assert functions
        read = process.read
        monkeypatch.setattr(
            Process, "read", lambda _, address, n: b"" if n == size else read(address, n)
        )
        assert pythons.of(int(pid)) in ([], functions)
