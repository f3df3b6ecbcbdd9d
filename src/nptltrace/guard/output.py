"""The last lines of output of a program, which passes through pipes on its way."""

from __future__ import annotations

import os
import sys
import threading
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["Output"]

_PIECE = 1 << 16
# Longer lines are cut, so that a program without line ends does not fill the memory.
_LONGEST = 4096
# Processes that outlive the program may keep the pipes open.
_PATIENCE_S = 1.0


class Output:
    """A context in which programs start whose output goes through pipes.

    Standard output and standard error keep their order if they go to the same file. The guard reads
    the pipes until `finish`. If the output cannot be written any more, the program gets SIGPIPE, as
    it would without the guard.

    Args:
        most: The number of lines to keep.
    """

    def __init__(self, most: int) -> None:
        self._kept: deque[bytes] = deque(maxlen=most)
        self._threads: list[threading.Thread] = []
        self._pipes: list[tuple[int, int]] = []

    def __enter__(self) -> Self:
        """Put pipes in the places of standard output and standard error."""
        sys.stdout.flush()
        sys.stderr.flush()
        same = os.path.samestat(os.fstat(1), os.fstat(2))
        self._saved = {number: os.dup(number) for number in (1, 2)}
        writer = -1
        for number in (1, 2):
            if writer < 0 or not same:
                reader, new = os.pipe()
                self._pipes.append((reader, self._saved[number]))
                if writer >= 0:
                    os.close(writer)
                writer = new
            os.dup2(writer, number)
        os.close(writer)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Give the guard its own output back, and begin to read the pipes."""
        for number, saved in self._saved.items():
            os.dup2(saved, number)
        for reader, target in self._pipes:
            thread = threading.Thread(target=self._pass_on, args=(reader, target), daemon=True)
            self._threads.append(thread)
            thread.start()

    def lines(self) -> list[str]:
        """Return the last lines."""
        kept = [*self._kept]
        return [line.decode("utf-8", "surrogateescape") for line in kept]

    def finish(self) -> None:
        """Pass the rest of the output on."""
        for thread in self._threads:
            thread.join(_PATIENCE_S)

    def _pass_on(self, reader: int, target: int) -> None:
        rest = b""
        with suppress(OSError):
            while piece := os.read(reader, _PIECE):
                left = memoryview(piece)
                while left:
                    left = left[os.write(target, left) :]
                *whole, rest = (rest + piece).split(b"\n")
                self._kept.extend(line[:_LONGEST] for line in whole)
                rest = rest[:_LONGEST]
        if rest:
            self._kept.append(rest)
        os.close(reader)
