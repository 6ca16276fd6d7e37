"""The driver, two commanders, an operator and what lies in their queues, in virtual time: one run of a schedule."""

import contextlib
import functools
import heapq
import itertools
import random
import threading
from collections import Counter, defaultdict
from collections.abc import Callable
from concurrent.futures import Future
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from builtin_interfaces.msg import Time

from softform_actuation.assembly import served_by_devices
from softform_actuation.commands import CommandRejectedError
from softform_actuation.driver import Driver
from softform_actuation.latch import Latch
from softform_actuation.lease import Asked, Grant, LeaseError
from softform_actuation.states import DriverReport, DriverSettings
from softform_actuation.supervisor import Supervisor
from softform_client.driver_watch import AT_REST
from softform_client.held_command import HeldCommand
from softform_core.errors import SoftformError
from softform_core.robots import Robot, load_robot
from softform_ik.robot.commander import Commander
from softform_ik.robot.stop_request import StopRequest
from softform_interfaces.msg import Asked as AskedMessage
from softform_interfaces.msg import DriverState
from softform_interfaces.srv import Lease
from softform_ros.asked import age_of, require_recent
from softform_ros.command_lease import CommandLease
from softform_ros.goal_error import GoalCode, GoalError
from softform_system_tests.schedules.promises import HOLD_SECONDS, REST, Promises, value_of_goal
from softform_system_tests.schedules.schedule import COMMANDERS, Item, Schedule
from softform_system_tests.schedules.simulated_board import Chambers, SimulatedBoard
from softform_system_tests.schedules.virtual_time import Process, VirtualClock, World

SETTINGS = DriverSettings(loop_rate=5.0, hold_timeout=HOLD_SECONDS)
_REPEAT_SECONDS = 0.4
_STATE_SECONDS = 0.4
_WATCHED_SECONDS = 4.0
_LOOK_SECONDS = 0.2
_SOLVER_SECONDS = 0.3  # until a solver sees that its goal shall end
_RANKS = {"command": 0, "state": 0, "goal": 2}
_SLEPT_SECONDS = 1.7  # shorter ones pass as a busy machine


class Goal(NamedTuple):
    """A goal as a client sends it: its number, how long it is solved, s, and when and in which epoch it was asked."""

    number: int
    seconds: float
    asked: AskedMessage


@cache
def _robot() -> Robot:
    """The membrane, which goes where it is sent at once: its setpoint tells whose command it follows."""
    robot = load_robot("membrane")
    return robot.model_copy(update={"drive": robot.drive.model_copy(update={"slew_rate": 1e9})})


class SharedLatch(Latch):
    """A latch in memory, which the drivers of one run find one after the other."""

    def __init__(self) -> None:
        super().__init__()
        self._reason: str | None = None

    def read(self) -> str | None:
        """As `Latch.read`."""
        return self._reason

    def set(self, reason: str) -> None:
        """As `Latch.set`."""
        self._reason = reason

    def clear(self) -> None:
        """As `Latch.clear`."""
        self._reason = None


class Mailbox:
    """What has come for an executor: rclpy takes from topics first, then from services, then from actions."""

    def __init__(self) -> None:
        self.has_news = threading.Event()
        self._messages: list[tuple[int, int, str, Any]] = []
        self._count = itertools.count()

    def put(self, kind: str, content: Any) -> None:
        """Take a message."""
        heapq.heappush(self._messages, (_RANKS.get(kind, 1), next(self._count), kind, content))
        self.has_news.set()

    def take(self) -> tuple[str, Any] | None:
        """Return what is next, None if there is nothing."""
        if not self._messages:
            self.has_news.clear()
            return None
        return heapq.heappop(self._messages)[2:]


