"""Reads alias files: names for objects that have no name in a symbol table.

A line is `0xADDRESS name` or `symbol name`; `#` begins a comment.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from nptltrace._dataclasses import dataclass, field
from nptltrace.errors import UsageError

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

__all__ = ["Aliases", "read_aliases"]


@dataclass(frozen=True, slots=True)
class Aliases:
    """Names that the user has given.

    Attributes:
        addresses: Names by address.
        symbols: Names by symbol.
    """

    addresses: dict[int, str] = field(default_factory=dict)
    symbols: dict[str, str] = field(default_factory=dict)

    def find(self, name: str) -> tuple[list[int], list[str]]:
        """Return the addresses and symbols that have this alias."""
        addresses = [address for address, alias in self.addresses.items() if alias == name]
        return addresses, [symbol for symbol, alias in self.symbols.items() if alias == name]


def read_aliases(paths: Sequence[str | os.PathLike[str]]) -> Aliases:
    """Read alias files. If two lines name one object, the later line counts.

    Raises:
        UsageError: A file cannot be read, or a line has neither form.
    """
    aliases = Aliases()
    for path in map(Path, paths):
        try:
            text = path.read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            raise UsageError(f"alias file {path}: {error.strerror}") from None
        for number, line in enumerate(text.splitlines(), 1):
            words = line.partition("#")[0].split(None, 1)
            if not words:
                continue
            if len(words) == 1:
                raise UsageError(f"alias file {path}, line {number}: an address needs a name")
            what, name = words[0], words[1].strip()
            if not what.lower().startswith("0x"):
                aliases.symbols[what] = name
                continue
            try:
                aliases.addresses[int(what, 16)] = name
            except ValueError:
                message = f"alias file {path}, line {number}: {what} is not an address"
                raise UsageError(message) from None
    return aliases
