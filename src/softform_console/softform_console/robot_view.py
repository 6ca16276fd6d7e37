"""The newest that the stack says of a robot, as pages are told it."""

import math
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

import numpy as np
from geometry_msgs.msg import Transform
from numpy.typing import NDArray
from visualization_msgs.msg import MarkerArray

from softform_console.contacts import contacts_of
from softform_console.motion_messages import Obstacle
from softform_console.protocol import Contact, DriverInfo, FramePlace, Point, RobotState, ServoInfo
from softform_console.steering import Mode
from softform_core.errors import SoftformError
from softform_core.forward.history import History
from softform_core.robots import Robot
from softform_interfaces.msg import ActuationHistory, ActuatorCommand, ActuatorState, DriverState, ServoState
from softform_ros.driver_words import is_stopped
from softform_ros.histories import history_from_message

SILENT_SECONDS = 1.0
"""Silence of the driver after which it counts as gone, s: it speaks at 5 Hz."""

_FRESH_SECONDS = 1.0
"""Age up to which commands, measured values and the servo's state are shown, s."""

_STILL, _STILL_SECONDS = 1e-3, 0.5
"""rad that a joint may waver, and s that it must not move by more, until it counts as standing still."""

_CONTACT_SECONDS = 3.0
"""Age up to which contacts are shown, s: as long as other viewers show their markers."""

_DRIVER = {
    DriverState.SAFE: "safe",
    DriverState.RUNNING: "running",
    DriverState.FAULT: "fault",
    DriverState.OFFLINE: "offline",
    DriverState.HOLDING: "holding",
    DriverState.MAKING_SAFE: "making_safe",
}
_SERVO = {
    ServoState.OFF: "off",
    ServoState.TRACKING: "tracking",
    ServoState.HOLDING: "holding",
    ServoState.YIELDED: "yielded",
}


