"""Recording: starts programs with the tracer, drains their buffers, finishes what was left behind.

The package can be called: `nptltrace.record(["./prog"], level=2)`. Nothing here imports a column
library, so that a recording starts fast.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nptltrace.record.api import Recording

__all__ = ["record"]


class _CallablePackage(ModuleType):
    """`nptltrace.record` is this package, and what one calls to record."""

    def __call__(self, command: Any, **options: Any) -> Recording:
        from nptltrace.record.api import record as begin

        return begin(command, **options)


record = sys.modules[__name__]
"""What `from nptltrace import record` gives: this package, which can be called."""
record.__class__ = _CallablePackage
