"""64 threads do everything at random: no hang, no sanitizer report, every event in the trace.

`PTT_STRESS_SECONDS` is the length in seconds (10). `PTT_STRESS_BUILD` selects a build with a
sanitizer: see `tests.sanitized`.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests import sanitized
from tests.support import Ptt

if TYPE_CHECKING:
    from tests.support import Compiler

HERE = Path(__file__).parent
SECONDS = int(os.environ.get("PTT_STRESS_SECONDS", "10"))
LIMIT = 120 + 3 * SECONDS  # to record, and to count the events


def events_of(ptt: Ptt, trace: Path) -> dict[str, int]:
    """Return how many events of each type a trace holds."""
    message = json.loads(ptt("stat", "--format", "json", trace, timeout=LIMIT).stdout)
    # a killed child may leave an unfinished record in the shared buffer
    assert not set(message["lost_by_cause"]) & {"full", "closed", "threads", "write"}
    assert message["damage_bytes"] == 0
    return dict(message["event_types"])


@pytest.mark.slow
@pytest.mark.timeout(2 * LIMIT + 120)
@pytest.mark.parametrize(("handler", "stacks"), [("ring", "16"), ("ring", "all"), ("shared", "16")])
def test_a_mix_of_all_calls_loses_no_event(
    handler: str, stacks: str, native_stage: Path, compile_c: Compiler, tmp_path: Path
) -> None:
    stage = sanitized.mixed_stage(native_stage, tmp_path / "stage")
    program = compile_c(HERE / "mix.c", *sanitized.flags())
    ptt = Ptt(stage)
    trace = tmp_path / "trace"
    command = ptt.command(
        "record", "--handler", handler, "--stacks", stacks, "-o", trace,
        program, str(SECONDS), "64", str(os.getpid()), native_stage / "lib" / "libpttread.so",
    )  # fmt: skip
    done = subprocess.run(
        [*sanitized.still(), *command],
        env=ptt.environment(dict(sanitized.OPTIONS)),
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
    # a C11 mutex is a mutex, and a wait for a condition releases a mutex
    waits = found.get("COND_WAIT_IN", 0) + found.get("COND_TIMEDWAIT_IN", 0)
    did["MUTEX_FREE"] += did.pop("MTX_FREE") + waits
    assert did == {kind: found.get(kind, 0) for kind in did}
