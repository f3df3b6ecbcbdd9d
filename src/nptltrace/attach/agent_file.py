"""The file by which the recorder and the thread in an attached process speak to each other."""

from __future__ import annotations

import ctypes
import mmap
import os
from ctypes import sizeof
from typing import TYPE_CHECKING

from nptltrace._binding.headers import ptt_abi
from nptltrace._binding.libc import wake

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["AgentFile"]

_MAGIC = b"PTTATTC1"
_WANTED_AT = sizeof(ptt_abi.AbiHead) + 4


class AgentFile:
    """Makes the file and keeps it mapped.

    Args:
        path: Where it is to be.
    """

    def __init__(self, path: Path) -> None:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            os.posix_fallocate(fd, 0, mmap.PAGESIZE)
            self._shared = ptt_abi.Attach.from_buffer(mmap.mmap(fd, mmap.PAGESIZE))
        finally:
            os.close(fd)
        self._shared.abi.magic = _MAGIC
        self._shared.abi.major = 1
        self._shared.abi.struct_size = sizeof(ptt_abi.Attach)

    @property
    def records(self) -> bool:
        """Whether the process records."""
        return bool(self._shared.state == ptt_abi.PTT_ATTACH_RECORDS)

    @property
    def has_left(self) -> bool:
        """Whether the process is as it was before."""
        return bool(self._shared.state == ptt_abi.PTT_ATTACH_LEFT)

    @property
    def refusal(self) -> str:
        """Why the process does not record, or empty."""
        if self._shared.state != ptt_abi.PTT_ATTACH_REFUSED:
            return ""
        return bytes(self._shared.reason).decode(errors="replace") or "it does not say why"

    @property
    def calls(self) -> tuple[int, int, int]:
        """How many modules were looked at, calls lead to the tracer, and could not be led there."""
        return self._shared.modules, self._shared.calls, self._shared.refused

    def beat(self) -> None:
        """Show the process that the recorder still runs."""
        self._shared.beat = (self._shared.beat + 1) & 0xFFFF_FFFF

    def leave(self, *, tidy: bool) -> None:
        """Have the process end the recording.

        Args:
            tidy: Nobody else uses the memory that the thread began in: it may be unmapped.
        """
        wanted = ptt_abi.PTT_ATTACH_WANT_TIDY if tidy else ptt_abi.PTT_ATTACH_WANT_LEAVE
        self._shared.wanted = wanted
        wake(ctypes.addressof(self._shared) + _WANTED_AT, 1)