class Node:
    """A process with an executor: handles what comes, one after the other, and its timers."""

    def __init__(self, stack: "SimulatedStack", name: str) -> None:
        self.stack, self.process, self.mailbox = stack, Process(name), Mailbox()
        self.clock = VirtualClock(stack.world, self.process)
        self._timers: list[list[Any]] = []

    def every(self, seconds: float, work: Callable[[], None]) -> None:
        """Call again and again."""
        self._timers.append([self.clock.now() + seconds, seconds, work])

    def spin(self, mailbox: Mailbox, handle: Callable[[str, Any], None], timers: bool = True) -> None:
        """Handle for ever."""
        while True:
            now = self.clock.now()
            for timer in self._timers if timers else ():
                if timer[0] <= now:
                    timer[0] = now + timer[1]
                    timer[2]()
            if (message := mailbox.take()) is not None:
                handle(*message)
                self.clock.sleep(0.0)
                continue
            due = min((timer[0] for timer in self._timers), default=now + 60.0) if timers else now + 60.0
            self.clock.wait(mailbox.has_news, due - now)


class DriverNode(Node):
    """What the node `actuation` does with what comes, around the real driver."""

    def __init__(self, stack: "SimulatedStack") -> None:
        super().__init__(stack, "driver")
        self.urgent = Mailbox()
        self.board = SimulatedBoard(stack.world, self.process, stack.chambers, served_by_devices(_robot())[0])
        self.driver = Driver(
            [(self.board, served_by_devices(_robot())[0])], _robot(), SETTINGS, self._on_report, lambda readings: None,
            stack.latch,
        )  # fmt: skip
        self._report: DriverReport | None = None
        self._watch(self.driver._supervisor)

    def _watch(self, supervisor: Supervisor) -> None:
        """Let the promises hear of each fault, reset and lease at the moment at which it counts."""
        promises, fault, reset, acquire = self.stack.promises, supervisor.fault, supervisor.reset, supervisor.acquire

        def noted_fault(reason: str) -> None:
            promises.note_fault(reason)
            fault(reason)

        def noted_reset(asked: Asked, interrupted: Callable[[], bool]) -> str:
            done = reset(asked, interrupted)
            if done.startswith("Cleared"):
                promises.note_reset(self.stack.seen[asked.epoch])
            return done

        def noted_lease(source: str, client: int, asked: Asked, fingerprint: str) -> Grant:
            grant = acquire(source, client, asked, fingerprint)
            promises.note_lease(source)
            return grant

        supervisor.fault, supervisor.reset, supervisor.acquire = noted_fault, noted_reset, noted_lease  # type: ignore

    def start(self) -> None:
        """Configure, activate and serve."""
        self.stack.world.start(self.process, self._main)

    def _main(self) -> None:
        self.driver.connect()
        self.stack.world.start(self.process, lambda: self.spin(self.urgent, self._handle, timers=False))
        with contextlib.suppress(SoftformError):
            self.driver.activate()
        self.every(_STATE_SECONDS, self._repeat)
        self.spin(self.mailbox, self._handle)

    def _on_report(self, report: DriverReport) -> None:
        self._report = report
        self.stack.promises.note_report(report)
        self._publish(report)

    def _repeat(self) -> None:
        if self._report is not None:
            self._publish(self._report)

    def _publish(self, report: DriverReport) -> None:
        message = DriverState(state=int(report.state), holder=report.holder, lease=report.lease, epoch=report.epoch)
        self.stack.publish_state((message, self.stack.world.now))

    def _handle(self, kind: str, content: Any) -> None:
        match kind:
            case "command":
                message, sent = content
                grant, age = Grant(message.lease, message.key), self.stack.world.now - sent
                with contextlib.suppress(CommandRejectedError):
                    self.driver.command(
                        message.source, grant, message.fingerprint, message.name, message.unit, message.value, age
                    )
            case "lease":
                self._answer_lease(*content)
            case "stop":
                self._stop()
            case "reset":
                self.stack.world.start(self.process, lambda: self._reset(content))
            case "deactivate" | "activate":
                if kind == "deactivate":
                    self.stack.promises.note_end(kind)
                with contextlib.suppress(SoftformError):
                    getattr(self.driver, kind)()

    def _answer_lease(self, request: Lease.Request, reply: Callable[[Any], None]) -> None:
        response = Lease.Response()
        try:
            if request.request == Lease.Request.ACQUIRE:
                asked = Asked(self._age_of(request.asked.stamp), request.asked.epoch)
                response.lease, response.key = self.driver.acquire(
                    request.source, request.client, asked, request.fingerprint
                )
            else:
                response.epoch = self.driver.release(request.source, Grant(request.lease, request.key))
            response.success = True
        except LeaseError as error:
            response.error_code, response.message = int(error.code), str(error)
        except SoftformError as error:
            response.message = str(error)
        self.stack.send("answer", lambda: reply(response))

    def _age_of(self, stamp: Any) -> float:
        return age_of(stamp, self.stack.wall())

    def _stop(self) -> None:
        self.stack.promises.note_stop()
        with contextlib.suppress(SoftformError):
            is_made_safe = self.driver.begin_stop()
            self.stack.world.start(self.process, lambda: self._end_stop(is_made_safe))

    def _end_stop(self, is_made_safe: bool) -> None:
        with contextlib.suppress(SoftformError):
            self.driver.end_stop(is_made_safe)
            self.stack.promises.note_stop_answered()

    def _reset(self, asked: Any) -> None:
        with contextlib.suppress(SoftformError):
            self.driver.reset(Asked(self._age_of(asked.stamp), asked.epoch))


