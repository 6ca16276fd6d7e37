"""The thread of the servo: on deadlines it follows the newest targets and hands the commands to the commander.

A new target is solved for at once, and its answer is sent as soon as it is found. Without one a command is sent a
period after the one before, so that slewing goes on and the driver sees that its commander lives. While another
program commands the robot, or commands are not allowed, the thread sleeps.
"""

import gc
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from softform_client.driver_watch import DriverWatch
from softform_core.errors import SoftformError
from softform_core.forward.forward_model import ForwardModel
from softform_core.forward.memory import Commands
from softform_core.inverse.servo import Servo, ServoCommand
from softform_core.inverse.servo import ServoState as Doing
from softform_core.inverse.servo_solve import ServoErrors
from softform_core.inverse.servo_target import ServoTarget
from softform_core.robots import Robot
from softform_ik.robot.commander import Commander
from softform_interfaces.msg import ServoState

_EARLY = 0.4
"""Part of a period by which a command is planned before its deadline: on busy cores a thread is woken late, and the
host of a virtual machine takes several milliseconds at a time."""

_SWITCH_SECONDS = 0.0005
"""Interval at which Python switches threads, s: the executor unpacks targets while the servo computes."""

_BARRED = (
    "A stream that merely goes on is not followed: pause it for 'stale_after' and begin anew, or activate the node."
)
_JOIN_SECONDS = 5.0
_UNKNOWN = ServoErrors(float("nan"), float("nan"))


@dataclass(frozen=True)
class ServoReport:
    """The servo at one moment.

    Attributes:
        state: OFF, TRACKING, HOLDING or YIELDED of `ServoState`.
        reason: Reason of the state, and what to do about it; empty while all is well.
        target_stamp: Stamp of the target that the command answers, ns since the epoch; 0 if there is none.
        latency: s from the arrival of that target to the first command that answered it; NaN if there is none.
        errors: Errors of the predicted surface to that target at the command.
        converged: Whether no further decrease is possible nearby.
        commands: Sent so far.
        deadlines_missed: Commands sent later than one period after the one before.
        iterations: Iterations of the solver so far.
    """

    state: int = ServoState.OFF
    reason: str = ""
    target_stamp: int = 0
    latency: float = float("nan")
    errors: ServoErrors = _UNKNOWN
    converged: bool = False
    commands: int = 0
    deadlines_missed: int = 0
    iterations: int = 0


