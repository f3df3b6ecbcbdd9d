"""Other names of commands, options and formats do the same."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING

from tests.analysis.story import A, Story

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Compiler, Ptt

WAITS = "#include <unistd.h>\nint main(void) { pause(); return 0; }\n"


def test_dump_is_an_alias_of_hang(ptt: Ptt, compile_c: Compiler) -> None:
    with subprocess.Popen([compile_c(WAITS)]) as process:
        try:
            pid = str(process.pid)
            named, other = (
                json.loads(ptt(name, "--format", "json", pid, status=None).stdout)
                for name in ("hang", "dump")
            )
        finally:
            process.kill()
    assert other == named
    assert ptt("dump", "--help").stdout.startswith("usage: ptt dump ")


def test_collapsed_is_an_alias_of_folded(ptt: Ptt, tmp_path: Path) -> None:
    trace = Story().create(1).lock(1, A).unlock(1, A).write_to(tmp_path / "run.ptt")
    named, other = (
        ptt("export", *format_, "--show", "holds", "-o", "-", trace).stdout
        for format_ in (("--format", "folded"), ("--format", "collapsed"))
    )
    assert other == named != ""
    assert ptt("export", "--to", "collapsed", "--show", "holds", "-o", "-", trace).stdout == named


def test_options_for_the_time_of_attach_have_aliases(
    ptt: Ptt, compile_c: Compiler, tmp_path: Path
) -> None:
    for option in ("--for", "-d", "--duration"):
        with subprocess.Popen([compile_c(WAITS)]) as process:
            try:
                trace = tmp_path / f"{option}.ptt"
                done = ptt("attach", option, "0.1s", "-o", trace, str(process.pid), status=None)
                assert "unrecognized" not in done.stderr
                assert done.returncode != 2 or "cannot attach" in done.stderr, done.stderr
            finally:
                process.kill()
