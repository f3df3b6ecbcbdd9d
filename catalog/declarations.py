# SPDX-License-Identifier: MIT
"""Read events.toml: the event types, the trace points, and the hooks that are generated."""

from __future__ import annotations

import re
import sys
import tomllib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

SOURCE = "events.toml"

SLOT = 16
MARK = 2
# type: (bytes in a slot, C type, CTF integer attributes, words of 32 bits in a classic record)
TYPES: dict[str, tuple[int, str, str, int]] = {
    "u8": (1, "uint8_t", "size = 8; align = 8; signed = false;", 1),
    "u16": (2, "uint16_t", "size = 16; align = 16; signed = false;", 1),
    "u32": (4, "uint32_t", "size = 32; align = 32; signed = false;", 1),
    "tid": (4, "uint32_t", "size = 32; align = 32; signed = false;", 1),
    "s32": (4, "int32_t", "size = 32; align = 32; signed = true;", 1),
    "u64": (8, "uint64_t", "size = 64; align = 64; signed = false;", 2),
    "s64": (8, "int64_t", "size = 64; align = 64; signed = true;", 2),
    "ns": (8, "uint64_t", "size = 64; align = 64; signed = false;", 2),
    "ptr": (6, "struct nptl_trace_ptr48", "size = 48; align = 16; signed = false; base = 16;", 2),
}
ALIGN = {1: 1, 2: 2, 4: 4, 6: 2, 8: 8}


@dataclass(frozen=True, slots=True)
class Field:
    """One field.

    `offset` counts from the start of the parameter struct: its first 16 bytes are object and site.
    """

    name: str
    type: str
    offset: int


@dataclass(frozen=True, slots=True)
class Event:
    """One event type with the layout of its continuation slots."""

    domain: str
    domain_id: int
    number: int
    name: str
    variant: str
    level: int
    role: str
    text: str
    function: str
    object: str
    fields: tuple[Field, ...]
    slots: int

    @property
    def id(self) -> int:
        """The flat 10-bit id."""
        return self.domain_id << 6 | self.number

    @property
    def symbol(self) -> str:
        """Name that is unique even where two layouts share an event name."""
        return f"{self.name}_{self.variant}" if self.variant else self.name

    @property
    def bytes_field(self) -> Field | None:
        """The variable-length last field, if there is one."""
        last = self.fields[-1] if self.fields else None
        return last if last and last.type == "bytes" else None


@dataclass(frozen=True, slots=True)
class Point:
    """One trace point inside the thread library, and the events that are reported for it."""

    number: int
    name: str
    doc: str
    takes: tuple[str, ...]
    gives: tuple[Event, ...]

    def source(self, event: Event, field: Field) -> int:
        """Where a field comes from: 0 = the point's object, 1 and 2 = its numbers."""
        if self.about_self(event) and field.name == "futex":
            return 0
        return 1 + self.takes.index(field.name)

    def about_self(self, event: Event) -> bool:
        """Whether the event is about the calling thread, not about the point's object."""
        return event.domain == "thread" and self.name.startswith("futex_")