class _Client:
    """Stands for an rclpy client of the lease."""

    def __init__(self, node: "CommanderNode") -> None:
        self._node = node

    def wait_for_service(self, seconds: float) -> bool:
        return True

    def call_async(self, request: Lease.Request) -> Future[Any]:
        answered, stack = Future[Any](), self._node.stack
        reply = lambda response: self._node.mailbox.put("answer", (answered, response))  # noqa: E731
        stack.send("lease", lambda: stack.driver.mailbox.put("lease", (request, reply)))
        return answered


class _Publisher:
    """Stands for an rclpy publisher of commands."""

    def __init__(self, stack: "SimulatedStack") -> None:
        self._stack = stack

    def publish(self, message: Any) -> None:
        sent = self._stack.world.now
        deliver = lambda: self._stack.driver.mailbox.put("command", (message, sent))  # noqa: E731
        self._stack.send("command", deliver, f"commands of {message.source}")


class _RosNode:
    """As much of an rclpy node as `CommandLease` asks for."""

    def __init__(self, node: "CommanderNode") -> None:
        self._node = node

    def get_name(self) -> str:
        return self._node.process.name

    def get_clock(self) -> "_RosNode":
        return self

    def now(self) -> "_RosNode":
        return self

    def to_msg(self) -> Any:
        return self._node.stack.stamp()

    def create_publisher(self, *what: Any) -> _Publisher:
        return _Publisher(self._node.stack)

    def create_client(self, *what: Any) -> _Client:
        return _Client(self._node)


