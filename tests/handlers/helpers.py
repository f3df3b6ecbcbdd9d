"""Shared by the tests of handlers: runs without a recorder, and counts by two readers."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from typing import TYPE_CHECKING

from tests.support import clean_environment

if TYPE_CHECKING:
    import os
    from pathlib import Path

    from tests.support import Ptt, Result


def run_traced(
    ptt: Ptt,
    variable: str,
    *command: str | os.PathLike[str],
    cwd: Path | None = None,
    **env: str,
) -> Result:
    """Run COMMAND with the tracer preloaded and PTHREAD_NPTL_TRACE set, no recorder."""
    preload = str(ptt.native / "lib" / "libnptltrace.so")
    return subprocess.run(
        [str(word) for word in command],
        env=clean_environment(LD_PRELOAD=preload, PTHREAD_NPTL_TRACE=variable, **env),
        cwd=cwd,
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )


def babeltrace(trace: Path) -> tuple[Counter[str], str]:
    """Return the number of events of each name in babeltrace2's output, and its warnings."""
    done = subprocess.run(
        ["babeltrace2", str(trace)], capture_output=True, encoding="utf-8", check=False
    )
    assert done.returncode == 0, done.stderr
    # [time] (delta) NAME: { ... }, with the host's name before NAME if it is known
    heads = (line.split(": {", 1)[0] for line in done.stdout.splitlines())
    return Counter(head.rsplit(" ", 1)[1] for head in heads), done.stderr


def stat(ptt: Ptt, trace: Path) -> tuple[Counter[str], int]:
    """Return the number of events of each name in `ptt stat`, and the number of lost events."""
    counts = json.loads(ptt("stat", "--format", "json", trace).stdout)
    return Counter(counts["event_types"]), int(counts["lost"])


def agreed_counts(ptt: Ptt, trace: Path) -> Counter[str]:
    """Return the event counts of a trace without losses and warnings; both readers must agree."""
    ours, lost = stat(ptt, trace)
    theirs, message = babeltrace(trace)
    assert lost == 0
    assert message == ""
    assert ours == theirs
    return ours
