"""The robot as a goal uses it: move, settle, capture."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar, cast

import numpy as np

from softform_client.capture_watch import Capture, CaptureWatch, Moment
from softform_client.driver_watch import DriverWatch, MeasuredValues
from softform_core.arrays import Array
from softform_core.forward.forward_model import ForwardModel
from softform_core.forward.memory import Commands, Memory
from softform_core.robots import Robot
from softform_ik.robot.commander import Commander
from softform_ik.robot.stop_request import StopRequest
from softform_interfaces.msg import MarkerFrame
from softform_ros.goal_error import GoalCode, GoalError, in_code

_MARKERS_TIMEOUT = 3.0
"""Motion capture that works sends many frames in this time, s."""

Captured = TypeVar("Captured")
Seen = TypeVar("Seen")
Model = TypeVar("Model", bound=ForwardModel)


@dataclass(frozen=True)
class HardwareSettings:
    """Time limits of waiting; SI units.

    Attributes:
        settle_tolerance: Largest difference of a settled value from its command, in the robot's unit.
        settle_timeout: Time allowed to settle, s.
        capture_timeout: Time to wait for each cloud, s.
        captures: Clouds that make one look at the robot: a hole in one may be seen in another.
    """

    settle_tolerance: Array | float = 250.0
    settle_timeout: float = 30.0
    capture_timeout: float = 60.0
    captures: int = 1


@dataclass(frozen=True)
class _Source(Generic[Captured, Seen]):
    """Source of captures: its watch, reader of one capture, time to wait for each, s, and name."""

    watch: CaptureWatch[Captured]
    read: Callable[[Capture[Captured]], Seen]
    timeout: float
    what: str


class Hardware:
    """Driver and scanner behind calls that wait.

    `read_points` makes (N, 3) m of a captured cloud; `on_look` takes what each look at the robot saw, (N, 3) m, and the
    values at which it had settled.
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
        on_look: Callable[[Array, MeasuredValues], None] = lambda points, settled: None,
    ) -> None:
        self._robot, self._settings = robot, settings
        self._driver, self._commander = driver, commander
        self._read_points, self._on_look, self._wall_clock = read_points, on_look, wall_clock
        self._clouds = _Source(captures, self._points_of, settings.capture_timeout, "cloud")

    def move(
        self, values: Array, stop: StopRequest, on_commanded: Callable[[], None] = lambda: None
    ) -> MeasuredValues | None:
        """Hold actuator values (k,) and wait until the robot has settled there.

        Cancelled meanwhile, it stays where it is: the values measured then are held.

        Returns:
            What the driver measured when it had settled; None if stopped, by the goal that has the robot.

        Raises:
            GoalError: If the driver does not follow, or has stopped following since the goal began, or the time is up.
        """
        commanded_at = self._wall_clock()
        if not self._commander.hold(values, stop, lambda: self.is_ready() and not stop()):
            if stop():
                return None
            raise self._lost()
        on_commanded()
        settled = self.settle(values, commanded_at, stop)
        self.check_held(stop)
        if settled is None and stop.code == GoalCode.CANCELLED:
            self.stay(stop)
        return settled

    def settle(self, values: Array, since: float, stop: StopRequest) -> MeasuredValues | None:
        """Wait until the robot has settled at values (k,) after a moment, s since the epoch; None if stopped.

        Raises:
            GoalError: For the reasons of `DriverWatch.wait_until_settled`.
        """
        settings = self._settings
        return self._driver.wait_until_settled(
            values, settings.settle_tolerance, settings.settle_timeout, since, lambda: self._commander.is_over(stop)
        )

    def given(self, model: Model) -> Model:
        """Return a model from the state that the robot is in now."""
        return cast(Model, model.given(self.commands(model.memory).state))

    def commands(self, memory: Memory) -> Commands:
        """Return what finds the commands at which a body of this memory feels what is wanted next."""
        return self._driver.commands(memory, self._driver.values)

    @property
    def here(self) -> Array:
        """Values (k,) that are held, or else measured: where a motion begins.

        Raises:
            GoalError: If nothing is held, and it is not known where the robot is.
        """
        held = self._commander.values
        here = self._driver.values if held is None else held
        if here is None:
            self._driver.check_ready()
            raise self._lost()
        return here

    def stay(self, goal: StopRequest) -> None:
        """Hold the present measured values, if they are known and the goal still has the robot.

        Raises:
            GoalError: If the driver does not follow.
        """
        here = self._driver.values
        if here is not None:
            here = np.clip(here, self._robot.actuator_min, self._robot.actuator_max)
            self._commander.hold(here, goal, self.is_ready)

    def check_held(self, goal: StopRequest) -> None:
        """See to it that a goal that goes on still has the robot: the driver may have vented it and be ready again.

        Raises:
            GoalError: If it has lost it.
        """
        if not goal() and not self._commander.has_robot(goal):
            raise self._lost()

    def _lost(self) -> GoalError:
        try:
            self._driver.check_ready()
        except GoalError as error:
            return error
        return GoalError(
            GoalCode.DRIVER_FAULT,
            "The driver has stopped following in the meantime.",
            "Remove the cause, reset the driver if it is at fault, and send the goal again.",
        )

    def is_ready(self) -> bool:
        """Return True; raises as `DriverWatch.check_ready` where a command would not be followed."""
        self._driver.check_ready()
        return True

    def look(self, settled: MeasuredValues, stop: StopRequest) -> Array | None:
        """Wait for the clouds that are captured after the robot had settled.

        Returns:
            (N, 3) m in the robot's frame, all clouds together; None if stopped.

        Raises:
            GoalError: If one does not come in time, or cannot be read, or the driver has stopped following meanwhile.
        """
        clouds = self._capture(
            self._clouds,
            settled,
            self._settings.captures,
            stop,
            lambda: self._commander.is_over(stop),
            lambda: self.check_held(stop),
        )
        return self._together(clouds, settled)

    def wait_until_still(self, stop: StopRequest) -> MeasuredValues | None:
        """Wait until the robot stands still, whoever commands it; None if stopped.

        Raises:
            GoalError: For the reasons of `DriverWatch.wait_until_still`.
        """
        settings = self._settings
        return self._driver.wait_until_still(settings.settle_tolerance, settings.settle_timeout, stop)

    def look_on(self, still: MeasuredValues, captures: int, stop: StopRequest) -> Array | None:
        """Capture for a goal that does not command the robot, like `look`: the robot must stand still meanwhile.

        Args:
            still: Values measured when the robot had settled.
            captures: Clouds that make one look; 0: as the settings say.
            stop: Request to end the wait.
        """
        clouds = self._look_on(self._clouds, still, captures or self._settings.captures, stop)
        return self._together(clouds, still)

    def _together(self, clouds: list[Array] | None, settled: MeasuredValues) -> Array | None:
        if clouds is None:
            return None
        points = np.concatenate(clouds)
        self._on_look(points, settled)
        return points

    def look_on_markers(
        self, still: MeasuredValues, watch: CaptureWatch[MarkerFrame], captures: int, stop: StopRequest
    ) -> list[MarkerFrame] | None:
        """Capture frames of markers as `watch` reads them, like `look_on`."""
        timeout = min(self._settings.capture_timeout, _MARKERS_TIMEOUT)
        markers = _Source(watch, lambda frame: frame.cloud, timeout, "frame of markers")
        return self._look_on(markers, still, captures, stop)

    def _look_on(
        self, source: _Source[Captured, Seen], still: MeasuredValues, captures: int, stop: StopRequest
    ) -> list[Seen] | None:
        def check_still() -> None:
            if not stop() and not self._stands_at(still):
                raise GoalError(
                    GoalCode.CAPTURE_INVALID,
                    "The robot moved while it was captured.",
                    "Wait until what moves it has ended, and capture again.",
                )

        return self._capture(source, still, captures, stop, stop, check_still)

    def _stands_at(self, still: MeasuredValues) -> bool:
        self._driver.check_measured()
        here = self._driver.values
        return here is not None and bool((np.abs(here - still.values) <= self._settings.settle_tolerance).all())

    def _capture(
        self,
        source: _Source[Captured, Seen],
        moment: Moment,
        captures: int,
        stop: StopRequest,
        is_over: Callable[[], bool],
        check: Callable[[], None],
    ) -> list[Seen] | None:
        """Read so many captures after a moment; the check follows each wait."""
        taken: list[Seen] = []
        for _ in range(captures):
            capture = source.watch.wait_for_one_after(moment, source.timeout, is_over)
            check()
            if capture is None:
                if stop():
                    return None
                raise GoalError(
                    GoalCode.CAPTURE_TIMEOUT,
                    f"No {source.what} captured after the robot settled came within {source.timeout:g} s.",
                    "Check the device that captures; the robot was left as it is.",
                )
            taken.append(source.read(capture))
            moment = capture
        return taken

    def _points_of(self, capture: Capture) -> Array:
        with in_code(GoalCode.CAPTURE_INVALID):
            return self._read_points(capture.cloud)
