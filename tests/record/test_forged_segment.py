"""Forged, shortened or sparse segments: recovery fails with an error, or works."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

from nptltrace._binding.libpttcollect import Collector
from nptltrace.recording.settings.options import BufferOptions
from tests.support import ROOT

if TYPE_CHECKING:
    from pathlib import Path


ROUNDS = 60
HEAD = 384
# The tables of processes, threads and chunk states, which follow the head.
TABLES = 6_000_000
# Recovers segments, one after the other, as `ptt recover` does.
TAKE_OVER = """
import sys
from pathlib import Path
from nptltrace._binding.libpttcollect import Collector, CollectorError
from nptltrace.recording.settings.options import BufferOptions

options = BufferOptions().native()
for number, name in enumerate(sys.argv[1:]):
    segment = Path(name)
    trace = segment.with_suffix(".trace")
    trace.mkdir()
    try:
        collector = Collector(segment, trace, options, attach=True)
    except (CollectorError, MemoryError):
        continue
    collector.close()
    collector.finish()
    collector.destroy()
print("all")
"""


def forge(data: bytearray, chance: random.Random) -> None:
    """Put meaningful words into random places."""
    words = (0, 1, 0xFFFF_FFFF, 0x7FFF_FFFF, 0x8000_0000, 4096, chance.getrandbits(32))
    for _ in range(chance.randrange(1, 6)):
        end = HEAD if chance.random() < 0.5 else len(data)
        at = chance.randrange(16, end // 4 * 4, 4)
        data[at : at + 4] = chance.choice(words).to_bytes(4, "little")


def test_no_forged_segment_ends_the_recorder(tmp_path: Path, native_in_process: None) -> None:
    options = BufferOptions(budget=1 << 20).native()
    Collector(tmp_path / "segment", tmp_path, options).destroy()
    whole = (tmp_path / "segment").read_bytes()
    chance, names = random.Random(20), []  # noqa: S311
    for number in range(ROUNDS):
        names.append(str(tmp_path / f"{number}.segment"))
        shutil.copyfile(tmp_path / "segment", names[-1])
        with open(names[-1], "r+b") as file:  # noqa: PTH123 -- one of many
            part = bytearray(whole[: min(TABLES, len(whole))])
            forge(part, chance)
            file.write(part)
            if number % 3 == 1:
                file.truncate(chance.randrange(len(whole)))
            elif number % 3 == 2:
                file.truncate(chance.choice((1 << 33, 1 << 40)))
    done = subprocess.run(
        [sys.executable, "-c", TAKE_OVER, *names],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "all\n"), done.stderr
