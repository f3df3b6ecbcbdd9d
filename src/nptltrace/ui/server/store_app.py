"""The application behind the page of a store: the page, its style, and the way to single runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from nptltrace.errors import PttError, UsageError, one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Protocol

    from starlette.requests import Request

    class Store(Protocol):
        """A store that answers. Each call may take a while."""

        def page(self, asked: Mapping[str, str]) -> str:
            """Return the page, in HTML."""

        def style(self) -> str:
            """Return the style sheet of the page."""

        def open_run(self, run_id: str) -> str:
            """Return the address of the viewer of a run; start the viewer if needed."""


__all__ = ["store_application"]


def store_application(store: Store) -> Starlette:
    """Return the application.

    Args:
        store: The store that answers.
    """

    async def page(request: Request) -> Response:
        return await _answered(lambda: HTMLResponse(store.page(request.query_params)))

    async def style(_: Request) -> Response:
        return Response(store.style(), media_type="text/css")

    async def run(request: Request) -> Response:
        run_id = request.path_params["run_id"]
        return await _answered(lambda: RedirectResponse(store.open_run(run_id), status_code=303))

    return Starlette(
        routes=[Route("/", page), Route("/store.css", style), Route("/run/{run_id}", run)]
    )


async def _answered(answer: Callable[[], Response]) -> Response:
    try:
        return await run_in_threadpool(answer)
    except UsageError as error:
        return PlainTextResponse(one_line(error), status_code=404)
    except PttError as error:
        return PlainTextResponse(one_line(error), status_code=500)
