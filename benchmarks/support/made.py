"""Makes traces of a made-up program in any size."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from uuid import uuid4

from support.common import HERE, ROOT

sys.path.insert(0, str(ROOT / "src"))


def make_trace(path: Path, events: int, threads: int, locks: int) -> None:
    """Write a trace with `events` events."""
    from nptltrace.recording.files.tsdl_writer import Calibration, metadata_text

    uuid = uuid4()
    path.mkdir(parents=True)
    generate = path.parent / "generate"
    ring = ROOT / "native" / "ring"
    sources = [str(HERE / "made" / "generate.c"), str(ring / "layout" / "crc32c.c")]
    if not generate.exists():
        subprocess.run(["cc", "-O2", *sources, "-o", str(generate)], check=True)
    arguments = [str(path), uuid.hex, str(events), str(threads), str(locks)]
    subprocess.run([str(generate), *arguments], check=True)
    text = metadata_text(
        uuid=str(uuid),
        clock_uuid=str(uuid4()),
        calibration=Calibration(2_700_000_000, 1_700_000_000 * 10**9, "tsc"),
        env={"hostname": "bench", "boot_id": "b", "clock": "tsc"},
        stream_class=0,
    )
    (path / "metadata").write_text(text)
    info = path / "info"
    info.mkdir()
    (info / "session.json").write_text(json.dumps({"state": "complete", "level": "2"}))
    lines = [
        {
            "process": {
                "index": 0,
                "pid": 100,
                "ppid": 1,
                "exe": "/bin/made-up",
                "cmdline": ["made-up"],
            }
        },
        {"sites": {"process": 0, "sites": {str(n): hex(0x401000 + 16 * n) for n in range(1, 65)}}},
    ]
    (info / "processes.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
