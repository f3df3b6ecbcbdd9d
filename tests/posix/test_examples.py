"""The programs of examples/posix: each builds with the command in its head and does as it says."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.posix.building import Conversation, run
from tests.support import ROOT, clean_environment

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support import Ptt

EXAMPLES = ROOT / "examples" / "posix"
PROGRAMS = sorted(path.stem for path in EXAMPLES.glob("*.c"))


@pytest.fixture(scope="module")
def built(native_stage: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    directory = tmp_path_factory.mktemp("examples")
    lib = native_stage / "lib"
    flags = f"-I{native_stage / 'include'} -L{lib} -lposixtrace -Wl,-rpath,{lib}"

    def get(name: str) -> Path:
        program = directory / name
        if not program.exists():
            source = EXAMPLES / f"{name}.c"
            line = re.search(r"^ \*     (cc .*)$", source.read_text(encoding="utf-8"), re.MULTILINE)
            assert line, f"{name}.c does not say how it is built"
            command, found, rest = line[1].partition("$(pkg-config --cflags --libs posixtrace)")
            assert found
            assert not rest
            words = shlex.split(command.replace(f"{name}.c", str(source)))
            subprocess.run(
                [*words, *shlex.split(flags), "-Wall", "-Wextra", "-Werror"],
                cwd=directory, check=True,
            )  # fmt: skip
        return program

    return get


@pytest.fixture
def log(built: Callable[[str], Path], tmp_path: Path) -> Path:
    """A log of twenty orders, made by the smallest controller."""
    env = clean_environment()
    path = tmp_path / "shop.log"
    with Conversation(built("shop"), env=env) as shop:
        pid = shop.hear()
        with Conversation(built("watch"), pid, path, env=env) as watch:
            assert watch.hear() == "tracing"
            assert shop.say() == "10 orders"
            assert shop.say() == "20 orders"
        assert shop.say() == "30 orders"  # after the end of tracing
    return path


def test_every_example_is_described() -> None:
    table = re.findall(r"`(\w+)\.c\b", (EXAMPLES / "README.md").read_text(encoding="utf-8"))
    assert set(table) == set(PROGRAMS)
    assert len(PROGRAMS) == 11


def test_least_controller_and_least_analyzer(log: Path, built: Callable[[str], Path]) -> None:
    names = run(built("list"), log).splitlines()
    orders = [name for name in names if name.startswith("order ")]
    assert orders == ["order taken", "order shipped"] * 20
    assert names[0] == "posix_trace_start"
    assert "posix_trace_stop" in names


def test_full_analyzer(log: Path, built: Callable[[str], Path]) -> None:
    lines = run(built("dump"), log).splitlines()
    assert re.match(r'log "", by .+, of ', lines[0])
    types = [line for line in lines if line.startswith("type ")]
    assert "type order taken" in types
    assert "type posix_trace_unnamed_userevent" in types
    taken = [line for line in lines if re.search(r": order taken [0-9a-f]", line)]
    numbers = [int.from_bytes(bytes.fromhex(line.split()[-1]), sys.byteorder) for line in taken]
    assert numbers == list(range(1, 21))


def test_information_and_types_of_a_log(log: Path, built: Callable[[str], Path]) -> None:
    lines = run(built("about"), log).splitlines()
    assert lines[0] == "no event was lost"
    assert re.fullmatch(r"written by .+, at most \d+ bytes an event", lines[1])
    types = run(built("types"), log).splitlines()
    assert {"order taken", "order shipped", "posix_trace_start", "posix_trace_error"} <= set(types)
    assert len(types) == len(set(types))


def test_full_controller(built: Callable[[str], Path], tmp_path: Path) -> None:
    env = clean_environment()
    log = tmp_path / "orders.log"
    with Conversation(built("shop"), env=env) as shop:
        pid = shop.hear()
        with Conversation(built("control"), pid, log, env=env) as control:
            assert control.hear() == "a stream of 64000 bytes or more"
            assert control.hear() == "tracing"
            shop.say()
            assert control.say("stop") == "stop: done"
            shop.say()  # a stretch without changes
            assert control.say("quiet") == "quiet: done"
            assert control.say("start") == "start: done"
            shop.say()
            assert control.say("status") == "running, not full, no event was lost"
            assert control.hear() == "status: done"
            assert control.say("flush") == "flush: done"
            assert control.say("all") == "all: done"
            shop.say()
    lines = run(built("dump"), log).splitlines()
    assert lines[0].startswith('log "orders", by ')
    assert sum(": order taken" in line for line in lines) == 30
    assert sum(": order shipped" in line for line in lines) == 20
    assert sum(": posix_trace_filter" in line for line in lines) == 1


def test_attributes(built: Callable[[str], Path]) -> None:
    lines = run(built("attributes")).splitlines()
    assert re.fullmatch(
        r'"": data \d+, stream \d+, log \d+, which keeps the newest events', lines[0]
    )
    assert '"my_trace"' in lines[2]
    assert "log 100000," in lines[2]


def test_filter(built: Callable[[str], Path]) -> None:
    names = run(built("choose")).splitlines()
    assert "cuckoo" in names
    assert not {"tick", "tock"} & set(names)


def test_threads_choose(built: Callable[[str], Path]) -> None:
    counts = [0, 5, 0, 5]
    wanted = [f"thread {number}: {count} events" for number, count in enumerate(counts)]
    assert run(built("perthread")).splitlines() == wanted


def test_debugger(built: Callable[[str], Path]) -> None:
    # the program's lines come first: it flushes when it ends, and the debugger flushes later
    lines = run(built("debug"), built("shop"), stdin="\n").splitlines()
    assert lines.count("order taken") == 10
    assert lines.count("order shipped") == 10
    assert run(built("debug"), "/bin/sh", "-c", "exit 7", status=7) is not None


def test_python_controller_and_analyzer(
    built: Callable[[str], Path], ptt: Ptt, tmp_path: Path
) -> None:
    env = ptt.environment()
    log = tmp_path / "shop.log"
    with Conversation(built("shop"), env=env) as shop:
        pid = shop.hear()
        controller = EXAMPLES / "controller.py"
        with Conversation(sys.executable, controller, pid, log, env=env) as control:
            assert control.hear() == "tracing"
            shop.say()
    message = subprocess.run(
        [sys.executable, EXAMPLES / "analyzer.py", log],
        env=env, capture_output=True, encoding="utf-8", check=True,
    ).stdout  # fmt: skip
    assert len(re.findall(r" order taken [0-9a-f]{8}$", message, re.MULTILINE)) == 10
    assert message.count(" order shipped") == 10
    for example in (controller, EXAMPLES / "analyzer.py"):
        code = example.read_text(encoding="utf-8").partition('"""\n')[2]
        assert len([line for line in code.splitlines() if line.strip()]) <= 10
