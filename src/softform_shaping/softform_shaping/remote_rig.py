"""The rig behind topics: arms that the driver moves, a camera, and the truth where somebody tells it."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from softform_client.capture_watch import Capture, Moment
from softform_client.driver_watch import DriverWatch, MeasuredValues
from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.geometry.rigid import RigidTransform
from softform_core.robots import Robot
from softform_ros.command_lease import LeaseRejectedError
from softform_ros.goal_error import GoalCode, GoalError, in_code
from softform_shaping.arms import PERIOD, TwoArms, Way
from softform_shaping.camera import Intrinsics, Picture
from softform_shaping.control import shape_errors
from softform_shaping.guard import StressError, StressGuard
from softform_shaping.pictures import Pair, unpacked

__all__ = ["Link", "RemoteRig", "RemoteSettings", "Topics"]

_EVERY = 2
"""Points of a way in a command."""
_LOOKED_AT = 10
"""Points of a way between two at which the guard looks, before the arms move and while they do."""
_POLL = 0.05
_GUARD_PERIOD = 0.2
"""Between two looks of the guard at arms that settle or are looked at, s."""
_SHORT = 0.003, 0.03
"""m and rad by which the arms may miss where the grippers should be: a way that ends farther off is not begun."""
_AT_END = 0.01
"""rad from the end of its range within which a joint counts as there."""


class Link(Protocol):
    """What commands the arms, as `softform_client.robot_link.RobotLink`."""

    driver: DriverWatch
    stop_reason: str | None

    def hold(self, values: Array, permitted: Callable[[], bool]) -> bool:
        """Hold values (k,) from now on."""


class Watch(Protocol):
    """What waits for captures, as a `CaptureWatch`."""

    def wait_for_one_after(self, moment: Moment, timeout: float, should_stop: Callable[[], bool]) -> Capture | None:
        """The first one after a moment, or None."""


@dataclass(frozen=True)
class Topics:
    """What is heard beside the driver.

    Attributes:
        pictures: Of the camera, `pictures.Pair`.
        place: Pose of the camera in the object's frame, by its messages; raises `SoftformError` if it is not known.
        truth: Where the nodes truly are, (V, 3) m, NaN where the object has none.
        has_truth: Whether anybody tells it.
    """

    pictures: Watch
    place: Callable[[Pair], RigidTransform]
    truth: Watch
    has_truth: Callable[[], bool]


@dataclass(frozen=True)
class RemoteSettings:
    """s, but for the tolerance, (k,) rad, within which joints have arrived."""

    tolerance: Array | float
    settle_timeout: float = 10.0
    capture_timeout: float = 10.0
    ready_timeout: float = 10.0
    truth_timeout: float = 3.0


class RemoteRig:
    """A `session.Rig`; used by one thread. Nothing is caught up: a motion that is delayed goes on from where it is.

    Args:
        robot: The arms, as the driver has them.
        arms: Their kinematics around the object.
        link: To the driver, under its lease.
        topics: What is heard beside it.
        guard: Of the object's stress, along each way and while the arms move.
        stop: Stops the driver, latched; called if the guard finds what it should have prevented.
        ended: Why the goal shall end; NONE while it goes on.
        settings: Time limits.
        say: Called with the stage, `looking` or `moving`, and poses (12,).
        clock: Steady time, s.
        wait: Waits so many seconds.
    """

    def __init__(
        self,
        robot: Robot,
        arms: TwoArms,
        link: Link,
        topics: Topics,
        guard: StressGuard,
        stop: Callable[[], object],
        ended: Callable[[], GoalCode],
        settings: RemoteSettings,
        say: Callable[[str, Array], None] = lambda stage, poses: None,
        clock: Callable[[], float] = time.monotonic,
        wait: Callable[[float], object] = time.sleep,
    ) -> None:
        self._robot, self._arms, self._link, self._topics = robot, arms, link, topics
        self._guard, self._stop, self._ended, self._settings = guard, stop, ended, settings
        self._say, self._clock, self._wait = say, clock, wait
        self.random = np.random.default_rng(0)
        self.believed, self.intrinsics = RigidTransform(), Intrinsics()
        self._guarded_at, self._stage = -np.inf, "looking"
        self._moment = MeasuredValues(np.zeros(0), False, time.time(), clock())
        self.poses = self._poses_at(self._wait_until_ready())

    def _wait_until_ready(self) -> Array:
        """Where the joints are, (k,), once the driver would follow.

        Raises:
            GoalError: If it does not in time.
        """
        deadline = self._clock() + self._settings.ready_timeout
        while True:
            self._check_going()
            try:
                self._link.driver.check_ready()
                if (here := self._link.driver.values) is not None:
                    return here
            except GoalError:
                if self._clock() > deadline:
                    raise
            self._wait(_POLL)

    def _poses_at(self, values: Array) -> Array:
        return self._arms.poses_at(values.reshape(2, -1))

    def _is_over(self) -> bool:
        return self._link.stop_reason is not None or self._ended() is not GoalCode.NONE

    def _is_over_or_stressed(self) -> bool:
        """As `_is_over`; the guard looks now and then at arms that should stand still, and may not.

        Raises:
            StressError: As of `move`.
        """
        if self._clock() - self._guarded_at > _GUARD_PERIOD:
            self._look_at_stress()
        return self._is_over()

    def _check_going(self) -> None:
        """Raise why the goal ends, if it shall.

        Raises:
            GoalError: So.
        """
        if (code := self._ended()) is not GoalCode.NONE:
            what = "cancelled" if code is GoalCode.CANCELLED else "ended, as the node was deactivated"
            raise GoalError(code, f"The goal was {what}; the arms hold.", "Send it again to go on.")
        if self._link.stop_reason is not None:
            raise GoalError(
                GoalCode.DRIVER_FAULT,
                f"The driver stopped following: {self._link.stop_reason}.",
                "Remove the cause, reset the driver if it is at fault, and send the goal again.",
            )

    def look(self) -> Picture:
        """What the camera sees, after the arms came to rest.

        Raises:
            GoalError: If no picture comes in time, it cannot be used, or the goal ends.
            StressError: If the object is stressed beyond the limit meanwhile: the driver is stopped then.
        """
        self._stage = "looking"
        self._say(self._stage, self.poses)
        timeout = self._settings.capture_timeout
        capture = self._topics.pictures.wait_for_one_after(self._moment, timeout, self._is_over_or_stressed)
        self._check_going()
        if capture is None:
            raise GoalError(
                GoalCode.CAPTURE_TIMEOUT,
                f"No picture of the resting object came within {timeout:g} s.",
                "Look whether the camera runs and publishes colour, depth and camera_info of one moment.",
            )
        with in_code(GoalCode.CAPTURE_INVALID):
            picture, self.intrinsics = unpacked(capture.cloud)
            self.believed = self._topics.place(capture.cloud)
        return picture

    def errors(self, target: Array) -> tuple[float, float]:
        """As `Rig.errors`: by whom the object is emulated."""
        if not self._topics.has_truth():
            return np.nan, np.nan
        capture = self._topics.truth.wait_for_one_after(self._moment, self._settings.truth_timeout, self._is_over)
        nodes = np.full_like(target, np.nan) if capture is None else np.asarray(capture.cloud)
        if nodes.shape != target.shape:
            return np.nan, np.nan
        has = np.isfinite(nodes).all(axis=1)
        return shape_errors(target[has], nodes[has]) if has.any() else (np.nan, np.nan)

    def move(self, poses: Array) -> Array:
        """As `Rig.move`, by points of a trajectory within all limits of the joints (Eqs. 23-24).

        Raises:
            StressError: If the object would be stressed beyond the limit on the way: nothing moves then; or if it is
                stressed so while it moves: the driver is stopped then.
            GoalError: If the driver does not follow, or the goal ends; the arms hold where they are.
                Or if a joint comes to the end of its range on the way: nothing moves then.
        """
        here = self._wait_until_ready()
        way = self._arms.standing_at(here.reshape(2, -1)).way(poses)
        self._require_whole(way)
        with in_code(GoalCode.UNREACHABLE):
            points = [self._robot.check_commands(point.ravel()) for point in way.joints]
        for point in [*points[::_LOOKED_AT], *points[-1:]]:
            self._guard.require(self._poses_at(point))
        if points:
            self._stream(points)
            self._moment = self._settled(points[-1])
            self.poses = self._poses_at(self._moment.values)
        return self.poses

    def _require_whole(self, way: Way) -> None:
        """Raise if a way does not lead to where it should.

        Raises:
            GoalError: So, with the joints that are at their end.
        """
        if way.short_shift <= _SHORT[0] and way.short_turn <= _SHORT[1]:
            return
        last, robot = way.joints[-1].ravel(), self._robot
        ends = np.minimum(last - robot.actuator_min, robot.actuator_max - last) < _AT_END
        names = ", ".join(name for name, is_there in zip(robot.actuators, ends, strict=True) if is_there)
        raise GoalError(
            GoalCode.UNREACHABLE,
            f"The grippers would stay {1e3 * way.short_shift:.1f} mm and {way.short_turn:.2f} rad short of where the "
            f"object needs them: {names + ' at the end of the range' if names else 'it is too far for one move'}.",
            "Choose a target that asks less of the arms, or grasp the object elsewhere.",
        )

    def _stream(self, points: list[Array]) -> None:
        self._stage = "moving"
        due = self._clock()
        chosen = [*points[_EVERY - 1 :: _EVERY], points[-1]]
        for number, point in enumerate(chosen):
            self._check_going()
            with in_code(GoalCode.DRIVER_NOT_READY):
                self._hold(point)
            if number % (_LOOKED_AT // _EVERY) == 0:
                self._look_at_stress()
            due = max(due + _EVERY * PERIOD, self._clock())  # what is late is not made up for
            self._wait(max(0.0, due - self._clock()))

    def _hold(self, point: Array) -> None:
        try:
            is_held = self._link.hold(point, lambda: not self._is_over())
        except LeaseRejectedError as error:
            raise GoalError(GoalCode.DRIVER_NOT_READY, error.message, error.next_step) from error
        if not is_held:
            self._check_going()
            self._link.driver.check_ready()
            raise GoalError(
                GoalCode.DRIVER_FAULT, "The driver took the lease away.", "Look at driver_state, and send it again."
            )

    def _look_at_stress(self) -> None:
        self._guarded_at = self._clock()
        here = self._link.driver.values
        if here is None:
            return
        poses = self._poses_at(here)
        self._say(self._stage, poses)
        try:
            self._guard.require(poses)
        except SoftformError as error:
            self._stop()  # it went where it should not have gone: nothing moves until somebody has looked
            if isinstance(error, StressError):
                raise
            raise StressError(f"No shape is found where the arms are: {error.message}", error.next_step) from error

    def _settled(self, point: Array) -> MeasuredValues:
        settings = self._settings
        settled = self._link.driver.wait_until_settled(
            point, settings.tolerance, settings.settle_timeout, time.time() - 2.0 * PERIOD, self._is_over_or_stressed
        )
        self._check_going()
        assert settled is not None
        return settled
