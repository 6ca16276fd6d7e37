"""Who is let in: by Host and Origin of each request and socket, and beyond loopback by an address that counts once."""

import hmac
import ipaddress
import secrets
import socket
from collections.abc import Callable, Mapping
from http.cookies import SimpleCookie
from urllib.parse import parse_qs

from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

COOKIE = "softform_console"

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self' blob:; "
    "worker-src 'self' blob:; font-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",  # with no-referrer the form without script would send Origin: null
    "cross-origin-opener-policy": "same-origin",
    "permissions-policy": "xr-spatial-tracking=(self)",
}
NOT_ALLOWED = 4403
"""Close code of a socket that is not let in."""


def is_loopback(host: str) -> bool:
    """Return whether only this computer reaches a host, by name or address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def own_names(host: str) -> frozenset[str]:
    """Return the names and addresses under which a server on `host` is called."""
    names = {"localhost", "127.0.0.1", "[::1]"}
    if is_loopback(host):
        return frozenset(names)
    here = socket.gethostname()
    addresses = {str(found[4][0]) for found in socket.getaddrinfo(here, None)} | ({host} - {"0.0.0.0", "::"})
    return frozenset(names | {here, f"{here}.local"} | {f"[{one}]" if ":" in one else one for one in addresses})


class Links:
    """Addresses that let one browser in each: whoever opens one gets a cookie of their own, and the next one is told.

    Args:
        tell: Takes the token of the address that counts now, the first one at once; called in the server's thread.
    """

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell, self._cookies = tell, list[str]()
        self._token = secrets.token_urlsafe(24)
        tell(self._token)

    def cookie_for(self, token: str) -> str:
        """Return the cookie of the browser that opened the address of a token, which is used up by that; or nothing."""
        if not hmac.compare_digest(token.encode(), self._token.encode()):
            return ""
        self._token, cookie = secrets.token_urlsafe(24), secrets.token_urlsafe(24)
        self._cookies.append(cookie)
        self._tell(self._token)
        return cookie

    def know(self, cookie: str) -> bool:
        """Return whether a cookie was given."""
        return any(hmac.compare_digest(cookie.encode(), one.encode()) for one in self._cookies)


class Access:
    """Lets requests and sockets through to a server, or refuses them; sets the headers of every answer.

    Args:
        app: The server.
        names: Names under which it may be called: against pages that let their own name point here.
        links: Addresses that let a browser in; None on loopback, where all are let in.
    """

    def __init__(self, app: ASGIApp, names: frozenset[str], links: Links | None = None) -> None:
        self._app, self._names, self._links = app, names, links

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request or a socket on."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        refusal = self._refusal(scope, headers)
        if scope["type"] == "websocket":
            if refusal is not None:
                await receive()
                await send({"type": "websocket.close", "code": NOT_ALLOWED})
                return
            await self._app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                kept = [pair for pair in message["headers"] if pair[0] != b"server"]
                said = {name for name, _ in kept}  # a route may have a policy of its own
                own = [(name.encode(), value.encode()) for name, value in HEADERS.items() if name.encode() not in said]
                message = {**message, "headers": [*kept, *own]}
            await send(message)

        await (self._app if refusal is None else refusal)(scope, receive, with_headers)

    def _refusal(self, scope: Scope, headers: Mapping[str, str]) -> Response | None:
        """Return the answer to what is not let in, or None."""
        host = headers.get("host", "")
        if host.rsplit(":", 1)[0] not in self._names:
            return PlainTextResponse("This name is not this server's. Call it by the address that it printed.", 421)
        if scope["type"] == "websocket" or scope["method"] not in ("GET", "HEAD"):
            # Behind TLS only pages served with TLS, else only pages served without.
            scheme = "https" if scope["scheme"] in ("https", "wss") else "http"
            if headers.get("origin") != f"{scheme}://{host}":
                return PlainTextResponse("Another page's request. Open the console's own page.", 403)
        if self._links is None or self._links.know(_own_cookie(headers.get("cookie", ""))):
            return None
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        if scope["type"] == "http" and scope["method"] == "GET" and (cookie := self._links.cookie_for(given)):
            answer = RedirectResponse(scope["path"], 303)
            answer.set_cookie(COOKIE, cookie, httponly=True, samesite="strict", secure=True)
            return answer
        return PlainTextResponse("No address of this server, or one that was used. Open the one printed last.", 401)


def _own_cookie(cookies: str) -> str:
    try:
        crumb = SimpleCookie(cookies).get(COOKIE)
    except Exception:  # a cookie of somebody else that is none
        return ""
    return "" if crumb is None else crumb.value
