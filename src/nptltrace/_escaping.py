r"""Escapes text from outside: bytes that are not UTF-8, and control characters of terminals.

File names, arguments and thread names are bytes. Python decodes bytes that are not UTF-8 to lone
surrogates (PEP 383), which cannot be encoded as UTF-8 again.
"""

from __future__ import annotations

import sys

__all__ = ["for_terminal", "readable", "talk"]

# Control characters of terminals, and characters that change the direction of text.
_CONTROLS = {
    code: chr(code).encode("unicode_escape").decode("ascii")
    for first, last in (
        (0x00, 0x1F), (0x7F, 0x9F), (0x61C, 0x61C), (0x200E, 0x200F), (0x2028, 0x202E),
        (0x2066, 0x2069),
    )
    for code in range(first, last + 1)
}  # fmt: skip


def readable(text: str) -> str:
    r"""Return text that can be encoded: bytes that are not UTF-8 become escapes such as `\xfe`."""
    if text.isascii():
        return text
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def for_terminal(text: str) -> str:
    r"""Return one line of text with control characters as escapes, such as `\x1b`, `\u202e`."""
    return readable(text).translate(_CONTROLS)


def talk(message: str) -> None:
    """Print `ptt: message` as one line on stderr; line ends in the message are escaped."""
    print(f"ptt: {for_terminal(message)}", file=sys.stderr, flush=True)
