"""Labels of runs on a command line. `ptt record` imports this module, so it imports little."""

from __future__ import annotations

import re

from nptltrace.errors import UsageError

__all__ = ["parse_label"]

_LABEL = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


def parse_label(text: str) -> tuple[str, str]:
    """Return the name (in lower case) and the value of a label such as `release=1.4.2`.

    Raises:
        UsageError: The text is not a label.
    """
    name, equals, value = text.partition("=")
    if not equals or not value or not _LABEL.fullmatch(name):
        raise UsageError(
            f"{text!r} is not a label: give NAME=VALUE, such as release=1.4.2; a name has letters, "
            "digits and underscores"
        )
    return name.lower(), value
