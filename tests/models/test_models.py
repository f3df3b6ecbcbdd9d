"""Every lock-free protocol has a model, and spin finds no run of the model with an error."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support import ALL

HERE = Path(__file__).parent

# The options of each search. The head of a model names options that take longer.
SEARCHES = [
    ("box", []),
    ("entries", []),
    ("levels", []),
    ("posix", ["-DLOOP"]),
    ("posix", ["-DLOOP", "-DDEATH", "-DA_EVENTS=1"]),
    ("posix", ["-DUNTIL_FULL", "-DA_EVENTS=1"]),
    ("posix", ["-DFLUSH", "-DORPHAN", "-DA_EVENTS=1"]),
    ("processes", []),
    ("ring", [] if ALL else ["-DMAIN_EVENTS=2"]),
    ("shared", ["-DREADERS=1"]),
    ("shared", ["-DUNHURT"]),
    ("shared", ["-DFORKED", "-DREADERS=1"]),
    ("sites", []),
    ("space", []),
    ("space", ["-DRESERVE=1"]),
    ("taker", []),
    ("threads", []),
    ("threads", ["-DREAP", "-DQ_LIVES=0"]),
]
# A search of tens of millions of states takes a third longer with a table of the usual 2^24 places.
LARGE = {"ring": ["-w26"]}
# A model must be able to find errors: these options plant bugs that happened, or might happen.
BROKEN = [
    ("box", "-DONE_LOOK"),
    ("box", "-DEARLY"),
    ("entries", "-DBLIND"),
    ("levels", "-DOPEN_SIGNALS"),
    ("posix", "-DLOOP -DDEATH -DHELPLESS"),
    ("posix", "-DLOOP -DEAGER"),
    ("posix", "-DLOOP -DHASTY"),
    ("posix", "-DLOOP -DMUTE"),
    ("posix", "-DLOOP -DSILENT"),
    ("posix", "-DLOOP -DUNSURE"),
    ("processes", "-DNO_SITES"),
    ("processes", "-DNO_THREADS"),
    ("shared", "-DFORKED -DREADERS=1 -DSTRAY"),
    ("sites", "-DNO_LAPS"),
    ("space", "-DRESERVE=1 -DGREEDY"),
    ("taker", "-DBLIND_RELEASE"),
    ("threads", "-DREAP -DQ_LIVES=0 -DHASTY"),
]

# A search takes a minute of processor time, and other tests may share the processor.
pytestmark = pytest.mark.timeout(1200)
needs_spin = pytest.mark.skipif(shutil.which("spin") is None, reason="spin is not installed")


def search(model: str, options: list[str], cwd: Path, optimized: str = "-O2") -> str:
    """Return the output of spin's verifier for all states of a model."""
    generate = ["spin", *options, "-a", str(HERE / f"{model}.pml")]
    subprocess.run(generate, cwd=cwd, check=True, stdout=subprocess.DEVNULL)
    cc = ["cc", optimized, "-w", "-DCOLLAPSE", "-DSAFETY", "-o", "pan", "pan.c"]
    subprocess.run(cc, cwd=cwd, check=True)
    pan = ["./pan", "-m200000", *LARGE.get(model, [])]
    return subprocess.run(pan, cwd=cwd, check=True, capture_output=True, text=True).stdout


def test_every_model_is_searched() -> None:
    assert {path.stem for path in HERE.glob("*.pml")} == {name for name, _ in SEARCHES}


@needs_spin
@pytest.mark.slow
@pytest.mark.parametrize(("model", "options"), SEARCHES, ids="".join)
def test_exhaustive_search_finds_no_error(model: str, options: list[str], tmp_path: Path) -> None:
    message = search(model, options, tmp_path)
    assert "errors: 0" in message, message
    assert "max search depth too small" not in message
    assert "Search not completed" not in message


@needs_spin
@pytest.mark.parametrize(("model", "option"), BROKEN)
def test_a_model_finds_its_planted_bug(model: str, option: str, tmp_path: Path) -> None:
    # The verifier finds the bug soon, so an optimized build would take longer than the run.
    assert "errors: 1" in search(model, option.split(), tmp_path, "-O0")
