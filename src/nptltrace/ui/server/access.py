"""Access to the viewer: requests need its token, and come from its own pages, by its own name."""

from __future__ import annotations

import hmac
import secrets
import socket
import time
from html import escape
from http.cookies import CookieError, SimpleCookie
from ipaddress import IPv6Address, ip_address
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, quote

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse

from nptltrace.ui import protocol

if TYPE_CHECKING:
    from ipaddress import IPv4Address

    from starlette.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["Access", "is_any", "is_loopback"]

_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_MOST_INVITED = 100
# The page fetches nothing from other places. No other page may show it or learn its address.
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
        "font-src 'self'; worker-src 'self'; connect-src 'self'; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Access:
    """Lets requests through to an application, and says in each answer what a browser may do.

    The token comes as `Authorization: Bearer`, or in a cookie that opening `/?token=…` sets. A
    client with the token can ask for codes. Each code lets one browser in, within some minutes.

    The `Host` of a request must be a name that the viewer was started with, or the address of the
    connection. If the viewer listens at all addresses, it may be any name of this machine. Other
    names are refused, so that no foreign name can lead here (DNS rebinding). A request that
    changes something must come from the page itself.

    Args:
        app: The application to protect.
        host: The address that the server is bound to.
        port: The port.
        token: The token; a new token by default.

    Attributes:
        token: The token.
    """

    def __init__(self, app: ASGIApp, *, host: str, port: int, token: str | None = None) -> None:
        self._app = app
        self.token = token or secrets.token_urlsafe(32)
        self._invitations: dict[str, float] = {}  # codes, and when they expire
        self._cookie = f"ptt-{port}"  # cookies are shared among the ports of a host
        bound = f"[{host}]" if ":" in host else host
        names = {bound.lower(), *_LOOPBACK}
        if is_any(host):
            names |= {name.lower() for name in (socket.gethostname(), socket.getfqdn())}
        self._port = port
        self._hosts = {f"{name}:{port}" for name in names} | (names if port == 80 else set())  # noqa: PLR2004

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or hand it on."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers[name] = value
            await send(message)

        app: ASGIApp = self._refusal(scope) or self._app
        if app is self._app and scope["path"] == protocol.PREFIX + protocol.INVITE:
            app = await self._invite(Request(scope, receive))
        await app(scope, receive, answer)

    def _refusal(self, scope: Scope) -> Response | None:
        """Return the answer that refuses a request, or None if the request may pass."""
        headers = Headers(scope=scope)
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not self._leads_here(hosts[0].lower(), scope):
            return _forbidden("the host name in the address is not a name of this viewer")
        tokens = parse_qs(scope["query_string"].decode("latin-1")).get("token", [])
        if scope["path"] == "/" and tokens and scope["method"] == "GET":
            if not self._fits(tokens[0]) and not self._is_invited(tokens[0]):
                return _forbidden("the token is wrong, or the link was used before or is too old")
            view = parse_qs(scope["query_string"].decode("latin-1")).get("view", [""])[0]
            return self._enter(view, headers.get("sec-fetch-site", "none"))
        kind, _, bearer = headers.get("authorization", "").partition(" ")
        by_header = kind.lower() == "bearer" and self._fits(bearer.strip())
        if not by_header and not self._fits(self._from_cookie(headers)):
            return _forbidden("open the address that ptt ui printed, token included")
        if scope["method"] not in {"GET", "HEAD"} and not by_header:
            origin = headers.get("origin", "")
            if origin.partition("://")[2].lower() != hosts[0].lower():
                return _forbidden("only the page itself may send this request")
        return None

    def _leads_here(self, host: str, scope: Scope) -> bool:
        if host in self._hosts:
            return True
        name, _, port = host.rpartition(":")
        came_to = (scope.get("server") or ("",))[0]
        own = _address(came_to)
        return port == str(self._port) and own is not None and _address(name.strip("[]")) == own

    def _fits(self, token: str) -> bool:
        return hmac.compare_digest(token.encode("utf-8", "replace"), self.token.encode())

    def _from_cookie(self, headers: Headers) -> str:
        try:
            cookie = SimpleCookie(headers.get("cookie", "")).get(self._cookie)
        except CookieError:
            return ""
        return cookie.value if cookie is not None else ""

    async def _invite(self, request: Request) -> Response:
        """Return a code that stands for the token once, for a limited time."""
        if request.method != "POST":
            return JSONResponse({"error": "ask for a code by POST"}, status_code=405)
        now = time.monotonic()
        good = {code: until for code, until in self._invitations.items() if until > now}
        if len(good) >= _MOST_INVITED:
            return JSONResponse({"error": "too many links were not opened yet"}, status_code=429)
        code = secrets.token_urlsafe(32)
        self._invitations = {**good, code: now + protocol.INVITED_S}
        return JSONResponse({"code": code, "seconds": protocol.INVITED_S})

    def _is_invited(self, code: str) -> bool:
        """Return whether a code is valid, and use the code up."""
        until = self._invitations.pop(code, None)
        return until is not None and time.monotonic() < until

    def _enter(self, view: str, site: str) -> Response:
        """Keep the token in a cookie, and remove it from the address, which may hold a view."""
        place = f"/#{quote(view, safe='%=&:,.~+-')}" if view else "/"
        response: Response = RedirectResponse(place, status_code=303)
        if site not in {"none", "same-origin"}:
            # If the browser comes from another page, such as the file of `_leading_to`, it sends
            # no strict cookie after a redirect. From this page, which is of the server, it does.
            response = HTMLResponse(f'<meta http-equiv="refresh" content="0; url={escape(place)}">')
        response.set_cookie(self._cookie, self.token, httponly=True, samesite="strict", path="/")
        return response


def is_any(host: str) -> bool:
    """Return whether an address stands for all addresses of this machine."""
    address = _address(host)
    return address is not None and address.is_unspecified


def is_loopback(host: str) -> bool:
    """Return whether an address is reached only from this machine."""
    address = _address(host)
    return address.is_loopback if address is not None else host == "localhost"


def _address(text: str) -> IPv4Address | IPv6Address | None:
    """Return an address, as IPv4 if it is an IPv4-mapped IPv6 address; None for a name."""
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return (address.ipv4_mapped or address) if isinstance(address, IPv6Address) else address


def _forbidden(why: str) -> Response:
    return JSONResponse({"error": why}, status_code=403)
