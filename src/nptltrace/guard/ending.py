"""Ends all processes of a tree."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from nptltrace.guard.tree import Tree

__all__ = ["GRACE_S", "end"]

# Processes that SIGTERM has not ended after this time get SIGKILL.
GRACE_S = 10.0
_PAUSE_S = 0.05


def end(tree: Tree, *, at_once: bool, meanwhile: Callable[[], object]) -> None:
    """End all processes of a tree, by SIGTERM and then SIGKILL.

    Args:
        tree: The processes. Processes that they start meanwhile belong to it, too.
        at_once: Send SIGKILL at once.
        meanwhile: Called again and again while the processes end, to take the exit status of
            children.
    """
    told: set[int] = set()
    until_s = time.monotonic() + (0.0 if at_once else GRACE_S)
    while True:
        now_s = time.monotonic()
        tree.search(now_s, at_once=True)
        meanwhile()
        for pid in [pid for pid in tree.members if not tree.is_same(pid)]:
            tree.leave(pid)
        if not tree.members or now_s > until_s + GRACE_S:
            return
        for pid in tree.members:
            if now_s >= until_s:
                _send(tree, pid, signal.SIGKILL)
            elif pid not in told:
                told.add(pid)
                _send(tree, pid, signal.SIGTERM)
                # A stopped process ends only when it goes on.
                _send(tree, pid, signal.SIGCONT)
        time.sleep(_PAUSE_S)


def _send(tree: Tree, pid: int, number: signal.Signals) -> None:
    """Send a signal to a process of a tree, but not to another process with the same id."""
    with suppress(OSError):
        process = os.pidfd_open(pid)
        try:
            if tree.is_same(pid):
                signal.pidfd_send_signal(process, number)
        finally:
            os.close(process)
