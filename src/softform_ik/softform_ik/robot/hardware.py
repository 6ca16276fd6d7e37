"""The robot as a goal sees it: sent to pressures, waited for, looked at."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from softform_client.capture_watch import Capture, CaptureWatch, Moment
from softform_client.driver_watch import DriverWatch, MeasuredPressures
from softform_client.reach_goal import Code
from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.robots import Robot
from softform_ik.robot.commander import Commander
from softform_ik.robot.stop_request import StopRequest
from softform_ros.goal_error import GoalError


@dataclass(frozen=True)
class HardwareSettings:
    """How long to wait for what; SI units.

    Attributes:
        settle_tolerance: Of settled pressures to their command, Pa.
        settle_timeout: s.
        capture_timeout: For each cloud, s.
        captures: Clouds that make one look at the robot: a hole in one may be seen in another.
    """

    settle_tolerance: float = 250.0
    settle_timeout: float = 30.0
    capture_timeout: float = 20.0
    captures: int = 1


class Hardware:
    """Driver and scanner behind two calls that wait.

    Args:
        robot: The robot.
        settings: Time limits.
        driver: What the driver says.
        captures: Captured clouds.
        commander: Who commands the robot.
        read_points: (N, 3) m of a captured cloud.
        wall_clock: s since the epoch, the clock of stamps.
    """

    def __init__(
        self,
        robot: Robot,
        settings: HardwareSettings,
        driver: DriverWatch,
        captures: CaptureWatch,
        commander: Commander,
        read_points: Callable[[object], Array],
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self._robot, self._settings = robot, settings
        self._driver, self._captures, self._commander = driver, captures, commander
        self._read_points, self._wall_clock = read_points, wall_clock

    def move(
        self, pressures: Array, stop: StopRequest, on_commanded: Callable[[], None] = lambda: None
    ) -> MeasuredPressures | None:
        """Hold (k,) Pa and wait until the robot has settled there.

        Cancelled meanwhile, it stays where it is: the pressures measured then are held.

        Args:
            pressures: Within the robot's range.
            stop: The wish to end the wait, of a goal that the commander has given the robot.
            on_commanded: Called when the command is out.

        Returns:
            What the driver measured when it had settled; None if stopped.

        Raises:
            GoalError: If the driver does not follow, or has stopped following since the goal began, or the time is up.
        """
        commanded_at = self._wall_clock()
        if not self._commander.hold(pressures, stop, lambda: self._is_ready() and not stop()):
            if stop():
                return None
            raise self._lost()
        on_commanded()
        settled = self._driver.wait_until_settled(
            pressures,
            self._settings.settle_tolerance,
            self._settings.settle_timeout,
            commanded_at,
            lambda: self._commander.is_over(stop),
        )
        self.refuse_unless_held(stop)
        if settled is None and stop.code == Code.CANCELLED:
            self.stay(stop)
        return settled

    def stay(self, goal: StopRequest) -> None:
        """Hold the pressures that are measured now, if they are known and the goal still has the robot.

        Raises:
            GoalError: If the driver does not follow.
        """
        here = self._driver.pressures
        if here is not None:
            here = np.clip(here, self._robot.actuator_min, self._robot.actuator_max)
            self._commander.hold(here, goal, self._is_ready)

    def refuse_unless_held(self, goal: StopRequest) -> None:
        """See to it that a goal that goes on still has the robot: the driver may have vented it and be ready again.

        Raises:
            GoalError: If it has lost it.
        """
        if not goal() and not self._commander.has_robot(goal):
            raise self._lost()

    def _lost(self) -> GoalError:
        try:
            self._driver.refuse_unless_ready()
        except GoalError as error:
            return error
        return GoalError(
            Code.DRIVER_FAULT,
            "The pneumatic driver has stopped following in the meantime.",
            "Remove the cause, reset the driver if it is at fault, and send the goal again.",
        )

    def _is_ready(self) -> bool:
        self._driver.refuse_unless_ready()
        return True

    def look(self, settled: MeasuredPressures, stop: StopRequest) -> Array | None:
        """Wait for the clouds that are captured after the robot had settled.

        Returns:
            (N, 3) m in the robot's frame, all clouds together; None if stopped.

        Raises:
            GoalError: If one does not come in time, or cannot be read, or the driver has stopped following meanwhile.
        """
        return self._capture(
            settled,
            self._settings.captures,
            stop,
            lambda: self._commander.is_over(stop),
            lambda: self.refuse_unless_held(stop),
        )

    def wait_until_still(self, stop: StopRequest) -> MeasuredPressures | None:
        """Wait until the robot stands still, whoever commands it; None if stopped.

        Raises:
            GoalError: As `DriverWatch.wait_until_still`.
        """
        settings = self._settings
        return self._driver.wait_until_still(settings.settle_tolerance, settings.settle_timeout, stop)

    def look_on(self, still: MeasuredPressures, captures: int, stop: StopRequest) -> Array | None:
        """As `look`, for a goal that does not command the robot: it must stand still until it is captured.

        Args:
            still: What was measured before.
            captures: Clouds that make one look; 0: as the settings say.
            stop: The wish to end the wait.
        """

        def refuse_if_moved() -> None:
            if not stop() and not self._stands_at(still):
                raise GoalError(
                    Code.CAPTURE_INVALID,
                    "The robot moved while it was captured.",
                    "Wait until what moves it has ended, and capture again.",
                )

        return self._capture(still, captures or self._settings.captures, stop, stop, refuse_if_moved)

    def _stands_at(self, still: MeasuredPressures) -> bool:
        self._driver.refuse_unless_measured()
        here = self._driver.pressures
        return here is not None and float(np.abs(here - still.pressures).max()) <= self._settings.settle_tolerance

    def _capture(
        self,
        moment: Moment,
        captures: int,
        stop: StopRequest,
        is_over: Callable[[], bool],
        refuse_if_lost: Callable[[], None],
    ) -> Array | None:
        """Points of so many clouds captured after a moment; the check follows each wait."""
        clouds: list[Array] = []
        for _ in range(captures):
            capture = self._captures.wait_for_one_after(moment, self._settings.capture_timeout, is_over)
            refuse_if_lost()
            if capture is None:
                if stop():
                    return None
                raise GoalError(
                    Code.CAPTURE_TIMEOUT,
                    f"No cloud captured after the robot settled came within {self._settings.capture_timeout:g} s.",
                    "Check the scanner; the robot was left as it is.",
                )
            clouds.append(self._points_of(capture))
            moment = capture
        return np.concatenate(clouds)

    def _points_of(self, capture: Capture) -> Array:
        try:
            return self._read_points(capture.cloud)
        except GoalError:
            raise
        except SoftformError as error:
            raise GoalError(Code.CAPTURE_INVALID, error.message, error.next_step) from error