class ServoLoop:
    """Runs a servo in a thread of its own, from `start` to `stop`.

    Args:
        robot: Robot whose actuators are commanded.
        servo: Follows targets.
        period: Longest time between two commands, s.
        model: Forward kinematics of the moment; asked once for each command.
        commander: Owner of the held command.
        driver: State of the driver.
        on_report: Called in this thread after each command and at each change of state.
    """

    def __init__(
        self,
        robot: Robot,
        servo: Servo,
        period: float,
        model: Callable[[], ForwardModel],
        commander: Commander,
        driver: DriverWatch,
        on_report: Callable[[ServoReport], None],
        on_cost: Callable[[float], object] = lambda cost: None,
    ) -> None:
        self._robot, self._servo, self._period, self._model = robot, servo, period, model
        self._commander, self._driver = commander, driver
        self._on_report, self._on_cost, self._cost = on_report, on_cost, 0.0
        self._news, self._ends = threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None
        self._sent_at = 0.0
        self._resumes = True
        self._answered: ServoTarget | None = None
        self._commands: Commands | None = None
        self._followed: ForwardModel | None = None
        self.report = ServoReport()

    @property
    def is_alive(self) -> bool:
        """Whether the thread runs."""
        return self._thread is not None and self._thread.is_alive()

    def start(self) -> None:
        """Begin to follow targets. The garbage collector passes over what is there now: it would stop every thread."""
        self._commander.on_change = self._news.set
        sys.setswitchinterval(_SWITCH_SECONDS)
        gc.collect()
        gc.freeze()
        self._thread = threading.Thread(target=self._run, name="servo", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread; harmless if there is none."""
        self._ends.set()
        self._news.set()
        if self._thread is not None:
            self._thread.join(_JOIN_SECONDS)

    def aim(self, target: ServoTarget) -> None:
        """Follow a target from now on; may be called from any thread."""
        self._servo.aim(target)
        self._news.set()

    def turn(self) -> None:
        """Follow the targets until a command answers a new one or is due, and send it; or wait until that may be."""
        self._news.clear()
        self._servo.drop(lambda target: not self._commander.admits(target.stamp))
        if not self._servo.is_aimed:
            self._give_way(self._without_target(), None)
            return
        try:
            self._driver.check_ready()
        except SoftformError as error:
            holds = self._commander.values is not None
            state = ServoState.HOLDING if holds else ServoState.OFF
            self._give_way(replace(self.report, state=state, reason=str(error)), self._period)
            return
        self._follow()

    def _run(self) -> None:
        while not self._ends.is_set():
            try:
                self.turn()
            except Exception as error:  # the thread must live on; the robot holds what it was commanded last
                self._servo.drop(lambda target: True)
                reason = f"The servo failed: {type(error).__name__}: {error}. Report this with the log."
                self._give_way(replace(self.report, state=ServoState.HOLDING, reason=reason), None)

    def _without_target(self) -> ServoReport:
        if self.report.commands and self._commander.is_moved_by_goal:
            reason = "An action moves the robot. Targets stamped after its end are followed again."
            return replace(self.report, state=ServoState.YIELDED, reason=reason)
        if (bar := self._commander.stream_bar) is not None:
            return replace(self.report, state=ServoState.OFF, reason=f"{bar} {_BARRED}".strip())
        reason = "Waiting for a target that is stamped after this." if self.report.commands else ""
        return replace(self.report, state=ServoState.OFF, reason=reason)

    def _give_way(self, report: ServoReport, seconds: float | None) -> None:
        """Command nothing, and wait for news, or for so many seconds."""
        self._servo.pause()
        if (report.state, report.reason) != (self.report.state, self.report.reason):
            self._tell(report)
        self._news.wait(seconds)

    def _follow(self) -> None:
        model = self._model()
        if model is not self._followed:  # a state of the memory of one model means nothing to another
            self._servo.pause()
        if not self._servo.is_running:
            start = self._commander.values
            start = self._driver.values if start is None else start
            if start is None:
                return  # lost just now; the next look at the driver says so
            try:
                self._commander.take_for_stream()
            except SoftformError as error:
                self._give_way(replace(self.report, state=ServoState.OFF, reason=str(error)), self._period)
                return
            self._commands, self._followed = self._driver.commands(model.memory, start), model
            self._servo.resume_from(self._commands.effective)
            self._sent_at, self._resumes = time.monotonic(), True
        assert self._commands is not None
        deadline = self._sent_at + (1.0 - _EARLY) * self._period
        begun = time.thread_time()
        has_answer = self._servo.refine(model.given(self._commands.state), deadline)
        self._cost += time.thread_time() - begun
        if not has_answer:
            remaining = deadline - time.monotonic()
            if remaining > 0.0 and self._news.wait(remaining):
                return
        self._on_cost(self._cost)
        self._cost = 0.0
        command = self._servo.command()
        moment = time.monotonic()
        if command.actuation is not None and command.answers is not None:
            seconds = self._period if self._resumes else moment - self._sent_at  # what creeps goes by the clock
            values = self._robot.actuators_of(self._commands.command(command.actuation, seconds))
            if not self._commander.hold_for_stream(values, command.answers.stamp):
                self._servo.pause()
                self._news.wait(self._period)
                return
            is_late = not self._resumes and moment - self._sent_at > self._period
            self._resumes = False
            self._tell(self._reported(command, command.answers, moment, is_late))
        elif command.reason and command.reason != self.report.reason:  # it never came to an answer
            state = ServoState.OFF if self._commander.values is None else ServoState.HOLDING
            self._tell(replace(self.report, state=state, reason=command.reason))
        self._sent_at = moment

    def _reported(self, command: ServoCommand, answers: ServoTarget, moment: float, is_late: bool) -> ServoReport:
        latency = self.report.latency
        if answers is not self._answered:
            self._answered, latency = answers, moment - answers.arrived
        return ServoReport(
            ServoState.TRACKING if command.state is Doing.TRACKING else ServoState.HOLDING,
            command.reason,
            answers.stamp,
            latency,
            command.errors,
            command.converged,
            self.report.commands + 1,
            self.report.deadlines_missed + is_late,
            self._servo.iterations,
        )

    def _tell(self, report: ServoReport) -> None:
        self.report = report
        self._on_report(report)
