"""The black box of a process: the newest events of its threads, kept in its own memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nptltrace.hang.targets.target import Target
    from nptltrace.trace.code.modules import Module

__all__ = ["find_box"]

_HANDLER = "libring.so"


def find_box(process: Target) -> Module | None:
    """Return the module that may have a black box; None for nearly all processes."""
    modules = process.modules
    return next((m for m in modules if m.path.rpartition("/")[2] == _HANDLER), None)
