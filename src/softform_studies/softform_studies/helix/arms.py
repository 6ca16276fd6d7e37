"""An arm's tip led by its servo a tick at a time, and the real arm that follows the same commands."""

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.forward.robot_models import ModelRequest, open_surface_models
from softform_core.forward.simulated_models import SimulatedSurface
from softform_core.forward.simulated_tracker import SimulatedTracker
from softform_core.inverse.servo import Servo, ServoSettings
from softform_core.inverse.servo_target import ServoTarget
from softform_core.robots import TIP, Robot
from softform_core.robots.actuators import each
from softform_core.robots.devices import Device
from softform_core.shapes.features import FeaturePoints
from softform_core.simulation.simulated_body import PathDependentBody, SimulatedBody, equilibrium_unknowns, skin_count
from softform_core.units import MM_PER_M
from softform_rig.motor_emulation import EMULATION, HOME, MotorErrors, make_motors
from softform_rig.reality import Reality
from softform_rig.tendon_motor import TICKS_A_TURN

RATE = 30.0
"""Ticks a second."""
_POINTS = 400


class Tick(NamedTuple):
    """What one tick of a servo did.

    Attributes:
        command: (k,) actuators, m.
        seconds: Processor time.
        error_mm: Of the shape that the servo holds for true.
        gap_mm: How far its last step left it out of balance.
        factors: Factors of the Hessian.
        reason: Why the target is not followed; empty while it is.
    """

    command: Array
    seconds: float
    error_mm: float
    gap_mm: float
    factors: int
    reason: str


class LedArm:
    """A robot whose tip follows targets by `model: fem` and its tracker, in the time of the ticks.

    Args:
        robot: A robot with a surface and a frame `tip` on it.

    Raises:
        SoftformError: If its simulator has no tracker.
    """

    def __init__(self, robot: Robot) -> None:
        self.robot = robot
        model = open_surface_models("fem", ModelRequest(robot, _POINTS)).current
        assert isinstance(model, SimulatedSurface)
        self._model, self._tip, self._body = model, model.at(robot.point_parameters(TIP)), robot.body.simulator()
        if self._model.tracker(robot.safe) is None:
            raise SoftformError(f"The simulator of '{robot.name}' solves each shape anew.", "Take a cable_arm.")
        self._features = self.points_on([TIP])
        self.begin()

    @property
    def faces(self) -> NDArray[np.int32]:
        """Triangles (F, 3) of its outside, over the first vertices of `outside`."""
        return self._body.faces

    def points_on(self, outputs: Sequence[str], along: Sequence[float] = ()) -> FeaturePoints:
        """Points that may be led, one for each output: a frame, or a patch, there on its line u = 0 at v of `along`."""
        uv = np.zeros((len(outputs), 2))
        uv[: len(along), 1] = along
        return FeaturePoints.of(uv, np.zeros((len(outputs), 3)), output=outputs).on(self.robot)

    def begin(self, actuation: Array | None = None) -> None:
        """Begin anew from an actuation (k,), slack by default: in balance there, whatever was before.

        Raises:
            NoEquilibriumError: If there is none.
        """
        robot, self._idle = self.robot, 0
        settings = ServoSettings(
            robot.actuation_min, robot.actuation_max, robot.slew_rate, 1.0 / RATE, most_error_mm=np.inf
        )
        if actuation is None:
            actuation = np.clip(np.zeros(len(robot.safe)), robot.actuation_min, robot.actuation_max)
        self._model.seek_from(equilibrium_unknowns(self._body, robot.actuators_of(actuation)[None]))
        self._servo: Servo | None = None
        self._servo = Servo(settings, self._now)
        self._servo.resume_from(actuation)

    def tick(self, target: Array) -> Tick:
        """Follow a target for the tip, (3,) m, for one tick."""
        return self.lead(self._features, target[None])

    def lead(self, points: FeaturePoints, targets: Array) -> Tick:
        """Follow targets (M, 3) m for points of `points_on`, for one tick."""
        servo = self._servo
        assert servo is not None
        begun, before, known = time.process_time(), servo.iterations, servo.tracker
        factors = 0 if known is None else known.steps
        features = replace(points, positions=targets)
        servo.aim(ServoTarget(servo.iterations, self._now(), features=features, accept_unreachable=True))
        servo.refine(self._model, self._now() + 0.9 / RATE)
        self._idle += servo.iterations == before
        command = servo.command()
        seconds = time.process_time() - begun
        tracker = servo.tracker
        assert command.actuation is not None
        gap = 0.0 if tracker is None else tracker.gap_mm
        spent = 0 if tracker is None else tracker.steps - (factors if tracker is known else 0)
        actuators = self.robot.actuators_of(command.actuation)
        return Tick(actuators, seconds, command.errors.mean_mm, gap, spent, command.reason)

    def tip(self, command: Array) -> Array:
        """Tip (3,) m of the model in balance under a command (k,): the shape that is led, solved to the end.

        Raises:
            NoEquilibriumError: If there is none.
        """
        if self._near is not None:
            self._tip.seek_from(self._near)
        return np.asarray(self._tip.forward(command[None]).points[0].mean(axis=0)) / MM_PER_M

    def at_rest(self) -> Array:
        """Vertices (V, 3) m of the model's outside at rest."""
        return outside_of(self._body, self._body.rest[None])

    def outside(self, command: Array) -> Array:
        """The same vertices (V, 3) m of the model in balance under a command (k,).

        Raises:
            NoEquilibriumError: If there is none.
        """
        return outside_of(self._body, equilibrium_unknowns(self._body, command[None], self._near))

    @property
    def _near(self) -> Array | None:
        """Unknowns (1, m) to which its tracker has come."""
        tracker = None if self._servo is None else self._servo.tracker
        return tracker.unknowns if isinstance(tracker, SimulatedTracker) else None

    def _now(self) -> float:
        iterations = 0 if self._servo is None else self._servo.iterations
        return (iterations + self._idle) / RATE