class CommanderNode(Node):
    """What the node `inverse_kinematics` does with goals, around the real commander; solving takes what it is told."""

    def __init__(self, stack: "SimulatedStack", name: str) -> None:
        super().__init__(stack, name)
        robot = _robot()
        self.lease = CommandLease(_RosNode(self), robot, self.clock.wait)  # type: ignore[arg-type]
        self.held = HeldCommand(self.lease.send)
        self.commander = Commander(
            self.held,
            self.lease,
            wall_clock=lambda: int(stack.wall() * 1e9),
            clock=self.clock.now,
            since_boot=self.clock.since_boot,
        )
        self._goals = Mailbox()
        self._stop = StopRequest()
        self._state: int | None = None

    def start(self) -> None:
        """Serve."""
        self.every(_REPEAT_SECONDS, self._hold_on)
        self.stack.world.start(self.process, lambda: self.spin(self.mailbox, self._handle))
        self.stack.world.start(self.process, lambda: self.spin(self._goals, self._carry_out, timers=False))

    @property
    def status(self) -> tuple[bool, ...]:
        """Whether it is dead, frozen, holds values, holds the lease, and has a goal."""
        is_frozen = self.process.frozen_until > self.stack.world.now
        holds = self.held.values is not None
        return self.process.is_dead, is_frozen, holds, self.lease.is_held, self.commander.is_moved_by_goal

    def _hold_on(self) -> None:
        self.commander.note_alive()
        self.held.repeat()

    @property
    def _follows(self) -> bool:
        return self._state == DriverState.RUNNING or self._state in AT_REST

    def _handle(self, kind: str, content: Any) -> None:
        match kind:
            case "answer":
                answered, response = content
                if not answered.done():  # it may have come before
                    answered.set_result(response)
            case "state":
                self._note(content[0])
            case "release":
                self.commander.let_go()
                self.stack.promises.note_release(self.process.name, content)
            case "goal":
                with contextlib.suppress(SoftformError):
                    self._take(content)

    def _take(self, goal: Goal) -> None:
        asked = goal.asked
        require_recent(age_of(asked.stamp, self.stack.wall()), asked.epoch, "The goal")
        if not self._follows or self.commander.is_outdated(asked.epoch, asked.stamp.sec * 10**9 + asked.stamp.nanosec):
            return
        self.stack.promises.note_taken(goal.number)
        self._stop.request(GoalCode.PREEMPTED)
        self._stop = StopRequest()
        self.commander.begin(self._stop, asked.epoch)
        self._goals.put("goal", (goal, self._stop))

    def _note(self, message: DriverState) -> None:
        followed = self._follows
        dead = self.lease.note(message)
        stops = self._state == DriverState.RUNNING and message.state in AT_REST
        fails = self._state != message.state and message.state in (DriverState.FAULT, DriverState.OFFLINE)
        self._state = message.state
        if dead or stops or fails or (not followed and self._follows):
            self.commander.release(message.reason)

    def _carry_out(self, kind: str, content: tuple[Goal, StopRequest]) -> None:
        goal, stop = content
        ready = self.clock.now() + goal.seconds
        while (remaining := ready - self.clock.now()) > 0.0 and not stop():
            self.clock.sleep(min(remaining, _SOLVER_SECONDS))
        values = np.full(len(_robot().actuators), value_of_goal(goal.number))
        with contextlib.suppress(GoalError):
            if self.commander.hold(values, stop, lambda: self._follows and not stop()):
                self.clock.sleep(0.5)
        self.commander.end(stop)


