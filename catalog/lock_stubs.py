# SPDX-License-Identifier: MIT
"""Generate the tracer's functions for other libraries' locks, from locks.toml."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

from heads import c_head, note

from nptltrace.errors import PttError
from nptltrace.recording.settings.locks import read_locks

if TYPE_CHECKING:
    from futex_names import Futex

    from nptltrace.recording.settings.locks import LockFunction, Locks

SOURCE = "locks.toml"


def load_locks(path: Path) -> Locks:
    """Read the types of locks and their functions."""
    try:
        return read_locks(path, least=0)
    except PttError as error:
        sys.exit(str(error))


def _symbol(word: str) -> str:
    return word.upper().replace("-", "_")


def _entry(f: LockFunction, types: tuple[str, ...]) -> str:
    """The entry of a function in the table, without its name."""
    fields = {
        "does": f"PTT_LOCK_{_symbol(f.does)}",
        "domain": f"NPTL_DOMAIN_{f.like.upper()}",
        "type": f.type + 1,
        "result": f"PTT_LOCK_{f.taken.upper()}",
        "object": f.argument - 1 if f.argument else "PTT_LOCK_NONE",
        "mutex": f.mutex - 1 if f.mutex else "PTT_LOCK_NONE",
        "try_with": "PTT_LOCK_NONE" if f.try_with is None else f.try_with,
        "limit": f.limit - 1 if f.limit else "PTT_LOCK_NONE",
        "needs": "PTT_LOCK_NONE" if f.needs is None else f.needs,
    }
    if not f.argument:
        fields["only"] = f"&{_only(types[f.type])}"
    return ", ".join(f".{name} = {value}" for name, value in fields.items())


def _only(name: str) -> str:
    """The variable that stands for the only object of some functions."""
    return f"ptt_lock_only_{name.replace('-', '_')}"


def _has_hook(f: LockFunction) -> bool:
    """Whether a function has a generated hook, and not a stub or a hook by hand."""
    takes = f.does.startswith("acquire") and f.taken == "always"
    return not f.own_hook and f.arguments is not None and (takes or f.does == "release")


def _hook(number: int, locks: Locks) -> str:
    """The hook of a function with known arguments."""
    functions = locks.functions
    f = functions[number]
    letters = "abcdef"[: f.arguments]

    def names(before: str, letters: str) -> str:
        return "(" + ", ".join(f"{before}{letter}" for letter in letters) + ")"

    parts = [str(number), f.name, names("long ", letters) if letters else "(void)"]
    parts += [names("", letters), letters[f.argument - 1] if f.argument else "function->only"]
    if f.does == "release":
        takes = [g for g in functions if g.type == f.type and g.does.startswith("acquire")]
        noted = f.like == "rwlock" or any(g.try_with is None for g in takes)
        return f"LOCK_GIVES({', '.join([*parts, str(int(noted))])})"
    if f.try_with is None:
        return f"LOCK_TAKES({', '.join(parts)})"
    limit = functions[f.try_with].limit
    tries = "abcdef"[: max(f.arguments or 0, limit)]
    arguments = names("", tries)
    if limit:
        arguments = arguments.replace(tries[limit - 1], "0")
    parts += [str(f.try_with), names("long ", tries), arguments]
    return f"LOCK_TAKES_TRYING({', '.join(parts)})"


def c_lock_table(locks: Locks) -> str:
    """The table of the functions."""
    out = [
        *c_head("lock_table.c - the functions of other libraries' locks.", SOURCE),
        '#include "real_lock.h"',
        '#include "lock_types.h"',
        "",
        *(f"const char {name} = 0;" for name in _only_objects(locks)),
        "",
        "/* clang-format off */",
        "const struct ptt_lock_function ptt_lock_functions[] = {",
        *(f'\t{{.name = "{f.name}", {_entry(f, locks.types)}}},' for f in locks.functions),
        "};",
        "/* clang-format on */",
        f"const uint32_t ptt_lock_count = {len(locks.functions)};",
        "",
    ]
    return "\n".join(out)


def _only_objects(locks: Locks) -> list[str]:
    return sorted({_only(locks.types[f.type]) for f in locks.functions if not f.argument})


def c_lock_stubs(locks: Locks) -> str:
    """The exported functions that replace the functions of the table."""
    functions = locks.functions
    hooked = {n for n, f in enumerate(functions) if _has_hook(f)}
    hooked |= {tries for n in hooked if (tries := functions[n].try_with) is not None}
    out = [
        *c_head(
            "stubs.c - exported functions that replace the functions of other libraries' locks.",
            SOURCE,
        ),
        '#include "lock_hook.h"',
        '#include "lock_types.h"',
        "",
        "/* clang-format off */",
        "/* What the table says of functions that have hooks, where the compiler sees it. */",
        "static const struct ptt_lock_function functions[] = {",
        *(f"\t[{n}] = {{{_entry(functions[n], locks.types)}}}," for n in sorted(hooked)),
        "};",
        "",
        "/* A stub puts its number into a register that no call passes anything in. */",
        "#if defined(__x86_64__)",
        '#define ENTER(number) "endbr64\\n\\tmovl $" #number ", %r11d\\n\\tjmp ptt_lock_entry\\n"',
        '#define FUNCTION "@function"',
        "#elif defined(__aarch64__)",
        '#define ENTER(number) "hint #34\\n\\tmov w16, #" #number "\\n\\tb ptt_lock_entry\\n"',
        '#define FUNCTION "%function"',
        "#elif defined(__riscv)",
        '#define ENTER(number) "li t2, " #number "\\n\\tj ptt_lock_entry\\n"',
        '#define FUNCTION "@function"',
        "#endif",
        "#define STUB(name, number) \\",
        '\t__asm__(".text\\n.globl " #name "\\n.type " #name ", " FUNCTION "\\n.p2align 4\\n" \\',
        '\t\t#name ": " ENTER(number) ".size " #name ", . - " #name "\\n")',
        *(
            f"STUB({f.name}, {n});"
            for n, f in enumerate(functions)
            if not (f.own_hook or _has_hook(f))
        ),
        "",
        *(_hook(n, locks) for n, f in enumerate(functions) if _has_hook(f)),
        "/* clang-format on */",
        "",
    ]
    return "\n".join(out)


def c_lock_types(locks: Locks, futexes: list[Futex]) -> str:
    """The numbers of the types, and more names that the tables share with other code."""
    out = [
        *c_head("lock_types.h - the numbers of the types of other libraries' locks.", SOURCE),
        "#ifndef PTT_LOCK_TYPES_H",
        "#define PTT_LOCK_TYPES_H",
        "",
    ]
    out += [
        f"#define PTT_LOCK_TYPE_{_symbol(name)} {number}"
        for number, name in enumerate(locks.types, start=1)
    ]
    out += [
        f"#define PTT_FUTEX_KIND_{_symbol(futex.type)} {number}"
        for number, futex in enumerate(futexes, start=1)
        if not futex.functions
    ]
    out += ["", "/* The numbers of functions with a hook by hand. */"]
    out += [
        f"#define PTT_LOCK_NUMBER_{_symbol(f.name)} {number}"
        for number, f in enumerate(locks.functions)
        if f.own_hook
    ]
    out += ["", "/* Variables that stand for the only object of some functions. */"]
    out += [
        f'extern const char {name} __attribute__((visibility("hidden")));'
        for name in _only_objects(locks)
    ]
    return "\n".join([*out, "", "#endif", ""])


def doc_locks(locks: Locks, compiled_in: list[str]) -> str:
    """The table of the reference page."""
    out = ["# Locks of other libraries", "", f"<!-- {note(SOURCE)} -->", ""]
    out += [
        "PTT records the locks of these libraries like locks of the thread library. You need no",
        "option:",
        "",
        "    ptt record -- ./program",
        "",
        "- The program must call the functions through the dynamic linker.",
        "- PTT records each object as a mutex, read-write lock, condition or barrier. Reports and",
        "  the viewer show its type.",
        "- If the library waits inside such a call, PTT does not record that wait a second time.",
        "- To record functions of your own, use",
        "  [`ptt record --locks`](../how-to/your-own-locks.md).",
        "- Locks of Java have no functions. See [Java](../how-to/java.md).",
        "",
        "| type | recorded as | what | functions |",
        "|---|---|---|---|",
    ]
    for number, (name, doc) in enumerate(zip(locks.types, locks.docs, strict=True)):
        functions = [f for f in locks.functions if f.type == number]
        names = ", ".join(f"`{f.name}`" for f in functions) or "–"
        out.append(f"| `{name}` | {locks.likes[number]} | {doc} | {names} |")
    return "\n".join([*out, *compiled_in, ""])
