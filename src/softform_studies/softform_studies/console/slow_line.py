"""A slow line between pages and a server: all connections share one rate each way, and each packet is late."""

import asyncio
import socket
import threading
import time
from contextlib import suppress

_PACKET = 1448
_FULL = 65536


class SlowLine:
    """Forwards connections to a port of this computer while the `with` block lasts.

    Args:
        port: Port of the server.
        rate: bit/s each way.
        delay: s each way.
    """

    def __init__(self, port: int, rate: float = 1e6, delay: float = 0.02) -> None:
        self._target, self._rate, self._delay = port, rate, delay
        self._free = {"down": 0.0, "up": 0.0}
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="slow line", daemon=True)

    def __enter__(self) -> "SlowLine":
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(2.0)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.create_task(asyncio.start_server(self._forward, sock=self._listening, limit=4096))
        self._loop.run_forever()

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there = socket.socket()
        there.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
        there.setblocking(False)
        await self._loop.sock_connect(there, ("127.0.0.1", self._target))
        beyond, back = await asyncio.open_connection(sock=there, limit=4096)
        await asyncio.gather(self._pump(reader, back, "up"), self._pump(beyond, writer, "down"))

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, way: str) -> None:
        with suppress(OSError):
            while data := await reader.read(_PACKET):
                now = time.monotonic()
                self._free[way] = max(self._free[way], now) + 8.0 * len(data) / self._rate
                await asyncio.sleep(self._free[way] - now)
                self._loop.call_later(self._delay, writer.write, data)
                if writer.transport.get_write_buffer_size() > _FULL:
                    await writer.drain()
        writer.close()