class SimulatedStack:
    """One run of a schedule.

    Attributes:
        promises: What was promised, and what of it was broken.
        states: In which states driver, commanders and robot were seen.
        seen: Moment of the driver's state by which an operator asked for a reset, by its epoch.
    """

    def __init__(self, schedule: Schedule) -> None:
        self._schedule = schedule
        self._delays = random.Random(schedule.seed)
        self._numbers = itertools.count(1)
        self._counts: Counter[str] = Counter()
        self._delivered: defaultdict[str, float] = defaultdict(float)
        self._of_messages = {(i.who, i.number): i for i in schedule.items if i.kind in ("drop", "delay", "duplicate")}
        self._at_waits = {(i.who, i.number): i for i in schedule.items if i.kind.endswith("at wait")}
        self.world = World(self._at_wait)
        self.chambers = Chambers(self.world, len(_robot().actuators))
        self.latch = SharedLatch()
        self.promises = Promises(self.world, self.chambers)
        self.chambers.on_targets = self.promises.note_targets
        self.driver = DriverNode(self)
        self.commanders = {name: CommanderNode(self, name) for name in COMMANDERS}
        self.states: set[tuple[Any, ...]] = set()
        self.seen: dict[int, float] = {}  # of which moment the state was that told an operator of an epoch
        self._seen: tuple[DriverState, float] = (DriverState(state=DriverState.OFFLINE), 0.0)

    def run(self) -> list[str]:
        """Run it; returns what was broken, in words."""
        began = self.world.now
        self.driver.start()
        for node in self.commanders.values():
            node.start()
        for item in self._schedule.items:
            if item.number == 0 or item.kind == "goal":
                self.world.call_at(began + item.moment, lambda item=item: self._do(item))  # type: ignore[misc]
        self._look()
        last = max((item.moment for item in self._schedule.items), default=0.0)
        self.world.run(began + last + _WATCHED_SECONDS)
        for failure in self.world.failures:
            self.promises.broken.append(f"a thread ended: {failure!r}")
        return self.promises.broken

    def wall(self) -> float:
        """The time of day, s since the epoch."""
        return self.world.now + self.world.slept

    def stamp(self) -> Time:
        """The time of day as a stamp."""
        seconds, part = divmod(self.wall(), 1.0)
        return Time(sec=int(seconds), nanosec=int(part * 1e9))

    def _asked(self) -> AskedMessage:
        return AskedMessage(stamp=self.stamp(), epoch=self._seen[0].epoch)

    def send(self, kind: str, deliver: Callable[[], None], topic: str = "") -> None:
        """Deliver after a moment, unless the schedule has it otherwise; what comes on one topic keeps its order."""
        self._counts[kind] += 1
        fault = self._of_messages.get((kind, self._counts[kind]))
        delay = self._delays.uniform(0.0005, 0.005)
        if fault is not None and fault.kind == "drop":
            return
        if fault is not None and fault.kind == "delay":
            delay += fault.seconds
        if fault is not None and fault.kind == "duplicate":
            self.world.call_at(self.world.now + delay + fault.seconds, deliver)
        moment = self.world.now + delay
        if topic and fault is None:
            moment = self._delivered[topic] = max(moment, self._delivered[topic])
        self.world.call_at(moment, deliver)

    def publish_state(self, content: tuple[DriverState, float]) -> None:
        """Send a `driver_state` to all who listen."""
        for node in self.commanders.values():
            put = functools.partial(node.mailbox.put, "state", content)
            self.send("state", put, f"state of {node.process.name}")
        self.send("state", lambda: self._see(content), "state of the operator")

    def _see(self, content: tuple[DriverState, float]) -> None:
        if content[1] >= self._seen[1]:
            self._seen = content

    def _do(self, item: Item) -> None:
        match item.kind:
            case "goal":
                goal = Goal(next(self._numbers), item.seconds, self._asked())
                self.promises.note_goal(goal.number, item.who)
                node = self.commanders[item.who]
                self.send("goal", lambda: node.mailbox.put("goal", goal))
            case "stop":
                self.send("stop", lambda: self.driver.urgent.put("stop", None))
            case "reset":
                if self._seen[0].state == DriverState.FAULT:
                    asked = self._asked()
                    self.seen[asked.epoch] = self._seen[1]
                    self.send("reset", lambda: self.driver.mailbox.put("reset", asked))
            case "let go":
                self.send(
                    "release", functools.partial(self.commanders[item.who].mailbox.put, "release", self.world.now)
                )
            case "deactivate" | "activate":
                self.driver.mailbox.put(item.kind, None)
            case "restart":
                self._kill(self.driver.process)
                self.driver = DriverNode(self)
                self.promises.note_start()
                self.driver.start()
            case "freeze":
                self._freeze(self._process(item.who), item.seconds)
            case "sleep":
                self.world.slept += item.seconds
                if item.seconds > _SLEPT_SECONDS:
                    self.promises.note_sleep()
            case "stick":
                self.chambers.stuck = True

    def _process(self, name: str) -> Process:
        return self.driver.process if name == "driver" else self.commanders[name].process

    def _freeze(self, process: Process, seconds: float) -> None:
        process.frozen_until = max(process.frozen_until, self.world.now + seconds)
        if process is self.driver.process:
            self.promises.note_frozen(process.frozen_until)
        else:
            self.promises.note_standstill(process.name, process.frozen_until)

    def _kill(self, process: Process) -> None:
        if not process.is_dead:
            process.is_dead = True
            if process is self.driver.process:
                self.promises.note_death()
            for call in process.on_death:
                call()

    def _at_wait(self, process: Process) -> None:
        item = self._at_waits.get((process.name, process.waits))
        if item is None:
            return
        if item.kind == "freeze at wait":
            self._freeze(process, item.seconds)
        else:
            self._kill(process)

    def _look(self) -> None:
        self.promises.look()
        supervisor, highest = self.driver.driver._supervisor, self.chambers.highest()
        self.states.add(
            (
                supervisor.state.value,
                supervisor.is_active,
                supervisor.commands.holder[0],
                self.driver.process.is_dead,
                self.driver.process.frozen_until > self.world.now,
                min(len(supervisor.faults), 3),
                0 if highest < REST else 1 if self.chambers.runs else 2,
                *(node.status for node in self.commanders.values()),
            )
        )
        self.world.call_at(self.world.now + _LOOK_SECONDS, self._look)
