"""Frames of call stacks: functions and lines, and where a program's own code begins.

What the compiler inlined at a place are frames of their own, so that a stack reads as the source
was written. Frames that are passed over lie between the tracer's hook and the call site.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import takewhile
from typing import TYPE_CHECKING

from nptltrace._binding.headers import pttmodel as c
from nptltrace._dataclasses import dataclass, replace
from nptltrace.trace.code.call_site import address_of_site, hex_of_site, is_entry, stack_sites
from nptltrace.trace.code.modules import is_interpreter
from nptltrace.trace.code.python_code import is_python
from nptltrace.trace.objects.gates import is_sleep
from nptltrace.trace.symbols.elf.display_names import display_name, is_plumbing

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nptltrace.trace.info import Process
    from nptltrace.trace.passed_over import PassedOver
    from nptltrace.trace.symbols.location import Location, Locations

__all__ = [
    "TRUNCATED", "UNKNOWN", "ChooseSites", "FindSiteUses", "Frame", "chosen_sites", "frames_at",
    "from_call_site",
    "is_tracer", "recorded_site", "site_uses", "stack_texts", "wrapper_sites",
]  # fmt: skip

# A thread begins in a function of the tracer's, which calls the program's.
_TRACER = "libnptltrace.so"

# Returns the call sites of a process by its stacks, where they are others than recorded.
ChooseSites = Callable[[int, "Process"], dict[int, int]]
# Returns those of some call sites of a process that have a use, `pttmodel.PTT_SITE_…`, and the use.
FindSiteUses = Callable[[int, Iterable[int]], Iterable[tuple[int, int]]]


@dataclass(frozen=True, slots=True)
class Frame:
    """A function in a stack.

    Attributes:
        function: Its name, demangled, or empty.
        file: Source file, without directories, or empty.
        path: Source file as the compiler knew it, or empty.
        line: Source line, or 0.
        module: File name of the module, or empty.
        build_id: Of the module, or empty.
        offset: Where in the module, as its own symbol table counts.
        inlined: The compiler put it into the function of the frame behind it.
        python: It is a function of Python.
        text: All of it in one text, as other commands show a call site.
    """

    function: str
    file: str
    path: str
    line: int
    module: str
    build_id: str
    offset: int
    inlined: bool
    text: str
    python: bool = False

    @property
    def name(self) -> str:
        """What to call it where one name stands for all places in a function."""
        if self.function:
            return display_name(self.function)
        return f"{self.module}+{self.offset:#x}" if self.module else self.text


# Stands for a stack that is not known, so that the times still add up.
UNKNOWN = Frame("[unknown]", "", "", 0, "", "", 0, inlined=False, text="[unknown]")
# Stands for the callers of a stack's outermost frame that were not recorded.
TRUNCATED = replace(UNKNOWN, function="[truncated]", text="[truncated]")


def frames_at(symbols: Locations, process: int, site: int) -> tuple[Frame, ...]:
    """Return the frames at a place in the code, the innermost first; never none."""
    found = symbols.location(process, site)
    text = str(replace(found, inlined=())) or hex_of_site(site)
    if is_entry(site) and found.function and not found.offset:
        text = display_name(found.function)
    where = (found.module, found.build_id, found.module_offset)
    return (
        *(
            Frame(f.function, f.file, f.path, f.line, *where, inlined=True, text=str(f))
            for f in found.program_frames()
        ),
        Frame(
            found.function,
            found.file,
            found.path,
            found.line,
            *where,
            inlined=False,
            text=text,
            python=found.python,
        ),
    )


def from_call_site(frames: Sequence[Frame], passed_over: PassedOver) -> tuple[Frame, ...]:
    """Return the frames from the call site on, the tracer's own left out.

    Functions of Python stand in place of the interpreter's. Where all are passed over, all are
    returned, of Python from its innermost function on: that of a pool's idle thread is the pool's.
    """
    if any(frame.python for frame in frames):
        frames = [frame for frame in frames if not is_interpreter(frame.module)]
        inside = frames[: _outermost(frame.python for frame in frames)]
        own = (n for n, one in enumerate(inside) if not passed_over(one.function, one.module))
        first = next(own, next(n for n, frame in enumerate(frames) if frame.python))
    else:
        program = takewhile(lambda one: not is_tracer(one), frames)
        first = passed_over.first([(one.function, one.module) for one in program])
    shown = tuple(frame for frame in frames[first:] if not is_tracer(frame))
    return tuple(frame for frame in shown if not is_plumbing(frame.function)) or shown


def _outermost(python: Iterable[bool]) -> int:
    """Return how many frames there are up to the outermost of Python, behind which is no site."""
    return max((n for n, one in enumerate(python, 1) if one), default=0)


def is_tracer(frame: Frame | Location) -> bool:
    """Return whether a frame is the tracer's own."""
    return frame.module == _TRACER


