"""The server from outside: access, hostile requests, and its end."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from threading import Event as Flag
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nptltrace.errors import PttError
from nptltrace.ui import protocol, typescript
from nptltrace.ui.page_file import page
from nptltrace.ui.server.access import Access
from nptltrace.ui.server.app import application
from nptltrace.ui.viewer import Viewer
from tests.support import ROOT
from tests.trace.builder import Builder, Event

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.support import Compiler, Ptt

PATIENCE_S = 60.0


@contextmanager
def running(ptt: Ptt, *args: str | Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run `ptt ui`; give the process and the address of the viewer."""
    with subprocess.Popen(
        ptt.command("ui", "--no-browser", *args), env=ptt.environment(), encoding="utf-8",
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        assert process.stdout
        try:
            yield process, process.stdout.readline().strip()
        finally:
            process.kill()


@contextmanager
def recording(ptt: Ptt, option: str, path: Path, program: Path) -> Iterator[subprocess.Popen[str]]:
    """Record a program that waits for a line of input; give the recorder."""
    with subprocess.Popen(
        ptt.command("record", option, "-o", path, "--", program), env=ptt.environment(),
        stdin=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8",
    ) as recorder:  # fmt: skip
        try:
            yield recorder
        finally:
            recorder.send_signal(signal.SIGINT)


@contextmanager
def followed(
    ptt: Ptt, path: Path, program: Path
) -> Iterator[tuple[subprocess.Popen[str], httpx.Client]]:
    """Record a program that waits for a line of input, and follow it; give recorder and client."""
    with recording(ptt, "-q", path, program) as recorder:
        needed = (path / "metadata", path / "info" / "session.json")
        until(lambda: all(file.exists() for file in needed))
        with running(ptt, "--follow", path) as (_, url), client(url) as asks:
            yield recorder, asks
        assert recorder.wait(PATIENCE_S) == 0


def go_on(recorder: subprocess.Popen[str]) -> None:
    """Send the line of input to the program."""
    assert recorder.stdin
    recorder.stdin.write("\n")
    recorder.stdin.close()


def address(recorder: subprocess.Popen[str]) -> str:
    """Return the address of the viewer beside a recording."""
    assert recorder.stderr
    return next(line.strip() for line in recorder.stderr if line.startswith("http"))


def until(holds: Callable[[], bool]) -> None:
    """Wait until a condition holds."""
    end = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)


def client(url: str, **headers: str) -> httpx.Client:
    """Return a client with the token."""
    base, _, token = url.partition("/?token=")
    headers.setdefault("Authorization", f"Bearer {token}")
    return httpx.Client(base_url=base, headers=headers, timeout=PATIENCE_S)


def outside(method: str, address: str, **more: Any) -> httpx.Response:
    """Return the answer to a request without the token or a cookie."""
    return httpx.request(method, address, timeout=PATIENCE_S, **more)


class Asks:
    """Asks an application without a socket.

    Args:
        app: The application; its token is `t`.
    """

    def __init__(self, app: Access) -> None:
        self._app = app

    def get(self, path: str, params: dict[str, str] | None = None) -> httpx.Response:
        """Return the answer to a GET."""
        return self._ask("GET", path, params=params)

    def post(self, path: str, **sent: Any) -> httpx.Response:
        """Return the answer to a POST."""
        return self._ask("POST", path, **sent)

    def _ask(self, method: str, path: str, **more: Any) -> httpx.Response:
        async def ask() -> httpx.Response:
            async with httpx.AsyncClient(
                transport=httpx.ASGITransport(self._app), base_url="http://testserver"
            ) as asks:
                headers = {"Authorization": "Bearer t"}
                return await asks.request(method, path, headers=headers, **more)

        return asyncio.run(ask())


def states(lines: Iterator[str]) -> Iterator[dict[str, Any]]:
    """Yield the answers of `live`."""
    end = time.monotonic() + 5 * PATIENCE_S
    for line in lines:
        assert time.monotonic() < end
        if line.startswith("data: "):
            state: dict[str, Any] = json.loads(line.removeprefix("data: "))
            assert not state["message"]
            yield state
    pytest.fail("the stream ended")


