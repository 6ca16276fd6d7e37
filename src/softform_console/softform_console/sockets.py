"""What pages send."""

from collections.abc import AsyncIterator

from starlette.websockets import WebSocket


async def messages(socket: WebSocket) -> AsyncIterator[str | bytes]:
    """Yield what a page sends, text or bytes as it comes, until it is gone: a stop in bytes is a stop."""
    while (message := await socket.receive())["type"] == "websocket.receive":
        text: str | None = message.get("text")
        yield message.get("bytes", b"") if text is None else text
