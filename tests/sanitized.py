"""Programs, tracer and handlers of a build with a sanitizer, beside ordinary collector and reader.

With `PTT_STRESS_BUILD`, a stage of a build with a sanitizer, tracer and handlers of some tests are
that build's and their programs are built alike; collector and reader stay the ordinary ones, as
they are loaded by a Python that knows of no sanitizer:

    cmake --preset tsan && cmake --build --preset tsan
    cmake --install build/tsan --prefix build/tsan/stage
    PTT_STRESS_BUILD=build/tsan/stage make test ARGS="tests/stress tests/conformance/hostile"

The tracer is preloaded in front of the sanitizer's runtime: calls of the program come to the hooks
first and go on to the sanitizer. ThreadSanitizer wants addresses that are not random
(`setarch -R`), knows nothing of C11 threads, and has exceptions in tsan.supp.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from functools import cache
from typing import TYPE_CHECKING

from tests.support import ROOT

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["BUILD", "OPTIONS", "flags", "mixed_stage", "runtime", "still"]

_GIVEN = os.environ.get("PTT_STRESS_BUILD")

BUILD = ROOT / _GIVEN if _GIVEN else None
"""The stage of the build; None: there is none, and everything is ordinary."""

OPTIONS = {
    "TSAN_OPTIONS": f"suppressions={ROOT / 'tests' / 'stress' / 'tsan.supp'}:exitcode=66",
    "ASAN_OPTIONS": "verify_asan_link_order=0:detect_leaks=0:exitcode=66",
    "UBSAN_OPTIONS": "halt_on_error=1",
}


@cache
def _name() -> str:
    """Return which sanitizer it is: `asan` or `tsan`."""
    assert BUILD
    dynamic = subprocess.run(
        ["readelf", "-d", BUILD / "lib" / "libnptltrace.so"],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    found = re.search(r"\[lib(t|a)san\.", dynamic)
    assert found, f"{BUILD} is built without a sanitizer"
    return f"{found[1]}san"


def flags() -> tuple[str, ...]:
    """Return what programs are compiled with, as the tracer was."""
    if BUILD is None:
        return ()
    return ("-g", f"-fsanitize={'thread' if _name() == 'tsan' else 'address,undefined'}")


@cache
def runtime() -> str | None:
    """Return the library to preload into programs that are not compiled so; None: no build."""
    if BUILD is None:
        return None
    found = subprocess.run(
        ["gcc", f"-print-file-name=lib{_name()}.so"], capture_output=True, text=True, check=True
    ).stdout
    return os.path.realpath(found.strip())


@cache
def still() -> tuple[str, ...]:
    """Return what to start a program with so that its addresses are not random."""
    words = ("setarch", platform.machine(), "--addr-no-randomize")
    if BUILD is None or subprocess.run([*words, "true"], check=False).returncode:
        return ()  # containers may forbid it; then it has to do without
    return words


def mixed_stage(ordinary: Path, to: Path) -> Path:
    """Return a stage with tracer and handlers of the build, and the rest of the ordinary one."""
    if BUILD is None:
        return ordinary
    shutil.copytree(ordinary, to)
    shutil.copy(BUILD / "lib" / "libnptltrace.so", to / "lib" / "libnptltrace.so")
    for handler in (BUILD / "lib" / "handlers").glob("*.so"):
        shutil.copy(handler, to / "lib" / "handlers" / handler.name)
    return to
