"""The result of `ptt guard` for CI services: JUnit, SARIF, Code Quality of GitLab, GitHub."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nptltrace._escaping import for_terminal, readable
from nptltrace.analysis.findings import Finding
from nptltrace.cli.output import junit
from nptltrace.cli.output.guard_report import sentence
from nptltrace.cli.output.sarif import below, fingerprint, sarif_document, source_of
from nptltrace.hang.stack.cpython import PythonFrame
from nptltrace.trace.symbols.location import Location

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from nptltrace.guard.report import Report

__all__ = ["code_quality", "github_lines", "junit_lines", "sarif"]

_KINDS = {
    "cond-wakeup": "A condition of the C library gives signals to waiters that have all left.",
    "no-progress": "No thread ran for a time, although threads wait for locks.",
    "time-limit": "The program did not end in time.",
}


def junit_lines(
    reports: Sequence[Report], places: Sequence[Path], command: str, error: str = ""
) -> Iterator[str]:
    """Yield a JUnit document with one test: the program does not hang.

    Args:
        reports: The reports.
        places: The directories of the reports.
        command: The command line.
        error: Why the watch is not complete; empty if it is complete.
    """
    failures = [
        f"{sentence(report)}; report in {place}"
        for report, place in zip(reports, places, strict=True)
    ]
    kind = reports[0].cause.kind if reports else ""
    output = [line for place in places for line in _lines(place / "hang.txt")]
    case = junit.Case(command, kind, failures, output, error)
    return junit.suite("ptt guard", [case], {"command": command})


def sarif(reports: Sequence[Report], root: Path, error: str) -> dict[str, Any]:
    """Return the findings as SARIF.

    Args:
        reports: The reports.
        root: Top directory of the sources; paths of files in it are relative to it.
        error: Why the watch failed, or empty.
    """
    found, places = _findings(reports), _places(reports)
    document = sarif_document(found, places, root, tool="ptt guard", more=_KINDS)
    if error:
        remark = {"level": "error", "message": {"text": readable(error)}}
        failed = {"executionSuccessful": False, "toolExecutionNotifications": [remark]}
        document["runs"][0]["invocations"] = [failed]
    return document


def code_quality(reports: Sequence[Report], root: Path) -> list[dict[str, Any]]:
    """Return the findings as a Code Quality report, which GitLab shows in merge requests.

    Args:
        reports: The reports.
        root: Top directory of the sources; paths of files in it are relative to it.
    """
    places = _places(reports)
    return [
        {
            "description": readable(f"{finding.kind}: {finding.message}"),
            "check_name": f"ptt guard: {finding.kind}",
            "fingerprint": fingerprint(finding, finding.sites),
            "severity": "critical" if finding.severity == "error" else "major",
            "location": {"path": path, "lines": {"begin": line}},
        }
        for finding in _findings(reports)
        for path, line in (_source(finding, places, root),)
    ]


def github_lines(report: Report, root: Path) -> Iterator[str]:
    """Yield commands that make GitHub Actions show the findings beside the lines.

    Args:
        report: The report.
        root: Top directory of the sources; paths of files in it are relative to it.
    """
    places = _places([report])
    for finding in _findings([report]):
        path, line = _source(finding, places, root)
        fields = {"file": path, "line": str(line), "title": f"ptt guard: {finding.kind}"}
        words = ",".join(f"{name}={_escaped(text, ':,')}" for name, text in fields.items() if text)
        yield f"::error {words}::{_escaped(finding.message, '')}"


def _escaped(text: str, more: str) -> str:
    """Return a text as a value of a workflow command, in which some characters are special."""
    for character in "%\r\n" + more:
        text = text.replace(character, f"%{ord(character):02X}")
    return for_terminal(text)


def _source(finding: Finding, places: dict[str, Location], root: Path) -> tuple[str, int]:
    """Return the file and line of a finding; the name of the kind and 1 if they are not known."""
    for site in finding.sites:
        path, line = source_of(site, places)
        if path and line:
            return readable(str(below(path, root))), line
    return "unknown", 1


def _findings(reports: Sequence[Report]) -> list[Finding]:
    """Return the findings of reports; the cause alone for a report without findings."""
    return [finding for report in reports for finding in _of_report(report)]


def _of_report(report: Report) -> Iterator[Finding]:
    cause = report.cause
    for verdict in cause.verdicts:
        waits = [s for s in verdict.threads if s.wait is not None and s.wait.object]
        yield Finding(
            verdict.kind, verdict.severity, 0, 0, cause.pid,
            [seen.thread.tid for seen in verdict.threads],
            [seen.wait.object for seen in waits if seen.wait is not None],
            [seen.object_name for seen in waits],
            [seen.site for seen in verdict.threads if seen.site],
            verdict.message, verdict.title, [], 1, suspect=False,
        )  # fmt: skip
    if not cause.verdicts:
        threads = [seen for look in report.looks[:1] for seen in look.picture.threads]
        sites = [seen.site for seen in threads if seen.site]
        tids = [seen.thread.tid for seen in threads]
        yield Finding(
            cause.kind, "error", 0, 0, cause.pid, tids, [], [], sites, cause.text, cause.text, [],
            1, suspect=False,
        )  # fmt: skip


def _places(reports: Sequence[Report]) -> dict[str, Location]:
    """Return the locations of call sites by their names."""
    places: dict[str, Location] = {}
    for report in reports:
        for look in report.looks:
            for seen in look.picture.threads:
                for frame in seen.frames:
                    if isinstance(frame, Location):
                        places[str(frame)] = frame
                    elif isinstance(frame, PythonFrame):
                        places[str(frame)] = Location(
                            function=frame.function, file=frame.file, line=frame.line,
                            path=frame.path, python=True,
                        )  # fmt: skip
    return places


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
