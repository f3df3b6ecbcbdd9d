"""Demangles names of Rust: the v0 scheme (Rust RFC 2603), and the older scheme, based on C++'s.

No library that PTT depends on does this. The Python package of `symbolic` leaves out the demangler
of its Rust crates, and libstdc++ knows only C++. Other libraries fail: `rust-demangler` fails for
lifetimes (`FG_RL0_hEu`) and recurses without end (`_RNvB_1a`). LLVM does not demangle the older
scheme.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["legacy", "v0"]

# ---- the older scheme: a path of counted names, with a hash as the last name ----

_LEGACY = re.compile(r"_ZN((?:\d+.+)?)17h[0-9a-f]{16}E(?:\.[\w.]+)?", re.DOTALL)
_ESCAPE = re.compile(r"\$(\w+)\$")
_SIGNS = {
    "SP": "@", "BP": "*", "RF": "&", "LT": "<", "GT": ">", "LP": "(", "RP": ")", "C": ",",
}  # fmt: skip


def legacy(name: str) -> str | None:
    """Return the path of a name in the older scheme, or None for another name."""
    match = _LEGACY.fullmatch(name)
    if match is None:
        return None
    text, parts, at = match[1], [], 0
    while at < len(text):
        count = re.compile(r"\d+").match(text, at)
        if count is None or count.end() + int(count[0]) > len(text):
            return None
        at = count.end() + int(count[0])
        part = text[count.end() : at]
        # An underscore comes before a leading escape.
        part = part[1:] if part.startswith("_$") else part
        parts.append(_ESCAPE.sub(_sign, part).replace("..", "::"))
    return "::".join(parts) or None


def _sign(match: re.Match[str]) -> str:
    """Return the character of an escape."""
    code = match[1]
    if code in _SIGNS:
        return _SIGNS[code]
    if re.fullmatch(r"u[0-9a-f]{1,6}", code):
        value = int(code[1:], 16)
        if value < 0x110000:  # noqa: PLR2004 -- Unicode ends there
            return chr(value)
    return match[0]


# ---- v0 ----

_BASIC = {
    "a": "i8", "b": "bool", "c": "char", "d": "f64", "e": "str", "f": "f32", "h": "u8",
    "i": "isize", "j": "usize", "l": "i32", "m": "u32", "n": "i128", "o": "u128", "p": "_",
    "s": "i16", "t": "u16", "u": "()", "v": "...", "x": "i64", "y": "u64", "z": "!",
}  # fmt: skip
_SIGNED = frozenset("ailnsx")
_UNSIGNED = frozenset("hjmoty")
_POINTERS = {"R": "&", "Q": "&mut ", "P": "*const ", "O": "*mut "}
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_BASE = len(_DIGITS)
# A name may refer back to its own parts, and grow without end.
_DEPTH_MAX, _WORK_MAX = 100, 5000


class _BadNameError(Exception):
    """The name does not follow the scheme."""


def v0(name: str) -> str | None:
    """Return the path of a name in the v0 scheme, or None for another name."""
    if not re.match(r"_R[A-Z]", name) or not name.isascii():
        return None
    # Later stages of the compiler add a dot and a suffix.
    reader = _V0(name[2:].partition(".")[0])
    try:
        text = reader.path(value=True)
        if reader.peek():
            reader.path(value=False)  # the crate that made the instance
    except (_BadNameError, ValueError, OverflowError):
        return None
    return text if not reader.peek() else None


class _V0:
    """Reads one name, from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._depth = 0
        self._work = 0
        self._lifetimes = 0

    # ---- characters and numbers ----

    def peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _take(self, char: str) -> bool:
        if self.peek() != char:
            return False
        self._at += 1
        return True

    def _next(self) -> str:
        char = self.peek()
        if not char:
            raise _BadNameError
        self._at += 1
        return char

    def _base62(self) -> int:
        if self._take("_"):
            return 0
        value = 0
        while not self._take("_"):
            value = value * _BASE + _DIGITS.index(self._next())
        return value + 1

    def _optional(self, tag: str) -> int:
        return self._base62() + 1 if self._take(tag) else 0

    def _word(self) -> str:
        """Read a name with its length before it."""
        encoded = self._take("u")
        digits = ""
        while self.peek().isdigit() and digits != "0":
            digits += self._next()
        if not digits:
            raise _BadNameError
        self._take("_")
        end = self._at + int(digits)
        if end > len(self._text):
            raise _BadNameError
        word, self._at = self._text[self._at : end], end
        if not encoded:
            return word
        head, _, tail = word.rpartition("_")
        return (f"{head}-{tail}" if head else tail).encode().decode("punycode")

    def _enter(self) -> None:
        self._depth += 1
        self._work += 1
        if self._depth > _DEPTH_MAX or self._work > _WORK_MAX:
            raise _BadNameError

    def _back(self) -> int:
        """Go to an earlier part by a reference; return where to continue afterwards."""
        target = self._base62()
        if target >= self._at - 1:
            raise _BadNameError
        after, self._at = self._at, target
        return after

    # ---- paths ----

    def path(self, *, value: bool) -> str:
        self._enter()
        tag = self._next()
        if tag == "C":
            self._optional("s")
            text = self._word()
        elif tag == "N":
            text = self._nested(value=value)
        elif tag in "MX":
            self._optional("s")
            self.path(value=False)
            text = f"<{self._type()}>" if tag == "M" else self._as_trait()
        elif tag == "Y":
            text = self._as_trait()
        elif tag == "I":
            text = self.path(value=value) + ("::<" if value else "<")
            text += ", ".join(self._until_end(self._generic)) + ">"
        elif tag == "B":
            after = self._back()
            text = self.path(value=value)
            self._at = after
        else:
            raise _BadNameError
        self._depth -= 1
        return text

    def _as_trait(self) -> str:
        return f"<{self._type()} as {self.path(value=False)}>"

    def _nested(self, *, value: bool) -> str:
        kind = self._next()
        outer = self.path(value=value)
        number, word = self._optional("s"), self._word()
        if kind.islower():
            return f"{outer}::{word}" if word else outer
        what = {"C": "closure", "S": "shim"}.get(kind, kind)
        return f"{outer}::{{{what}{':' + word if word else ''}#{number}}}"

    def _generic(self) -> str:
        if self._take("L"):
            return self._lifetime(self._base62())
        return self._const() if self._take("K") else self._type()

    def _until_end(self, read: Callable[[], str]) -> list[str]:
        parts = []
        while not self._take("E"):
            parts.append(read())
        return parts

    # ---- types ----

    def _type(self) -> str:
        self._enter()
        tag = self._next()
        if tag in _BASIC:
            text = _BASIC[tag]
        elif tag in _POINTERS:
            text = self._pointer(tag)
        elif tag == "A":
            text = f"[{self._type()}; {self._const()}]"
        elif tag == "S":
            text = f"[{self._type()}]"
        elif tag in "TFD":
            read = {"T": self._tuple, "F": self._function, "D": self._dynamic}[tag]
            text = read()
        elif tag == "B":
            after = self._back()
            text = self._type()
            self._at = after
        else:
            self._at -= 1
            text = self.path(value=False)
        self._depth -= 1
        return text

    def _pointer(self, tag: str) -> str:
        lifetime = ""
        if tag in "RQ" and self._take("L"):
            number = self._base62()
            lifetime = self._lifetime(number) + " " if number else ""
        sign = _POINTERS[tag]
        return sign[0] + lifetime + sign[1:] + self._type()

    def _tuple(self) -> str:
        members = self._until_end(self._type)
        return f"({members[0]},)" if len(members) == 1 else f"({', '.join(members)})"

    def _function(self) -> str:
        before, text = self._lifetimes, self._binder()
        text += "unsafe " if self._take("U") else ""
        if self._take("K"):
            abi = "C" if self._take("C") else self._word().replace("_", "-")
            text += f'extern "{abi}" '
        text += f"fn({', '.join(self._until_end(self._type))})"
        result = self._type()
        self._lifetimes = before
        return text if result == "()" else f"{text} -> {result}"

    def _dynamic(self) -> str:
        before, text = self._lifetimes, "dyn " + self._binder()
        text += " + ".join(self._until_end(self._bound))
        self._lifetimes = before
        if not self._take("L"):
            raise _BadNameError
        number = self._base62()
        return f"{text} + {self._lifetime(number)}" if number else text

    def _bound(self) -> str:
        """Read a trait with its associated types."""
        text = self.path(value=False)
        types = []
        while self._take("p"):
            name = self._word()
            types.append(f"{name} = {self._type()}")
        if not types:
            return text
        inside = ", ".join(types)
        return f"{text[:-1]}, {inside}>" if text.endswith(">") else f"{text}<{inside}>"

    def _binder(self) -> str:
        count = self._optional("G")
        if count > _DEPTH_MAX:
            raise _BadNameError
        names = []
        for _ in range(count):
            self._lifetimes += 1
            names.append(self._lifetime(1))
        return f"for<{', '.join(names)}> " if names else ""

    def _lifetime(self, number: int) -> str:
        if not number:
            return "'_"
        depth = self._lifetimes - number
        if depth < 0:
            raise _BadNameError
        return f"'{chr(ord('a') + depth)}" if depth < 26 else f"'_{depth}"  # noqa: PLR2004 -- letters

    # ---- constants ----

    def _const(self) -> str:
        self._enter()
        tag = self._next()
        if tag == "B":
            after = self._back()
            text = self._const()
            self._at = after
        elif tag == "p":
            text = "_"
        elif tag in _SIGNED or tag in _UNSIGNED:
            sign = "-" if tag in _SIGNED and self._take("n") else ""
            text = f"{sign}{self._hex()}"
        elif tag == "b":
            text = "true" if self._hex() else "false"
        elif tag == "c":
            text = repr(chr(self._hex()))
        else:
            raise _BadNameError  # constants of other types are not yet stable
        self._depth -= 1
        return text

    def _hex(self) -> int:
        digits = ""
        while not self._take("_"):
            digits += self._next()
        return int(digits or "0", 16)
