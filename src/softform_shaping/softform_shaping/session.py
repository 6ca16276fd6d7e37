"""One task on a rig: look, estimate, move, until the controller is content or has had its iterations."""

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.geometry.rigid import RigidTransform
from softform_shaping.camera import Intrinsics, Picture
from softform_shaping.controllers import Controller, Estimate
from softform_shaping.guard import StressError, StressGuard
from softform_shaping.poses import moved
from softform_shaping.segmentation import cloud_of, dominant_hue
from softform_shaping.sighting import SightingError

__all__ = ["Iteration", "Rig", "Shaped", "shape_object"]


class Rig(Protocol):
    """Two grippers that move, an object between them, and a camera that looks at it."""

    @property
    def poses(self) -> Array:
        """Where the grippers are, (12,)."""

    @property
    def intrinsics(self) -> Intrinsics:
        """Of the camera."""

    @property
    def believed(self) -> RigidTransform:
        """Pose of the camera, as calibrated."""

    @property
    def random(self) -> np.random.Generator:
        """For what is drawn of the cloud."""

    def look(self) -> Picture:
        """What the camera sees now."""

    def move(self, poses: Array) -> Array:
        """Bring the grippers to poses (12,), or as near as they come, and return where they are.

        Raises:
            SoftformError: If they do not move, or must not.
        """

    def errors(self, target: Array) -> tuple[float, float]:
        """Root mean square and largest distance of the true object from a target (V, 3) m, mm; NaN if nobody knows."""


@dataclass(frozen=True, eq=False)
class Iteration:
    """What one iteration found and did.

    Attributes:
        estimate: Of the controller.
        true_rms: Of the true object, mm; NaN where nobody knows it.
        true_max: Largest distance of it, mm.
        stress: Largest von Mises stress of the model, Pa.
        poses: (12,) of the grippers.
        seconds: Of computing, processor time: image, alignment, correction, control.
        steps: The same by the steps of Table 5: simulation, image, correction, control, s.
    """

    estimate: Estimate
    true_rms: float
    true_max: float
    stress: float
    poses: Array
    seconds: float
    steps: tuple[float, float, float, float]


@dataclass(frozen=True, eq=False)
class Shaped:
    """How a task went.

    Attributes:
        iterations: In their order.
        ended: Why it ended: `done`; `nearest`, if no move brings it nearer and it is not near; `iterations`, `stress`,
            or what went wrong.
        travel: Of both grippers, m.
        error: What went wrong, if something did.
    """

    iterations: list[Iteration] = field(default_factory=list)
    ended: str = "iterations"
    travel: float = 0.0
    error: SoftformError | None = None

    @property
    def last(self) -> Iteration:
        """The last one."""
        return self.iterations[-1]


_PICTURES = 3
"""That have to show something else than the object at one place before that is believed."""
_SHARES = (1.0, 0.5, 0.25, 0.125)
"""Of a move that are tried, if the guard does not allow the whole."""


def _allowed(guard: StressGuard, poses: Array, variation: Array) -> Array:
    """Poses (12,) after a variation (12,), or after as much of it as the guard allows; errors as of `require`."""
    for share in _SHARES[:-1]:
        with suppress(StressError):
            wanted = moved(poses, share * variation)
            guard.require(wanted, poses)
            return wanted
    wanted = moved(poses, _SHARES[-1] * variation)
    guard.require(wanted, poses)
    return wanted


def shape_object(
    controller: Controller,
    rig: Rig,
    most: int,
    stress_limit: float = np.inf,
    watch: Callable[[Iteration], None] = lambda iteration: None,
) -> Shaped:
    """Bring the object of a rig to the controller's target.

    A move that the model says would stress the object beyond the limit is not made (Eq. 9): the guard acts before, not
    after. A shorter one of the same kind is, if the limit allows that.

    Args:
        controller: With its task.
        rig: With the object.
        most: Iterations.
        stress_limit: Von Mises stress of the model, Pa.
        watch: Called after each iteration.

    Raises:
        SoftformError: If the first picture does not show the object between both grippers.
    """
    guard = StressGuard(controller.task.model, stress_limit)
    picture = rig.look()
    hue = dominant_hue(picture)
    poses, done, travel, ended = rig.poses, [], 0.0, "iterations"
    failed: SoftformError | None = None
    for number in range(most):
        began = time.process_time()
        try:
            for pictures in range(_PICTURES, 0, -1):
                cloud = cloud_of(picture, hue, rig.intrinsics, rig.believed, rig.random)
                seen = time.process_time()
                try:
                    estimate = controller.observe(poses, cloud)
                    break
                except SightingError:  # a patch without depth is elsewhere in the next picture
                    if pictures == 1:
                        raise
                    picture = rig.look()
            corrected = time.process_time()
            variation = controller.variation()
            ended_at = time.process_time()
            stress = guard.stress(estimate.shape)
        except SoftformError as error:
            ended, failed = str(error), error
            break
        seconds, simulating = ended_at - began, estimate.simulating
        steps = (simulating, seen - began, corrected - seen - simulating, ended_at - corrected)
        rms, largest = rig.errors(controller.task.target)
        iteration = Iteration(estimate, rms, largest, stress, poses, seconds, steps)
        done.append(iteration)
        watch(iteration)
        if estimate.is_done:
            ended = "done" if estimate.is_near else "nearest"
            break
        if number == most - 1:
            break
        try:
            wanted = _allowed(guard, poses, variation)
            before, poses = poses, rig.move(wanted)
            travel += float(np.linalg.norm((poses - before).reshape(2, 2, 3)[:, 0], axis=1).sum())
            picture = rig.look()
        except StressError as error:
            ended, failed = "stress", error
            break
        except SoftformError as error:
            ended, failed = str(error), error
            break
    return Shaped(done, ended, travel, failed)
