"""The language of `locks.toml`, which describes the functions of locks of other libraries.

`catalog/locks.toml` explains the language; hooks of the tracer are generated from that file.
`ptt record --locks` reads a file of the user.
"""

from __future__ import annotations

import re

from nptltrace._dataclasses import dataclass
from nptltrace.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from typing import Any, TypeGuard

__all__ = ["LockFunction", "Locks", "parse_locks", "read_locks"]

_MUTEX = ("acquire", "try", "release", "init", "destroy", "wait-apart")
_DOES = {
    "mutex": _MUTEX,
    "rwlock": (*_MUTEX, "acquire-shared", "try-shared"),
    "cond": ("wait", "wake", "wake-all", "init", "destroy"),
    "barrier": ("wait", "team"),
}
_TRIES = {"acquire": "try", "acquire-shared": "try-shared"}
_TAKEN = ("always", "zero", "nonzero", "true", "false")
_LOCK_KEYS = ("type", "like", "doc", "functions")
_KEYS = ("name", "does", "argument", "mutex", "taken", "try", "limit", "needs", "arguments", "hook")
_TYPE = re.compile(r"[a-z][a-z0-9_-]{0,31}")
_NAME = re.compile(r"[A-Za-z_.$][A-Za-z0-9_.$]*")
_ARGUMENTS = 6
_FUNCTIONS = 254  # the numbers of a byte, except the number for none
_TYPES = 127


@dataclass(frozen=True)
class LockFunction:
    """A function of a lock. Numbers of arguments begin with 1.

    Attributes:
        name: Name of the function.
        does: The action of the function, such as `acquire`.
        type: Index of the lock type.
        like: The domain that records the objects, such as `mutex`.
        argument: The argument with the object, or for `team` with the function of the threads;
            0 for a single object, or for the barrier of the thread's team.
        mutex: The argument with the mutex of a wait, or 0.
        taken: The results that mean success.
        try_with: Index of the function that takes the lock if it is free, or None.
        limit: The argument with the time limit, or 0.
        needs: Index of a function. Without that function, calls are not recorded. Or None.
        arguments: Number of arguments, or None if unknown.
        own_hook: The tracer has a hand-written hook for the function.
    """

    name: str
    does: str
    type: int
    like: str
    argument: int
    mutex: int
    taken: str
    try_with: int | None
    limit: int
    needs: int | None
    arguments: int | None
    own_hook: bool


@dataclass(frozen=True)
class Locks:
    """The content of a file.

    Attributes:
        types: Names of the lock types.
        docs: Description of each type, or an empty text.
        likes: The domain that records each type.
        functions: The functions of all types.
    """

    types: tuple[str, ...]
    docs: tuple[str, ...]
    likes: tuple[str, ...]
    functions: tuple[LockFunction, ...]


def read_locks(path: Path, known: tuple[str, ...] = (), *, least: int = 1) -> Locks:
    """Read a file.

    Args:
        path: Path of the file.
        known: Names of types that the file must not use.
        least: Number of functions that a type must have at least.

    Raises:
        UsageError: The file is unreadable or wrong.
    """
    import tomllib

    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path}: is not UTF-8 text") from None
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path}: {error}") from None
    try:
        return parse_locks(document, known, least=least)
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None


def parse_locks(
    document: Mapping[str, Any], known: tuple[str, ...] = (), *, least: int = 1
) -> Locks:
    """Check the content of a file, and return it.

    Args:
        document: The parsed TOML.
        known: Names of types that the file must not use.
        least: Number of functions that a type must have at least.

    Raises:
        UsageError: The content is wrong.
    """
    tables = document.get("lock")
    if not _is_tables(tables) or not tables or set(document) != {"lock"}:
        raise UsageError("expected tables [[lock]], and nothing else")
    types = tuple(_type_of(table, least) for table in tables)
    for place, name in enumerate(types):
        if name in known or name in types[:place]:
            raise UsageError(f"type {name!r} is there already")
    entries = [
        (place, table["like"], function)
        for place, table in enumerate(tables)
        for function in table["functions"]
    ]
    number: dict[str, int] = {}
    for _, _, function in entries:
        if number.setdefault(_name_of(function), len(number)) != len(number) - 1:
            raise UsageError(f"function {function['name']} is there twice")
    if len(entries) > _FUNCTIONS or len(types) > _TYPES:
        raise UsageError(f"there are more than {_FUNCTIONS} functions or {_TYPES} types")
    functions = tuple(_function(place, like, table, number) for place, like, table in entries)
    for member in functions:
        other = None if member.try_with is None else functions[member.try_with]
        if other is not None and (other.does, other.type) != (_TRIES.get(member.does), member.type):
            raise UsageError(
                f"{member.name}: try names {other.name}, which does not try for its lock"
            )
    docs = tuple(str(table.get("doc", "")) for table in tables)
    return Locks(types, docs, tuple(str(table["like"]) for table in tables), functions)


