"""What a parser takes, as plain data: the source of shell completions and man pages."""

from __future__ import annotations

import argparse

from nptltrace._dataclasses import dataclass

__all__ = ["Argument", "arguments"]


@dataclass(frozen=True, slots=True)
class Argument:
    """One option or positional argument.

    Attributes:
        names: Option strings such as `-o`, `--output`; empty for a positional argument.
        value: What stands for its value in help, or None when it takes none.
        choices: The values it takes, when they can be listed.
        suggestions: Values worth offering: the choices, or what the action's `suggestions`
            holds where others are possible too.
        help: Its help text, on one line.
        is_command: Whether it takes a program with all its arguments.
    """

    names: tuple[str, ...]
    value: str | None
    choices: tuple[str, ...]
    suggestions: tuple[str, ...]
    help: str
    is_command: bool


def arguments(parser: argparse.ArgumentParser) -> list[Argument]:
    """Return what `parser` takes, in the order in which help shows it."""
    # argparse has no public way to list what was added to a parser.
    actions = parser._actions  # noqa: SLF001
    return [_argument(parser, action) for action in actions if action.help != argparse.SUPPRESS]


def _argument(parser: argparse.ArgumentParser, action: argparse.Action) -> Argument:
    """Return one argument as data."""
    choices = tuple(str(choice) for choice in action.choices or ())
    text = (action.help or "") % {**vars(action), "prog": parser.prog}
    return Argument(
        names=tuple(action.option_strings),
        value=None if action.nargs == 0 else _value(action, choices),
        choices=choices,
        suggestions=choices or getattr(action, "suggestions", ()),
        help=" ".join(text.split()),
        is_command=action.nargs == argparse.REMAINDER,
    )


def _value(action: argparse.Action, choices: tuple[str, ...]) -> str:
    """Return what stands for the value of an argument."""
    if isinstance(action.metavar, tuple):
        return " ".join(action.metavar)
    if action.metavar is not None:
        return action.metavar
    return "|".join(choices) if choices else action.dest.upper()
