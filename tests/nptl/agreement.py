"""Compares the events of the hooks with the events of the thread library itself.

The hooks report calls, and the library reports its states. Within a thread, both are in the order
of the thread's actions. So, in the same words, both must be the same list.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Agreement", "compare"]

_ECANCELED, _EINVAL, _EPERM = 125, 22, 1
# The action on the object of a hook's event.
_HOOKS = {
    "MUTEX_INIT": "mutex set up",
    "MUTEX_DESTROY_IN": "mutex taken down",
    "MTX_DESTROY_IN": "mutex taken down",
    "MUTEX_TAKEN": "mutex taken",
    "MUTEX_FREE": "mutex freed",
    "RWLOCK_TAKEN_READ": "rwlock taken for reading",
    "RWLOCK_TAKEN_WRITE": "rwlock taken for writing",
    "RWLOCK_FREE": "rwlock freed",
    "RWLOCK_DESTROY_IN": "rwlock taken down",
    "COND_INIT": "cond set up",
    "COND_DESTROY_IN": "cond taken down",
    "CND_DESTROY_IN": "cond taken down",
    "COND_WAIT_IN": "cond waited for",
    "COND_TIMEDWAIT_IN": "cond waited for",
    "COND_CLOCKWAIT_IN": "cond waited for",
    "COND_WAIT_OUT": "cond left",
    "COND_TIMEDWAIT_OUT": "cond left",
    "COND_CLOCKWAIT_OUT": "cond left",
    "COND_SIGNAL": "cond signalled",
    "COND_BROADCAST": "cond broadcast",
    "BARRIER_WAIT_IN": "barrier asked for",
    "BARRIER_WAIT_OUT": "barrier left",
    "SEM_TAKEN": "semaphore taken",
    "SEM_POST_OUT": "semaphore posted",
    "THREAD_BEGIN": "thread begins",
    "THREAD_END": "thread ends",
    "THREAD_JOIN_OUT": "thread joined",
    "THREAD_TIMEDJOIN_OUT": "thread joined",
    "THREAD_CLOCKJOIN_OUT": "thread joined",
}
_LIBRARY = {
    "MUTEX_STATE_INIT": "mutex set up",
    "MUTEX_STATE_DESTROY": "mutex taken down",
    "MUTEX_STATE_TAKEN": "mutex taken",
    "MUTEX_COUNT_INC": "mutex taken",
    "MUTEX_STATE_FREE": "mutex freed",
    "MUTEX_COUNT_DEC": "mutex freed",
    "RWLOCK_STATE_TAKEN_READ": "rwlock taken for reading",
    "RWLOCK_STATE_TAKEN_WRITE": "rwlock taken for writing",
    "RWLOCK_STATE_FREE": "rwlock freed",
    "RWLOCK_STATE_DESTROY": "rwlock taken down",
    "COND_STATE_INIT": "cond set up",
    "COND_STATE_DESTROY": "cond taken down",
    "COND_STATE_REQUIRE": "cond waited for",
    "COND_STATE_LEAVE": "cond left",
    "COND_STATE_SIGNAL": "cond signalled",
    "COND_STATE_BROADCAST": "cond broadcast",
    "BARRIER_LOCK_REQUIRE": "barrier asked for",
    "BARRIER_LEFT_INC": "barrier left",
    "SEM_VALUE_DEC": "semaphore taken",
    "SEM_VALUE_INC": "semaphore posted",
    "THREAD_INIT": "thread begins",
    "THREAD_STATE_DEAD": "thread ends",
    "THREAD_JOIN_DONE": "thread joined",
}
# An invalid time limit.
_REFUSED = "cond refused"
# Actions of routines that succeed.
_IF_DONE = frozenset({"semaphore posted", "thread joined"})

Deed = tuple[str, str]


@dataclass(slots=True)
class Agreement:
    """The result of a comparison.

    Attributes:
        compared: The number of events of the hooks with a counterpart.
        past: Actions of the library itself on objects of the program, past the hooks.
        differences: Actions that only the hooks or only the library report, as text.
    """

    compared: int = 0
    past: list[Deed] = field(default_factory=list)
    differences: list[str] = field(default_factory=list)


def _deed(event: dict[str, Any], words: dict[str, str]) -> Deed | None:
    word = words.get(event["event"])
    result = event.get("result", 0)
    if word is None or (word in _IF_DONE and result):
        return None
    if word == "cond left" and result == _EINVAL:
        return _REFUSED, event["object"]
    # Such a wait never reaches the end of the library's routine.
    if word == "cond left" and result in {_ECANCELED, _EPERM}:
        return None
    # The first thread of a process ends in another way than other threads.
    if word == "thread ends" and event["tid"] == event["pid"]:
        return None
    return word, event["object"]


def _is_another_try(event: dict[str, Any], before: dict[str, Any] | None) -> bool:
    """A post that lost a race for the word reports again that it raises the value."""
    return (
        before is not None
        and event["event"] == before["event"] == "SEM_VALUE_INC"
        and event["object"] == before["object"]
    )


def _differ(thread: str, hooks: list[Deed], library: list[Deed], found: Agreement) -> None:
    at = 0
    for deed in library:
        if at < len(hooks) and hooks[at] == deed:
            at += 1
        elif deed[0] in {"cond signalled", "cond broadcast"}:
            # A waiter that gives up passes on its consumed signal.
            found.past.append(deed)
        else:
            expected = " ".join(hooks[at]) if at < len(hooks) else "nothing"
            found.differences.append(
                f"{thread}: the library says {' '.join(deed)}, hooks {expected}"
            )
            return
    found.compared += at
    if at < len(hooks):
        found.differences.append(f"{thread}: only the hooks say {' '.join(hooks[at])}")


def _forget_refused(deeds: list[Deed]) -> None:
    """Remove a wait that the library refused at once, and the mutex that it never released."""
    _, cond = deeds.pop()
    while deeds.pop() != ("cond waited for", cond):
        pass


def compare(events: Iterable[dict[str, Any]]) -> Agreement:
    """Compare the events of a trace of level 4, as `ptt view --format jsonl` prints them.

    The comparison leaves out objects that only the library uses, as the hooks never see them.
    """
    hooks: dict[tuple[int, int], list[Deed]] = defaultdict(list)
    library: dict[tuple[int, int], list[Deed]] = defaultdict(list)
    seen: set[tuple[int, str]] = set()
    last: dict[tuple[int, int], dict[str, Any]] = {}
    over: set[tuple[int, int]] = set()
    for event in events:
        thread = event["pid"], event["tid"]
        # Destructors may still act, but the library no longer reports its inside.
        if event["event"] == "THREAD_END":
            over.add(thread)
        elif event["event"] == "THREAD_BEGIN":
            over.discard(thread)
        elif thread in over:
            continue
        if deed := _deed(event, _HOOKS):
            hooks[thread].append(deed)
            seen.add((event["pid"], deed[1]))
            last[thread] = event
            if deed[0] == _REFUSED:
                _forget_refused(hooks[thread])
        elif (deed := _deed(event, _LIBRARY)) and not _is_another_try(event, last.get(thread)):
            library[thread].append(deed)
            last[thread] = event
    found = Agreement()
    for thread in sorted(hooks.keys() | library.keys()):
        known = [deed for deed in library[thread] if (thread[0], deed[1]) in seen]
        _differ("process {}, thread {}".format(*thread), hooks[thread], known, found)
    return found
