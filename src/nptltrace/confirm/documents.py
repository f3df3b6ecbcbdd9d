"""Results as JSON documents. `catalog/documents.toml` declares the shapes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nptltrace.analysis.report.documents import findings_document

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nptltrace.analysis.vocabulary.document_types import (
        Confirm,
        ConfirmCandidate,
        Explore,
        ExploredFinding,
    )
    from nptltrace.confirm.confirming import Result
    from nptltrace.confirm.exploring import Exploration, Seen

__all__ = ["confirm_document", "explore_document"]


def confirm_document(results: Sequence[Result]) -> Confirm:
    """Return the document of `ptt confirm`."""
    return {"candidates": [_candidate(result) for result in results]}


def explore_document(found: Exploration) -> Explore:
    """Return the document of `ptt explore`."""
    return {
        "seeds": found.seeds,
        "findings": [_explored(seen) for seen in found.seen],
        "hung": list(found.hung),
        "failed": sorted(seed for seeds in found.failed.values() for seed in seeds),
        "delays": found.delays,
    }


def _candidate(result: Result) -> ConfirmCandidate:
    return {
        "kind": result.candidate.kind,
        "sites": [place.text for place in result.candidate.places],
        "outcome": result.outcome,
        "runs": result.runs,
        "met": result.met,
        "missed": [place.text for place in result.missed],
        "trace": None if result.trace is None else str(result.trace),
        "findings": findings_document([*result.findings, *result.others], [], 0)["findings"],
    }


def _explored(seen: Seen) -> ExploredFinding:
    finding = findings_document([seen.finding], [], 0)["findings"][0]
    trace = None if seen.trace is None else str(seen.trace)
    return {**finding, "seeds": seen.seeds, "trace": trace}
