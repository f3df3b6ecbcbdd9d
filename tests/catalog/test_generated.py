"""Generated files agree with the catalogue, and one line in the catalogue makes a hook."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.support import ROOT

if TYPE_CHECKING:
    from pathlib import Path

_LAST = '    { number = 30, name = "MUTEX_CONSISTENT"'
_MUTEX = "pthread_mutex_t *mutex"
_CASES = {
    "after": f'takes = "{_MUTEX}, int mark", in = ["mark:u32"], after = "MUTEX_CONSISTENT"',
    "before": f'takes = "{_MUTEX}", in = [], before = "MUTEX_FREE", expects = ["EPERM"]',
    "waits": f'takes = "{_MUTEX}", in = [], level = 1, waits = true',
    "by": f'takes = "{_MUTEX}, const struct timespec *deadline", in = [], by = "ptt_mutex_take"',
    "versions": f'takes = "{_MUTEX}", in = [], version = "GLIBC_2.34", after = "MUTEX_DESTROY"',
}
_FLAGS = ["-std=gnu11", "-O1", "-fPIC", "-Wall", "-Wextra", "-Wshadow", "-Werror"]
_DEFINITIONS = ["-D_GNU_SOURCE", "-DENABLE_NPTL_TRACE=1", "-DPTT_UNWINDS=0"]


def test_generated_files_are_up_to_date() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "catalog" / "generate.py", "--check"],
        capture_output=True, encoding="utf-8", check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def _generate(place: Path, routine: str, *, results: str = '"result:s32"') -> str:
    """Generate all files in PLACE with one more routine; return the error, or an empty text."""
    shutil.copytree(ROOT / "catalog", place / "catalog")
    catalog = place / "catalog" / "events.toml"
    text = catalog.read_text(encoding="utf-8")
    assert text.count(_LAST) == 1
    line = (
        '    { number = 38, name = "MUTEX_MARK", function = "pthread_mutex_mark", '
        f"out = [{results}], {routine} }},\n"
    )
    catalog.write_text(text.replace(_LAST, line + _LAST), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, place / "catalog" / "generate.py"],
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")},  # reads the language of locks.toml
        capture_output=True, encoding="utf-8", check=False,
    )  # fmt: skip
    return done.stderr


@pytest.mark.parametrize(
    ("routine", "fault"),
    [
        (f'takes = "{_MUTEX}", in = ["mark:u32"], after = "MUTEX_DESTROY"', "field 'mark'"),
        (f'takes = "{_MUTEX}", in = [], after = "MUTEX_GONE"', "reports MUTEX_GONE"),
        (f'takes = "{_MUTEX}", in = [], befor = "MUTEX_FREE"', "has 'befor'"),
        ('takes = "int", in = [], after = "MUTEX_DESTROY"', "a parameter without a name"),
    ],
)
def test_a_wrong_line_is_refused(routine: str, fault: str, tmp_path: Path) -> None:
    message = _generate(tmp_path, routine)
    assert message.startswith("events.toml: ")
    assert fault in message
    assert message.count("\n") == 1


@pytest.mark.parametrize("kind", list(_CASES))
def test_a_line_makes_a_hook(kind: str, tmp_path: Path) -> None:
    """The hook is exported, reports the new events, and compiles without a warning."""
    results = '"result:s32", "wait_ns:ns"' if kind == "waits" else '"result:s32"'
    assert _generate(tmp_path, _CASES[kind], results=results) == ""
    tracer, made = ROOT / "native" / "tracer", tmp_path / "native"
    shutil.copy(tracer / "real" / "hooks.def", made / "tracer" / "real")
    plain = made / "tracer" / "hooks" / "plain.c"
    assert "MUTEX_MARK_IN" in plain.read_text(encoding="utf-8")
    ring = ROOT / "native" / "ring"
    inside = (path for path in ring.rglob("*") if path.is_dir())
    places = [made / "include", made / "tracer" / "real", tracer, tracer / "hooks", ring, *inside]
    places.append(ROOT / "native" / "include")
    library = tmp_path / "plain.o"
    compiled = subprocess.run(
        [
            "gcc", *_FLAGS, *_DEFINITIONS, *(f"-I{place}" for place in places),
            "-c", plain, "-o", library,
        ],
        capture_output=True, encoding="utf-8", check=False,
    )  # fmt: skip
    assert compiled.returncode == 0, compiled.stderr
    symbols = subprocess.run(["nm", library], capture_output=True, encoding="utf-8", check=True)
    assert " T pthread_mutex_mark" in symbols.stdout