def wait_for(asks: httpx.Client, key: str) -> dict[str, Any]:
    """Wait until a key of the state is true; return the state."""
    with asks.stream("GET", "/api/live") as stream:
        return next(state for state in states(stream.iter_lines()) if state[key])


def small(path: Path) -> Path:
    """Write a trace in which one thread waits for another."""
    made = Builder(path)
    lock = 0x5000
    made.thread(
        1,
        [
            Event(1000, "MUTEX_TAKEN", lock),
            Event(9000, "MUTEX_FREE", lock),
        ],
    )
    made.thread(
        2,
        [
            Event(2000, "MUTEX_WAIT", lock, fields={"owner": 1}),
            Event(9500, "MUTEX_TAKEN", lock, variant="WAITED", fields={"wait_ns": 7500}),
            Event(9900, "MUTEX_FREE", lock),
        ],
    )
    return made.write()


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small(tmp_path_factory.mktemp("small") / "small.ptt")


@pytest.fixture(scope="module")
def url(ptt: Ptt, trace: Path) -> Iterator[str]:
    with running(ptt, trace) as (_, found):
        with client(found) as asks:
            wait_for(asks, "analysed")
        yield found


# ---- access ----


def test_the_first_line_is_the_address(url: str) -> None:
    base, _, token = url.partition("/?token=")
    assert base.startswith("http://127.0.0.1:")
    assert len(token) >= 32


@pytest.mark.parametrize("path", ["/", "/app.js", "/api/trace", "/nothing", "/api/live"])
@pytest.mark.parametrize("token", [None, "x", "wrong"])
def test_a_request_without_the_token_is_refused(url: str, path: str, token: str | None) -> None:
    base = url.partition("/?")[0]
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    assert outside("GET", base + path, headers=headers).status_code == 403
    assert outside("GET", base + path, params={"token": token or ""}).status_code == 403
    cookie = f"ptt-{base.rpartition(':')[2]}=wrong"
    assert outside("GET", base + path, headers={"Cookie": cookie}).status_code == 403
    if path != "/":  # only the page takes the token from its address
        reported = {"token": url.partition("token=")[2]}
        assert outside("GET", base + path, params=reported).status_code == 403


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:{port}", "127.0.0.1", "localhost:1", "127.0.0.1:{port}.x"],
)
def test_a_foreign_host_name_is_refused(url: str, host: str) -> None:
    port = url.partition("/?")[0].rpartition(":")[2]
    with client(url, Host=host.format(port=port)) as asks:
        assert asks.get("/api/trace").status_code == 403


def test_the_address_gives_a_cookie_and_drops_the_token(url: str) -> None:
    answer = outside("GET", url)
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    base = url.partition("/?")[0]
    own = {"Cookie": answer.headers["set-cookie"].partition(";")[0]}
    assert outside("GET", base + "/api/trace", headers=own).status_code == 200
    for origin in ("http://evil.example", "null", ""):
        sent = outside("POST", base + "/api/cut", json={}, headers={**own, "Origin": origin})
        assert sent.status_code == 403
    assert (
        outside("POST", base + "/api/cut", json={}, headers={**own, "Origin": base}).status_code
        == 400
    )


def test_every_answer_says_what_a_browser_may_do(url: str) -> None:
    with client(url) as asks:
        for path in ("/api/trace", "/nothing", "/api/wait/x", "/"):
            headers = asks.get(path, headers={"Origin": "http://evil.example"}).headers
            policy = headers["content-security-policy"]
            assert "default-src 'none'" in policy
            assert "unsafe" not in policy
            assert headers["x-content-type-options"] == "nosniff"
            assert headers["referrer-policy"] == "no-referrer"
            assert not [name for name in headers if name.startswith("access-control")]


