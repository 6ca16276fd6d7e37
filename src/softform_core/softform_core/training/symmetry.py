"""Symmetry of a rectangular membrane: every simulated shape is up to eight shapes.

A membrane of one material over equal chambers maps to itself when it is mirrored in x or in y, and if it and its grid
of chambers are square, when x and y are swapped. The image of an equilibrium is that of the permuted pressures.
"""

from itertools import product

import numpy as np
from numpy.typing import NDArray

from softform_core.robots import Robot

Array = NDArray[np.float64]


def symmetric_images(robot: Robot, actuation: Array, control_points: Array) -> list[tuple[Array, Array]]:
    """All images of shapes under the symmetries of the resting robot; the first is the shapes themselves.

    Args:
        robot: Membrane whose u runs along x and v along y.
        actuation: (n, k) Pa.
        control_points: (n, rows, cols, 3) mm, about the centre of the membrane.

    Returns:
        8 pairs like the arguments for a square membrane, 4 for another.
    """
    body, surface = robot.membrane, robot.surface
    swappable = body.width == body.length and body.rows == body.columns and surface.rows == surface.columns
    chambers = actuation.reshape(-1, body.rows, body.columns)
    images = []
    for swapped, mirrored_x, mirrored_y in product(
        (False, True) if swappable else (False,), (False, True), (False, True)
    ):
        pressures, shapes = chambers, control_points
        if swapped:
            pressures, shapes = pressures.transpose(0, 2, 1), shapes.transpose(0, 2, 1, 3)[..., [1, 0, 2]]
        if mirrored_x:
            pressures, shapes = pressures[:, :, ::-1], shapes[:, ::-1] * np.array([-1.0, 1.0, 1.0])
        if mirrored_y:
            pressures, shapes = pressures[:, ::-1], shapes[:, :, ::-1] * np.array([1.0, -1.0, 1.0])
        images.append((pressures.reshape(actuation.shape), shapes))
    return images


def orbits(robot: Robot, actuation: Array) -> NDArray[np.int64]:
    """Label of each actuation (n, k), equal for those that are images of each other, (n,)."""
    nothing = np.zeros((len(actuation), robot.surface.rows, robot.surface.columns, 3))
    images = np.stack([image for image, _ in symmetric_images(robot, actuation, nothing)])
    # The smallest of the images, in lexicographic order, names the orbit.
    order = np.round(images, 6).transpose(1, 0, 2)
    names = np.array([min(map(tuple, candidates)) for candidates in order])
    return np.unique(names, axis=0, return_inverse=True)[1].ravel()
