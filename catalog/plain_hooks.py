# SPDX-License-Identifier: MIT
"""Generate the hooks of the same shape, and the list of the functions of all routines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from declarations import SOURCE
from heads import c_head

if TYPE_CHECKING:
    from declarations import Event, Field, Hook, Parameter

WIDTH = 118
CASTS = {"u8": "(uint8_t)", "u16": "(uint16_t)", "u64": "(uintptr_t)"}
CALLS = {"ns": "ptt_ns", "ptr": "ptt_ptr48"}
# Symbol versions that only x86-64 has. Later ports of glibc begin after them.
BEFORE_OTHER_PORTS = {"GLIBC_2.3.2", "GLIBC_2.15"}


def fold(line: str) -> list[str]:
    """Break a line of C that is too long, at commas."""
    indent = line[: len(line) - len(line.lstrip("\t"))]
    lines: list[str] = []
    while len(line.expandtabs(8)) > WIDTH:
        room = WIDTH - (len(line.expandtabs(8)) - len(line))
        at = line.rfind(", ", 0, room) + 1
        lines.append(line[:at])
        line = f"{indent}\t\t{line[at:].lstrip()}"
    return [*lines, line]


def declared(parameters: tuple[Parameter, ...]) -> str:
    """The parameters as a function declares them."""
    return ", ".join(p.text for p in parameters)


def arguments(hook: Hook) -> str:
    """The parameters as they are passed on."""
    return ", ".join(p.name for p in hook.parameters)


def value(hook: Hook, f: Field) -> str | None:
    """The C expression of a field, or None if it stays 0."""
    if f.name in hook.values:
        return hook.values[f.name]
    if f.name == "result":
        return "0" if hook.before else "result"
    name = f.name.removesuffix("_ns")
    if name not in {p.name for p in hook.parameters} | set(hook.attributes):
        return None
    if f.type in CALLS:
        return f"{CALLS[f.type]}({name})"
    return CASTS.get(f.type, "") + name


def report(hook: Hook, event: Event, *, always: bool = False) -> str:
    """The statement that reports an event; `always`: without a test of the level."""
    macro = "EMIT" if always else "REPORT"
    target = f"{event.domain.upper()}, {event.symbol}"
    about = f"{hook.parameters[0].name}, site"
    given = {f.name: value(hook, f) for f in event.fields}
    fields = ", ".join(f".{name} = {v}" for name, v in given.items() if v)
    if not fields:
        return f"{macro}({target}, {about});"
    return f"{macro}_WITH({target}, {event.symbol.lower()}, {about}, {fields});"


def error_number(hook: Hook) -> str:
    """The error number of the result of a call."""
    return "ptt_error_of_thrd(result)" if hook.results == "thrd" else "result"


def report_error(hook: Hook) -> str:
    """The statement that reports that the call failed."""
    return (
        f"REPORT_ERROR({hook.routine.domain.upper()}, {hook.parameters[0].name}, "
        f"NPTL_EV_{hook.routine.symbol}, {error_number(hook)}, site);"
    )


def report_leave(hook: Hook) -> str:
    """The statement that reports the end of the call, with its result if it has one."""
    target = f"{hook.leave.domain.upper()}, {hook.leave.symbol}"
    if [f.name for f in hook.leave.fields] == ["result"]:
        return f"REPORT_RESULT({target}, {hook.parameters[0].name}, result, site);"
    return report(hook, hook.leave)


def needs_attributes(hook: Hook) -> bool:
    """Whether fields of the event come from attributes that the program passed."""
    return bool(hook.after) and any(p.name == "attr" for p in hook.parameters)


def report_after(hook: Hook, event: Event) -> str:
    """The statement that reports that the call succeeded."""
    if needs_attributes(hook):
        return f"report_{event.symbol.lower()}({arguments(hook)}, site);"
    return report(hook, event)


def outcome(hook: Hook) -> list[str]:
    """The statements after the real call: the event of its success or of its failure."""
    failed = " && ".join(f"result != {number}" for number in hook.expects)
    lines: list[str] = []
    if hook.after:
        succeeded = report_after(hook, hook.after)
        lines = [f"\t{succeeded}"]
        if hook.returns != "void":
            lines = ["\tif (!result)", f"\t\t{succeeded}"]
    for number, event in hook.outcomes.items():
        lines += [f"\telse if (result == {number})", f"\t\t{report(hook, event)}"]
    if hook.error and hook.returns != "void":
        condition = f"if ({failed or 'result'})"
        if hook.after:
            condition = f"else {condition}" if failed else "else"
        lines += [f"\t{condition}", f"\t\t{report_error(hook)}"]
    return lines


def body(hook: Hook, real: str) -> list[str]:
    """The statements of a hook that calls the real function."""
    call = f"{real}({arguments(hook)})"
    lines: list[str] = []
    if hook.returns == "void":
        lines += ["", f"\t{report(hook, hook.entry)}"]
    elif hook.results == "errno":
        lines += ["\tint done, result;", ""]
    else:
        lines += ["\tint result;", ""]
    if hook.before and hook.before.domain == hook.entry.domain:
        domain, symbol = hook.before.domain.upper(), hook.before.symbol
        lines += [
            f"\tif (ptt_level(NPTL_DOMAIN_{domain}) < NPTL_LEVEL_{symbol})",
            f"\t\treturn {call};",
        ]
    if hook.returns != "void":
        lines.append(f"\t{report(hook, hook.entry)}")
    if hook.before:
        always = hook.before.domain == hook.entry.domain
        lines.append(f"\t{report(hook, hook.before, always=always)}")
    if hook.returns == "void":
        return [*lines, f"\t{call};", *outcome(hook), f"\t{report_leave(hook)}"]
    if hook.results == "errno":
        lines += [f"\tdone = {call};", "\tresult = done < 0 ? errno : 0;"]
    else:
        lines.append(f"\tresult = {call};")
    return [
        *lines,
        *outcome(hook),
        f"\t{report_leave(hook)}",
        f"\treturn {'done' if hook.results == 'errno' else 'result'};",
    ]


def request(hook: Hook) -> str:
    """The request to the function that does the call."""
    names = {p.name for p in hook.parameters}
    clock = "clock" if "clock" in names else "TIMED" if "deadline" in names else "UNTIMED"
    deadline = ", .deadline = deadline" if "deadline" in names else ""
    return (
        f"{'' if deadline else 'static '}const struct ptt_request request = "
        f"{{.clock = {clock}{deadline}, .routine = NPTL_EV_{hook.routine.symbol}}};"
    )


def untraced(hook: Hook) -> str:
    """The condition that nothing of a call is reported."""
    condition = f"!ptt_level(NPTL_DOMAIN_{hook.routine.domain.upper()})"
    if hook.routine.domain != hook.entry.domain:
        condition += f" && !must_trace({hook.entry.domain.upper()}, {hook.entry.symbol})"
    elif any(p.name == "clock" for p in hook.parameters) and hook.by:
        condition += " || !ptt_clock_valid(clock)"
    return condition


def body_by(hook: Hook, real: str) -> list[str]:
    """The statements of a hook with a function by hand for the call."""
    done = f"{hook.by}({hook.parameters[0].name}, &request, site)"
    lines = [f"\t{request(hook)}", "\tvoid *site = CALL_SITE;"]
    if not hook.waits:
        lines.append("\tint result;")
    lines += [
        "",
        f"\tif ({untraced(hook)})",
        f"\t\treturn {real}({arguments(hook)});",
        f"\t{report(hook, hook.entry)}",
    ]
    if hook.waits:
        return [*lines, f"\treturn {done};"]
    return [
        *lines,
        f"\tresult = {done};",
        f"\t{report_leave(hook)}",
        "\treturn result;",
    ]


def body_waits(hook: Hook, real: str) -> list[str]:
    """The statements of a hook of a call that blocks."""
    domain = hook.entry.domain.upper()
    wait = (
        f"ptt_begin_wait(NPTL_DOMAIN_{domain}, NPTL_EV_{hook.leave.symbol}, "
        f"(const void *){hook.parameters[0].name}, site);"
    )
    return [
        "",
        f"\tif ({untraced(hook)})",
        f"\t\treturn {real}({arguments(hook)});",
        f"\t{report(hook, hook.entry, always=True)}",
        "\t{",
        f"\t\tstruct ptt_wait wait WAIT_GUARD = {wait}",
        "",
        f"\t\treturn wait.result = {real}({arguments(hook)});",
        "\t}",
    ]


def attribute_reader(hook: Hook, event: Event) -> list[str]:
    """The function that reports the beginning of an object, with its attributes."""
    names = [f.name for f in event.fields if f.name in hook.attributes]
    lines = [
        f"static void report_{event.symbol.lower()}({declared(hook.parameters)}, void *site)",
        "{",
        f"\tint {', '.join(f'{name} = 0' for name in names)};",
        "",
        f"\tif (!must_trace({event.domain.upper()}, {event.symbol}))",
        "\t\treturn;",
        f"\tif (attr{') {' if len(names) > 1 else ')'}",
        *(f"\t\t{hook.attributes[name]}(attr, &{name});" for name in names),
    ]
    if len(names) > 1:
        lines.append("\t}")
    return [*lines, f"\t{report(hook, event, always=True)}", "}", ""]


def versioned(hook: Hook) -> list[str]:
    """The two hooks of a function that the C library has in two versions."""
    only_x86 = hook.version in BEFORE_OTHER_PORTS
    condition = "#if defined(__x86_64__)" if only_x86 else "#ifdef PTT_OLD_VERSION"
    macro = "VERSION_X86" if only_x86 else "VERSION"
    params, name = declared(hook.parameters), hook.function
    call = f"call_{name}({{}}.{name}, {arguments(hook)}, CALL_SITE)"
    real = f"{hook.returns} (*real)({params})"
    return [
        f"static {hook.returns} call_{name}({real}, {params}, void *site)",
        "{",
        *body(hook, "real"),
        "}",
        "",
        f"HOOK_AS({hook.returns}, ptt_{name}, ({params}), {call.format('ptt_real')})",
        f'{macro}(ptt_{name}, {name}, "@@{hook.version}");',
        condition,
        f"HOOK_AS({hook.returns}, ptt_old_{name}, ({params}), {call.format('ptt_old')})",
        f'{macro}(ptt_old_{name}, {name}, "@" PTT_OLD_VERSION);',
        "#endif",
        "",
    ]


def c_hook(hook: Hook) -> list[str]:
    """A hook as C."""
    lines: list[str] = []
    if hook.after and needs_attributes(hook):
        lines += attribute_reader(hook, hook.after)
    if hook.version:
        return [*lines, *versioned(hook)]
    real = f"ptt_real.{hook.function}"
    lines += [f"EXPORT {hook.returns} {hook.function}({declared(hook.parameters)})", "{"]
    if hook.by:
        lines += body_by(hook, real)
    else:
        statements = body_waits(hook, real) if hook.waits else body(hook, real)
        lines += ["\tvoid *site = CALL_SITE;", *statements]
    lines += ["}"]
    lines += [f"ALIAS({name}, {hook.function});" for name in hook.also]
    return [*lines, ""]


def c_plain_hooks(hooks: list[Hook]) -> str:
    """The hooks that follow completely from the catalogue."""
    out = [
        *c_head(
            "plain.c - the hooks of the same shape: initialize, destroy, try, release, signal.",
            SOURCE,
        ),
        "/*",
        " * A call that wakes a thread or ends the life of an object is stamped before the real",
        " * call, and a result for the caller after it. So no effect is earlier than its cause.",
        " */",
        '#include "bodies.h"',
        '#include "wait.h"',
        "",
    ]
    for hook in hooks:
        if hook.generated:
            for line in c_hook(hook):
                out += fold(line)
    return "\n".join(out).rstrip() + "\n"


def c_routines(hooks: list[Hook]) -> str:
    """The part of hooks.def that follows from the catalogue."""
    out = [
        *c_head(
            "routines.def - the functions of the routines of the event catalogue; see hooks.def.",
            SOURCE,
        ),
    ]
    for hook in hooks:
        params, args = declared(hook.parameters), arguments(hook)
        if hook.version:
            version = f'"{hook.version}"'
            named = f"{hook.returns}, {hook.function}"
            out += fold(f"VERSIONED({named}, {version}, ({params}), ({args}))")
            out += fold(f"OLD({named}, ({params}), ({args}))")
        else:
            out += fold(f"HOOK({hook.returns}, {hook.function}, ({params}), ({args}))")
    return "\n".join([*out, ""])
