"""Virtual time: the threads of several simulated processes take turns, in an order that a schedule alone decides.

One thread runs at a time. It gives its turn away where it waits, and nowhere else; time passes while all wait. So a
schedule that has failed fails again, and ten seconds of a stack take as long as what it computes. At each wait a
process may be frozen or killed, as the schedule says.
"""

import heapq
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from softform_actuation.clock import Clock


class Killed(BaseException):
    """Ends the threads of a process that was killed; no handler of errors stops it."""


@dataclass
class Process:
    """A simulated process.

    Attributes:
        name: Its name in a schedule.
        waits: How many times its threads have begun to wait.
        frozen_until: It runs nothing before this moment, s.
        is_dead: Whether it was killed, or has ended.
        on_death: Called when it is killed, as the system closes what it had open.
    """

    name: str
    waits: int = 0
    frozen_until: float = 0.0
    is_dead: bool = False
    on_death: list[Callable[[], None]] = field(default_factory=list)


class Task:
    """A thread of a process; it runs while it has the turn."""

    def __init__(self, world: "World", process: Process, work: Callable[[], object]) -> None:
        self.process, self.has_ended = process, False
        self.turn = threading.Lock()
        self.turn.acquire()
        self.event: threading.Event | None = None
        self.number = 0
        self._world, self._work = world, work
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        self.turn.acquire()
        try:
            if not self.process.is_dead:
                self._work()
        except Killed:
            pass
        except BaseException as error:
            self._world.failures.append(error)
        finally:
            self.has_ended = True
            self._world.pass_on(self)

    def join(self) -> None:
        """Wait in virtual time until it has ended, as `threading.Thread.join`."""
        while not self.has_ended:
            self._world.sleep(0.001)


class World:
    """The time, and whose turn it is.

    Args:
        at_wait: Called with a process at each of its waits: the place of faults.

    Attributes:
        now: Virtual time, s.
        slept: How long the computer has slept so far, s.
        failures: Exceptions that ended a thread.
    """

    def __init__(self, at_wait: Callable[[Process], None] = lambda process: None) -> None:
        self.now, self.slept, self.failures = 1000.0, 0.0, list[BaseException]()
        self._at_wait = at_wait
        self._queue: list[tuple[float, int, Task | Callable[[], None]]] = []
        self._waiting: list[Task] = []
        self._tasks: list[Task] = []
        self._count = 0
        self._main = threading.Lock()
        self._main.acquire()
        self._end = 0.0
        self._current: Task | None = None
        self._is_over = False

    def start(self, process: Process, work: Callable[[], object]) -> Task:
        """Start a thread of a process; it runs when others wait."""
        task = Task(self, process, work)
        self._tasks.append(task)
        self._put(self.now, task)
        return task

    def call_at(self, moment: float, work: Callable[[], None]) -> None:
        """Call once at a moment, s; it must not wait."""
        self._put(max(moment, self.now), work)

    def sleep(self, seconds: float) -> None:
        """Let the thread that has the turn wait."""
        self._wait(None, seconds)

    def wait(self, event: threading.Event, seconds: float) -> bool:
        """Let the thread that has the turn wait for an event; returns whether it is set."""
        if not event.is_set():
            self._wait(event, seconds)
        return event.is_set()

    def run(self, end: float) -> None:
        """Let all that was started run until a moment, s; then end it."""
        self._end = end
        self._hand_over(None)
        self._main.acquire()
        self._is_over = True
        for task in self._tasks:
            task.process.is_dead = True
        for task in self._tasks:
            while not task.has_ended:
                task.turn.release()
                self._main.acquire()

    def pass_on(self, task: Task) -> None:
        """Give the turn of a thread that has ended away."""
        if self._is_over:
            self._main.release()
        else:
            self._hand_over(None)

    def _put(self, moment: float, entry: Task | Callable[[], None]) -> None:
        self._count += 1
        if isinstance(entry, Task):
            entry.number = self._count
        heapq.heappush(self._queue, (moment, self._count, entry))

    def _wait(self, event: threading.Event | None, seconds: float) -> None:
        task = self._current
        assert task is not None, "only a thread of a process can wait"
        if task.process.is_dead:
            raise Killed
        task.process.waits += 1
        self._at_wait(task.process)
        task.event = event
        if event is not None:
            self._waiting.append(task)
        self._put(self.now + max(seconds, 0.0), task)
        self._hand_over(task)
        if task.process.is_dead:
            raise Killed

    def _hand_over(self, task: Task | None) -> None:
        """Give the turn to whoever is due next, and return once this thread has it again, if it is to have it."""
        due = self._next()
        if due is task and task is not None:
            return
        if due is None:
            self._main.release()
        else:
            due.turn.release()
        if task is not None:
            task.turn.acquire()
            self._current = task
            if self._is_over:
                raise Killed

    def _next(self) -> Task | None:
        while True:
            for task in self._waiting:
                assert task.event is not None
                if task.event.is_set() and not task.process.is_dead and task.process.frozen_until <= self.now:
                    return self._take(task)
            if not self._queue or self._queue[0][0] > self._end:
                self._current = None
                return None
            moment, number, entry = heapq.heappop(self._queue)
            if not isinstance(entry, Task):
                self.now = max(self.now, moment)
                entry()
            elif entry.number == number and not entry.has_ended and not entry.process.is_dead:
                if entry.process.frozen_until > moment:
                    self._put(entry.process.frozen_until, entry)
                    continue
                self.now = max(self.now, moment)
                return self._take(entry)

    def _take(self, task: Task) -> Task:
        if task.event is not None:
            self._waiting.remove(task)
            task.event = None
        task.number = 0
        self._current = task
        return task


class VirtualClock(Clock):
    """The clock of a simulated process."""

    def __init__(self, world: World, process: Process) -> None:
        self._world, self._process = world, process

    def now(self) -> float:
        """As `Clock.now`."""
        return self._world.now

    def since_boot(self) -> float:
        """As `Clock.since_boot`."""
        return self._world.now + self._world.slept

    def sleep(self, seconds: float) -> None:
        """As `Clock.sleep`."""
        self._world.sleep(seconds)

    def wait(self, event: threading.Event, seconds: float) -> bool:
        """As `Clock.wait`."""
        return self._world.wait(event, seconds)

    def start(self, work: Callable[[], object], name: str) -> Task:  # type: ignore[override]
        """As `Clock.start`."""
        return self._world.start(self._process, work)
