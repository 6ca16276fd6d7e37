"""Training data of N_fk: simulated shapes as control points of their B-spline surfaces (paper 000, Sec. V-B1)."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.geometry.triangle_tree import TriangleTree
from softform_core.robots import Robot
from softform_core.simulation.store import open_simulation
from softform_core.surface.fit import FitReport
from softform_core.units import MM_PER_M

# Fewer shapes than this leave a part of the split empty.
_FEWEST_SHAPES = 16

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
    provenance: dict[str, object]


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
            f"Import or simulate more: softform simulate --robot {robot.given_as} --samples 1000",
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
    """Distances (P,) of points (P, 3) from the closest points of a mesh with vertices (V, 3) and faces (F, 3)."""
    _, closest, _ = TriangleTree(vertices[faces]).query(points)
    return np.linalg.norm(points - closest, axis=1)
