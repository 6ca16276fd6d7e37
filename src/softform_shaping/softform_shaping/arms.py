"""Two small six-axis arms of our own making: kinematics, and joint velocities that stay within all limits (Eqs. 23-24).

Who has other arms gives another `Arm`: the loop knows only where a flange is, how it moves with the joints, and limits.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol, Self

import numpy as np
from scipy.optimize import least_squares, lsq_linear
from scipy.spatial.transform import Rotation

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.geometry.rigid import RigidTransform
from softform_shaping.poses import motion_of, pose_of

__all__ = ["PERIOD", "Arm", "ArmLimits", "Going", "SixAxisArm", "TwoArms", "Way", "joint_velocities", "two_small_arms"]


class ArmLimits(NamedTuple):
    """Of the joints of an arm, (J,) each: positions in rad, velocity in rad/s, acceleration in rad/s^2."""

    lower: Array
    upper: Array
    velocity: Array
    acceleration: Array


class Arm(Protocol):
    """An arm with J joints; a configuration is (J,) rad."""

    @property
    def limits(self) -> ArmLimits:
        """Of its joints."""

    def flange(self, joints: Array) -> RigidTransform:
        """Pose of the flange."""

    def jacobian(self, joints: Array) -> Array:
        """Velocity of the flange, m/s and rad/s, by that of the joints, (6, J)."""

    def links(self, joints: Array) -> Array:
        """Points (J + 2, 3) m from the base over the joints to the flange."""


class SixAxisArm:
    """A chain of six hinges: about z at the base, y at shoulder and elbow, and x, y, x at the wrist.

    Args:
        base: Pose of its base; z upwards.
        lengths: From base to shoulder and of the upper arm (up), of the forearm and from wrist to flange (along x), m.
        limits: Of its joints; by default those of a small arm.
    """

    _AXES = np.array([(0, 0, 1), (0, 1, 0), (0, 1, 0), (1, 0, 0), (0, 1, 0), (1, 0, 0)], dtype=np.float64)

    def __init__(
        self, base: RigidTransform, lengths: tuple[float, float, float, float] = (0.2, 0.4, 0.4, 0.1),
        limits: ArmLimits | None = None,
    ) -> None:  # fmt: skip
        self._base = base
        shoulder, upper, fore, hand = lengths
        self._offsets = np.array(
            [(0, 0, 0.5 * shoulder), (0, 0, 0.5 * shoulder), (0, 0, upper), (0.5 * fore, 0, 0), (0.5 * fore, 0, 0),
             (0.5 * hand, 0, 0)]
        )  # fmt: skip
        self._flange = np.array([0.5 * hand, 0.0, 0.0])
        self._limits = limits or ArmLimits(
            lower=np.radians([-170.0, -110.0, -150.0, -180.0, -115.0, -350.0]),
            upper=np.radians([170.0, 110.0, 150.0, 180.0, 115.0, 350.0]),
            velocity=np.full(6, 1.5),
            acceleration=np.full(6, 8.0),
        )

    @property
    def limits(self) -> ArmLimits:
        """Of its joints."""
        return self._limits

    def _chain(self, joints: Array) -> tuple[Array, Array, RigidTransform]:
        """Places (6, 3) and axes (6, 3) of the joints, and the flange."""
        turn, place = self._base.rotation, self._base.translation
        places, axes = np.empty((6, 3)), np.empty((6, 3))
        for index, (axis, offset) in enumerate(zip(self._AXES, self._offsets, strict=True)):
            place = place + turn @ offset
            places[index], axes[index] = place, turn @ axis
            turn = turn @ Rotation.from_rotvec(joints[index] * axis).as_matrix()
        return places, axes, RigidTransform(turn, place + turn @ self._flange)

    def flange(self, joints: Array) -> RigidTransform:
        """Pose of the flange; x points out of it."""
        return self._chain(joints)[2]

    def jacobian(self, joints: Array) -> Array:
        """Velocity of the flange by that of the joints, (6, 6)."""
        places, axes, flange = self._chain(joints)
        return np.concatenate([np.cross(axes, flange.translation - places), axes], axis=1).T

    def links(self, joints: Array) -> Array:
        """Points (8, 3) m from the base to the flange."""
        places, _, flange = self._chain(joints)
        return np.vstack([self._base.translation, places, flange.translation])


def joint_velocities(
    jacobian: Array, wanted: Array, joints: Array, before: Array, limits: ArmLimits, seconds: float
) -> Array:
    """Eq. 23: min |J v - dr| within the limits of position, velocity and acceleration, v (J,) rad/s.

    Args:
        jacobian: J (6 or 12, J): of Eq. 24, if of both arms.
        wanted: dr over the time, (6,) or (12,), m/s and rad/s.
        joints: (J,) rad, where they are.
        before: (J,) rad/s, of the period before.
        limits: Of the joints.
        seconds: Period.

    Raises:
        SoftformError: If a joint is so far outside its range, or so fast, that no velocity is within all limits.
    """
    most = limits.acceleration * seconds
    low = np.maximum.reduce([-limits.velocity, -_before_end(joints - limits.lower, limits, seconds), before - most])
    high = np.minimum.reduce([limits.velocity, _before_end(limits.upper - joints, limits, seconds), before + most])
    # A joint that comes to its end faster than it can brake may leave it by what braking takes, and no further.
    blocked = low > high
    braked = before - np.clip(before, -most, most)
    low, high = np.where(blocked, braked, low), np.where(blocked, braked, high)
    if not (np.isfinite(low).all() and np.isfinite(high).all()):
        raise SoftformError("The joints' places or velocities are no numbers.", "Look at what the arms say.")
    open_ = high - low > 1e-9
    found = 0.5 * (low + high)
    if open_.any():
        rest = wanted - jacobian[:, ~open_] @ found[~open_]
        found[open_] = lsq_linear(jacobian[:, open_], rest, (low[open_], high[open_]), method="bvls").x
    return np.asarray(found)


def _before_end(room: Array, limits: ArmLimits, seconds: float) -> Array:
    """Fastest velocity (J,) from which a joint brakes within `room` (J,) rad; towards the inside where it is outside.

    After one period at v it brakes by v^2 / 2a: v T + v^2 / 2a is the room.
    """
    braking = limits.acceleration * (np.sqrt(seconds**2 + 2.0 * np.maximum(room, 0.0) / limits.acceleration) - seconds)
    return np.where(room >= 0.0, braking, room / seconds)


class Going(NamedTuple):
    """How a motion of both arms went.

    Attributes:
        seconds: It took.
        short_shift: How far the grippers are from where they should be, m.
        short_turn: The same, rad.
    """

    seconds: float
    short_shift: float
    short_turn: float


PERIOD = 0.02
"""Between two points of a way, s."""

_GAIN, _LONGEST = 8.0, 3.0
_STILL = 2e-3
_NEAR = 1e-4, 1e-3
"""m and rad within which a pose counts as reached."""


class Way(NamedTuple):
    """A way of both arms, from standstill to standstill.

    Attributes:
        joints: (n, 2, J) rad, one point each `PERIOD`, without that where it begins.
        short_shift: How far the grippers then are from where they should be, m.
        short_turn: The same, rad.
    """

    joints: Array
    short_shift: float
    short_turn: float


@dataclass(eq=False)
class TwoArms:
    """Both arms with the object between them; they stop dead where they are told to hold.

    Attributes:
        arms: Left, right.
        joints: (2, 6) rad.
        grasps: Poses of the flanges at the grasp.
        centres: (2, 3) m, which the grippers' poses turn about.
        is_held: Brakes are on: nothing moves until `release`.
    """

    arms: tuple[Arm, Arm]
    joints: Array
    grasps: tuple[RigidTransform, RigidTransform]
    centres: Array
    is_held: bool = False

    def hold(self) -> None:
        """Brake: the safe state. The object keeps its shape, which letting go or sinking would not."""
        self.is_held = True

    def release(self) -> None:
        """Let them move again."""
        self.is_held = False

    @property
    def poses(self) -> Array:
        """Poses of the grippers relative to the grasp, (12,)."""
        return self.poses_at(self.joints)

    def poses_at(self, joints: Array) -> Array:
        """The same with the joints at (2, J) rad."""
        parts = zip(self.arms, joints, self.grasps, self.centres, strict=True)
        return np.concatenate(
            [pose_of(arm.flange(own).after(grasp.inverse()), centre) for arm, own, grasp, centre in parts]
        )

    @property
    def links(self) -> list[Array]:
        """Points of each arm, for pictures."""
        return [arm.links(joints) for arm, joints in zip(self.arms, self.joints, strict=True)]

    def go(self, poses: Array) -> Going:
        """Bring the grippers to poses (12,), or as near as limits allow.

        Raises:
            SoftformError: If the brakes are on.
        """
        if self.is_held:
            raise SoftformError("The arms hold, with their brakes on.", "Look why, and release them.")
        way = self.way(poses)
        if len(way.joints):
            self.joints = way.joints[-1]
        return Going(len(way.joints) * PERIOD, way.short_shift, way.short_turn)

    def way(self, poses: Array) -> Way:
        """The way from where they stand to grippers at poses (12,), or as near as limits allow; nothing moves."""
        goals = [
            motion_of(pose, centre).after(grasp)
            for pose, centre, grasp in zip(poses.reshape(2, 6), self.centres, self.grasps, strict=True)
        ]
        joints, speeds, points = np.array(self.joints), np.zeros_like(self.joints), []
        for period in range(int(_LONGEST / PERIOD)):
            gaps = [_gap(arm.flange(own), goal) for arm, own, goal in zip(self.arms, joints, goals, strict=True)]
            stands = float(np.abs(speeds).max()) < _STILL
            if stands and (_is_near(gaps) or period * PERIOD > 0.5):  # it stands, and not there: at a limit
                break
            for side, gap in enumerate(gaps):
                arm = self.arms[side]
                jacobian, before = arm.jacobian(joints[side]), speeds[side]
                speeds[side] = joint_velocities(jacobian, _GAIN * gap, joints[side], before, arm.limits, PERIOD)
            joints = joints + PERIOD * speeds
            points.append(joints)
        while np.abs(speeds).max() >= _STILL:  # the time was up
            most = PERIOD * np.array([arm.limits.acceleration for arm in self.arms])
            speeds = speeds - np.clip(speeds, -most, most)
            joints = joints + PERIOD * speeds
            points.append(joints)
        gaps = [_gap(arm.flange(own), goal) for arm, own, goal in zip(self.arms, joints, goals, strict=True)]
        return Way(np.reshape(points, (-1, *joints.shape)), *_sizes(gaps))

    def standing_at(self, joints: Array) -> Self:
        """The same arms with their joints at (2, J) rad."""
        return replace(self, joints=np.array(joints))


def _sizes(gaps: list[Array]) -> tuple[float, float]:
    """The larger of both shifts, m, and of both turns, rad."""
    shift, turn = (max(float(np.linalg.norm(gap[part])) for gap in gaps) for part in (slice(3), slice(3, 6)))
    return shift, turn


def _is_near(gaps: list[Array]) -> bool:
    shift, turn = _sizes(gaps)
    return shift < _NEAR[0] and turn < _NEAR[1]


def _gap(here: RigidTransform, there: RigidTransform) -> Array:
    turn = Rotation.from_matrix(there.rotation @ here.rotation.T).as_rotvec()
    return np.concatenate([there.translation - here.translation, turn])


_START = np.radians([0.0, 20.0, 40.0, 0.0, -60.0, 0.0])
_BEHIND, _BELOW = 0.55, 0.35
_FLANGE_TO_GRASP = 0.07


def two_small_arms(centres: Array, limits: Sequence[ArmLimits | None] = (None, None)) -> TwoArms:
    """Arms beyond both ends of an object whose long axis is z and which is held at `centres` (2, 3) m; x is up.

    Args:
        centres: Of the grips.
        limits: Of the joints of each arm; None for its own.

    Raises:
        SoftformError: If an arm cannot reach its grasp.
    """
    arms, joints, grasps = [], [], []
    for centre, towards, own in zip(centres, (1.0, -1.0), limits, strict=True):
        forward, up = np.array([0.0, 0.0, towards]), np.array([1.0, 0.0, 0.0])
        axes = np.stack([forward, np.cross(up, forward), up], axis=1)
        base = RigidTransform(axes, centre - _BEHIND * forward - _BELOW * up)
        arm = SixAxisArm(base, limits=own)
        grasp = RigidTransform(axes, centre - _FLANGE_TO_GRASP * forward)
        bounds = arm.limits.lower, arm.limits.upper
        found = least_squares(
            lambda q, arm=arm, grasp=grasp: _gap(arm.flange(q), grasp),
            np.clip(_START, *bounds), bounds=bounds, xtol=1e-14, ftol=1e-14, gtol=1e-14,
        )  # fmt: skip
        if np.abs(found.fun).max() > 1e-6:
            raise SoftformError("An arm cannot reach its grasp.", "Bring the object nearer to it.")
        arms.append(arm)
        joints.append(found.x)
        grasps.append(arm.flange(found.x))
    return TwoArms((arms[0], arms[1]), np.array(joints), (grasps[0], grasps[1]), centres)
