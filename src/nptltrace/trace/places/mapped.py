"""What places in a process are looked up by: what is mapped into it, and since when it ran."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nptltrace.trace.places.module_table import ModuleMap
    from nptltrace.trace.places.python_code import PythonCode

__all__ = ["Mapped"]


class Mapped(Protocol):
    """A process: what is mapped into it, and since when it ran."""

    @property
    def map(self) -> ModuleMap:
        """Which module lies at an address."""

    @property
    def start_unix_ns(self) -> int | None:
        """When it began: files without a build-id must not be younger."""

    @property
    def codes(self) -> Mapping[int, PythonCode]:
        """Code of Python and Java by the numbers that it has in stacks."""
