"""Programs that these tests record."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nptltrace.recording.files.session import SessionDir
from tests.support import ROOT, Compiler

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def own(tmp_path_factory: pytest.TempPathFactory, native_stage: Path) -> Callable[[str], Path]:
    """Programs of this directory, each compiled once: `own("counted")`."""
    compiler = Compiler(tmp_path_factory.mktemp("own"), native_stage / "include")
    known: dict[str, Path] = {}

    def get(name: str) -> Path:
        if name not in known:
            known[name] = compiler(HERE / f"{name}.c")
        return known[name]

    return get


def _with_ring(directory: Path, name: str) -> Path:
    """Compile a program of this directory together with the code of the ring."""
    ring, include = ROOT / "native" / "ring", ROOT / "native" / "include"
    output = directory / name
    sources = [
        HERE / f"{name}.c",
        *(path for path in ring.rglob("*.c") if path.stem != "record"),
    ]
    command = [
        "gcc",
        "-std=gnu11",
        "-O2",
        "-g",
        "-D_GNU_SOURCE",
        f"-I{ring}",
        f"-I{include}",
        "-pthread",
    ]
    subprocess.run([*command, "-o", output, *sources], check=True)
    return output


@pytest.fixture(scope="session")
def ring_writer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The writer, compiled with the code of the ring."""
    return _with_ring(tmp_path_factory.mktemp("ring"), "ring_writer")


@pytest.fixture(scope="session")
def ring_real_time(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The writer with a real-time thread."""
    return _with_ring(tmp_path_factory.mktemp("ring"), "ring_real_time")


@pytest.fixture(autouse=True)
def nothing_left_behind(tmp_path: Path) -> Iterator[None]:
    """Insist that no test leaves a session directory."""
    yield
    notes = [note for place in SessionDir.places() for note in place.glob("ptt-*/session.json")]
    assert [note for note in notes if str(tmp_path) in _text(note)] == []


def _text(path: Path) -> str:
    """Return the text of a file; empty if another test has just removed the file."""
    try:
        return path.read_text()
    except OSError:
        return ""
