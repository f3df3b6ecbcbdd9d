"""The first line of the metadata of a trace: whether its stream files are plain CTF, or compact.

A compact trace has another first line than CTF 1.8 asks for, so other readers of CTF refuse it.
"""

from __future__ import annotations

__all__ = ["COMPACT", "PLAIN", "signed"]

PLAIN = "/* CTF 1.8 */"
COMPACT = "/* PTT compact trace, no CTF: `ptt export --format ctf` writes plain CTF */"


def signed(text: str, *, compact: bool) -> str:
    """Return metadata with the first line of a plain or of a compact trace.

    Args:
        text: Metadata with either first line.
        compact: Whether the trace is compact.
    """
    lead, rest = text[: len(text) - len(text.lstrip())], text.lstrip()
    for line in (PLAIN, COMPACT):
        if rest.startswith(line):
            return lead + (COMPACT if compact else PLAIN) + rest.removeprefix(line)
    return text