@pytest.mark.parametrize(
    "path", ["/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/..%2f..%2fetc/passwd",
             "//etc/passwd", "/api/../../etc/passwd", "/app.js%00", "/metadata"],
)  # fmt: skip
def test_no_file_outside_of_the_page_is_served(url: str, path: str) -> None:
    host, _, port = url.partition("/?")[0].removeprefix("http://").partition(":")
    token = url.partition("token=")[2]
    with socket.create_connection((host, int(port)), PATIENCE_S) as connection:
        request = f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: close\r\n"
        connection.sendall(f"{request}Authorization: Bearer {token}\r\n\r\n".encode())
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
    assert answer.split()[1] in {b"404", b"400", b"405", b"503"}
    assert b"root:" not in answer


@pytest.mark.parametrize("path", ["/.", "/./", "/..", "/%2e"])
def test_only_the_files_of_the_page_are_served(url: str, path: str) -> None:
    host, _, port = url.partition("/?")[0].removeprefix("http://").partition(":")
    token = url.partition("token=")[2]
    with socket.create_connection((host, int(port)), PATIENCE_S) as connection:
        request = f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: close\r\n"
        connection.sendall(f"{request}Authorization: Bearer {token}\r\n\r\n".encode())
        assert connection.recv(65536).split()[1] == b"404"


def test_a_browser_that_comes_from_a_file_gets_its_cookie(url: str) -> None:
    answer = outside("GET", url, headers={"Sec-Fetch-Site": "cross-site"})
    # The next request must come from a page of the server, or the browser sends no cookie.
    assert (answer.status_code, "location" in answer.headers) == (200, False)
    assert "url=/" in answer.text
    assert "samesite=strict" in answer.headers["set-cookie"].lower()


def test_a_link_lets_one_browser_in_once(url: str) -> None:
    base = url.partition("/?")[0]
    own = {"Cookie": outside("GET", url).headers["set-cookie"].partition(";")[0]}
    invite = f"{base}/api/invite"
    # Only a browser with access may let others in, and only from the page itself.
    assert outside("POST", invite, json={}).status_code == 403
    assert outside("POST", invite, json={}, headers=own).status_code == 403
    foreign = {**own, "Origin": "http://evil.example"}
    assert outside("POST", invite, json={}, headers=foreign).status_code == 403
    assert outside("GET", invite, headers=own).status_code == 405
    made = outside("POST", invite, json={}, headers={**own, "Origin": base}).json()
    assert made["seconds"] > 0
    view = "sel=object%3A1&rows=<b>\"'\r\nX: y"
    link = f"{base}/?token={made['code']}&view={quote(view, safe='')}"
    # A code works only as the token in an address.
    bearer = {"Authorization": f"Bearer {made['code']}"}
    assert outside("GET", f"{base}/api/trace", headers=bearer).status_code == 403
    entered = outside("GET", link)
    assert entered.status_code == 303
    place = entered.headers["location"]
    assert place.startswith("/#sel=object%3A1&rows=")
    assert not set(place) & set("<>\"' \r\n")
    theirs = {"Cookie": entered.headers["set-cookie"].partition(";")[0]}
    assert outside("GET", f"{base}/api/trace", headers=theirs).status_code == 200
    assert outside("GET", link).status_code == 403
    # The number of unused codes is limited.
    codes = {outside("POST", invite, json={}, headers={**own, "Origin": base}).status_code
             for _ in range(101)}  # fmt: skip
    assert codes == {200, 429}


def test_a_kept_token_gives_the_same_address(ptt: Ptt, trace: Path, tmp_path: Path) -> None:
    file = tmp_path / "token"
    seen = []
    for _ in range(2):
        with running(ptt, "--token-file", file, trace) as (_, address):
            seen.append(address.partition("token=")[2])
            assert outside("GET", address).status_code == 303
    assert seen[0] == seen[1] == file.read_text().strip()
    assert file.stat().st_mode & 0o777 == 0o600
    file.chmod(0o644)
    refused = ptt("ui", "--no-browser", "--token-file", file, trace, status=2)
    assert "others can read" in refused.stderr
    file.chmod(0o600)
    file.write_text("short\n")
    refused = ptt("ui", "--no-browser", "--token-file", file, trace, status=2)
    assert "not a token file" in refused.stderr