def lay_out(specs: list[str]) -> tuple[tuple[Field, ...], int]:
    """Pack fields into continuation slots; return them with offsets, and the count of slots."""
    fields: list[Field] = []
    slot, used = 0, SLOT  # "full", so that the first field opens slot 1
    flat: list[tuple[str, str]] = []
    for spec in specs:
        name, kind = spec.split(":")
        if kind == "bytes":
            flat.append((f"{name}_pieces", "u32"))
        flat.append((name, kind))
    for name, kind in flat:
        if kind == "bytes":
            fields.append(Field(name, kind, SLOT * (slot + 1)))
            continue
        size = TYPES[kind][0]
        start = -(-used // ALIGN[size]) * ALIGN[size]
        if start + size > SLOT:
            slot, start = slot + 1, -(-MARK // ALIGN[size]) * ALIGN[size]
        fields.append(Field(name, kind, SLOT * slot + start))
        used = start + size
    return tuple(fields), slot


def load(path: Path) -> list[Event]:
    """Read the catalogue and check that ids and names are unique and in range."""
    data: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    events: list[Event] = []
    for domain, d in data["domain"].items():

        def add(
            n: int, name: str, specs: list[str], *, d: Any = d, domain: str = domain, **kw: Any
        ) -> None:
            fields, slots = lay_out(specs)
            events.append(
                Event(
                    domain=domain,
                    domain_id=d["id"],
                    number=n,
                    name=name,
                    fields=fields,
                    slots=slots,
                    **kw,
                )
            )

        for e in d["events"]:
            add(
                e["number"], e["name"], e["fields"], variant=e.get("variant", ""), level=e["level"],
                role=e["role"], text=e["text"], function="", object=d["object"],
            )  # fmt: skip
        for r in d.get("routines", []):
            roles = r.get("roles", ["call-in", "call-out"])
            names = [f.split(":")[0] for f in r["in"]]
            args = "".join(f", {n} = {{{n}}}" for n in names)
            has_result = any(f.startswith("result") for f in r["out"])
            texts = r.get("texts") or [
                f"thread {{thread}} calls {r['function']}, {d['object']} = {{object}}{args}",
                f"thread {{thread}} returns from {r['function']}, {d['object']} = {{object}}"
                + (", result = {result}" if has_result else ""),
            ]
            for i, side in enumerate(("in", "out")):
                add(
                    r["number"] + i, f"{r['name']}_{side.upper()}", r[side], variant="",
                    level=r.get("level", 3),
                    role=roles[i], text=texts[i], function=r["function"], object=d["object"],
                )  # fmt: skip
    ids = [e.id for e in events]
    symbols = [e.symbol for e in events]
    if len(set(ids)) != len(ids) or len(set(symbols)) != len(symbols):
        sys.exit("events.toml: two events share an id or a name")
    if any(not 1 <= e.domain_id <= 15 or not 0 <= e.number <= 60 for e in events):
        sys.exit("events.toml: domain must be 1-15 and number 0-60")
    return sorted(events, key=lambda e: e.id)


def load_points(path: Path, events: list[Event]) -> list[Point]:
    """Read the trace points; their events must be in the catalogue, with fields they can fill."""
    data: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    known = {e.symbol: e for e in events}
    points: list[Point] = []
    for number, p in enumerate(data["point"], start=1):
        gives = tuple(known[name] for name in p["gives"])
        point = Point(number, p["name"], p["doc"], tuple(p["takes"]), gives)
        for e in gives:
            if e.slots > 1:
                sys.exit(f"events.toml: {e.name} of trace point {point.name} needs two slots")
            for f in e.fields:
                point.source(e, f)
        points.append(point)
    if len({p.name for p in points}) != len(points) or any(len(p.takes) > 2 for p in points):
        sys.exit("events.toml: two trace points share a name, or one takes more than two numbers")
    return points


def load_lll_purposes(path: Path) -> list[str]:
    """Read the purposes of low-level locks."""
    data: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    return [str(purpose) for purpose in data["domain"]["lll"]["purposes"]]


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a C function."""

    text: str
    name: str


@dataclass(frozen=True, slots=True)
class Hook:
    """The function of a routine, with what its hook does if the hook is generated.

    Attributes:
        function: Its name.
        returns: Its return type.
        parameters: Its parameters; the first one is the object.
        entry: The event NAME_IN.
        leave: The event NAME_OUT.
        error: The event of a call that fails, if failures are reported.
        routine: The event that names the routine in `error`.
        results: How the function reports an error.
        attributes: The functions that read fields of `after` from attributes.
        after: The event of a call that succeeded.
        before: The event that stands before the call.
        by: The function of the tracer that does the call.
        waits: Whether the call can block, and its end has the duration.
        outcomes: Results that are no errors, with their events.
        expects: Other results that are no errors.
        values: C expressions of fields that no parameter is named after.
        version: Symbol version of the newer of two functions with this name.
        also: Other names of the function.
    """

    function: str
    returns: str
    parameters: tuple[Parameter, ...]
    entry: Event
    leave: Event
    error: Event | None
    routine: Event
    results: str
    attributes: dict[str, str]
    after: Event | None = None
    before: Event | None = None
    by: str = ""
    waits: bool = False
    outcomes: dict[str, Event] = field(default_factory=dict)
    expects: tuple[str, ...] = ()
    values: dict[str, str] = field(default_factory=dict)
    version: str = ""
    also: tuple[str, ...] = ()

    @property
    def generated(self) -> bool:
        """Whether the hook follows from the catalogue; the others are written by hand."""
        return bool(self.after or self.before or self.by or self.waits)


def parse_parameters(text: str) -> tuple[Parameter, ...]:
    """Split the parameters of a C function. They may be pointers to functions."""
    parameters: list[Parameter] = []
    for part in re.split(r",\s*(?![^()]*\))", text):
        name = re.search(r"\(\*(\w+)\)", part) or re.search(r"[ *](\w+)$", part)
        if not name:
            sys.exit(f"events.toml: a parameter without a name in '{text}'")
        parameters.append(Parameter(part, name[1]))
    return tuple(parameters)


# Keys of a routine, besides the keys of its events.
HOOK_KEYS = {
    "also", "after", "as", "before", "by", "errors", "expects", "function", "in", "level", "name",
    "number", "out", "outcomes", "returns", "roles", "takes", "texts", "version", "waits", "with",
}  # fmt: skip


# One macro of the tracer reports the errors of all domains.
ERROR_FIELDS = [("routine", "u16"), ("result", "s32")]


def check_hook(hook: Hook) -> None:
    """Insist that every field of the event NAME_IN has a source, if the hook is generated."""
    given = {p.name for p in hook.parameters} | set(hook.values)
    for f in hook.entry.fields if hook.generated else ():
        if f.name.removesuffix("_ns") not in given:
            sys.exit(
                f"events.toml: {hook.function} has no parameter for field '{f.name}' of "
                f"{hook.entry.name}: name it as the parameter, or give its value by 'with'"
            )


def load_hooks(path: Path, events: list[Event]) -> list[Hook]:
    """Read the functions of the routines; the events that their hooks report must exist."""
    data: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    known = {e.symbol: e for e in events}
    hooks: list[Hook] = []
    for domain in data["domain"].values():
        for r in domain.get("routines", []):
            if "takes" not in r:
                continue
            named = [f"{r.get('as', r['name'])}_IN", *(r[k] for k in ("after", "before") if k in r)]
            named += r.get("outcomes", {}).values()
            for name in named:
                if name not in known:
                    sys.exit(
                        f"events.toml: {r['function']} reports {name}, and no event has that name"
                    )
            if unknown := sorted(set(r) - HOOK_KEYS):
                sys.exit(f"events.toml: {r['function']} has '{unknown[0]}', which means nothing")
            routine = known[f"{r.get('as', r['name'])}_IN"]
            error = known.get(f"{routine.domain.upper()}_ERROR")
            hooks.append(
                Hook(
                    function=r["function"],
                    returns=r.get("returns", "int"),
                    parameters=parse_parameters(r["takes"]),
                    entry=known[f"{r['name']}_IN"],
                    leave=known[f"{r['name']}_OUT"],
                    error=error if r.get("errors", True) else None,
                    routine=routine,
                    results=domain.get("results", "number"),
                    attributes=domain.get("attributes", {}),
                    after=known[r["after"]] if "after" in r else None,
                    before=known[r["before"]] if "before" in r else None,
                    by=r.get("by", ""),
                    waits=r.get("waits", False),
                    outcomes={k: known[name] for k, name in r.get("outcomes", {}).items()},
                    expects=tuple(r.get("expects", ())),
                    values=r.get("with", {}),
                    version=r.get("version", ""),
                    also=tuple(r.get("also", ())),
                )
            )
            check_hook(hooks[-1])
            if error and [(f.name, f.type) for f in error.fields] != ERROR_FIELDS:
                sys.exit(f"events.toml: {error.name} has other fields than the error events have")
    return hooks
