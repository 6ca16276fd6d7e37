"""The console's server: page, stop, scene, control and uploads, in a thread of the node's process."""

import asyncio
import contextlib
import socket as sockets
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, Response
from starlette.routing import Mount, Route, WebSocketRoute
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp
from starlette.websockets import WebSocket, WebSocketDisconnect

from softform_console.access import Access, Links
from softform_console.control_channel import ControlChannel
from softform_console.protocol import Stopped, Uploaded
from softform_console.scene_store import Line, SceneStore, Waker
from softform_console.sockets import messages
from softform_console.stop_page import stop_answer, stop_form
from softform_console.stop_request import StopRequests
from softform_core.errors import SoftformError

MOST_BYTES = 64 * 2**20
"""Size of an uploaded file at most."""

_END_SECONDS = 3.0


class Routes:
    """The server's routes.

    Args:
        dist: Folder of the page.
        control: Serves /control.
        store: What is shown.
        stops: Carries out stops.
        upload: Takes robot, name, unit and bytes of a target's file, in a thread of its own.
        names: Names under which the server may be called.
        links: See `access.Access`.
        others: Routes beside these.
    """

    def __init__(
        self,
        dist: Path,
        control: ControlChannel,
        store: SceneStore,
        stops: StopRequests,
        upload: Callable[[int, str, str, bytes], Uploaded],
        names: frozenset[str],
        links: Links | None,
        others: Iterable[Route] = (),
    ) -> None:
        self._dist, self._control, self._store, self._stops, self._upload = dist, control, store, stops, upload
        self._waker, self.viewers, self._stop_sockets = Waker(), 0, set[asyncio.Queue[Stopped]]()
        self._loop: asyncio.AbstractEventLoop | None = None
        store.wake = self._wake_viewers
        routes = [
            Route("/", self._page),
            Route("/stop", self._stop_page, methods=["GET"]),
            Route("/stop", self._stop, methods=["POST"]),
            Route("/targets", self._target, methods=["POST"]),
            WebSocketRoute("/control", control.serve),
            WebSocketRoute("/scene", self._scene),
            WebSocketRoute("/stop", self._stop_socket),
            *others,
            *([Mount("/", StaticFiles(directory=dist))] if dist.is_dir() else []),
        ]
        self.app: ASGIApp = Access(Starlette(routes=routes, lifespan=self._life), names, links)

    def tell_stopped(self, result: Stopped) -> None:
        """Tell a stage of a stop to all pages, on both channels; from any thread."""
        self._control.tell(result)
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._tell_stop_sockets, result)

    def _tell_stop_sockets(self, result: Stopped) -> None:
        for queue in self._stop_sockets:
            queue.put_nowait(result)

    def _wake_viewers(self) -> None:
        if self.viewers:
            self._waker.wake()

    @contextlib.asynccontextmanager
    async def _life(self, app: Starlette) -> AsyncIterator[None]:
        self._loop = asyncio.get_running_loop()
        self._waker.begin()
        tasks = list(self._control.begin())
        yield
        for task in tasks:
            task.cancel()

    async def _page(self, request: Request) -> Response:
        if not (self._dist / "index.html").is_file():
            return HTMLResponse(stop_form("The page is not built: run npm ci and npm run build in web/."))
        return FileResponse(self._dist / "index.html", headers={"cache-control": "no-cache"})

    async def _stop_page(self, request: Request) -> Response:
        return HTMLResponse(stop_form())

    async def _stop(self, request: Request) -> Response:
        result = await run_in_threadpool(self._stops.wait, self._stops.ask())
        status = 200 if result.stage == "confirmed" else 503
        if "application/json" in request.headers.get("accept", ""):
            return Response(result.model_dump_json(), status, media_type="application/json")
        return HTMLResponse(stop_answer(result), status)

    async def _stop_socket(self, socket: WebSocket) -> None:
        await socket.accept()
        queue: asyncio.Queue[Stopped] = asyncio.Queue()
        self._stop_sockets.add(queue)

        async def answer() -> None:
            while True:
                await socket.send_text((await queue.get()).model_dump_json())

        answering = asyncio.create_task(answer())
        try:
            async for _ in messages(socket):
                self._stops.ask()
        except WebSocketDisconnect:
            pass
        finally:
            answering.cancel()
            self._stop_sockets.discard(queue)

    async def _scene(self, socket: WebSocket) -> None:
        await socket.accept()
        line, acknowledged = Line(), asyncio.Event()

        async def take_acknowledgements() -> None:
            with contextlib.suppress(WebSocketDisconnect):
                async for _ in messages(socket):
                    acknowledged.set()
            acknowledged.set()

        taking = asyncio.create_task(take_acknowledgements())
        self.viewers += 1
        try:
            while not taking.done():
                if (frame := line.next(self._store.entries())) is None:
                    waiting = asyncio.ensure_future(self._waker.wait())
                    await asyncio.wait({taking, waiting}, return_when=asyncio.FIRST_COMPLETED)
                    waiting.cancel()
                    continue
                acknowledged.clear()
                begun = time.monotonic()
                await socket.send_bytes(frame[1])
                await acknowledged.wait()
                line.note(time.monotonic() - begun)
        except (WebSocketDisconnect, RuntimeError):
            pass
        finally:
            self.viewers -= 1
            taking.cancel()

    async def _target(self, request: Request) -> Response:
        if int(request.headers.get("content-length", "0")) > MOST_BYTES:
            return JSONResponse({"message": f"The file is larger than {MOST_BYTES >> 20} MB."}, 413)
        content = bytearray()
        with contextlib.suppress(ClientDisconnect):
            async for part in request.stream():
                content += part
                if len(content) > MOST_BYTES:
                    return JSONResponse({"message": f"The file is larger than {MOST_BYTES >> 20} MB."}, 413)
        given = request.query_params
        robot, name, unit = given.get("robot", ""), given.get("name", ""), given.get("unit", "")
        try:
            told = await run_in_threadpool(self._upload, _index(robot), name, unit, bytes(content))
        except SoftformError as error:
            return JSONResponse({"message": str(error)}, 400)
        return Response(told.model_dump_json(), media_type="application/json")


