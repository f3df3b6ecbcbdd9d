"""Frames of call stacks: functions and lines, and the call site, where a program's code begins.

Inlined functions are frames of their own, so that a stack reads like the source. The frames between
the tracer's hook and the call site are passed over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import takewhile
from typing import TYPE_CHECKING

from nptltrace._binding.headers import pttmodel as c
from nptltrace._dataclasses import dataclass, replace
from nptltrace._paths import PRELOAD
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
    "from_call_site", "is_in_wrapper", "is_tracer", "recorded_site", "site_uses", "stack_texts",
]  # fmt: skip

# Takes number and process. Returns call sites by stack, if they differ from the recorded call site.
ChooseSites = Callable[[int, "Process"], dict[int, int]]
# Takes number of a process and call sites. Returns pairs of a call site and its use, which is
# `pttmodel.PTT_SITE_…`, for call sites with a use.
FindSiteUses = Callable[[int, Iterable[int]], Iterable[tuple[int, int]]]


@dataclass(frozen=True, slots=True)
class Frame:
    """A function in a stack.

    Attributes:
        function: Demangled name of the function, or empty.
        file: Source file, without directories, or empty.
        path: Source file as the compiler knew it, or empty.
        line: Source line, or 0.
        module: File name of the module, or empty.
        build_id: Build-id of the module, or empty.
        offset: The address in terms of the module's symbol table.
        inlined: Whether the compiler inlined it into the function of the next outer frame.
        text: The frame as one text, as all commands show a call site.
        python: Whether it is a function of Python.
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
        """The name of the function, if all of its places share one name."""
        if self.function:
            return display_name(self.function)
        return f"{self.module}+{self.offset:#x}" if self.module else self.text


# Stands for an unknown stack, so that sums of times stay complete.
UNKNOWN = Frame("[unknown]", "", "", 0, "", "", 0, inlined=False, text="[unknown]")
# Stands for callers that were not recorded, behind the outermost frame of a stack.
TRUNCATED = replace(UNKNOWN, function="[truncated]", text="[truncated]")


def frames_at(symbols: Locations, process: int, site: int) -> tuple[Frame, ...]:
    """Return the frames at a call site, the innermost frame first; at least one frame."""
    place = symbols.location(process, site)
    text = str(replace(place, inlined=())) or hex_of_site(site)
    if is_entry(site) and place.function and not place.offset:
        text = display_name(place.function)
    module = (place.module, place.build_id, place.module_offset)
    return (
        *(
            Frame(f.function, f.file, f.path, f.line, *module, inlined=True, text=str(f))
            for f in place.program_frames()
        ),
        Frame(
            place.function, place.file, place.path, place.line, *module, inlined=False, text=text,
            python=place.python,
        ),
    )  # fmt: skip


def from_call_site(frames: Sequence[Frame], passed_over: PassedOver) -> tuple[Frame, ...]:
    """Return the frames from the call site on, without frames of the tracer.

    If there are functions of Python, frames of the interpreter are left out. If all frames are
    passed over, the result begins with the innermost function of Python, or else with the first
    frame: for an idle thread of a pool, that is a function of the pool.
    """
    if any(frame.python for frame in frames):
        frames = [frame for frame in frames if not is_interpreter(frame.module)]
        inside = frames[: _up_to_python(frame.python for frame in frames)]
        of_program = (n for n, f in enumerate(inside) if not passed_over(f.function, f.module))
        first = next(of_program, next(n for n, frame in enumerate(frames) if frame.python))
    else:
        program = takewhile(lambda frame: not is_tracer(frame), frames)
        first = passed_over.first([(frame.function, frame.module) for frame in program])
    shown = tuple(frame for frame in frames[first:] if not is_tracer(frame))
    return tuple(frame for frame in shown if not is_plumbing(frame.function)) or shown


def _up_to_python(python: Iterable[bool]) -> int:
    """Return the number of frames up to the outermost function of Python: the site is in them."""
    return max((n for n, is_function in enumerate(python, 1) if is_function), default=0)


def is_tracer(frame: Frame | Location) -> bool:
    """Return whether a frame is a function of the tracer."""
    return frame.module == PRELOAD  # threads begin in a function of the tracer


def recorded_site(process: Process, sites: Sequence[int]) -> int:
    """Return the recorded call site in a stack, or else its innermost address; 0 if it is empty."""
    recorded = process.recorded
    return next((site for site in sites if site in recorded), sites[0] if sites else 0)