def test_the_token_is_on_no_command_line(ptt: Ptt, trace: Path, tmp_path: Path) -> None:
    message = tmp_path / "said"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$@" > {message}.new\nmv {message}.new {message}\n')
    browser.chmod(0o755)
    with subprocess.Popen(
        ptt.command("ui", trace), env=ptt.environment({"BROWSER": str(browser)}),
        encoding="utf-8", stdout=subprocess.PIPE,
    ) as server:  # fmt: skip
        try:
            assert server.stdout
            url = server.stdout.readline().strip()
            until(message.exists)
            shown = message.read_text().strip()
            assert url.partition("token=")[2] not in shown
            file = Path(shown.removeprefix("file://"))
            assert url in file.read_text()
            assert file.stat().st_mode & 0o077 == 0
            assert file.parent.stat().st_mode & 0o077 == 0
        finally:
            server.terminate()
        assert server.wait(PATIENCE_S) == 0
    assert not file.parent.exists()


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])  # noqa: S104 -- that is what is tested
def test_the_server_listens_at_all_addresses(ptt: Ptt, trace: Path, host: str) -> None:
    if host == "::" and not socket.has_ipv6:
        pytest.skip("no IPv6")
    with running(ptt, "--host", host, trace) as (server, url):
        base, _, token = url.partition("/?token=")
        port = base.rpartition(":")[2]
        assert host not in base
        assert outside("GET", url).status_code == 303
        for name in (socket.gethostname(), "localhost", "127.0.0.1"):
            with client(f"http://127.0.0.1:{port}/?token={token}", Host=f"{name}:{port}") as asks:
                assert asks.get("/api/trace").status_code == 200, name
        for name in ("evil.example", "192.0.2.77"):
            with client(f"http://127.0.0.1:{port}/?token={token}", Host=f"{name}:{port}") as asks:
                assert asks.get("/api/trace").status_code == 403, name
        server.terminate()
        assert server.stderr
        assert "plain HTTP" in server.stderr.read()


def test_long_answers_are_compressed_if_the_client_allows(url: str) -> None:
    with client(url) as asks:
        for path in ("/app.js", "/api/statistics"):
            plain = asks.get(path, headers={"Accept-Encoding": "identity"})
            packed = asks.get(path, headers={"Accept-Encoding": "gzip"})
            assert "content-encoding" not in plain.headers
            assert packed.content == plain.content
            is_long = len(plain.content) > 1024
            assert (packed.headers.get("content-encoding") == "gzip") == is_long


def arenas(pid: int) -> int:
    """Return how many arenas of the allocator a process has, without the main arena."""
    found = 0
    maps = Path("/proc", str(pid), "maps").read_text().splitlines()
    areas = [[int(part, 16) for part in line.split()[0].split("-")] for line in maps]
    for (begin, middle), (rest, end), line in zip(areas, areas[1:], maps, strict=False):
        # A heap of an arena has 64 MiB, aligned to 64 MiB. Only a part of it is in use.
        found += begin % 2**26 == 0 and end - begin == 2**26 and middle == rest and "rw-p" in line
    return found


def test_answers_in_many_threads_share_freed_memory(ptt: Ptt, trace: Path) -> None:
    with running(ptt, trace) as (server, url), client(url) as asks:
        wait_for(asks, "analysed")

        def ask(_: int) -> int:
            question = {"by": "thread", "rows": "1,2", "width": "16384"}
            return asks.get("/api/spans", params=question).status_code

        with ThreadPoolExecutor(16) as aside:
            assert set(aside.map(ask, range(200))) == {200}
        assert arenas(server.pid) <= 2