class RealArm:
    """The arm of a reality that follows commands by the motors of its rig, a tick at a time.

    Motors lag, are no faster than they are, and have the errors of the reality, but do not feel their cables; these may
    rub, so that the arm is led along all turning points of its motors.

    Args:
        robot: The robot; motors that the rig emulates pull all of its cables.
        reality: How the real one differs.
        seed: Of the noise of its markers.
    """

    def __init__(self, robot: Robot, reality: Reality, seed: int) -> None:
        self._body = robot.body.real_simulator(reality.body)
        errors = reality.errors_of(EMULATION)
        self._buses = [_Bus(robot, device, errors) for device in robot.devices]
        self._noise, self._draw = reality.motion_capture.noise, np.random.default_rng(seed)
        self._unknowns: Array = self._body.rest[None]
        self._state: Any = None  # of a body that depends on its path
        if isinstance(self._body, PathDependentBody):
            self._unknowns, self._state = self._body.new(1)
        self._way: list[Array] = []
        self._seconds = 0.0

    def follow(self, command: Array) -> None:
        """Have its motors go to a command (k,), m, for one tick."""
        self._seconds += 1.0 / RATE
        pulls = np.zeros(len(command))
        for bus in self._buses:
            pulls[bus.served] = bus.follow(command[bus.served], self._seconds)
        if len(self._way) > 1 and ((pulls - self._way[-1]) * (self._way[-1] - self._way[-2]) >= 0.0).all():
            self._way.pop()  # no motor has turned back
        self._way.append(pulls)

    def readings(self) -> Array:
        """Pulls (k,) m as a driver reads them of the motors: late, and without what drums and homes are off."""
        found = np.zeros(sum(len(bus.served) for bus in self._buses))
        for bus in self._buses:
            found[bus.served] = bus.readings()
        return found

    def marker(self) -> Array:
        """Place (3,) m of the marker at its tip, in balance.

        Raises:
            NoEquilibriumError: If there is none.
        """
        self._come_to_balance()
        tip = self._body.points(self._unknowns)[0, self._body.frames[TIP]]
        return np.asarray(tip + self._noise * self._draw.standard_normal(3))

    @property
    def faces(self) -> NDArray[np.int32]:
        """Triangles (F, 3) of its outside."""
        return self._body.faces

    def outside(self) -> Array:
        """Vertices (V, 3) m of its outside in balance; errors as of `marker`."""
        self._come_to_balance()
        return outside_of(self._body, self._unknowns)

    def at_rest(self) -> Array:
        """The same vertices (V, 3) m of the arm at rest."""
        return outside_of(self._body, self._body.rest[None])

    def _come_to_balance(self) -> None:
        if isinstance(self._body, PathDependentBody):
            for pulls in self._way:
                self._unknowns, self._state = self._body.advance(self._unknowns, pulls[None], self._state, 1.0 / RATE)
        else:
            self._unknowns = equilibrium_unknowns(self._body, self._way[-1][None], self._unknowns)
        self._way = self._way[-1:]


def outside_of(body: SimulatedBody, unknowns: Array) -> Array:
    """Vertices (V, 3) m of a body's outside at unknowns (1, m)."""
    return body.points(unknowns)[0, : skin_count(body)]


class _Bus:
    """Motors of one device of a robot, driven as its driver does: to positions, within their current limit."""

    def __init__(self, robot: Robot, device: Device, errors: MotorErrors) -> None:
        self.served = robot.served_by(device)
        self._bus, self._channels = make_motors(robot, device, errors), list(device.channels)
        count, settings = len(self._channels), device.settings
        self._home = each(settings.get("home", HOME), count)
        self._ticks = TICKS_A_TURN / (2.0 * np.pi * each(settings["drum_radius"], count))
        for motor in self._bus.motors.values():
            motor.torque_on = motor.is_limited = True
            motor.current_limit = motor.goal_current = settings["current_limit"]

    def follow(self, command: Array, now: float) -> Array:
        """True pulls (c,) m once these motors went to pulls (c,) until a time, s."""
        for motor, goal in zip(self._bus.motors.values(), self._home + command * self._ticks, strict=True):
            motor.goal = float(np.round(goal))
        self._bus.advance(now)
        return self._bus.actuator_values(self._channels)

    def readings(self) -> Array:
        """Pulls (c,) m by the motors' positions."""
        return np.asarray([motor.position for motor in self._bus.motors.values()] - self._home) / self._ticks
