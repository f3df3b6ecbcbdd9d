"""Shortens names of C++ functions for display.

A demangled name has each default argument of each template, and the types of all parameters. A call
site has a line, so its function needs no parameters.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["display_name", "full_names", "is_plumbing", "run_by", "whole_names"]

# Arguments of the templates of `std` that a program seldom writes.
_DEFAULTS = re.compile(r"std::(allocator|char_traits|default_delete|less|equal_to|hash)\b")
_ALIASES = {
    f"std::basic_{name}<{letter}>": f"std::{prefix}{name}"
    for name in ("string", "string_view", "ostream", "istream", "iostream", "ofstream", "ifstream")
    for letter, prefix in (("char", ""), ("wchar_t", "w"))
}
# Inline namespaces: libraries mark their versions with them.
_VERSIONS = re.compile(r"\bstd::__(cxx11|1|ndk1|debug)::|\[abi:\w+\]")
# Operators with brackets become characters of the private use area while brackets are counted.
_OPERATORS = ("()", "[]", "<=>", "<<=", ">>=", "->*", "<<", ">>", "<=", ">=", "->", "<", ">", ",")
_OPERATOR = re.compile(rf"\boperator({'|'.join(map(re.escape, _OPERATORS))})( (?=<))?")
_CLONE = re.compile(r"( \[clone [^\]]*\])+$")
_ANONYMOUS, _SPACE, _OPERATOR_AT = "\ue000", "\ue001", 0xE010
_LAMBDA = re.compile(r"\{lambda\(|<lambda\(")
_LAMBDA_END = re.compile(r"#(\d+)\}|\}|>")
_CALL = chr(_OPERATOR_AT)
_QUALIFIERS = re.compile(r"( const| volatile| noexcept| ?&&?)*")
# Debug information has no other name for the function of a lambda.
_LAMBDA_ALONE = "{lambda}"
_PLUMBING = re.compile(r"(\w+ )*std::(\w+::)*_[_A-Z]")
# Templates of `std` that run a function object, and the index of the argument with the object.
_RUNS = (("::_Invoker<std::tuple<", 0), ("std::_Function_handler<", -1))
_CLOSE = {"(": ")", "<": ">", "{": "}", "[": "]"}

_full = False


@contextmanager
def whole_names() -> Iterator[None]:
    """Show whole names in all texts of this process, within the block."""
    global _full  # noqa: PLW0603 -- one choice of the user for all texts
    _full = True
    try:
        yield
    finally:
        _full = False


def full_names() -> bool:
    """Return whether texts show whole names."""
    return _full


def display_name(name: str) -> str:
    """Return the name of a function without parameters, return type and default arguments.

    Args:
        name: The demangled name. Names of other languages stay as they are.
    """
    if _full or ("(" not in name and "<" not in name):
        return name
    return _LAMBDA_ALONE if name == "operator()" else _short(name)


def is_plumbing(name: str) -> bool:
    """Return whether a function is internal to `std`, so that texts leave it out."""
    return not _full and _PLUMBING.match(name) is not None


@lru_cache(1 << 14)
def _short(name: str) -> str:
    try:
        return _Name(name).short()
    except (IndexError, RecursionError):
        return name  # brackets do not match, or are too deep


@lru_cache(1 << 12)
def run_by(name: str) -> str:
    """Return the lambda that a function of `std` runs, or empty.

    Args:
        name: The demangled name, such as `std::thread::_State_impl<…>::_M_run()`.
    """
    for runner, which in _RUNS:
        _, found, rest = name.partition(runner)
        try:
            function = _Name(f"{rest}>").arguments()[which] if found else ""
        except (IndexError, RecursionError):
            continue  # brackets do not match, or are too deep
        if function.endswith("}"):
            return function
    return ""


class _Name:
    """Reads a demangled name once from left to right.

    Args:
        name: The name.

    Raises:
        IndexError: Brackets do not match.
    """

    def __init__(self, name: str) -> None:
        text = _VERSIONS.sub(lambda found: "std::" if found[0][0] == "s" else "", name)
        text = _CLONE.sub("", text.replace("(anonymous namespace)", _ANONYMOUS))
        self._text = _OPERATOR.sub(
            lambda found: f"operator{chr(_OPERATOR_AT + _OPERATORS.index(found[1]))}", text
        )

    def short(self) -> str:
        """Return the name without parameters, return type and default arguments."""
        text, end = self._part(0, "", top=True)
        if end < len(self._text):
            raise IndexError(end)
        if text != self._text and not self._text.endswith(">"):
            text = _without_return_type(text)
        return _restored(text)

    def arguments(self) -> list[str]:
        """Return the arguments of a template up to its closing bracket."""
        return [_restored(item) for item in self._list(0, ">")[0]]

    def _part(self, at: int, closing: str, *, top: bool) -> tuple[str, int]:
        """Return a part up to a closing bracket or a comma, and where it ends."""
        parts: list[str] = []
        text = self._text
        while at < len(text) and text[at] not in closing:
            char = text[at]
            if found := _LAMBDA.match(text, at):
                _, end = self._list(found.end(), ")")
                number = _LAMBDA_END.match(text, end)
                if number is None:
                    raise IndexError(end)
                parts.append(f"{{lambda{_SPACE}#{number[1]}}}" if number[1] else "{lambda}")
                at = number.end()
            elif char == "<" and parts and _names(parts[-1]):
                arguments, at = self._list(at + 1, ">")
                parts = [self._template("".join(parts), arguments)]
            elif char == "(" and parts and _names(parts[-1]):
                inner, at = self._list(at + 1, ")")
                after = _QUALIFIERS.match(text, at)
                behind = after.end() if after else at
                if top or text.startswith("::", behind):
                    at = behind
                else:
                    parts.append(f"({', '.join(inner)})")
            elif char in _CLOSE:
                inner, at = self._list(at + 1, _CLOSE[char])
                parts.append(f"{char}{', '.join(inner)}{_CLOSE[char]}")
            elif char in _CLOSE.values():
                raise IndexError(at)
            else:
                parts.append(char)
                at += 1
        return "".join(parts), at

    def _list(self, at: int, closing: str) -> tuple[list[str], int]:
        """Return the parts between brackets, and the index behind the closing bracket."""
        items: list[str] = []
        while True:
            item, at = self._part(at, f",{closing}", top=False)
            items.append(item.strip())
            if self._text[at] == closing:
                return [item for item in items if item], at + 1
            at += 1

    @staticmethod
    def _template(before: str, arguments: list[str]) -> str:
        """Return a template with its arguments, or its alias."""
        begin = len(before)
        while begin and (before[begin - 1].isalnum() or before[begin - 1] in "_:"):
            begin -= 1
        name = before[begin:]
        if name.startswith("std::"):
            while len(arguments) > 1 and _DEFAULTS.match(arguments[-1]):
                arguments.pop()
            alias = _ALIASES.get(f"{name}<{', '.join(arguments)}>")
            if alias:
                return before[:begin] + alias
        return f"{before}<{', '.join(arguments)}>"


def _names(text: str) -> bool:
    """Return whether a bracket behind a text belongs to a name at its end."""
    last = text[-1:]
    return last.isalnum() or last in {"_", ">", "}", "]"} or "\ue010" <= last <= "\ue01f"


def _without_return_type(text: str) -> str:
    """Return a name without the type before it."""
    depth, begin = 0, 0
    for at, char in enumerate(text):
        if char in _CLOSE:
            depth += 1
        elif char in _CLOSE.values():
            depth -= 1
        elif char == " " and not depth:
            if text[:at].endswith("operator"):
                break  # a conversion, or new and delete
            begin = at + 1
    return text[begin:].lstrip("*&")


def _restored(text: str) -> str:
    """Return a text with its operators, and with lambdas without their operator."""
    text = text.replace(f"}}::operator{_CALL}", "}")
    for n, operator in enumerate(_OPERATORS):
        text = text.replace(chr(_OPERATOR_AT + n), operator)
    return text.replace(_ANONYMOUS, "(anonymous namespace)").replace(_SPACE, " ")
