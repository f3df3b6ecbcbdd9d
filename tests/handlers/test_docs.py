"""The documentation of handlers and of the environment is correct."""

from __future__ import annotations

import re
import shlex
import subprocess
from typing import TYPE_CHECKING

from tests.handlers.helpers import run_traced
from tests.support import ROOT, clean_environment

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support import Ptt

REFERENCE = ROOT / "docs" / "reference"


def _blocks(page: str, language: str) -> list[str]:
    text = (REFERENCE / page).read_text()
    return re.findall(rf"(?ms)^```{language}\n(.*?)^```$", text)


def test_the_first_handler_of_the_page_works(
    ptt: Ptt, program: Callable[[str], Path], tmp_path: Path, native_stage: Path
) -> None:
    source = _blocks("handler-abi.md", "c")[0]
    (tmp_path / "mutexes.c").write_text(source)
    build = _blocks("handler-abi.md", "sh")[0].splitlines()[0]
    line = build.replace('"$(ptt config --includedir)"', shlex.quote(str(native_stage / "include")))
    assert line != build
    done = subprocess.run(
        [*shlex.split(line), "-Wall", "-Wextra"],
        cwd=tmp_path,
        env=clean_environment(),
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    message = run_traced(
        ptt, "./libmutexes.so", program("lock_count"), "4", "2500", cwd=tmp_path
    ).stderr
    assert re.fullmatch(r"taken 10000 times, \d+ of them after waiting\n", message)


def test_the_event_struct_of_the_page_equals_the_header() -> None:
    header = (ROOT / "native" / "include" / "nptl_trace.h").read_text()
    declared = [re.sub(r"/\*.*?\*/|\s+", " ", block) for block in _blocks("handler-abi.md", "c")]
    event = next(text for text in declared if text.startswith("struct nptl_trace_event {"))
    struct = re.search(r"(?s)struct nptl_trace_event \{.*?\};", header)
    assert struct
    assert event.split() == re.sub(r"/\*.*?\*/", " ", struct[0]).split()


def test_table_of_handlers_is_complete(native_stage: Path) -> None:
    text = (REFERENCE / "environment.md").read_text()
    for path in (native_stage / "lib" / "handlers").glob("lib*.so"):
        assert f"| `{path.name.removeprefix('lib').removesuffix('.so')}` |" in text


def test_examples_of_the_variable_are_accepted(
    ptt: Ptt, program: Callable[[str], Path], tmp_path: Path
) -> None:
    text = (REFERENCE / "environment.md").read_text()
    examples = re.findall(r"(?m)^    PTHREAD_NPTL_TRACE=(.*)$", text)[1:]
    assert len(examples) == 11
    for example in examples:
        # The page's handler is invented, and the test must not write the page's files.
        variable = re.sub(r"^[^:]*my_handler[^:]*", "text", example)
        variable = variable.replace("/tmp/", f"{tmp_path}/").replace(",arg2", "")  # noqa: S108
        done = run_traced(ptt, variable, program("lock_count"), "1", "1", cwd=tmp_path)
        assert done.stdout == "1\n"
        assert "untraced" not in done.stderr, example
