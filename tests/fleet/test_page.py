"""`ptt ui --store`: the page of a store, and its links to runs."""

from __future__ import annotations

import re
import shutil
from typing import TYPE_CHECKING

import httpx

from tests.ui.page import serving

if TYPE_CHECKING:
    from pathlib import Path

    from tests.fleet.conftest import Traces
    from tests.support import Ptt

PATIENCE_S = 120.0


def _browser() -> httpx.Client:
    return httpx.Client(follow_redirects=True, timeout=PATIENCE_S)


def test_the_page_leads_to_runs(ptt: Ptt, traces: Traces, store: str, tmp_path: Path) -> None:
    gone = tmp_path / "gone.ptt"
    shutil.copytree(traces.forth[0], gone)
    ptt("fleet", "add", store, gone, "--label", "release=<1.0>")
    ptt("fleet", "add", store, traces.reverse, "--label", "release=1.1")
    shutil.rmtree(gone)
    with serving(ptt, "--store", store) as url, _browser() as browser:
        page = browser.get(url).text
        assert "pair+" in page
        assert "&lt;1.0&gt;" in page
        assert "<1.0>" not in page
        assert "are taken in different orders by different runs" in page
        root = httpx.URL(url).copy_with(query=None)
        assert "web" not in browser.get(root.join("/?by=exe")).text
        assert browser.get(root.join("/store.css")).headers["content-type"].startswith("text/css")
        assert browser.get(root.join("/?by=colour")).status_code == 404
        answers = [browser.get(root.join(f"/run/{run}")) for run in _runs(page)]
        assert sorted(answer.status_code for answer in answers) == [200, 404]
        for answer in answers:
            if answer.status_code == 200:
                assert answer.url.port != root.port  # a viewer of its own
            else:
                assert "gone.ptt any more" in answer.text
        assert browser.get(root.join("/run/nonsense")).status_code == 404
        assert httpx.get(root, timeout=PATIENCE_S).status_code == 403


def _runs(page: str) -> set[str]:
    return set(re.findall(r'href="/run/([^"]+)"', page))


def test_a_store_is_shown_whole(ptt: Ptt, traces: Traces, store: str) -> None:
    ptt("fleet", "add", store, traces.alone)
    for args in ((traces.alone,), ("--from", "1ms"), ("--export", "x.html")):
        failed = ptt("ui", "--store", store, *args, status=2)
        assert "--store shows a whole store" in failed.stderr
    assert "name a trace, or a store" in ptt("ui", status=2).stderr
    assert "is not a ptt fleet store" in ptt("ui", "--store", traces.alone, status=2).stderr
