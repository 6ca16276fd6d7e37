"""One task on the rig: look, estimate, move, until the controller is content or has had its iterations."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_shaping.controllers import Controller, Estimate
from softform_shaping.model import HeldModel
from softform_shaping.poses import moved
from softform_shaping.scene import Scene
from softform_shaping.segmentation import cloud_of, dominant_hue

__all__ = ["Iteration", "Shaped", "shape_object"]


@dataclass(frozen=True, eq=False)
class Iteration:
    """What one iteration found and did.

    Attributes:
        estimate: Of the controller.
        true_rms: Of the true object, mm.
        true_max: Largest distance of it, mm.
        stress: Largest von Mises stress of the model, Pa.
        poses: (12,) of the grippers.
        seconds: Of computing, processor time: image, alignment, correction, control.
    """

    estimate: Estimate
    true_rms: float
    true_max: float
    stress: float
    poses: Array
    seconds: float


@dataclass(frozen=True, eq=False)
class Shaped:
    """How a task went.

    Attributes:
        iterations: In their order.
        ended: Why it ended: `done`, `iterations`, `stress`, or what went wrong.
        travel: Of both grippers, m.
    """

    iterations: list[Iteration] = field(default_factory=list)
    ended: str = "iterations"
    travel: float = 0.0

    @property
    def last(self) -> Iteration:
        """The last one."""
        return self.iterations[-1]


def shape_object(
    controller: Controller,
    scene: Scene,
    most: int,
    stress_limit: float = np.inf,
    watch: Callable[[Iteration], None] = lambda iteration: None,
) -> Shaped:
    """Bring the object of a rig to the controller's target.

    A move that the model says would stress the object beyond the limit is not made (Eq. 9): the guard acts before, not
    after.

    Args:
        controller: With its task.
        scene: The rig.
        most: Iterations.
        stress_limit: Von Mises stress of the model, Pa.
        watch: Called after each iteration.

    Raises:
        SoftformError: If the first picture does not show the object between both grippers.
    """
    model: HeldModel = controller.task.model
    picture = scene.look()
    hue = dominant_hue(picture)
    intrinsics = scene.camera.intrinsics
    poses, done, travel, ended = scene.truth.poses, [], 0.0, "iterations"
    for number in range(most):
        began = time.process_time()
        try:
            cloud = cloud_of(picture, hue, intrinsics, scene.believed, scene.random)
            estimate = controller.observe(poses, cloud)
            variation = controller.variation()
        except SoftformError as error:
            ended = str(error)
            break
        seconds = time.process_time() - began
        rms, largest = scene.truth.errors(controller.task.target)
        stress = float(model.stresses(estimate.shape).max())
        iteration = Iteration(estimate, rms, largest, stress, poses, seconds)
        done.append(iteration)
        watch(iteration)
        if estimate.is_done:
            ended = "done"
            break
        if number == most - 1:
            break
        try:
            wanted = moved(poses, variation)
            if (
                np.isfinite(stress_limit)
                and model.stresses(model.shape(wanted, model.shape(poses))).max() > stress_limit
            ):
                ended = "stress"
                break
            before, poses = poses, scene.move(wanted)
        except SoftformError as error:
            ended = str(error)
            break
        travel += float(np.linalg.norm((poses - before).reshape(2, 2, 3)[:, 0], axis=1).sum())
        picture = scene.look()
    return Shaped(done, ended, travel)
