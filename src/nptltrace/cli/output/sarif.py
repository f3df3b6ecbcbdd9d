"""Findings in SARIF 2.1.0 (OASIS), which code hosting services show beside the lines."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from nptltrace._escaping import readable
from nptltrace._version import __version__
from nptltrace.findings.kind import kinds

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nptltrace.analysis.findings import Finding
    from nptltrace.findings.facts import Event
    from nptltrace.trace.symbols.location import Location

__all__ = ["below", "fingerprint", "sarif_document", "source_of"]

_SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
# The innermost place in a text such as `put (store.c:27) inlined into client+0x4a (store.c:60)`.
_PLACE = re.compile(r"\((?P<file>[^()]+):(?P<line>\d+)\)")
# Parts of a call site that change in every build.
_MOVES = re.compile(r"\+0x[0-9a-f]+|:\d+|0x[0-9a-f]+")


def sarif_document(
    findings: Sequence[Finding],
    places: Mapping[str, Location],
    root: Path,
    *,
    tool: str = "ptt check",
    more: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, Any]:
    """Return findings as a SARIF document with one run.

    Args:
        findings: The findings.
        places: Locations of call sites, by their names in findings.
        root: Top directory of the sources; paths of files in it are relative to it.
        tool: The command that found them.
        more: Descriptions of kinds that `ptt check` does not have.
    """
    known = {name: (kind.text, kind.severity) for name, kind in kinds().items()}
    known |= {name: (text, "error") for name, text in more.items()}
    names = list(dict.fromkeys(finding.kind for finding in findings))
    return {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": tool,
                        "fullName": "POSIX Threads Trace Toolkit",
                        "version": __version__,
                        "semanticVersion": __version__,
                        "rules": [_rule(name, *known[name]) for name in names],
                    }
                },
                "columnKind": "unicodeCodePoints",
                "originalUriBaseIds": {"SRCROOT": {"uri": root.resolve().as_uri() + "/"}},
                "results": [
                    _result(finding, names.index(finding.kind), places, root)
                    for finding in findings
                ],
            }
        ],
    }


def _rule(name: str, text: str, severity: str) -> dict[str, Any]:
    first, _, _ = text.partition("\n\n")
    return {
        "id": name,
        "shortDescription": {"text": name.replace("-", " ")},
        "fullDescription": {"text": " ".join(first.split())},
        "help": {"text": text, "markdown": text},
        "defaultConfiguration": {"level": severity},
    }


def _result(
    finding: Finding, rule: int, places: Mapping[str, Location], root: Path
) -> dict[str, Any]:
    """Return a finding as a result; its location is the last call site."""
    events = sorted(finding.events, key=lambda event: event.ts_ns)
    sites = list(dict.fromkeys([*(event.site for event in events if event.site), *finding.sites]))
    locations = [_location(site, places, root) for site in sites]
    message = readable(finding.message[:1].upper() + finding.message[1:] + ".")
    result: dict[str, Any] = {
        "ruleId": finding.kind,
        "ruleIndex": rule,
        "level": finding.severity,
        "message": {"text": message},
        "locations": locations[-1:],
        "occurrenceCount": finding.count,
        "partialFingerprints": {"sites/v1": fingerprint(finding, sites)},
        "properties": {"ts_ns": finding.ts_ns, "pid": finding.pid, "objects": finding.names},
    }
    if locations[:-1]:
        result["relatedLocations"] = [
            {"id": number, **location} for number, location in enumerate(locations[:-1])
        ]
    if events:
        result["codeFlows"] = [_flow(events, places, root)]
    return result


def _flow(events: list[Event], places: Mapping[str, Location], root: Path) -> dict[str, Any]:
    """Return the events of each thread, numbered in time order."""
    threads: dict[tuple[int, int], list[dict[str, Any]]] = {}
    for number, event in enumerate(events):
        text = {"message": {"text": readable(f"{event.thread} {event.text}")}}
        where = _location(event.site, places, root) if event.site else {}
        step = {"location": {**where, **text}, "executionOrder": number}
        threads.setdefault((event.pid, event.tid), []).append(step)
    return {
        "threadFlows": [
            {"id": f"{pid}/{tid}", "locations": steps} for (pid, tid), steps in threads.items()
        ]
    }


def _location(site: str, places: Mapping[str, Location], root: Path) -> dict[str, Any]:
    """Return a call site: its name, and its file and line if they are known."""
    location: dict[str, Any] = {"logicalLocations": [{"fullyQualifiedName": readable(site)}]}
    path, line = source_of(site, places)
    if path and line:
        location["physicalLocation"] = {
            "artifactLocation": _artifact(path, root),
            "region": {"startLine": line},
        }
    return location


def source_of(site: str, places: Mapping[str, Location]) -> tuple[str, int]:
    """Return file and line of the innermost function outside of the language's own library.

    Args:
        site: The name of a call site.
        places: Locations of call sites, by their names.
    """
    place = places.get(site)
    if place is None:
        match = _PLACE.search(site)
        return (match["file"], int(match["line"])) if match else ("", 0)
    for frame in place.inlined:
        if frame.path and not frame.foreign:
            return frame.path, frame.line
    return place.path, place.line


def below(path: str, root: Path) -> Path:
    """Return a path relative to the root; the path itself if it is outside.

    Args:
        path: A path. A relative path is below the root.
        root: The top directory of the sources.
    """
    file, top = Path(path), root.resolve()
    return file.relative_to(top) if file.is_relative_to(top) else file


def _artifact(path: str, root: Path) -> dict[str, Any]:
    """Return the URI of a file, relative to the root for files in it."""
    file = below(path, root)
    if file.is_absolute():
        return {"uri": "file://" + quote(readable(path))}
    return {"uri": quote(readable(str(file))), "uriBaseId": "SRCROOT"}


def fingerprint(finding: Finding, sites: Sequence[str]) -> str:
    """Return a hash that is the same for this finding in other runs and in later builds.

    Args:
        finding: The finding.
        sites: The names of its call sites.
    """
    what = [finding.kind, *sorted({_MOVES.sub("", site) for site in sites})]
    return hashlib.sha256("\n".join(map(readable, what)).encode()).hexdigest()[:32]
