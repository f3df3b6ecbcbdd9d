"""The file that connects the recorder and the thread in an attached process.

The file belongs to the user of that process, who may shorten it. So `read()` and `write()` access
it. It is mapped only for its futex: the kernel finds the waiting thread by the mapping.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
import weakref
from ctypes import sizeof
from typing import TYPE_CHECKING

from nptltrace._binding.headers import ptt_abi
from nptltrace._binding.libc import wake

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["AgentFile"]

_MAGIC = b"PTTATTC1"
_WANTED_AT = sizeof(ptt_abi.AbiHead) + 4
_BEAT_AT = _WANTED_AT + 4


class AgentFile:
    """Makes the file and keeps it open; `struct ptt_attach` in `ptt_abi.h` is its layout.

    Args:
        path: Path of the new file.

    Raises:
        OSError: The file cannot be made.
    """

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        weakref.finalize(self, os.close, self._fd)
        os.posix_fallocate(self._fd, 0, mmap.PAGESIZE)
        self._page = ctypes.c_char.from_buffer(mmap.mmap(self._fd, mmap.PAGESIZE))
        head = ptt_abi.AbiHead(magic=_MAGIC, major=1, struct_size=sizeof(ptt_abi.Attach))
        os.pwrite(self._fd, bytes(head), 0)
        self._beat = 0

    def _read(self) -> ptt_abi.Attach:
        """Return the contents of the file; missing bytes are 0."""
        size = sizeof(ptt_abi.Attach)
        return ptt_abi.Attach.from_buffer_copy(os.pread(self._fd, size, 0).ljust(size, b"\0"))

    def _write(self, at: int, word: int) -> None:
        os.pwrite(self._fd, word.to_bytes(4, sys.byteorder), at)

    @property
    def has_begun(self) -> bool:
        """Whether the process has begun to record, even if it has left since."""
        return self.records or self.has_left

    @property
    def records(self) -> bool:
        """Whether the process records."""
        return self._read().state in {ptt_abi.PTT_ATTACH_RECORDS, ptt_abi.PTT_ATTACH_AWAY}

    @property
    def is_away(self) -> bool:
        """Whether the process records without a thread of the tracer."""
        return bool(self._read().state == ptt_abi.PTT_ATTACH_AWAY)

    @property
    def has_left(self) -> bool:
        """Whether the process has ended the recording and removed its hooks."""
        return bool(self._read().state == ptt_abi.PTT_ATTACH_LEFT)

    @property
    def refusal(self) -> str:
        """Why the process does not record, or empty."""
        state = self._read()
        if state.state != ptt_abi.PTT_ATTACH_REFUSED:
            return ""
        return self._reason(state) or "it does not say why"

    @property
    def own_end(self) -> str:
        """Why the process ended the recording by itself, or empty."""
        state = self._read()
        return self._reason(state) if state.state == ptt_abi.PTT_ATTACH_LEFT else ""

    @staticmethod
    def _reason(state: ptt_abi.Attach) -> str:
        return bytes(state.reason).split(b"\0")[0].decode(errors="replace")

    @property
    def calls(self) -> tuple[int, int, int]:
        """Numbers of examined modules, of hooked calls, and of calls that could not be hooked."""
        state = self._read()
        return state.modules, state.calls, state.refused

    def beat(self) -> None:
        """Show the process that the recorder still runs."""
        self._beat = (self._beat + 1) & 0xFFFF_FFFF
        self._write(_BEAT_AT, self._beat)

    def leave(self, *, tidy: bool) -> None:
        """Tell the process to end the recording.

        Args:
            tidy: No thread uses the memory that the thread began in: the process may unmap it.
        """
        wanted = ptt_abi.PTT_ATTACH_WANT_TIDY if tidy else ptt_abi.PTT_ATTACH_WANT_LEAVE
        self._write(_WANTED_AT, wanted)
        wake(ctypes.addressof(self._page) + _WANTED_AT, 1)
