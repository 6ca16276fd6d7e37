"""What pages say and are told on /control."""

import asyncio
import logging
import secrets
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from pydantic import ValidationError
from starlette.websockets import WebSocket, WebSocketDisconnect

from softform_console import protocol
from softform_console.operator_role import OperatorRole
from softform_console.scene_store import Waker
from softform_console.sockets import messages
from softform_console.told_states import ToldStates
from softform_core.errors import SoftformError

STATE_SECONDS = 0.1
_MOST_WAITING = 200
"""Messages that wait for a page at most; one that takes so few is left without."""

_KEPT = (
    protocol.ProgramRead,
    protocol.ProgramState,
    protocol.Motion,
    protocol.MotionState,
    protocol.ObjectPreviewed,
    protocol.Shaping,
)
"""What a page that comes later is told, too: the newest of each kind and robot."""

_FOR_ANYBODY = (protocol.Stop, protocol.Preview)


class Desk(Protocol):
    """What the pages command; its methods return at once, and are called in the server's thread."""

    def hello(self) -> list[protocol.RobotInfo]:
        """Return the robots."""

    def states(self) -> list[protocol.RobotState]:
        """Return the state of each robot now."""

    def handle(self, message: protocol.ToServer) -> None:
        """Do what a page asks. Raises SoftformError with the reason if it cannot be."""

    def page_lost(self) -> None:
        """End what the operator's page moved: it is gone."""


class Page:
    """One page that is connected."""

    def __init__(self) -> None:
        self.name = secrets.token_hex(8)
        self.outbox: asyncio.Queue[str] = asyncio.Queue(_MOST_WAITING)

    def tell(self, text: str) -> None:
        """Send soon; nothing is sent to who takes nothing."""
        if not self.outbox.full():
            self.outbox.put_nowait(text)


class ControlChannel:
    """Serves /control.

    Args:
        desk: What is commanded.
        role: Who the operator is.
        now: Time of day, s since the epoch.
        version: Of Softform.
        told: The states that pages were told lately.
    """

    def __init__(
        self, desk: Desk, role: OperatorRole, now: Callable[[], float], version: str, told: ToldStates | None = None
    ) -> None:
        self._told = told or ToldStates()
        self._desk, self._role, self._now, self._version = desk, role, now, version
        self._pages: set[Page] = set()
        self._waiting: list[protocol.FromServer] = []
        self._kept: dict[tuple[type, int], protocol.FromServer] = {}
        self._waker = Waker()

    @property
    def pages(self) -> int:
        """Number of pages that are connected."""
        return len(self._pages)

    def begin(self) -> Iterable[asyncio.Task[None]]:
        """Begin to tell; called in the server's loop."""
        self._waker.begin()
        yield asyncio.create_task(self._tell_state())
        yield asyncio.create_task(self._tell_news())

    def tell(self, message: protocol.FromServer) -> None:
        """Send a message to all pages; from any thread."""
        self._waiting.append(message)
        self._waker.wake()

    async def serve(self, socket: WebSocket) -> None:
        """Serve one page until it is gone."""
        await socket.accept()
        page = Page()
        hello = protocol.Hello(
            version=protocol.VERSION,
            softform=self._version,
            beat=protocol.BEAT_SECONDS,
            dead_man=protocol.DEAD_MAN_SECONDS,
            operator=self._role.seen_by(page.name),
            robots=self._desk.hello(),
        )
        page.tell(hello.model_dump_json())
        for message in self._kept.values():
            page.tell(message.model_dump_json())
        self._pages.add(page)
        sending = asyncio.create_task(self._send(socket, page))
        try:
            async for text in messages(socket):
                self._take(page, text)
        except WebSocketDisconnect:
            pass
        finally:
            sending.cancel()
            self._pages.discard(page)
            if self._role.leave(page.name):
                await asyncio.to_thread(self._desk.page_lost)

    async def _send(self, socket: WebSocket, page: Page) -> None:
        while True:
            text = await page.outbox.get()
            try:
                await socket.send_text(text)
            except (WebSocketDisconnect, RuntimeError):
                return

    def _take(self, page: Page, text: str | bytes) -> None:
        try:
            message = protocol.to_server.validate_json(text)
        except ValidationError as error:
            first = error.errors(include_url=False, include_context=False, include_input=False)[0]
            where = ".".join(str(part) for part in first["loc"])
            self._refuse(page, "", f"The message was refused: {where}: {first['msg']}.")
            return
        if isinstance(message, protocol.Beat):
            self._role.beat(page.name)
            page.tell(protocol.Pulse(t=message.t).model_dump_json())
            return
        try:
            if isinstance(message, protocol.Operate):
                self._operate(page, message.take)
            elif isinstance(message, _FOR_ANYBODY):
                self._desk.handle(message)
            elif not self._role.is_operator(page.name):
                raise SoftformError("This page watches.", "Take over first, where nobody else is the operator.")
            else:
                self._role.beat(page.name)
                if (stamp := getattr(message, "stamp", None)) is not None:
                    self._told.require_recent(stamp)
                self._desk.handle(message)
        except SoftformError as error:
            self._refuse(page, message.type, str(error))
        except Exception as error:  # nothing that a page says may end the server
            logging.getLogger(__name__).exception("a message could not be carried out")
            self._refuse(page, message.type, f"The console failed at this: {error}. See its log.")

    def _operate(self, page: Page, take: bool) -> None:
        if not take:
            if self._role.leave(page.name):
                asyncio.get_running_loop().run_in_executor(None, self._desk.page_lost)
        elif not self._role.take(page.name):
            raise SoftformError("Another page is the operator.", "Ask its user to give the role up; stop works anyway.")

    def _refuse(self, page: Page, about: str, text: str) -> None:
        page.tell(protocol.Notice(level="error", about=about, text=text).model_dump_json())

    async def _tell_state(self) -> None:
        while True:
            await asyncio.sleep(STATE_SECONDS)
            if not self._pages:
                continue
            try:
                states = self._desk.states()
            except Exception:  # a message of another version, say; the next may be right
                logging.getLogger(__name__).exception("the state could not be told")
                await asyncio.sleep(1.0)
                continue
            texts: dict[protocol.Operator, str] = {}
            stamp = self._now()
            self._told.note(stamp)
            for page in tuple(self._pages):
                seen = self._role.seen_by(page.name)
                if seen not in texts:
                    texts[seen] = self._state_text(stamp, states, seen)
                page.tell(texts[seen])

    def _state_text(self, stamp: float, states: list[Any], seen: protocol.Operator) -> str:
        state = protocol.State(stamp=stamp, operator=seen, clients=len(self._pages), robots=states)
        return state.model_dump_json()

    async def _tell_news(self) -> None:
        while True:
            waiting, self._waiting = self._waiting, []
            for message in waiting:
                if isinstance(message, _KEPT):
                    key = type(message), message.robot
                    self._kept.pop(key, None)  # the order is that in which they were said
                    self._kept[key] = message
                text = message.model_dump_json()
                for page in tuple(self._pages):
                    page.tell(text)
            if not self._waiting:
                await self._waker.wait()
