"""Text from outside, as it can be shown: bytes that are no UTF-8, and what terminals obey.

File names, arguments and thread names are bytes; Python keeps those that are not UTF-8 as lone
surrogates, which nothing but a file name may hold.
"""

from __future__ import annotations

import sys

__all__ = ["for_terminal", "readable", "talk"]

# Control characters, and those by which a text changes the direction of what stands around it.
_OBEYED = {
    code: chr(code).encode("unicode_escape").decode("ascii")
    for first, last in (
        (0x00, 0x1F), (0x7F, 0x9F), (0x61C, 0x61C), (0x200E, 0x200F), (0x2028, 0x202E),
        (0x2066, 0x2069),
    )
    for code in range(first, last + 1)
}  # fmt: skip


def readable(text: str) -> str:
    r"""Return text that can be encoded: bytes that are no UTF-8 stand there as `\xfe`."""
    if text.isascii():
        return text
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def for_terminal(text: str) -> str:
    r"""Return text of one line that a terminal shows and does not obey, with `\x1b`, `\u202e`."""
    return readable(text).translate(_OBEYED)


def talk(message: str) -> None:
    """Print a line on stderr, as `ptt: message`, which no name in it can make more of."""
    print(f"ptt: {for_terminal(message)}", file=sys.stderr, flush=True)
