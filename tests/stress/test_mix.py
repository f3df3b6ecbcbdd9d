"""Everything at once, at random, in 64 threads: no hang, no report, and every event in the trace.

`PTT_STRESS_SECONDS` says for how long (10). With `PTT_STRESS_BUILD`, a stage of a build with a
sanitizer, tracer and handlers are that build's and the program is built alike; collector and reader
stay the ordinary ones, as they are loaded by a Python that knows of no sanitizer:

    cmake --preset tsan && cmake --build --preset tsan
    PTT_STRESS_SECONDS=600 PTT_STRESS_BUILD=build/tsan/stage make test ARGS="tests/stress"

The tracer is preloaded in front of the sanitizer's runtime: calls of the program come to the hooks
first and go on to the sanitizer. ThreadSanitizer wants addresses that are not random
(`setarch -R`), knows nothing of C11 threads, and has exceptions in tsan.supp.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support import ROOT, Ptt

if TYPE_CHECKING:
    from tests.support import Compiler

HERE = Path(__file__).parent
SECONDS = int(os.environ.get("PTT_STRESS_SECONDS", "10"))
LIMIT = 120 + 3 * SECONDS  # of recording, and of counting what was recorded
BUILD = os.environ.get("PTT_STRESS_BUILD")
OPTIONS = {
    "TSAN_OPTIONS": f"suppressions={HERE / 'tsan.supp'}:exitcode=66",
    "ASAN_OPTIONS": "verify_asan_link_order=0:detect_leaks=0:exitcode=66",
    "UBSAN_OPTIONS": "halt_on_error=1",
}


def sanitizer_of(build: Path) -> str:
    """Return what -fsanitize= the tracer of a stage was built with."""
    dynamic = subprocess.run(
        ["readelf", "-d", build / "lib" / "libnptltrace.so"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    found = re.search(r"\[lib(t|a)san\.", dynamic)
    assert found, f"{build} is built without a sanitizer"
    return "thread" if found[1] == "t" else "address,undefined"


def mixed_stage(ordinary: Path, build: Path, to: Path) -> Path:
    """Return a stage with tracer and handlers of a build, and the rest of the ordinary one."""
    shutil.copytree(ordinary, to)
    shutil.copy(build / "lib" / "libnptltrace.so", to / "lib" / "libnptltrace.so")
    for handler in (build / "lib" / "handlers").glob("*.so"):
        shutil.copy(handler, to / "lib" / "handlers" / handler.name)
    return to


def events_of(ptt: Ptt, trace: Path) -> dict[str, int]:
    """Return how many events of each type a trace holds."""
    said = json.loads(ptt("stat", "--format", "json", trace, timeout=LIMIT).stdout)
    # a killed child may leave a record unfinished in the buffer that all share
    assert not set(said["lost_by_cause"]) & {"full", "closed", "threads", "write"}
    assert said["damage_bytes"] == 0
    return dict(said["event_types"])


@pytest.mark.slow
@pytest.mark.timeout(2 * LIMIT + 120)
@pytest.mark.parametrize("handler", ["ring", "shared"])
def test_mix_of_everything(
    handler: str, native_stage: Path, compile_c: Compiler, tmp_path: Path
) -> None:
    flags: list[str] = []
    still: list[str] = []
    stage = native_stage
    if BUILD:
        build = ROOT / BUILD
        flags = ["-g", f"-fsanitize={sanitizer_of(build)}"]
        stage = mixed_stage(native_stage, build, tmp_path / "stage")
        still = ["setarch", platform.machine(), "--addr-no-randomize"]
        if subprocess.run([*still, "true"], check=False).returncode:
            still = []  # containers may forbid it; then it has to do without
    program = compile_c(HERE / "mix.c", *flags)
    ptt = Ptt(stage)
    trace = tmp_path / "trace"
    command = ptt.command(
        "record", "--handler", handler, "-o", trace, program, str(SECONDS), "64", str(os.getpid()),
        native_stage / "lib" / "libpttread.so",
    )  # fmt: skip
    done = subprocess.run(
        [*still, *command],
        env=ptt.environment(dict(OPTIONS)),
        capture_output=True,
        check=False,
        text=True,
        timeout=LIMIT,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert "Sanitizer" not in done.stderr, done.stderr[:4000]
    lines = [line.split() for line in done.stdout.splitlines() if not line.startswith("pid")]
    did = {kind: int(count) for kind, count in lines}
    found = events_of(Ptt(native_stage), trace)
    # a C11 mutex is a mutex, and a wait for a condition releases one
    waits = found.get("COND_WAIT_IN", 0) + found.get("COND_TIMEDWAIT_IN", 0)
    did["MUTEX_FREE"] += did.pop("MTX_FREE") + waits
    assert did == {kind: found.get(kind, 0) for kind in did}
