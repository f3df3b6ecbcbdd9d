"""libpttinject: makes a running process create a thread that loads the tracer; see `inject.h`."""

from __future__ import annotations

import errno
from ctypes import byref

from nptltrace._binding.headers import inject as c
from nptltrace._binding.library import Library
from nptltrace.errors import NativeError

__all__ = ["Injected", "Request", "inject", "look", "registers"]

Request = c.Inject
Injected = c.Injected


def _lib() -> Library:
    return Library("libpttinject.so", c.FUNCTIONS, ("ptt_inject_abi", c.PTT_INJECT_ABI))


def inject(request: Request) -> Injected | None:
    """Make a thread of a process create another thread.

    Returns:
        The new thread; None if the thread has moved or ended since the caller looked at it.

    Raises:
        NativeError: The thread may not be stopped, or did not stop in time.
    """
    done = Injected()
    status = int(_lib().ptt_inject(byref(request), byref(done)))
    return done if _is_there(request, status) else None


def registers(request: Request) -> dict[int, int] | None:
    """Return the callee-saved registers of a thread, by DWARF number (System V ABI for AMD64).

    Returns:
        None if the thread has moved or ended since the caller looked at it.

    Raises:
        NativeError: The thread may not be stopped, or did not stop in time.
    """
    kept = c.Kept()
    status = int(_lib().ptt_inject_registers(byref(request), byref(kept)))
    if not _is_there(request, status):
        return None
    return {3: kept.rbx, 6: kept.rbp, 12: kept.r12, 13: kept.r13, 14: kept.r14, 15: kept.r15}


def _is_there(request: Request, status: int) -> bool:
    # For a thread that is just ending, the kernel returns EPERM, too.
    is_gone = status == -errno.EPERM and _has_ended(request)
    if status < 0 and status not in {-errno.EAGAIN, -errno.ESRCH} and not is_gone:
        raise NativeError(f"cannot attach to process {request.pid}", status)
    return status == 0


def _has_ended(request: Request) -> bool:
    try:
        with open(f"/proc/{request.pid}/task/{request.tid}/stat", "rb") as file:  # noqa: PTH123 -- fast
            return file.read().rpartition(b") ")[2][:1] in {b"Z", b"X"}
    except OSError:
        return True


def look(pid: int, done: Injected) -> bool:
    """Update the state of a created thread; return whether its process can be read."""
    return int(_lib().ptt_injected_look(pid, byref(done))) == 0
