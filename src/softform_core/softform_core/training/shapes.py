"""Training data of N_fk: simulated shapes as control points of their B-spline surfaces (paper 000, Sec. V-B1).

By the symmetry of the resting body every simulated shape is several shapes.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.geometry.triangle_tree import TriangleTree
from softform_core.robots import Robot
from softform_core.simulation.store import open_simulation
from softform_core.surface.fit import FitReport
from softform_core.units import MM_PER_M

__all__ = ["TrainingShapes", "distances_from_mesh", "load_training_shapes"]

# Fewer shapes than this leave a part of the split empty.
_FEWEST_SHAPES = 16

_ROUNDING = 1e-9  # of the range: an image that the actuation map reaches comes back within so much
_JUDGED_BETWEEN = 8
_SAMPLES = 10_000


@dataclass(frozen=True)
class TrainingShapes:
    """Pairs of actuation and shape.

    Attributes:
        actuation: (n, k).
        control_points: (n, C, 3) mm, of all patches.
        fit: Distances between the surfaces and the simulated vertices, mm.
        between: Largest distance of a dense grid on the surfaces from the simulated mesh, of the worst shapes, mm.
        source: Name of the store.
        provenance: Attributes of the store.
    """

    actuation: Array
    control_points: Array
    fit: FitReport
    between: float
    source: str
    provenance: dict[str, Any]


def load_training_shapes(robot: Robot, path: Path) -> TrainingShapes:
    """Fit a surface to every converged shape of a simulation, which must be of just this robot.

    Raises:
        SoftformError: If the store is missing, damaged, made for another robot, or holds too few shapes.
    """
    store = open_simulation(path, robot)
    actuation, vertices = store.converged()
    if len(actuation) < _FEWEST_SHAPES:
        raise SoftformError(
            f"{path} holds {len(actuation)} converged shapes, training needs {_FEWEST_SHAPES} at least.",
            f"Add to them: {robot.first_command} --output {path}",
        )
    patches = robot.patches
    mesh = robot.parametrised(store.rest_vertices, store.faces)
    vertices = vertices * MM_PER_M
    control_points = mesh.fit(vertices)
    fit = mesh.report(vertices, control_points)
    worst = np.argsort(fit.max)[-_JUDGED_BETWEEN:]
    points = patches.evaluate(control_points[worst], patches.samples(_SAMPLES))
    between = max(
        distances_from_mesh(surface, vertices[shape], store.faces).max()
        for shape, surface in zip(worst, points, strict=True)
    )
    return TrainingShapes(actuation, control_points, fit, float(between), path.name, store.attributes)


def distances_from_mesh(points: Array, vertices: Array, faces: NDArray[np.integer]) -> Array:
    """Return distances (P,) of points (P, 3) from the closest points of a mesh, (V, 3) and (F, 3)."""
    _, closest, _ = TriangleTree(vertices[faces]).query(points)
    return np.linalg.norm(points - closest, axis=1)


def symmetric_images(robot: Robot, actuation: Array, control_points: Array) -> list[tuple[Array, Array]]:
    """Return all images of shapes, (n, m) and (n, C, 3) mm, under the resting body's symmetries; identity first.

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