class _QuietServer(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals to the node."""
        yield


class ServerThread:
    """Serves an application on a socket until `close`.

    Args:
        app: The application.
        listening: A bound socket.
        certificate: Files of certificate and key, or None without TLS.
    """

    def __init__(self, app: ASGIApp, listening: sockets.socket, certificate: tuple[Path, Path] | None = None) -> None:
        files = {} if certificate is None else {"ssl_certfile": certificate[0], "ssl_keyfile": certificate[1]}
        config = uvicorn.Config(
            app,
            loop="asyncio",
            http="h11",
            ws="websockets-sansio",
            ws_per_message_deflate=False,  # it takes a core
            ws_max_size=2**20,
            ws_ping_interval=5.0,
            ws_ping_timeout=10.0,
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=1,
            **files,  # type: ignore[arg-type]
        )
        self._socket, self._server = listening, _QuietServer(config)
        self._thread = threading.Thread(target=self._run, name="console", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.run(self._server.serve(sockets=[self._socket]))

    @property
    def is_alive(self) -> bool:
        """Whether it serves."""
        return self._thread.is_alive()

    def close(self) -> None:
        """End it."""
        self._server.should_exit = True
        self._thread.join(_END_SECONDS)
        self._socket.close()


def bound_socket(host: str, port: int, tries: int = 10) -> sockets.socket:
    """Return a socket on the first port that is free from `port` on, else on any; of port 0 on any.

    Raises:
        SoftformError: If the host is not this computer's.
    """
    family = sockets.AF_INET6 if ":" in host else sockets.AF_INET
    for number in [*([] if port == 0 else range(port, min(port + tries, 65536))), 0]:
        made = sockets.socket(family, sockets.SOCK_STREAM)
        made.setsockopt(sockets.SOL_SOCKET, sockets.SO_REUSEADDR, 1)
        try:
            made.bind((host, number))
            made.listen(64)
        except OSError as error:
            made.close()
            if number == 0:
                raise SoftformError(
                    f"Nothing can listen on {host}: {error.strerror}.", "Give an address of this computer as host."
                ) from error
            continue
        return made
    raise AssertionError("port 0 is taken, or the host is not")


def _index(given: str) -> int:
    """Return the robot's index that a page gives; -1, which there is not, for what is none."""
    return int(given) if given.isascii() and given.isdecimal() and len(given) < 5 else -1