def recorded_site(process: Process, sites: Sequence[int]) -> int:
    """Return the address in a stack that was recorded as call site; 0 for a stack without any."""
    recorded = process.recorded
    return next((site for site in sites if site in recorded), sites[0] if sites else 0)


def stack_texts(
    symbols: Locations, process: int, sites: Sequence[int], site: int, *, whole: bool = False
) -> list[str]:
    """Return a stack from the call site on as text, the innermost frame first.

    Args:
        symbols: Names addresses.
        process: Number of the process.
        sites: The addresses in the stack; none where it is not known.
        site: The call site of the event, 0 for none.
        whole: From the innermost frame on instead, with those that are passed over.
    """
    address = site if site in sites else address_of_site(site)
    begin = sites.index(address) + 1 if address in sites and not whole else 0
    # Of the call site it is known which of several modules it is in, and so it is of callers there.
    callers = sites[begin:]
    frames = list(frames_at(symbols, process, site)) if site and not whole else []
    for one in callers:
        caller = symbols.caller(process, one, site)
        frames += [_nameless(one)] if caller is None else frames_at(symbols, process, caller)
    shown = frames if whole else from_call_site(frames, symbols.passed_over)
    return [frame.text for frame in shown]


def _nameless(address: int) -> Frame:
    """Return a frame in one of several modules that lay there one after the other."""
    return replace(UNKNOWN, text=hex_of_site(address))


def chosen_sites(symbols: Locations, number: int, process: Process) -> dict[int, int]:
    """Return the call sites of stacks, where what was recorded is passed over.

    Args:
        symbols: Names addresses, and says what is passed over.
        number: Number of the process.
        process: The process.
    """
    recorded, stacks = process.recorded, process.stacks
    passed = _passed(symbols, number)

    def is_program(site: int) -> bool:
        return not is_tracer(frames_at(symbols, number, site)[-1])

    found: dict[int, int] = {}
    for stack in stacks:
        sites = stack_sites(stacks, stack)
        begin = next((n for n, site in enumerate(sites) if site in recorded), None)
        # An event of the program that came through ctypes has a stack and no call site.
        begin = 0 if begin is None and any(map(is_python, sites)) else begin
        if begin is None or any(process.map.is_shared(site) for site in sites):
            continue
        python = next(filter(is_python, sites[begin:]), 0)
        inside = sites[begin:]
        if python:
            inside = inside[: _outermost(map(is_python, inside))]
        own = (
            site
            for n, site in enumerate(takewhile(is_program, inside), begin)
            if not passed(site, bool(python)) and not _is_between(symbols, number, sites, n)
        )
        chosen = next(own, python or sites[begin])
        if chosen != sites[begin]:
            found[stack] = chosen
    return found


def wrapper_sites(symbols: Locations, number: int, sites: Iterable[int]) -> Iterator[int]:
    """Yield which of some call sites of a process lie in what is passed over.

    Args:
        symbols: Names addresses, and says what is passed over.
        number: Number of the process.
        sites: The call sites.
    """
    passed = _passed(symbols, number)
    yield from (site for site in sites if not is_python(site) and passed(site, False))  # noqa: FBT003


def site_uses(symbols: Locations, number: int, sites: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Yield those of some call sites that lie in a wrapper, or where threads sleep, and which.

    Args:
        symbols: Names addresses, and says what is passed over.
        number: Number of the process.
        sites: The call sites.
    """
    passed = _passed(symbols, number)
    for site in sites:
        if is_python(site):
            continue
        use = c.PTT_SITE_IN_WRAPPER if passed(site, False) else 0  # noqa: FBT003
        if any(is_sleep(one.function, one.module) for one in frames_at(symbols, number, site)):
            use |= c.PTT_SITE_OF_SLEEP
        if use:
            yield site, use


def _is_between(symbols: Locations, process: int, sites: Sequence[int], n: int) -> bool:
    """Return whether one of some frames belongs to the wrappers around it."""
    if not 0 < n < len(sites) - 1:
        return False
    frames = [frames_at(symbols, process, site) for site in sites[n - 1 : n + 2]]
    inner, own, outer = (
        (one.function, one.module) for one in (frames[0][-1], frames[1][0], frames[2][0])
    )
    return symbols.passed_over.between(inner, own, outer)


def _passed(symbols: Locations, process: int) -> Callable[[int, bool], bool]:
    known: dict[tuple[int, bool], bool] = {}

    def passed(site: int, python: bool) -> bool:  # noqa: FBT001 -- what the stack has
        if (site, python) not in known:
            rule, frames = symbols.passed_over, frames_at(symbols, process, site)
            known[site, python] = all(
                (python and is_interpreter(frame.module)) or rule(frame.function, frame.module)
                for frame in frames
            )
        return known[site, python]

    return passed
