"""Symmetry of the resting body: every simulated shape is several shapes."""

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.robots import Robot

_ROUNDING = 1e-9  # of the range: an image that the actuation map reaches comes back within so much


def symmetric_images(robot: Robot, actuation: Array, control_points: Array) -> list[tuple[Array, Array]]:
    """All images of shapes, (n, m) and (n, C, 3) mm, under symmetries of the resting body; first they themselves.

    A symmetry counts if the actuation map reaches the image of every actuation. It may bring one patch to another,
    which bodies do not tell: of several patches only the shapes themselves are taken.
    """
    if len(robot.surfaces) > 1:
        return [(actuation, control_points)]
    values = robot.actuators_of(actuation)
    (grid,) = robot.patches.control_grids(control_points.reshape(len(control_points), -1, 3))
    slack = _ROUNDING * (robot.actuator_max - robot.actuator_min)
    images = []
    for image, shapes in robot.body.symmetric_images(values, grid):
        found = robot.actuation_of(image)
        if (np.abs(robot.actuators_of(found) - image) <= slack).all():
            images.append((found, shapes.reshape(control_points.shape)))
    return images


def orbits(robot: Robot, actuation: Array) -> NDArray[np.int64]:
    """Label of each actuation (n, m), equal for those that are images of each other, (n,)."""
    nothing = np.zeros((len(actuation), robot.patches.control_points, 3))
    images = np.stack([image for image, _ in symmetric_images(robot, actuation, nothing)])
    # The smallest of the images, in lexicographic order, names the orbit.
    order = np.round(images, 6).transpose(1, 0, 2)
    names = np.array([min(map(tuple, candidates)) for candidates in order])
    return np.unique(names, axis=0, return_inverse=True)[1].ravel()