def stack_texts(
    symbols: Locations, process: int, sites: Sequence[int], site: int, *, whole: bool = False
) -> list[str]:
    """Return the texts of the frames of a stack from the call site on, the innermost frame first.

    Args:
        symbols: Names addresses.
        process: Number of the process.
        sites: The addresses in the stack; empty if the stack is unknown.
        site: The call site of the event; 0 for none.
        whole: Whether to begin with the innermost frame, and keep frames that are passed over.
    """
    address = site if site in sites else address_of_site(site)
    begin = sites.index(address) + 1 if address in sites and not whole else 0
    frames = list(frames_at(symbols, process, site)) if site and not whole else []
    for address in sites[begin:]:
        # Only the call site tells its module, if several modules had its addresses.
        caller = symbols.caller(process, address, site)
        if caller is None:
            frames.append(replace(UNKNOWN, text=hex_of_site(address)))
        else:
            frames += frames_at(symbols, process, caller)
    shown = frames if whole else from_call_site(frames, symbols.passed_over)
    return [frame.text for frame in shown]


def chosen_sites(symbols: Locations, number: int, process: Process) -> dict[int, int]:
    """Return call sites by stack, for stacks with a recorded call site that is passed over.

    Args:
        symbols: Names addresses, and has the rule that passes over frames.
        number: Number of the process.
        process: The process.
    """
    recorded, stacks = process.recorded, process.stacks
    passed = _passed(symbols, number)

    def is_program(site: int) -> bool:
        return not is_tracer(frames_at(symbols, number, site)[-1])

    chosen: dict[int, int] = {}
    for stack in stacks:
        sites = stack_sites(stacks, stack)
        begin = next((n for n, site in enumerate(sites) if site in recorded), None)
        # A program's own event through ctypes has a stack, but no call site.
        begin = 0 if begin is None and any(map(is_python, sites)) else begin
        if begin is None or any(process.map.is_shared(site) for site in sites):
            continue
        python = next(filter(is_python, sites[begin:]), 0)
        inside = sites[begin:]
        if python:
            inside = inside[: _up_to_python(map(is_python, inside))]
        of_program = (
            site
            for n, site in enumerate(takewhile(is_program, inside), begin)
            if not passed(site, bool(python)) and not _is_between(symbols, number, sites, n)
        )
        site = next(of_program, python or sites[begin])
        if site != sites[begin]:
            chosen[stack] = site
    return chosen


def is_in_wrapper(symbols: Locations, number: int, site: int) -> bool:
    """Return whether a call site of a process lies in a wrapper, which is passed over."""
    return not is_python(site) and _passed(symbols, number)(site, False)  # noqa: FBT003


def site_uses(symbols: Locations, number: int, sites: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Yield call sites with their use, if they lie in a wrapper or in a function that sleeps.

    Args:
        symbols: Names addresses, and has the rule that passes over frames.
        number: Number of the process.
        sites: The call sites.
    """
    passed = _passed(symbols, number)
    for site in sites:
        if is_python(site):
            continue
        use = c.PTT_SITE_IN_WRAPPER if passed(site, False) else 0  # noqa: FBT003
        if any(is_sleep(f.function, f.module) for f in frames_at(symbols, number, site)):
            use |= c.PTT_SITE_OF_SLEEP
        if use:
            yield site, use


def _is_between(symbols: Locations, process: int, sites: Sequence[int], n: int) -> bool:
    """Return whether address `n` of a stack belongs to the wrappers around it."""
    if not 0 < n < len(sites) - 1:
        return False
    inner, frame, outer = (frames_at(symbols, process, site) for site in sites[n - 1 : n + 2])
    called = ((f.function, f.module) for f in (inner[-1], frame[0], outer[0]))
    return symbols.passed_over.between(*called)


def _passed(symbols: Locations, process: int) -> Callable[[int, bool], bool]:
    """Return a function that tells whether a call site (in a stack with Python) is passed over."""
    known: dict[tuple[int, bool], bool] = {}

    def passed(site: int, python: bool) -> bool:  # noqa: FBT001 -- called with both by place
        if (site, python) not in known:
            rule, frames = symbols.passed_over, frames_at(symbols, process, site)
            known[site, python] = all(
                (python and is_interpreter(frame.module)) or rule(frame.function, frame.module)
                for frame in frames
            )
        return known[site, python]

    return passed
