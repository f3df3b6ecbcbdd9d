"""The arguments of a parser as plain data, for shell completions and manual pages."""

from __future__ import annotations

import argparse

from nptltrace._dataclasses import dataclass

__all__ = ["Argument", "arguments"]


@dataclass(frozen=True, slots=True)
class Argument:
    """An option or a positional argument.

    Attributes:
        names: Option strings such as `-o`, `--output`; empty for a positional argument.
        value: Name of the value in help; None for an option without a value.
        choices: The possible values, if they can be listed.
        suggestions: Values for completion: the choices, or the action's `suggestions` if other
            values are possible, too.
        help: The help text, on one line.
        is_command: The argument is a program with all its arguments.
        is_optional: The argument has no name and can be left out.
    """

    names: tuple[str, ...]
    value: str | None
    choices: tuple[str, ...]
    suggestions: tuple[str, ...]
    help: str
    is_command: bool
    is_optional: bool


def arguments(parser: argparse.ArgumentParser) -> list[Argument]:
    """Return the arguments of a parser, in the order of its help."""
    # argparse has no public way to list the arguments of a parser.
    actions = parser._actions  # noqa: SLF001
    return [_argument(parser, action) for action in actions if action.help != argparse.SUPPRESS]


def _argument(parser: argparse.ArgumentParser, action: argparse.Action) -> Argument:
    """Return an argument as data."""
    choices = tuple(str(choice) for choice in action.choices or ())
    text = (action.help or "") % {**vars(action), "prog": parser.prog}
    return Argument(
        names=tuple(action.option_strings),
        value=None if action.nargs == 0 else _value(action, choices),
        choices=choices,
        suggestions=choices or getattr(action, "suggestions", ()),
        help=" ".join(text.split()),
        is_command=action.nargs == argparse.REMAINDER,
        is_optional=not action.option_strings and action.nargs == argparse.OPTIONAL,
    )


def _value(action: argparse.Action, choices: tuple[str, ...]) -> str:
    """Return the name of an argument's value."""
    if isinstance(action.metavar, tuple):
        return " ".join(action.metavar)
    if action.metavar is not None:
        return action.metavar
    return "|".join(choices) if choices else action.dest.upper()
