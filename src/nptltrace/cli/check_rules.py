"""Which findings a user wants to see: kinds, and what is known and accepted."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from nptltrace.cli.traces import load_rules
from nptltrace.errors import UsageError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable

    from nptltrace.analysis.findings import Finding

__all__ = ["Rules", "read_rules"]


@dataclass(frozen=True, slots=True)
class Rules:
    """The findings to show: kinds, and those that are left out.

    Attributes:
        kinds: These kinds only; empty for all.
        ignored: (kind or `*`, text or empty) pairs to leave out.
        suspects: Whether to show what may have an innocent explanation.
        added: Whether any of the kinds was added by a user.
    """

    kinds: frozenset[str]
    ignored: tuple[tuple[str, str], ...]
    suspects: bool
    added: bool

    def chosen(self, findings: Iterable[Finding]) -> list[Finding]:
        """Return the findings to show."""
        return [found for found in findings if self._shows(found)]

    def _shows(self, found: Finding) -> bool:
        if found.suspect and not self.suspects:
            return False
        if self.kinds and found.kind not in self.kinds:
            return False
        texts = [*found.names, *found.sites, *(f"{address:#x}" for address in found.objects)]
        return not any(
            kind in {"*", found.kind} and (not text or any(text in known for known in texts))
            for kind, text in self.ignored
        )


def read_rules(args: argparse.Namespace) -> Rules:
    """Return what the options say.

    Raises:
        UsageError: There is no such kind, or a file cannot be read or run.
    """
    from nptltrace.findings.kind import kinds as all_kinds
    from nptltrace.findings.kind import load_installed

    load_rules(args)
    load_installed()
    known = all_kinds()
    kinds = [kind.strip() for option in args.kind for kind in option.split(",")]
    rules = [("--ignore", text) for text in args.ignore]
    for name in args.suppressions:
        try:
            lines = Path(name).read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "is not text"
            raise UsageError(f"{name}: {reason}") from None
        rules += [
            (f"{name}, line {number}", line.strip())
            for number, line in enumerate(lines, 1)
            if line.strip() and not line.lstrip().startswith("#")
        ]
    ignored = []
    for place, rule in rules:
        kind, _, text = rule.partition(":")
        ignored.append((kind.strip() or "*", text.strip()))
        if ignored[-1][0] not in {*known, "*"}:
            raise UsageError(f"{place}: there is no kind {kind!r}: {', '.join(known)}")
    unknown = [kind for kind in kinds if kind not in known]
    if unknown:
        raise UsageError(f"--kind: there is no kind {unknown[0]!r}: {', '.join(known)}")
    added = any(not known[kind].group for kind in kinds or known)
    return Rules(frozenset(kinds), tuple(ignored), args.suspects, added)
