"""The findings that a user wants to see: chosen kinds, without suppressed findings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from nptltrace._dataclasses import dataclass
from nptltrace.errors import UsageError
from nptltrace.findings.kind import kinds as all_kinds
from nptltrace.findings.kind import load, load_installed

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator, Sequence

    from nptltrace.analysis.findings import Finding

__all__ = ["Rules"]


@dataclass(frozen=True, slots=True)
class Rules:
    """The findings to show.

    Attributes:
        kinds: The kinds to show; empty for all.
        ignored: (kind or `*`, text or empty) pairs to leave out.
        suspects: Whether to show findings that may have an innocent explanation.
        added: Whether a user added one of the kinds.
    """

    kinds: frozenset[str]
    ignored: tuple[tuple[str, str], ...]
    suspects: bool
    added: bool

    @classmethod
    def of(
        cls, *, kinds: Iterable[str] = (), ignored: Iterable[str] = (),
        suppressions: Iterable[str | os.PathLike[str]] = (), suspects: bool = False,
        files: Iterable[str | os.PathLike[str]] = (),
    ) -> Rules:  # fmt: skip
        """Return the rules that options or arguments describe.

        Args:
            kinds: Names of kinds, also several names with commas between them.
            ignored: `KIND[:TEXT]` of findings to leave out.
            suppressions: Files with a `KIND[:TEXT]` on each line.
            suspects: Whether to show findings that may have an innocent explanation.
            files: Python files that add kinds.

        Raises:
            UsageError: There is no such kind, or a file cannot be read or run.
        """
        for path in files:
            load(path)
        load_installed()
        known = all_kinds()
        chosen = [kind.strip() for option in kinds for kind in option.split(",")]
        for kind in chosen:
            if kind not in known:
                raise UsageError(f"there is no kind {kind!r}: {', '.join(known)}")
        lines = [("", rule) for rule in ignored]
        for path in suppressions:
            lines += _lines(path)
        pairs = []
        for place, rule in lines:
            kind, _, text = (part.strip() for part in rule.partition(":"))
            pairs.append((kind or "*", text))
            if pairs[-1][0] not in {*known, "*"}:
                raise UsageError(f"{place}there is no kind {kind!r}: {', '.join(known)}")
        added = any(not known[kind].group for kind in chosen or known)
        return cls(frozenset(chosen), tuple(pairs), suspects, added)

    def chosen(self, findings: Iterable[Finding]) -> list[Finding]:
        """Return the findings to show."""
        return [finding for finding in findings if self._shows(finding)]

    def unmatched(self, findings: Sequence[Finding]) -> list[str]:
        """Return the rules `KIND:TEXT` of `ignored` that leave out none of the findings.

        A rule without a text is about a whole kind, and need not match in each run.
        """
        return [
            f"{kind}:{part}"
            for kind, part in dict.fromkeys(self.ignored)
            if part and not any(_is_ignored(finding, kind, part) for finding in findings)
        ]

    def _shows(self, finding: Finding) -> bool:
        if finding.suspect and not self.suspects:
            return False
        if self.kinds and finding.kind not in self.kinds:
            return False
        return not any(_is_ignored(finding, kind, part) for kind, part in self.ignored)


def _is_ignored(finding: Finding, kind: str, part: str) -> bool:
    """Return whether a finding is of a kind, with a text in a name of an object or in a site."""
    if kind not in {"*", finding.kind}:
        return False
    addresses = (f"{address:#x}" for address in finding.objects)
    return not part or any(part in text for text in (*finding.names, *finding.sites, *addresses))


def _lines(path: str | os.PathLike[str]) -> Iterator[tuple[str, str]]:
    """Yield the rules of a file, each with its file and line for messages."""
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "is not text"
        raise UsageError(f"{path}: {reason}") from None
    for number, line in enumerate(lines, 1):
        if line.strip() and not line.lstrip().startswith("#"):
            yield f"{path}, line {number}: ", line.strip()
