"""The newest of everything that is shown, and who waits for it."""

import asyncio
import threading
from collections.abc import Callable
from typing import NamedTuple

from softform_console.scene_frames import Kind, Level, SceneItem

REST, FORESEEN = 1, 2
"""Variants of the key of a mesh: the shape at rest, which a page has for each topology, and one that was asked for."""


PREVIEWS = 1
"""Variant of the scene's key of a target that is previewed."""


class Key(NamedTuple):
    """What a newer item takes the place of: kind, robot, and a variant (`REST`, previews)."""

    kind: Kind
    robot: int
    variant: int = 0

    @property
    def is_rest(self) -> bool:
        """Whether it is the shape at rest."""
        return self.kind == Kind.MESH and self.variant == REST


class Entry(NamedTuple):
    """An item and how many were put before it."""

    item: SceneItem
    number: int


class SceneStore:
    """Items by key, written by the node's thread, read by the server's.

    Args:
        wake: Called in the writer's thread after each change; wakes the server.
    """

    def __init__(self, wake: Callable[[], None] = lambda: None) -> None:
        self._lock, self._entries, self._count, self.wake = threading.Lock(), dict[Key, Entry](), 0, wake

    def put(self, item: SceneItem, variant: int = 0) -> None:
        """Show an item in place of the one before it."""
        kind = item.gone if item.kind == Kind.GONE and item.gone is not None else item.kind
        with self._lock:
            self._count += 1
            self._entries[Key(kind, item.robot, variant)] = Entry(item, self._count)
        self.wake()

    def entries(self) -> dict[Key, Entry]:
        """Return all that is shown."""
        with self._lock:
            return dict(self._entries)


class Line:
    """What one page was sent, and how fast its line is.

    The level falls when a frame is acknowledged late, and rises after several that were acknowledged at once.
    """

    LATE, EARLY, EARLY_ONES = 0.25, 0.06, 5

    def __init__(self) -> None:
        self.level, self._early, self._seq = Level.SHORT, 0, 0
        self._sent: dict[Key, tuple[int, int]] = {}
        self._sent_at: dict[Key, int] = {}
        self._topologies: set[tuple[int, int]] = set()

    def next(self, entries: dict[Key, Entry]) -> tuple[int, bytes] | None:
        """Return number and bytes of the frame to send next, or None if the page has everything."""
        waiting = [key for key, entry in entries.items() if self._sent.get(key) != self._told_by(key, entry)]
        # The shape at rest before those that are compared with it, and then each in its turn.
        for key in sorted(
            waiting, key=lambda one: ((one.kind, one.variant) != (Kind.MESH, REST), self._sent_at.get(one, -1))
        ):
            entry = entries[key]
            topology = entry.item.topology_at(self.level)
            self._seq += 1
            if topology is not None and (key.robot, topology.id) not in self._topologies:
                self._topologies.add((key.robot, topology.id))
                told = SceneItem(Kind.TOPOLOGY, key.robot, entry.item.stamp, topology=topology)
                return self._seq, told.encoded(Level.FLOAT, self._seq)
            self._sent[key], self._sent_at[key] = self._told_by(key, entry), self._seq
            return self._seq, entry.item.encoded(self.level, self._seq)
        return None

    def _told_by(self, key: Key, entry: Entry) -> tuple[int, int]:
        """Return what a page has got when it was sent an entry now; the shape at rest is told for each topology."""
        topology = entry.item.topology_at(self.level) if key.is_rest else None
        return entry.number, 0 if topology is None else topology.id

    def note(self, seconds: float) -> None:
        """Take the time from a frame's sending to its acknowledgement, s."""
        self._early = self._early + 1 if seconds < self.EARLY else 0
        if seconds > self.LATE and self.level < Level.COARSE:
            self.level = Level(self.level + 1)
        elif self._early >= self.EARLY_ONES and self.level > Level.FLOAT:
            self.level, self._early = Level(self.level - 1), 0


class Waker:
    """Wakes what waits in the server's loop from another thread."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._event = asyncio.Event()

    def begin(self) -> None:
        """Wake what waits in the loop that runs now."""
        self._loop, self._event = asyncio.get_running_loop(), asyncio.Event()

    def wake(self) -> None:
        """Wake it; from any thread."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        event, self._event = self._event, asyncio.Event()
        event.set()

    async def wait(self) -> None:
        """Wait until it is woken next."""
        await self._event.wait()
