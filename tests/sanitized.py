"""Programs, tracer and handlers of a build with a sanitizer, with the usual collector and reader.

`PTT_STRESS_BUILD` is the stage of a build with a sanitizer. Some tests then use the tracer and the
handlers of that build, and compile their programs with the same sanitizer. Python has no sanitizer
and loads the collector and the reader, so these are of the usual build:

    cmake --preset tsan && cmake --build --preset tsan
    cmake --install build/tsan --prefix build/tsan/stage
    PTT_STRESS_BUILD=build/tsan/stage make test ARGS="tests/stress tests/conformance/hostile"

The tracer is preloaded in front of the sanitizer's runtime: calls of the program reach the hooks
first, and then the sanitizer. ThreadSanitizer needs addresses that are not random (`setarch -R`),
does not know C11 threads, and has exceptions in tsan.supp.
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
    """Return the name of the sanitizer: `asan` or `tsan`."""
    assert BUILD
    dynamic = subprocess.run(
        ["readelf", "-d", BUILD / "lib" / "libnptltrace.so"],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    found = re.search(r"\[lib(t|a)san\.", dynamic)
    assert found, f"{BUILD} is built without a sanitizer"
    return f"{found[1]}san"


def flags() -> tuple[str, ...]:
    """Return the compiler flags that programs share with the tracer."""
    if BUILD is None:
        return ()
    return ("-g", f"-fsanitize={'thread' if _name() == 'tsan' else 'address,undefined'}")


@cache
def runtime() -> str | None:
    """Return the library to preload into programs without the sanitizer; None without a build."""
    if BUILD is None:
        return None
    found = subprocess.run(
        ["gcc", f"-print-file-name=lib{_name()}.so"], capture_output=True, text=True, check=True
    ).stdout
    return os.path.realpath(found.strip())


@cache
def still() -> tuple[str, ...]:
    """Return the command that starts a program at addresses that are not random."""
    words = ("setarch", platform.machine(), "--addr-no-randomize")
    if BUILD is None or subprocess.run([*words, "true"], check=False).returncode:
        return ()  # containers may forbid this; then addresses stay random
    return words


def mixed_stage(ordinary: Path, to: Path) -> Path:
    """Return a stage with tracer and handlers of the build, and other files of the usual stage."""
    if BUILD is None:
        return ordinary
    shutil.copytree(ordinary, to)
    shutil.copy(BUILD / "lib" / "libnptltrace.so", to / "lib" / "libnptltrace.so")
    for handler in (BUILD / "lib" / "handlers").glob("*.so"):
        shutil.copy(handler, to / "lib" / "handlers" / handler.name)
    return to
