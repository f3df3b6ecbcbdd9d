"""The language of `locks.toml`: which functions take, give back, wait for or wake which locks.

The tracer's own hooks are generated from such a file (`catalog/locks.toml`, which explains it);
`ptt record --locks` reads one of the user's.
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
_FUNCTIONS = 254  # numbers of a byte, without the one for none
_TYPES = 127


@dataclass(frozen=True)
class LockFunction:
    """A function of a lock, with arguments from 1.

    Attributes:
        name: Its name.
        does: What it does.
        type: Place of the type of its objects among the types.
        like: As what they are recorded.
        argument: The argument that is the object, or of a team the function that its threads run;
            0 where there is one object for all, or the barrier of the thread's team.
        mutex: The argument that is the mutex of a wait, or 0.
        taken: How its result says that it is done.
        try_with: Place of the function that takes the lock if it is free, or None.
        limit: The argument that says for how long it may wait, or 0.
        needs: Place of the function without which calls are not recorded, or None.
        arguments: How many it has, or None where nobody says.
        own_hook: Whether the tracer has a hook for it that was written by hand.
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
    """What a file says.

    Attributes:
        types: What the objects are called.
        docs: What they are, by type; empty where the file does not say so.
        likes: As what they are recorded, by type.
        functions: Their functions.
    """

    types: tuple[str, ...]
    docs: tuple[str, ...]
    likes: tuple[str, ...]
    functions: tuple[LockFunction, ...]


def read_locks(path: Path, known: tuple[str, ...] = (), *, least: int = 1) -> Locks:
    """Read a file.

    Args:
        path: Where it is.
        known: Types that it must not have.
        least: So many functions a type must have.

    Raises:
        UsageError: It cannot be read, or says what makes no sense.
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
    """Understand what stands in a file.

    Args:
        document: What TOML makes of it.
        known: Types that it must not have.
        least: So many functions a type must have.

    Raises:
        UsageError: It says what makes no sense.
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
    """Check what a [[lock]] says itself, and return its type."""
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
        own_hook=_has_own_hook(table),
    )


def _has_own_hook(table: Mapping[str, Any]) -> bool:
    """Return what a function says of its hook: only the tracer's own catalogue has such hooks."""
    hook = table.get("hook", "generated")
    if hook not in ("generated", "own"):
        raise UsageError(f"{table['name']}: hook is generated or own, not {hook!r}")
    return bool(hook == "own")


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
    """Return the place of another function that this one names."""
    name = table.get(key)
    if name is None:
        return None
    if not isinstance(name, str) or name not in number:
        raise UsageError(f"{table['name']}: {key} names {name!r}, which is no function here")
    return number[name]
