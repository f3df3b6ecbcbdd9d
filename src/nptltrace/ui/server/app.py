"""The application behind the page. It turns requests into calls of a `Viewer`."""

from __future__ import annotations

import gzip
import json
import mimetypes
import time
from threading import Lock
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from nptltrace._binding import libc
from nptltrace.errors import PttError, UsageError, one_line
from nptltrace.ui import protocol
from nptltrace.ui.jobs import NotReady
from nptltrace.ui.page_file import page
from nptltrace.ui.queries.naming import presentable_json
from nptltrace.ui.viewer import NotFound

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from starlette.requests import Request

    from nptltrace.ui.protocol import Endpoint, Parameter
    from nptltrace.ui.viewer import Viewer

__all__ = ["application"]

_ARROW = "application/vnd.apache.arrow.stream"
_MAX_TEXT = 4096
_MAX_BODY = 65536
# Shorter answers are not compressed. After longer answers, memory is given back to the system.
_PACKED = 1024
_LARGE = 1 << 20
# Giving memory back walks through all free memory. So it is not done after each of many answers.
_REST_S = 0.5
_gave_back = {"when": 0.0}
_giving = Lock()
_MISSING = """\
The page of ptt ui was not built: install node and npm, and build again (see docs: Installing).
"""


def application(viewer: Viewer, built: Path | None) -> Starlette:
    """Return the application.

    Args:
        viewer: The viewer that answers.
        built: Directory of the page; None if it was not built.
    """
    writing = Lock()
    routes = [
        Route(
            protocol.PREFIX + endpoint.path,
            _route(viewer, endpoint, writing),
            methods=[endpoint.method],
        )
        for endpoint in protocol.ENDPOINTS
        if endpoint.path != protocol.INVITE
    ]
    if built is None:
        routes.append(Route("/", _no_page))
    else:
        routes += [Route(f"/{file.name}", _file(file)) for file in built.iterdir()]
        routes.append(Route("/", _file(built / "index.html")))
    return Starlette(routes=routes)


def _file(path: Path) -> Callable[[Request], Any]:
    """Return a handler that answers with a file of the page."""
    data = path.read_bytes()
    packed = gzip.compress(data, 9, mtime=0)
    kind = mimetypes.guess_type(path.name)[0] or "application/octet-stream"

    async def answer(request: Request) -> Response:
        if _takes_packed(request):
            return Response(packed, media_type=kind, headers=_PACKED_HEADERS)
        return Response(data, media_type=kind)

    return answer


_PACKED_HEADERS = {"Content-Encoding": "gzip", "Vary": "Accept-Encoding"}


def _takes_packed(request: Request) -> bool:
    return "gzip" in request.headers.get("accept-encoding", "")


def _packed(response: Response) -> Response:
    """Compress a long answer. The line to another machine may be slow."""
    if len(response.body) > _PACKED:
        response.body = gzip.compress(response.body, 1, mtime=0)
        response.headers.update({**_PACKED_HEADERS, "Content-Length": str(len(response.body))})
    return response


async def _no_page(_: Request) -> Response:
    return PlainTextResponse(_MISSING, status_code=503)


def _route(viewer: Viewer, endpoint: Endpoint, writing: Lock) -> Callable[[Request], Any]:
    """Return the handler of an endpoint. `writing` lets only one file be written at a time."""

    async def live(request: Request) -> Response:
        return StreamingResponse(_events(viewer, request), media_type="text/event-stream")

    async def answer(request: Request) -> Response:
        try:
            arguments = _arguments(endpoint, request)
            if endpoint.body is not None:
                arguments |= _body(endpoint.body, await _read(request))
            if endpoint.answer == "file":
                return await run_in_threadpool(_written, viewer, arguments, writing)
            packs = _takes_packed(request)
            return await run_in_threadpool(_answer, viewer, endpoint, arguments, packs=packs)
        except NotReady as later:
            return JSONResponse({"ready": False, "progress": later.progress}, status_code=202)
        except NotFound as error:
            return _problem(error, 404)
        except UsageError as error:
            return _problem(error, 400)
        except (PttError, OSError) as error:
            return _problem(error, 500)

    return live if endpoint.answer == "stream" else answer


def _problem(error: Exception, status: int) -> Response:
    return JSONResponse({"error": one_line(error)}, status_code=status)