class RobotView:
    """Keeps messages as they come, in the node's thread, and makes of them what a page is told, in the server's.

    Attributes:
        history: Where its actuators have turned back so far.

    Args:
        robot: The robot.
        clock: Steady time, s.
    """

    def __init__(self, robot: Robot, clock: Callable[[], float] = time.monotonic) -> None:
        self._robot, self._clock = robot, clock
        self._driver: tuple[DriverState, float] | None = None
        self._measured: tuple[ActuatorState, float] | None = None
        self._commanded: tuple[ActuatorCommand, float] | None = None
        self._servo: tuple[ServoState, float] | None = None
        self._frames: dict[str, Transform] = {}
        self._contacts: tuple[list[Contact], float] = [], -math.inf
        self._rest: tuple[NDArray[np.float64], float] = np.zeros(0), math.inf
        self.history = History()

    def note_driver(self, message: DriverState) -> None:
        """Take a `driver_state`."""
        self._driver = now = message, self._clock()
        before, values = self._rest[0], np.array(message.rest_value)
        braked = message.state != DriverState.RUNNING and 0 < len(values) == sum(message.acknowledged)
        if not braked:
            self._rest = np.zeros(0), math.inf
        elif not (before.shape == values.shape and np.abs(values - before).max() < _STILL):  # NaN, too
            self._rest = values, now[1]

    def note_measured(self, message: ActuatorState) -> None:
        """Take an `actuator_state`."""
        self._measured = message, self._clock()

    def note_commanded(self, message: ActuatorCommand) -> None:
        """Take an `actuator_command`, whoever sent it."""
        self._commanded = message, self._clock()

    def note_servo(self, message: ServoState) -> None:
        """Take a `servo_state`."""
        self._servo = message, self._clock()

    def note_history(self, message: ActuationHistory) -> None:
        """Take an `actuation_history`; one of another robot is not noted."""
        with suppress(SoftformError):
            self.history = history_from_message(message, self._robot)

    def note_frame(self, name: str, transform: Transform) -> None:
        """Take where one of the robot's frames is."""
        self._frames[name] = transform

    def note_contact(self, message: MarkerArray) -> None:
        """Take a `predicted_contact`."""
        self._contacts = contacts_of(message, self._robot.base_frame), self._clock()

    @property
    def servo_off(self) -> str | None:
        """Reason why the servo follows nothing; empty if it does, None if it has said nothing."""
        if self._servo is None:
            return None
        is_off = self._servo[0].state == ServoState.OFF
        return (self._servo[0].reason or "it waits for a target.") if is_off else ""

    @property
    def driver(self) -> DriverState | None:
        """The newest `driver_state`."""
        return None if self._driver is None else self._driver[0]

    @property
    def driver_heard_at(self) -> float:
        """When it came, s of the steady clock."""
        return -math.inf if self._driver is None else self._driver[1]

    def stands_still(self, since: float = -math.inf) -> bool:
        """Return whether arms that hold an object have braked, and were measured to stand still for some time since."""
        if self._robot.body.held is None or self._clock() - self.driver_heard_at > SILENT_SECONDS:
            return False
        return self.driver_heard_at - max(self._rest[1], since) > _STILL_SECONDS

    def state(
        self,
        index: int,
        steering: Mode,
        points: Sequence[Point],
        obstacles: Sequence[Obstacle] = (),
        model: str = "",
        models: Sequence[str] = (),
    ) -> RobotState:
        """Return the robot's state, and what this console does with it."""
        return RobotState(
            robot=index,
            driver=self._driver_info(),
            servo=self._servo_info(),
            commanded=self._ordered(self._commanded),
            measured=self._at_rest() or self._ordered(self._measured),
            settled=self._is_settled(),
            past_known=self.history.is_known,
            frames=[self._place(name, transform) for name, transform in tuple(self._frames.items())],
            contacts=self._touched(),
            steering=steering,
            points=list(points),
            obstacles=list(obstacles),
            model=model,
            models=list(models),
        )

    def _driver_info(self) -> DriverInfo:
        if self._driver is None:
            return DriverInfo(
                state="silent",
                reason="No driver has announced itself.",
                holder="",
                faults=[],
                warnings=[],
                epoch="0",
                age=0.0,
                all_at_rest=False,
                stands_still=False,
                stopped=False,
            )
        message, at = self._driver
        age = self._clock() - at
        is_silent = age > SILENT_SECONDS
        return DriverInfo(
            state="silent" if is_silent else _DRIVER.get(message.state, "offline"),  # type: ignore[arg-type]
            reason=f"Nothing has come of the driver for {age:.0f} s." if is_silent else message.reason,
            holder=message.holder,
            faults=list(message.faults),
            warnings=list(message.warnings),
            epoch=str(message.epoch),
            age=age,
            all_at_rest=not is_silent and len(message.at_rest) > 0 and all(message.at_rest),
            stands_still=self.stands_still(),
            stopped=not is_silent and message.state == DriverState.FAULT and is_stopped(message.faults),
        )

    def _servo_info(self) -> ServoInfo | None:
        if self._servo is None:
            return None
        message, at = self._servo
        is_fresh = self._clock() - at <= _FRESH_SECONDS
        return ServoInfo(
            state=_SERVO.get(message.state, "off"),  # type: ignore[arg-type]
            reason=message.reason,
            mean_error=_finite(message.mean_error) if is_fresh else None,
            max_error=_finite(message.max_error) if is_fresh else None,
            latency=_finite(message.latency) if is_fresh else None,
            converged=message.converged,
            commands=message.commands,
            iterations=message.iterations,
            deadlines_missed=message.deadlines_missed,
        )

    def _ordered(self, newest: tuple[ActuatorCommand | ActuatorState, float] | None) -> list[float] | None:
        if newest is None or self._clock() - newest[1] > _FRESH_SECONDS:
            return None
        return self._values(newest[0].name, newest[0].value)

    def _at_rest(self) -> list[float] | None:
        """Return what the driver measured of a robot that it made safe, if nothing newer was streamed."""
        if self._driver is None or self._clock() - self._driver[1] > SILENT_SECONDS:
            return None
        if self._driver[0].state == DriverState.RUNNING or (self._measured and self._measured[1] > self._driver[1]):
            return None
        return self._values(self._driver[0].actuator, self._driver[0].rest_value)

    def _values(self, names: Sequence[str], values: Sequence[float]) -> list[float] | None:
        """Return values in the robot's order; None of another robot's, or where one is not known."""
        with suppress(SoftformError):
            ordered = self._robot.in_order(names, values)
            return ordered.tolist() if np.isfinite(ordered).all() else None
        return None

    def _is_settled(self) -> bool:
        if self._measured is None or self._clock() - self._measured[1] > _FRESH_SECONDS:
            return False
        return all(one == ActuatorState.SETTLED for one in self._measured[0].status)

    def _touched(self) -> list[Contact]:
        contacts, at = self._contacts
        return contacts if self._clock() - at <= _CONTACT_SECONDS else []

    @staticmethod
    def _place(name: str, transform: Transform) -> FramePlace:
        at, turn = transform.translation, transform.rotation
        return FramePlace(name=name, place=(at.x, at.y, at.z), rotation=(turn.x, turn.y, turn.z, turn.w))


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
