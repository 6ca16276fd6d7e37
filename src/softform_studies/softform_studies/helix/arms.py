"""An arm's tip led by its servo a tick at a time, and the real arm that follows the same commands."""

import time
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.forward.robot_models import ModelRequest, open_surface_models
from softform_core.forward.simulated_models import SimulatedSurface
from softform_core.forward.simulated_tracker import SimulatedTracker
from softform_core.inverse.servo import Servo, ServoSettings
from softform_core.inverse.servo_target import ServoTarget
from softform_core.robots import TIP, Robot
from softform_core.shapes.features import FeaturePoints
from softform_core.simulation.newton import NO_EQUILIBRIUM_ADVICE, NoEquilibriumError, find_equilibria
from softform_core.units import MM_PER_M
from softform_rig.motor_emulation import EMULATION
from softform_rig.reality import Reality

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
        self._model, self._tip = model, model.at(robot.point_parameters(TIP))
        if self._model.tracker(robot.safe) is None:
            raise SoftformError(f"The simulator of '{robot.name}' solves each shape anew.", "Take a cable_arm.")
        self._features = FeaturePoints.of(np.zeros((1, 2)), np.zeros((1, 3)), output=[TIP]).on(robot)
        self.begin()

    def begin(self, actuation: Array | None = None) -> None:
        """Begin anew from an actuation (k,), slack by default."""
        robot, self._idle = self.robot, 0
        settings = ServoSettings(
            robot.actuation_min, robot.actuation_max, robot.slew_rate, 1.0 / RATE, most_error_mm=np.inf
        )
        self._servo: Servo | None = None
        self._servo = Servo(settings, self._now)
        self._servo.resume_from(
            np.clip(np.zeros(len(robot.safe)), robot.actuation_min, robot.actuation_max)
            if actuation is None
            else actuation
        )

    def tick(self, target: Array) -> Tick:
        """Follow a target for the tip, (3,) m, for one tick."""
        servo = self._servo
        assert servo is not None
        begun, before, known = time.process_time(), servo.iterations, servo.tracker
        factors = 0 if known is None else known.steps
        features = replace(self._features, positions=target[None])
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
        tracker = None if self._servo is None else self._servo.tracker
        if isinstance(tracker, SimulatedTracker):
            self._tip.seek_from(tracker.unknowns)
        return np.asarray(self._tip.forward(command[None]).points[0].mean(axis=0)) / MM_PER_M

    def _now(self) -> float:
        iterations = 0 if self._servo is None else self._servo.iterations
        return (iterations + self._idle) / RATE


class RealArm:
    """The arm of a reality that follows commands: its motors are off and have backlash.

    Args:
        robot: The robot.
        reality: How the real one differs.
        seed: Of the noise of its markers.
    """

    def __init__(self, robot: Robot, reality: Reality, seed: int) -> None:
        self._body = robot.body.real_simulator(reality.body)
        motors = reality.errors_of(EMULATION)
        self._radius, self._homing = motors.of(len(robot.actuators))
        self._play = 0.5 * motors.backlash
        self._noise, self._draw = reality.motion_capture.noise, np.random.default_rng(seed)
        self._pulls: Array | None = None
        self._unknowns: Array | None = None

    def follow(self, command: Array) -> None:
        """Have its motors go to a command (k,), m, one of many on a way."""
        wanted = command * self._radius + self._homing
        held = wanted if self._pulls is None else self._pulls
        self._pulls = np.clip(held, wanted - self._play, wanted + self._play)

    def marker(self) -> Array:
        """Place (3,) m of the marker at its tip, in balance.

        Raises:
            NoEquilibriumError: If there is none.
        """
        assert self._pulls is not None
        found = find_equilibria(self._body, self._pulls[None], self._unknowns)
        if found.failures[0]:
            raise NoEquilibriumError(found.failures[0], NO_EQUILIBRIUM_ADVICE)
        self._unknowns = found.unknowns
        tip = self._body.points(found.unknowns)[0, self._body.frames[TIP]]
        return np.asarray(tip + self._noise * self._draw.standard_normal(3))
