"""The library functions that wait, and the kinds of objects that they wait for, by name."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = [
    "has_object",
    "is_plumbing",
    "makes_calls",
    "plain_name",
    "routine_kind",
    "routine_of",
    "waits_for_library",
    "wants_to_write",
]

# Waiting functions of the C library by kind of object, without leading underscores. The names of
# static functions come from debug information.
_C_LIBRARY = {
    "mutex": r"pthread_mutex_(timed|clock|cond_)?lock(_full|_common|_slow)?|mtx_(timed)?lock",
    "condition": r"pthread_cond_((timed|clock)?wait(_common)?|destroy)|cnd_((timed)?wait|destroy)",
    "rwlock": r"pthread_rwlock_(timed|clock)?(rd|wr)lock(_full)?",
    "semaphore": r"(new_|old_)?(do_)?sem_(timed|clock)?wait(_common|_slow)?",
    "barrier": r"pthread_barrier_wait",
    "join": r"pthread_(timed|clock)?join(_common|_np|_ex)?|thrd_join",
    "once": r"pthread_once(_slow)?|call_once",
    "spin lock": r"pthread_spin_lock",
    "malloc lock": (
        r"(libc_)?(malloc|calloc|realloc|free|memalign|aligned_alloc|p?valloc|posix_memalign)2?"
        r"|malloc_(trim|info|stats)|mallinfo2?|int_(malloc|free(_\w+)?|realloc|memalign)|mid_memalign|sysmalloc"
    ),
}
# Waiting functions of libraries with futexes as objects, which name no owner. Rust's library has
# moved its modules: `sys::unix::locks::futex_mutex` became `sys::sync::mutex::futex`.
_ON_THEIR_FUTEX = {
    "mutex": (
        r"(futex_mutex|mutex::futex)::Mutex>?::lock_contended|^QBasicMutex::lock|^g_mutex_lock"
    ),
    "rwlock": r"(futex_rwlock|rwlock::futex)::RwLock>?::(read|write)_contended",
    "condition": r"(futex_condvar|condvar::futex)::Condvar>?::wait|^g_cond_wait",
    "once": r"once::futex::Once>?::(call|wait)",
    "future": r"^std::__atomic_futex_unsigned|^std::__future_base::_State_baseV2::wait",
    "static": r"^__cxa_guard_acquire$",
}
# Waiting functions of libraries that let a thread sleep on its own word: the object is not known.
_PARKED = {
    "mutex": r"parking_lot::raw_mutex::RawMutex>?::lock_slow",
    "rwlock": r"parking_lot::raw_rwlock::RawRwLock>?::(\w+_slow|wait_for_readers)",
    "condition": r"parking_lot::condvar::Condvar>?::wait_until_internal",
    "once": r"parking_lot::once::Once>?::call_once_slow",
    "park": r"\bstd::(\w+::)*(thread|thread_parking)(::\w+)*::(\w+>?::)?park(_timeout)?$",
    "go": r"^runtime\.futex(\.abi0)?$",
}
# The reasons to park a thread or to wait on a condition, by outer functions of libraries.
_PARKED_FOR = {
    "receive": r"\b(mpsc|mpmc|crossbeam_channel)::.*::recv(_timeout|_deadline)?\b",
    "send": r"\b(mpsc|mpmc|crossbeam_channel)::.*::send(_timeout|_deadline)?\b",
    "scope": r"\bstd::thread::(scoped::)?scope\b",
    "once": r"^g_once_(init_enter|impl)",
}
# Functions between these functions and the system call.
_PLUMBING = re.compile(
    r"(lll|futex)_.*|(do_)?futex_.*|syscall.*|internal_syscall.*|GI_.*|nanosleep|clock_nanosleep"
    r"|u?sleep|libc_\w+|(internal_)?syscall_cancel(_arch)?"
)
# Since 2.41, glibc makes system calls in functions of their own.
_MAKES_CALLS = re.compile(r"(internal_)?syscall_cancel(_arch)?")
_WRITES = re.compile(r"wrlock|write_contended|exclusive|upgrade|wait_for_readers")


def _compiled(patterns: dict[str, str], form: str = "{}") -> dict[str, re.Pattern[str]]:
    return {kind: re.compile(form.format(pattern)) for kind, pattern in patterns.items()}


_PATTERNS = _compiled(_C_LIBRARY, r"(?:{})\Z")
# Each table with whether the futex is the object.
_OTHERS = ((_compiled(_ON_THEIR_FUTEX), True), (_compiled(_PARKED), False))
_REASONS = _compiled(_PARKED_FOR)


@cache
def plain_name(function: str) -> str:
    """Return a name of the C library without leading underscores, version and clone suffix."""
    name = function.removeprefix("__GI_").lstrip("_")
    return re.split(r"[@.]", name, maxsplit=1)[0].removesuffix("64")


@cache
def routine_kind(function: str) -> str:
    """Return the kind of object that a function of a thread library waits for, or empty.

    Args:
        function: A name from a symbol table, as `__GI___pthread_cond_wait`.
    """
    plain = plain_name(function)
    kinds = (kind for kind, pattern in _PATTERNS.items() if pattern.match(plain))
    return next(kinds, "") or _of_others(function)[0] or _reason(function)


@cache
def _reason(function: str) -> str:
    return next((kind for kind, pattern in _REASONS.items() if pattern.search(function)), "")


@cache
def _of_others(function: str) -> tuple[str, bool]:
    """Return the kind of another library's object or "", and whether the futex is the object."""
    for patterns, is_object in _OTHERS:
        for kind, pattern in patterns.items():
            if pattern.search(function):
                return kind, is_object
    return "", False


def has_object(function: str) -> bool | None:
    """Return whether the futex of a waiting function is a part of the object.

    Returns:
        None for a function of the C library: the memory of its objects shows it.
    """
    kind, on_futex = _of_others(function)
    return on_futex if kind else (False if _reason(function) else None)


def wants_to_write(function: str) -> bool:
    """Return whether a function takes a rwlock for writing."""
    return _WRITES.search(function) is not None


def waits_for_library(function: str) -> bool:
    """Return whether a function waits for an internal lock of the C library."""
    return plain_name(function) == "lll_lock_wait_private"


def is_plumbing(function: str) -> bool:
    """Return whether a function is between a waiting function and its system call."""
    return _PLUMBING.fullmatch(plain_name(function)) is not None


def makes_calls(function: str) -> bool:
    """Return whether a function makes any system call for other functions of the C library."""
    return _MAKES_CALLS.fullmatch(plain_name(function)) is not None


def routine_of(calls: Iterable[tuple[str, str]], is_library: Callable[[str, str], bool]) -> str:
    """Return the library function that waits, or the empty string.

    The search ends at the innermost function of the program. Outer functions of thread libraries
    may have called the program, such as `pthread_once()`.

    Args:
        calls: Function and module of all calls on the stack, the innermost first.
        is_library: Returns whether a function and module do not belong to the program.
    """
    routine, innermost = "", None
    for function, module in calls:
        innermost = innermost or plain_name(function)
        kind = routine_kind(function)
        # The C library does not wait by syscall(). So its function is the caller of the waiting
        # function, or a remainder of an earlier call.
        if kind and innermost == "syscall" and has_object(function) is None:
            continue
        if kind and not routine:
            routine = function
        elif _reason(function) and routine_kind(routine) in {"park", "condition"}:
            return function
        if not kind and not is_library(function, module):
            break
    return routine
