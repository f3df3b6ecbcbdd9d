"""Fixtures for the tests with real programs."""

from __future__ import annotations

import subprocess
import zlib
from typing import TYPE_CHECKING

import pytest

from tests.real.real import Real, need

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Ptt


@pytest.fixture
def real(tmp_path: Path, ptt: Ptt) -> Real:
    """Runner of a program, untraced and traced: `real.same("pigz", "-p4", "-c", text)`."""
    directory = tmp_path / "real"
    directory.mkdir()
    return Real(ptt, directory)


@pytest.fixture(scope="session")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """12 MiB that compress about as well as text, the same bytes in every run."""
    path = tmp_path_factory.mktemp("input") / "text"
    words = [b"%x" % zlib.crc32(b"%d" % n) for n in range(4096)]
    crc, out = 1, []
    for n in range(1 << 20):
        crc = zlib.crc32(b"%d" % n, crc)
        out.append(words[crc % 4096 * (crc >> 20) >> 12])
        out.append(b" " if crc & 15 else b"\n")
    path.write_bytes(b"".join(out)[: 12 << 20])
    return path


@pytest.fixture(scope="session")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A generated clip of 4 seconds."""
    need("ffmpeg")
    path = tmp_path_factory.mktemp("clip") / "clip.y4m"
    source = ["-f", "lavfi", "-i", "testsrc2=size=320x240:rate=25:duration=4"]
    subprocess.run(
        ["ffmpeg", "-v", "error", "-y", *source, "-pix_fmt", "yuv420p", path],
        stdin=subprocess.DEVNULL,
        check=True,
    )
    return path
