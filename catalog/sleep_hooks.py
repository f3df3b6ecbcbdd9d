# SPDX-License-Identifier: MIT
"""Generate the hooks of system calls that put threads to sleep, from sleeps.toml."""

from __future__ import annotations

import sys
import tomllib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from declarations import parse_parameters
from heads import c_head
from plain_hooks import declared, fold

if TYPE_CHECKING:
    from pathlib import Path

    from declarations import Parameter

SOURCE = "sleeps.toml"

KEYS = {"at_once", "checked", "fails", "name", "returns", "takes", "through"}
# The error number by the way to report errors.
FAILS = {"errno": "result < 0 ? errno : 0", "number": "result", "never": "0"}


@dataclass(frozen=True, slots=True)
class SleepHook:
    """A function that puts threads to sleep.

    Attributes:
        function: Name of the function.
        number: Number of the system call, from 1.
        returns: Return type.
        parameters: Parameters.
        at_once: A C expression that is true if the function cannot sleep, or empty.
        error: A C expression for the error number of the result.
        through: The function of the tracer that calls it and takes the call site too, or empty.
    """

    function: str
    number: int
    returns: str
    parameters: tuple[Parameter, ...]
    at_once: str
    error: str
    through: str


def load_sleeps(path: Path) -> tuple[list[str], list[SleepHook]]:
    """Read the names of the calls, and the functions that make them."""
    calls: list[dict[str, Any]] = tomllib.loads(path.read_text(encoding="utf-8"))["call"]
    hooks: list[SleepHook] = []
    for number, call in enumerate(calls, start=1):
        if unknown := sorted(set(call) - KEYS):
            sys.exit(f"sleeps.toml: {call['name']} has '{unknown[0]}', which means nothing")
        if call.get("fails", "errno") not in FAILS:
            sys.exit(f"sleeps.toml: {call['name']} cannot fail by '{call['fails']}'")
        functions = [(call["name"], call["takes"])]
        if checked := call.get("checked"):
            functions.append((checked["function"], checked["takes"]))
        hooks += [
            SleepHook(
                function=function,
                number=number,
                returns=call.get("returns", "int"),
                parameters=parse_parameters(takes),
                at_once=call.get("at_once", ""),
                error=FAILS[call.get("fails", "errno")],
                through=call.get("through", ""),
            )
            for function, takes in functions
        ]
    return [call["name"] for call in calls], hooks


def c_hook(hook: SleepHook) -> str:
    """A hook as a call of the macro in sleep.h."""
    arguments = ", ".join(p.name for p in hook.parameters)
    call = f"ptt_real.{hook.function}({arguments})"
    if hook.through:
        call = f"{hook.through}({arguments}, CALL_SITE)"
    return (
        f"SLEEP_HOOK({hook.returns}, {hook.function}, ({declared(hook.parameters)}), "
        f"{hook.number}, {call}, {hook.at_once or 'false'}, {hook.error})"
    )


def c_sleep_hooks(hooks: list[SleepHook]) -> str:
    """The hooks of all calls."""
    out = [
        *c_head("sleeps.c - the hooks of system calls that put threads to sleep.", SOURCE),
        '#include "sleep.h"',
        "",
    ]
    for hook in hooks:
        out += fold(c_hook(hook))
    return "\n".join(out).rstrip() + "\n"


def c_sleep_routines(hooks: list[SleepHook]) -> str:
    """The part of hooks.def that has these functions."""
    out = [
        *c_head("sleeps.def - functions that put threads to sleep; see hooks.def.", SOURCE),
    ]
    for hook in hooks:
        arguments = ", ".join(p.name for p in hook.parameters)
        params = declared(hook.parameters)
        out += fold(f"HOOK({hook.returns}, {hook.function}, ({params}), ({arguments}))")
    return "\n".join([*out, ""])
