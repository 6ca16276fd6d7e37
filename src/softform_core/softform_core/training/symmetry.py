"""Symmetry of the resting body: every simulated shape is several shapes."""

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.robots import Robot

_ROUNDING = 1e-9  # of the range: an image that the actuation map reaches comes back within so much


def symmetric_images(robot: Robot, actuation: Array, control_points: Array) -> list[tuple[Array, Array]]:
    """All images of shapes under the symmetries of the resting body; the first is the shapes themselves.

    A symmetry counts if the actuation map reaches the image of every actuation.

    Args:
        robot: Robot whose body and actuation map have the symmetries.
        actuation: (n, m) Pa.
        control_points: (n, rows, columns, 3) mm.

    Returns:
        Pairs like the arguments.
    """
    values = robot.actuators_of(actuation)
    slack = _ROUNDING * (robot.actuator_max - robot.actuator_min)
    images = []
    for image, shapes in robot.body.symmetric_images(values, control_points):
        found = robot.actuation_of(image)
        if (np.abs(robot.actuators_of(found) - image) <= slack).all():
            images.append((found, shapes))
    return images


def orbits(robot: Robot, actuation: Array) -> NDArray[np.int64]:
    """Label of each actuation (n, m), equal for those that are images of each other, (n,)."""
    nothing = np.zeros((len(actuation), robot.surface.rows, robot.surface.columns, 3))
    images = np.stack([image for image, _ in symmetric_images(robot, actuation, nothing)])
    # The smallest of the images, in lexicographic order, names the orbit.
    order = np.round(images, 6).transpose(1, 0, 2)
    names = np.array([min(map(tuple, candidates)) for candidates in order])
    return np.unique(names, axis=0, return_inverse=True)[1].ravel()
