"""The last lines of output of a program, which passes through pipes on its way."""

from __future__ import annotations

import array
import fcntl
import os
import select
import sys
import termios
import threading
from collections import deque
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

__all__ = ["Output"]

_PIECE = 1 << 16
# Longer lines are cut, so that a program without line ends does not fill the memory.
_LONGEST = 4096
# Processes that outlive the program may keep the pipes open.
_PATIENCE_S = 1.0
_PAUSE_S = 0.1


class _Pipe(threading.Thread):
    """Passes output on, from a pipe to the file that the program's output would go to.

    Args:
        reader: The end of the pipe to read from.
        target: The file.
        kept: Gets the lines.
    """

    def __init__(self, reader: int, target: int, kept: deque[bytes]) -> None:
        super().__init__(name="ptt-output", daemon=True)
        self._reader, self._target, self._kept = reader, target, kept
        self._lock = threading.Lock()
        # The number of bytes read from the pipe, and of bytes passed on. The lock protects these
        # numbers and the reader.
        self._taken = self._given = 0
        self.fault: OSError | None = None

    def run(self) -> None:
        """Pass output on until all writers have closed the pipe, or nobody reads the file."""
        rest = b""
        arrival = select.poll()
        arrival.register(self._reader, select.POLLIN)
        while arrival.poll():
            with self._lock:
                piece = os.read(self._reader, _PIECE)
                self._taken += len(piece)
            if not piece or not self._write(piece):
                break
            *whole, rest = (rest + piece).split(b"\n")
            self._kept.extend(line[:_LONGEST] for line in whole)
            rest = rest[:_LONGEST]
            with self._lock:
                self._given += len(piece)
        if rest:
            self._kept.append(rest)
        with self._lock:
            os.close(self._reader)
            self._reader = -1

    def finish(self, is_over: Callable[[], bool]) -> None:
        """Wait until all present output has been passed on.

        Args:
            is_over: Returns whether to give up.
        """
        self.join(_PATIENCE_S)
        with self._lock:
            if self._reader < 0:
                return
            size = array.array("i", [0])
            fcntl.ioctl(self._reader, termios.FIONREAD, size)
            goal = self._taken + size[0]
        while self.is_alive() and not is_over():
            with self._lock:
                if self._given >= goal:
                    return
            self.join(_PAUSE_S)

    def _write(self, piece: bytes) -> bool:
        """Write a piece, and return whether the file still has a reader."""
        left = memoryview(piece)
        while left:
            try:
                left = left[os.write(self._target, left) :]
            except BlockingIOError:
                room = select.poll()
                room.register(self._target, select.POLLOUT)
                room.poll()
            except BrokenPipeError:
                return False
            except OSError as error:  # such as a full disk: the program goes on without output
                self.fault = error
                return True
        return True


class Output:
    """A context in which programs start whose output goes through pipes.

    Standard output and standard error keep their order if they go to the same file. The guard reads
    the pipes until `finish`. If nobody reads the output any more, the program gets SIGPIPE, as it
    would without the guard.

    Args:
        most: The number of lines to keep.
    """

    def __init__(self, most: int) -> None:
        self._kept: deque[bytes] = deque(maxlen=most)
        self._pipes: list[_Pipe] = []

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
                self._pipes.append(_Pipe(reader, self._saved[number], self._kept))
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
        for pipe in self._pipes:
            pipe.start()

    @property
    def fault(self) -> OSError | None:
        """Why output was lost; None if no output was lost."""
        return next((pipe.fault for pipe in self._pipes if pipe.fault is not None), None)

    def lines(self) -> list[str]:
        """Return the last lines."""
        kept = [*self._kept]
        return [line.decode("utf-8", "surrogateescape") for line in kept]

    def finish(self, is_over: Callable[[], bool]) -> None:
        """Pass the rest of the output on.

        Args:
            is_over: Returns whether to give up.
        """
        for pipe in self._pipes:
            pipe.finish(is_over)
