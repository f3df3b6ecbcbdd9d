"""The size of a function's frame, from its first instructions (x86-64).

The unwind table of a function with a frame pointer counts from the frame pointer. For a thread that
was not stopped, only the stack pointer is known.
"""

from __future__ import annotations

import re

__all__ = ["CODE_SIZE", "frame_size"]

# endbr64; push %rbp; mov %rsp,%rbp; pushes of other registers; sub $N,%rsp. In between, arguments
# may be moved to other registers.
_MOVES = rb"(?:[\x40-\x4f]?[\x89\x8b][\xc0-\xff])*"
_PUSH = re.compile(rb"(\x41?[\x50-\x57])" + _MOVES)
_PROLOGUE = re.compile(
    rb"(?:\xf3\x0f\x1e\xfa)?\x55" + _MOVES + rb"\x48(?:\x89\xe5|\x8b\xec)" + _MOVES
    + rb"((?:\x41?[\x50-\x57]" + _MOVES + rb")*)"
    rb"(?:\x48\x83\xec(.)|\x48\x81\xec(....))?",
    re.DOTALL,
)  # fmt: skip
# The largest size of such a prologue, in bytes.
CODE_SIZE = 48
# A larger frame is allocated page by page, with more instructions.
_PAGE = 1 << 12
# The return address and the frame pointer of the caller.
_LINKAGE = 16


def frame_size(code: bytes) -> int:
    """Return the number of bytes from the stack pointer to the end of the return address.

    Args:
        code: The first `CODE_SIZE` bytes of the function.

    Returns:
        0 if the function has another prologue.
    """
    prologue = _PROLOGUE.match(code)
    if prologue is None:
        return 0
    room = int.from_bytes(prologue[2] or prologue[3] or b"", "little")
    if room >= (_PAGE if prologue[2] is None else 1 << 7):
        return 0
    return _LINKAGE + 8 * len(_PUSH.findall(prologue[1])) + room