def test_one_file_is_written_at_a_time(
    trace: Path, native_stage: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NPTLTRACE_NATIVE_DIR", str(native_stage))
    begun, go_on = Flag(), Flag()

    def slow(_viewer: Viewer, **_part: int) -> bytes:
        begun.set()
        assert go_on.wait(PATIENCE_S)
        return b"made"

    monkeypatch.setattr("nptltrace.ui.server.app.page", slow)
    viewer = Viewer([trace])
    asks = Asks(Access(application(viewer, None), host="testserver", port=80, token="t"))  # noqa: S106
    with ThreadPoolExecutor(1) as aside:
        first = aside.submit(asks.get, "/api/export")
        assert begun.wait(PATIENCE_S)
        assert asks.get("/api/export").status_code == 503
        go_on.set()
        assert first.result().content == b"made"
    assert asks.get("/api/export").status_code == 200
    viewer.close()


# ---- hostile values ----


@pytest.fixture(scope="module")
def asks(trace: Path, native_stage: Path) -> Iterator[Asks]:
    """Client of the application itself, without a socket."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NPTLTRACE_NATIVE_DIR", str(native_stage))
        viewer = Viewer([trace])
        viewer.start()
        viewer.wait_ready()
        access = Access(application(viewer, None), host="testserver", port=80, token="t")  # noqa: S106
        yield Asks(access)
        viewer.close()


NUMBERS = st.one_of(
    st.integers(-(2**70), 2**70),
    st.sampled_from([-1, 0, 1, 2**31, 2**32, 2**53, 2**62, 2**63 - 1, 2**63, -(2**63)]),
    st.integers(0, 20_000),
)
TEXTS = st.one_of(
    NUMBERS.map(str),
    st.text(max_size=20),
    st.sampled_from(["", "1,2", "0x5000", "1e9", "NaN", "٣"]),
)


@settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(data=st.data())
def test_no_value_causes_an_internal_error(asks: Asks, data: st.DataObject) -> None:
    askable = [e for e in protocol.ENDPOINTS if e.answer not in {"stream", "file"} and not e.body]
    endpoint = data.draw(st.sampled_from(askable))
    values = {}
    for parameter in endpoint.parameters:
        choices = st.sampled_from(parameter.type) if isinstance(parameter.type, tuple) else TEXTS
        numbers = NUMBERS.map(str) if parameter.type in {"int", "rows"} else choices
        if parameter.default is None or data.draw(st.booleans()):
            values[parameter.name] = data.draw(st.one_of(choices, numbers, numbers))
    path = endpoint.path
    if "{id}" in path:
        path = path.format(id=quote(values.pop("id"), safe="") or "1")
    answer = asks.get(f"{protocol.PREFIX}{path}", params=values)
    # 202: the answer is not ready. That is no error.
    assert answer.status_code in {200, 202, 400, 404}, (endpoint.name, values, answer.text)
    if answer.status_code not in {200, 202}:
        assert set(answer.json()) == {"error"} or answer.status_code == 404


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("spans?by=thread", "rows is missing"),
        ("spans?by=process&rows=1", "by must be one of thread, object, processor"),
        ("spans?by=thread&rows=1&rows=2", "rows is given twice"),
        ("spans?by=thread&rows=1&from_ns=5&to_ns=5", "the range is empty"),
        ("spans?by=thread&rows=0", "rows must be numbers of rows"),
        ("rows?by=thread&colour=red", "rows has no parameter 'colour'"),
        ("event-list?position=nonsense", "'nonsense' is not a position"),
        ("event-list?event=NO_SUCH", "no event type matches"),
        ("event-list?pid=me", "--pid takes numbers"),
    ],
)
def test_mistakes_are_reported_in_a_line(asks: Asks, path: str, why: str) -> None:
    answer = asks.get(f"/api/{path}")
    assert answer.status_code == 400
    assert why in answer.json()["error"]


def test_a_page_that_was_not_built_is_reported(asks: Asks) -> None:
    answer = asks.get("/")
    assert answer.status_code == 503
    assert "was not built: install node and npm" in answer.text


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{}", b'{"from_ns": 1, "to_ns": "2"}', b"[" * 60_000, b"x" * 100_000,
             b'{"from_ns": 1, "to_ns": 1}', b'{"from_ns": true, "to_ns": 9}'],
)  # fmt: skip
def test_bad_request_bodies_are_refused(asks: Asks, body: bytes) -> None:
    assert asks.post("/api/cut", content=body).status_code == 400


def test_a_part_becomes_a_separate_trace(asks: Asks, ptt: Ptt, trace: Path) -> None:
    paths = []
    for _ in range(2):
        answer = asks.post("/api/cut", json={"from_ns": 1500, "to_ns": 9501}).json()
        assert answer["events"] == 3
        paths.append(answer["path"])
        reported = json.loads(ptt("stat", "--format", "json", answer["path"]).stdout)
        assert reported["events"] == 3
    assert paths == [str(trace.with_name(f"small-cut{n}.ptt")) for n in ("", "-2")]


def test_long_strings_are_shortened(
    tmp_path: Path, native_stage: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NPTLTRACE_NATIVE_DIR", str(native_stage))
    made = Builder(tmp_path / "long.ptt")
    about = {"index": 0, "pid": 100, "cmdline": ["x" * 100_000, "<script>"]}
    made.processes.append({"process": about})
    made.thread(1, [Event(1, "MUTEX_TAKEN", 0x10)])
    viewer = Viewer([made.write()])
    try:
        access = Access(application(viewer, None), host="testserver", port=80, token="t")  # noqa: S106
        found = Asks(access)
        long, markup = found.get("/api/trace").json()["processes"][0]["cmdline"]
        assert (len(long), long[-1], markup) == (512, "…", "<script>")
    finally:
        viewer.close()


# ---- life ----


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_viewer(ptt: Ptt, trace: Path, number: signal.Signals) -> None:
    with running(ptt, trace) as (process, url), client(url) as asks:
        with asks.stream("GET", "/api/live") as stream:
            next(stream.iter_lines())
            process.send_signal(number)
            assert process.wait(PATIENCE_S) == 0
        assert process.stderr
        assert process.stderr.read() == ""


def test_an_export_is_given_up_when_the_viewer_ends(
    trace: Path, native_stage: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not (native_stage / "share" / "nptltrace" / "page" / "index.html").exists():
        pytest.skip("the page was not built: node and npm are missing")
    monkeypatch.setenv("NPTLTRACE_NATIVE_DIR", str(native_stage))
    viewer = Viewer([trace])
    try:
        # The viewer never started to read the trace: a wait for it would be forever.
        viewer.stop()
        with pytest.raises(PttError, match="the viewer has ended"):
            page(viewer)
    finally:
        viewer.close()


def test_mistakes_on_the_command_line_are_reported(ptt: Ptt, trace: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        for args in (
            (tmp_path / "empty",), (tmp_path / "none",), ("--port", port, trace),
            ("--port", "65536", trace), ("--host", "300.1.1.1", trace),
        ):  # fmt: skip
            result = ptt("ui", "--no-browser", *args, status=2)
            assert result.stdout == ""
            assert result.stderr.startswith("ptt: error: ")
            assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("harm", ["cut", "flipped", "emptied", "no info"])
def test_the_readable_part_of_a_damaged_trace_is_shown(ptt: Ptt, tmp_path: Path, harm: str) -> None:
    path = small(tmp_path / "damaged.ptt")
    stream = min(path.glob("stream-*"))
    data = stream.read_bytes()
    if harm == "cut":
        stream.write_bytes(data[: len(data) - 8])
    elif harm == "flipped":
        stream.write_bytes(data[:-3] + bytes([data[-3] ^ 0xFF]) + data[-2:])
    elif harm == "emptied":
        for one in path.glob("stream-*"):
            one.write_bytes(b"")
    else:
        for one in (path / "info").iterdir():
            one.write_text("{")
    with running(ptt, path) as (process, url), client(url) as asks:
        wait_for(asks, "analysed")
        reported = asks.get("/api/trace").json()
        assert reported["damages"] or reported["remarks"]
        for endpoint in (
            "rows?by=thread",
            "rows?by=object",
            "overview",
            "contention",
            "event-list",
        ):
            assert asks.get(f"/api/{endpoint}").status_code == 200
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0


STEPS = r"""
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER;

static void use(pthread_mutex_t *lock)
{
	for (int i = 0; i < 100; i++) {
		pthread_mutex_lock(lock);
		pthread_mutex_unlock(lock);
	}
}

static void *other(void *arg)
{
	use(arg);
	return arg;
}

int main(void)
{
	pthread_t thread;

	use(&first);
	getchar();
	pthread_create(&thread, NULL, other, &second);
	pthread_join(thread, NULL);
	return 0;
}
"""


def test_a_recording_is_followed_to_its_end(ptt: Ptt, tmp_path: Path, compile_c: Compiler) -> None:
    path = tmp_path / "live.ptt"
    with followed(ptt, path, compile_c(STEPS)) as (recorder, asks):
        assert wait_for(asks, "threads")["state"] == "running"

        def holds() -> list[int]:
            answer = asks.get("/api/rows?by=object")
            if answer.status_code != 200:
                return []
            rows = pa.ipc.open_stream(answer.content).read_all().to_pylist()
            return [row["holds"] for row in rows]

        until(lambda: holds() == [100])
        go_on(recorder)
        state = wait_for(asks, "analysed")
        assert (state["state"], state["detail"]["ready"]) == ("complete", True)
        reported = json.loads(ptt("report", "--format", "json", path).stdout)
        assert asks.get("/api/contention").json()["report"] == reported
        assert reported["holds"] == 200


PANELS = (
    "contention", "contention?by=thread", "contention?by=thread,object", "findings", "order",
    "critical", "path", "flame", "over-time", "statistics",
)  # fmt: skip
HOLDER = r"""
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t outer = PTHREAD_MUTEX_INITIALIZER, inner = PTHREAD_MUTEX_INITIALIZER;

static void *wait_for_outer(void *arg)
{
	pthread_mutex_lock(&outer);
	pthread_mutex_unlock(&outer);
	return arg;
}

int main(void)
{
	pthread_t waiter;

	pthread_mutex_lock(&outer);
	for (int i = 0; i < 10; i++) {
		pthread_mutex_lock(&inner);
		pthread_mutex_unlock(&inner);
	}
	pthread_create(&waiter, NULL, wait_for_outer, NULL);
	getchar();
	pthread_mutex_unlock(&outer);
	pthread_join(waiter, NULL);
	return 0;
}
"""


def spans(asks: httpx.Client, by: str) -> list[dict[str, Any]]:
    """Return all spans of holds; nothing while there are no rows yet."""
    answer = asks.get(f"/api/rows?by={by}")
    if answer.status_code != 200:
        return []
    rows = pa.ipc.open_stream(answer.content).read_all().to_pylist()
    chosen = ",".join(str(row["row"]) for row in rows)
    table = pa.ipc.open_stream(asks.get(f"/api/spans?by={by}&rows={chosen}").content).read_all()
    lanes = {row["row"]: row["lanes"] for row in rows}
    held = [span for span in table.to_pylist() if span["state"] == protocol.STATES.index("held")]
    return [span | {"lanes": lanes[span["row"]]} for span in held]


def answers(asks: httpx.Client, panel: str) -> bool:
    """Return whether a panel has an answer."""
    return asks.get(f"/api/{panel}").status_code == 200


def has_waited(asks: httpx.Client, by: str) -> bool:
    """Return whether the row with most waiting counts a wait that goes on."""
    rows = pa.ipc.open_stream(asks.get(f"/api/rows?by={by}").content).read_all().to_pylist()
    assert rows[0]["waits"] <= 1
    assert rows[0]["wait_max_ns"] == rows[0]["wait_ns"] <= rows[0]["end_ns"] - rows[0]["start_ns"]
    return int(rows[0]["wait_ns"]) > 100_000_000


def test_open_holds_of_a_recording_are_drawn(ptt: Ptt, tmp_path: Path, compile_c: Compiler) -> None:
    with followed(ptt, tmp_path / "held.ptt", compile_c(HOLDER)) as (recorder, asks):
        of_threads: list[dict[str, Any]] = []

        def drawn() -> bool:
            of_threads[:] = spans(asks, "thread")
            inner = [span for span in of_threads if span["lane"] == 2 and not span["flags"] & 1]
            # Open spans come after ended spans.
            outer = [span for span in of_threads if span["lane"] == 1 and span["lanes"] == 3]
            return sum(int(span["count"]) for span in inner) == 10 and len(outer) == 1

        # The outer hold is drawn above the inner holds, although it has not ended.
        until(drawn)
        of_objects = spans(asks, "object")
        [outer] = [span for span in of_threads if span["lane"] == 1]
        assert outer["flags"] & protocol.FLAGS["open"]
        [same] = [span for span in of_objects if span["flags"] & protocol.FLAGS["open"]]
        assert (same["row"], same["other"]) == (outer["other"], outer["row"])
        found = asks.get(f"/api/hold?row={outer['row']}&lane=1&t_ns={outer['t_ns']}").json()
        assert (found["open"], found["t_ns"]) == (True, outer["t_ns"])
        assert found["object"]["name"] == "outer"
        assert found["site"]
        # The wait that goes on counts in its rows, with its drawn length.
        for by in ("thread", "object"):
            until(partial(has_waited, asks, by))
        # All panels answer about the events so far.
        for panel in PANELS:
            until(partial(answers, asks, panel))
        assert asks.get("/api/contention").json()["report"]["holds"] == 11
        assert len(asks.get("/api/order").json()["edges"]) == 1
        assert recorder.poll() is None
        go_on(recorder)
        wait_for(asks, "analysed")
        assert not [span for span in spans(asks, "thread") if span["flags"] == 1]


def test_a_recording_starts_the_viewer(ptt: Ptt, tmp_path: Path, compile_c: Compiler) -> None:
    with recording(ptt, "--ui", tmp_path / "beside.ptt", compile_c(STEPS)) as recorder:
        url = address(recorder)
        go_on(recorder)
        with client(url) as asks:
            assert wait_for(asks, "analysed")["state"] == "complete"
            assert recorder.stderr
            assert next(line for line in recorder.stderr if "goes on" in line)
            recorder.send_signal(signal.SIGINT)
            assert recorder.wait(PATIENCE_S) == 0
            with pytest.raises(httpx.TransportError):
                asks.get("/api/trace")


def test_the_viewer_of_a_killed_recording_says_so_and_ends_when_nobody_looks(
    ptt: Ptt, tmp_path: Path, compile_c: Compiler
) -> None:
    path = tmp_path / "killed.ptt"
    with recording(ptt, "--ui", path, compile_c(STEPS)) as recorder:
        url = address(recorder)
        with client(url) as asks, asks.stream("GET", "/api/live") as stream:
            lines = stream.iter_lines()
            next(state for state in states(lines) if state["state"] == "running")
            recorder.kill()
            next(state for state in states(lines) if state["state"] == "killed")
            assert f"`ptt recover {path}`" in asks.get("/api/trace").json()["remarks"][0]
            # This is longer than a viewer lives without a page. The stream sends every second.
            for _ in range(16):
                next(lines)
        # Nobody reads the output of the viewer, and it goes on. The pipe ends with the viewer.
        recorder.communicate(timeout=PATIENCE_S)
        with client(url) as asks, pytest.raises(httpx.TransportError):
            asks.get("/api/trace")
    # A later viewer gets the same state.
    with running(ptt, "--follow", path) as (viewer, url), client(url) as asks:
        assert wait_for(asks, "analysed")["state"] == "killed"
        assert viewer.stderr
        assert f"`ptt recover {path}`" in viewer.stderr.readline()
    ptt("recover", path)
    with running(ptt, "--follow", path) as (_, url), client(url) as asks:
        assert wait_for(asks, "analysed")["state"] == "recovered"
        assert asks.get("/api/trace").json()["remarks"] == []


# ---- declarations ----


def test_the_declarations_of_the_page_are_up_to_date() -> None:
    path = ROOT / "web" / "src" / "base" / "protocol.ts"
    assert path.read_text(encoding="utf-8") == typescript.generated(), "make web-protocol"
