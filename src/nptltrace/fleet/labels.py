"""Labels of runs, as they are given on a command line."""

from __future__ import annotations

import re

from nptltrace.errors import UsageError

__all__ = ["parse_label"]

_LABEL = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


def parse_label(text: str) -> tuple[str, str]:
    """Return name and value of a label, given as `release=1.4.2`.

    Raises:
        UsageError: It is none.
    """
    name, equals, value = text.partition("=")
    if not equals or not value or not _LABEL.fullmatch(name):
        raise UsageError(
            f"{text!r} is no label: give NAME=VALUE, such as release=1.4.2; a name has letters, "
            "digits and underscores"
        )
    return name.lower(), value