def _written(viewer: Viewer, arguments: dict[str, Any], writing: Lock) -> Response:
    """Return the page as one file, unless another file is being made."""
    if not writing.acquire(blocking=False):
        return JSONResponse(
            {"error": "another file is being written: try again later"}, status_code=503
        )
    try:
        made = page(viewer, **arguments)
    finally:
        writing.release()
        _give_back()
    headers = {"Content-Disposition": 'attachment; filename="trace.html"'}
    return Response(made, media_type="text/html; charset=utf-8", headers=headers)


def _answer(
    viewer: Viewer, endpoint: Endpoint, arguments: dict[str, Any], *, packs: bool
) -> Response:
    """Ask the viewer. Each call runs in a separate thread."""
    answer = getattr(viewer, endpoint.name)(**arguments)
    if isinstance(endpoint.answer, pa.Schema):
        response = Response(protocol.stream(answer), media_type=_ARROW)
    else:
        response = Response(presentable_json(answer), media_type="application/json")
    del answer
    if len(response.body) > _LARGE:
        _give_back()
    return _packed(response) if packs else response


async def _events(viewer: Viewer, request: Request) -> AsyncIterator[str]:
    """Yield the state now and whenever it changes, and a comment now and then."""
    version = -1
    viewer.looking += 1
    try:
        while not await request.is_disconnected():
            state = await run_in_threadpool(viewer.wait_change, version, 1.0)
            if viewer.closed:
                return
            if state["version"] != version:
                version = state["version"]
                yield f"data: {json.dumps(state)}\n\n"
            else:
                yield ": \n\n"
    finally:
        viewer.looking -= 1


def _give_back() -> None:
    """Give free memory back to the system, now and then."""
    if not _giving.acquire(blocking=False):
        return
    try:
        now = time.monotonic()
        if now - _gave_back["when"] > _REST_S:
            _gave_back["when"] = now
            libc.give_back()
    finally:
        _giving.release()


# ---- parameters ----


def _arguments(endpoint: Endpoint, request: Request) -> dict[str, Any]:
    """Return the parameters of a request.

    Raises:
        UsageError: A parameter is missing, given twice, unknown or invalid.
    """
    items = request.query_params.multi_items()
    known = {parameter.name for parameter in endpoint.parameters}
    names = [name for name, _ in items]
    for name in names:
        if name not in known:
            raise UsageError(f"{endpoint.path} has no parameter {name[:40]!r}")
        if names.count(name) > 1:
            raise UsageError(f"{name} is given twice")
    values = dict(items) | {name: str(value) for name, value in request.path_params.items()}
    return {
        parameter.name: _value(parameter, values.get(parameter.name))
        for parameter in endpoint.parameters
    }


def _value(parameter: Parameter, text: str | None) -> Any:
    """Return the value of a parameter."""
    name = parameter.name
    if text is None:
        if parameter.default is None:
            raise UsageError(f"{name} is missing")
        text = str(parameter.default)
    if parameter.type == "int":
        return _integer(name, text)
    if parameter.type == "rows":
        return _rows(name, text)
    if len(text) > _MAX_TEXT:
        raise UsageError(f"{name} is too long")
    if parameter.type != "text" and text not in parameter.type:
        raise UsageError(f"{name} must be one of {', '.join(parameter.type)}")
    return text


def _integer(name: str, text: str) -> int:
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) < 20):  # noqa: PLR2004 -- of 2^63
        raise UsageError(f"{name} is not an integer")
    value = int(text)
    if not -(2**63) <= value < 2**63:
        raise UsageError(f"{name} is out of range")
    return value


def _rows(name: str, text: str) -> list[int]:
    if not text:
        return []
    words = text.split(",")
    if len(words) > protocol.MAX_ROWS:
        raise UsageError(f"{name}: at most {protocol.MAX_ROWS} rows at once")
    rows = [_integer(name, word) for word in words]
    if not all(0 < row < 2**32 for row in rows):
        raise UsageError(f"{name} must be numbers of rows")
    return rows


async def _read(request: Request) -> Any:
    """Return the JSON body of a request."""
    data = b""
    async for piece in request.stream():
        data += piece
        if len(data) > _MAX_BODY:
            raise UsageError("the request is too large")
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        raise UsageError("the request is not JSON") from None


def _body(shape: Any, sent: Any) -> dict[str, Any]:
    """Return the body of a request: an object of integers."""
    names = set(shape.__required_keys__)
    if not isinstance(sent, dict) or set(sent) != names:
        raise UsageError(f"the request must be an object with {' and '.join(sorted(names))}")
    for name, value in sent.items():
        if not isinstance(value, int) or isinstance(value, bool) or abs(value) >= 2**63:
            raise UsageError(f"{name} is not an integer")
    return dict(sent)
