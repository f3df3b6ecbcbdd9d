"""The names of threads, objects and call sites in the viewer. Each name is looked up once."""

from __future__ import annotations

import json
import re
from threading import Lock
from typing import TYPE_CHECKING, Any

from nptltrace.analysis.objects import kind_of
from nptltrace.trace.code.call_site import hex_of_site, stack_sites
from nptltrace.trace.symbols.frames import stack_texts

if TYPE_CHECKING:
    from nptltrace.trace.symbols.lookup import Symbols
    from nptltrace.trace.traceset import Traceset

__all__ = ["Naming", "common_name", "presentable", "presentable_json", "shortened"]

_LONGEST = 512
# The suffix that tells apart locks that were created at the same place.
_NUMBER = re.compile(r" #\d+$")
# Finds a long text in JSON. No text contains a quote here. Numbers between two texts do not count.
_NUMBERS = r"(?:[\s\d,.:\[\]{}e+-]|null|true|false)*"
_LONG = re.compile(rf'"(?!{_NUMBERS}")[^"]{{{_LONGEST + 1},}}"')


def shortened(text: str) -> str:
    """Return a text of at most `_LONGEST` characters. `…` stands for the rest."""
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def common_name(names: list[str]) -> str:
    """Return one name for several objects: the first name, without a number that differs."""
    different = list(dict.fromkeys(names))
    if len(different) > 1:
        different = list(dict.fromkeys(_NUMBER.sub("", name) for name in different))
    return (
        f"{different[0]} and {len(different) - 1} more"
        if len(different) > 1
        else "".join(different)
    )


def presentable(value: Any) -> Any:
    """Return plain data with shortened texts."""
    if isinstance(value, str):
        return shortened(value)
    if isinstance(value, dict):
        return {presentable(name): presentable(item) for name, item in value.items()}
    return [presentable(item) for item in value] if isinstance(value, list) else value


def presentable_json(value: Any) -> bytes:
    """Return plain data as JSON, with shortened texts."""
    text = _json(value)
    # Going through all data takes longer than writing it, and long texts are rare.
    if _LONG.search(text.replace('\\"', "''")):
        text = _json(presentable(value))
    return text.encode("utf-8", "replace")


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _label(name: str, tid: int) -> str:
    return f"{name} ({tid})" if name else f"thread {tid}"


class Naming:
    """Names by process (number in the traceset) and thread id or address. It is thread-safe.

    Args:
        source: The opened traces.
        symbols: Names addresses.
    """

    def __init__(self, source: Traceset, symbols: Symbols) -> None:
        self._source, self._symbols = source, symbols
        self._lock = Lock()
        self._sites: dict[tuple[int, int], str] = {}
        self._objects: dict[tuple[int, int, int, int | None], str] = {}
        self._numbers: dict[tuple[int, int], int] = {}

    def pid(self, process: int) -> int:
        """Return a process id."""
        processes = self._source.processes
        return processes[process].pid if process < len(processes) else 0

    def object_kind(self, process: int, kind: int, flags: int) -> str:
        """Return the name of the kind of an object, given its domain and the model's flags."""
        return kind_of(kind, flags, self._source.lock_types(process))

    def thread_number(self, process: int, tid: int) -> int | None:
        """Return the number of a thread in the traceset."""
        known = self._source.thread_ids
        if len(known) != len(self._numbers):
            self._numbers = {pair: number for number, pair in enumerate(known)}
        return self._numbers.get((process, tid))

    def thread_name(self, process: int, tid: int, at_ns: int) -> str:
        """Return the name of the thread that had an id at a time, or the empty text."""
        with self._lock:
            number = self.thread_number(process, tid)
            return "" if number is None else shortened(self._source.names.of(number, at_ns))

    def thread_label(self, process: int, tid: int, at_ns: int) -> str:
        """Return the label of the thread that had an id at a time. It is never empty."""
        return _label(self.thread_name(process, tid, at_ns), tid)

    def thread_labels(self, numbers: list[int], tids: list[int], times: list[int]) -> list[str]:
        """Return the labels of threads, by their numbers in the traceset, at times."""
        name = self._source.names.of
        with self._lock:
            names = [name(number, at_ns) for number, at_ns in zip(numbers, times, strict=True)]
        return [_label(shortened(name), tid) for name, tid in zip(names, tids, strict=True)]

    def object_name(self, process: int, address: int, domain: int, at_ns: int | None = None) -> str:
        """Return the name of an object of a domain, or the empty text.

        Several objects may have had the address. The time selects one; None stands for all.
        """
        key = (process, address, domain, at_ns)
        with self._lock:
            name = self._objects.get(key)
            if name is None:
                name = self._objects[key] = shortened(self._symbols.object_name(*key))
            return name

    def site(self, process: int, site: int) -> str:
        """Return a call site; the empty text for none."""
        if not site:
            return ""
        key = (process, site)
        with self._lock:
            name = self._sites.get(key)
            if name is None:
                name = shortened(self._symbols.site_name(process, site)) or hex_of_site(site)
                self._sites[key] = name
            return name

    def stack(self, process: int, number: int, site: int) -> list[str]:
        """Return the frames of a call stack from a call site on; empty if it is not known."""
        processes = self._source.processes
        stacks = processes[process].stacks if process < len(processes) else {}
        if number not in stacks:
            return []
        with self._lock:
            frames = stack_texts(self._symbols, process, stack_sites(stacks, number), site)
        return [shortened(frame) for frame in frames]