def _is_tables(value: object) -> TypeGuard[list[dict[str, Any]]]:
    return isinstance(value, list) and all(isinstance(item, dict) for item in value)


def _type_of(table: Mapping[str, Any], least: int) -> str:
    """Check the keys of a table [[lock]], and return its type."""
    name = table.get("type")
    if not isinstance(name, str) or not _TYPE.fullmatch(name):
        raise UsageError(f"type is a word of small letters, digits, - and _, not {name!r}")
    for key in table:
        if key not in _LOCK_KEYS:
            raise UsageError(f"{name}: unknown {key!r}: expected {', '.join(_LOCK_KEYS)}")
    if table.get("like") not in _DOES:
        raise UsageError(f"{name}: like is {', '.join(_DOES)}, not {table.get('like')!r}")
    functions = table.get("functions")
    if not _is_tables(functions) or len(functions) < least:
        raise UsageError(f"{name}: functions is a list of tables with name and does")
    return name


def _name_of(function: Mapping[str, Any]) -> str:
    name = function.get("name")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise UsageError(f"name is a function's, as the dynamic linker knows it, not {name!r}")
    if name.startswith(("__nptl_trace", "ptt_", "dl")):
        raise UsageError(f"{name}: the tracer itself needs that function")
    return name


def _function(
    place: int, like: str, table: Mapping[str, Any], number: Mapping[str, int]
) -> LockFunction:
    name = table["name"]
    for key in table:
        if key not in _KEYS:
            raise UsageError(f"{name}: unknown {key!r}: expected {', '.join(_KEYS)}")
    does, taken = table.get("does"), table.get("taken", "always")
    if does not in _DOES[like]:
        raise UsageError(f"{name}: does is {', '.join(_DOES[like])} for a {like}, not {does!r}")
    if taken not in _TAKEN:
        raise UsageError(f"{name}: taken is {', '.join(_TAKEN)}, not {taken!r}")
    if taken == "always" and does in _TRIES.values():
        raise UsageError(f"{name}: taken says how the result of a try is read")
    hook = table.get("hook", "generated")
    if hook not in ("generated", "own"):
        raise UsageError(f"{name}: hook is generated or own, not {hook!r}")
    waits = does == "wait-apart" or (does == "wait" and like == "cond")
    return LockFunction(
        name=name,
        does=does,
        type=place,
        like=like,
        argument=_argument(table, "argument", int(does == "team"), 1),
        mutex=_argument(table, "mutex", 1, None) if waits else 0,
        taken=taken,
        try_with=_other(table, "try", number),
        limit=_argument(table, "limit", 1, 0),
        needs=_other(table, "needs", number),
        arguments=_argument(table, "arguments", 0, -1) if "arguments" in table else None,
        own_hook=hook == "own",
    )


def _argument(table: Mapping[str, Any], key: str, first: int, default: int | None) -> int:
    value = table.get(key, default)
    if default is not None and value == default:
        return default
    if type(value) is not int or not first <= value <= _ARGUMENTS:
        raise UsageError(
            f"{table['name']}: {key} is the number of an argument from {first} to {_ARGUMENTS}, "
            f"not {value!r}"
        )
    return value


def _other(table: Mapping[str, Any], key: str, number: Mapping[str, int]) -> int | None:
    """Return the index of another function that a key names, or None."""
    name = table.get(key)
    if name is None:
        return None
    if not isinstance(name, str) or name not in number:
        raise UsageError(f"{table['name']}: {key} names {name!r}, which is no function here")
    return number[name]
