"""Judges predictions by a reality's true surfaces at held-out actuations; millimetres."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.forward.pipeline import ForwardPipeline
from softform_core.forward.rbf_warp import SimToReal
from softform_core.inverse.closest_points import ClosestPoints, closest_points_on
from softform_core.networks.mlp_weights import MlpWeights
from softform_core.robots import Robot
from softform_core.shapes.shape import Shape
from softform_studies.sim_to_real.make_frames import TrueSurfaces

JUDGED_POINTS = 2500


@dataclass(frozen=True)
class Errors:
    """Distances (n, P) mm of n predicted surfaces from the true ones."""

    distances: Array

    @property
    def mean_mm(self) -> float:
        """Mean over all points of all shapes."""
        return float(self.distances.mean())

    @property
    def max_mm(self) -> float:
        """Mean over the shapes of the largest distance of each."""
        return float(self.distances.max(axis=1).mean())

    @property
    def largest_mm(self) -> float:
        """Largest distance of all."""
        return float(self.distances.max())


class Judge:
    """Measures predictions at the held-out actuations of one reality.

    Attributes:
        patches: The robot's surface.
        uv: (P, 2) parameters of the judged points.
        before: Errors of N_fk alone: the gap between simulation and reality.
    """

    def __init__(self, robot: Robot, forward_kinematics: MlpWeights, held_out: TrueSurfaces) -> None:
        self.patches = robot.patches
        self.uv = self.patches.samples(JUDGED_POINTS)
        self.held_out = held_out
        self.truths = [search_tree(shape, held_out.faces) for shape in held_out.vertices]
        self._forward_kinematics = forward_kinematics
        self.before = self.errors(self.predicted(None))

    def pipeline(self, sim_to_real: SimToReal | None) -> ForwardPipeline:
        """Return forward kinematics to the judged points."""
        return ForwardPipeline(self._forward_kinematics, self.uv, sim_to_real, self.patches)

    def predicted(self, sim_to_real: SimToReal | None) -> Array:
        """Return points (n, P, 3) mm predicted at the held-out actuations, after the commands before them."""
        return self.pipeline(sim_to_real).points(self.effective(sim_to_real))

    def effective(self, sim_to_real: SimToReal | None) -> Array:
        """Return the effective actuations (n, k) at the held-out actuations; commanded ones, if there is no play."""
        actuation = self.held_out.actuation
        return actuation if sim_to_real is None else sim_to_real.effective_after(self.held_out.past, actuation)

    def errors(self, predicted: Array) -> Errors:
        """Return errors of points (n, P, 3) mm, predicted for the held-out actuations in their order."""
        pairs = zip(self.truths, predicted, strict=True)
        return Errors(np.array([truth.query(points).distances for truth, points in pairs]))

    def normal_errors(self, predicted: Array) -> Array:
        """Eq. 21, 1 - n(p) . n(c(p)), (n, P); normals of predicted surfaces (n, P, 3) mm by central differences.

        The paper compares with the scan's normals; these are the true surface's.
        """
        side = math.isqrt(len(self.uv) // len(self.patches))
        grids = predicted.reshape(-1, side, side, 3)
        normals = np.cross(np.gradient(grids, axis=1), np.gradient(grids, axis=2)).reshape(predicted.shape)
        normals /= np.maximum(np.linalg.norm(normals, axis=-1, keepdims=True), 1e-12)
        true = np.array([truth.query(points).normals for truth, points in zip(self.truths, predicted, strict=True)])
        return 1.0 - np.einsum("npx,npx->np", normals, true)

    def figures(self, errors: Errors) -> dict[str, float]:
        """Return the mean and largest error, and by how much each lies below that of N_fk alone (shares)."""
        return {
            "mean_mm": round(errors.mean_mm, 4),
            "max_mm": round(errors.max_mm, 3),
            "mean_reduction": round(1.0 - errors.mean_mm / self.before.mean_mm, 4),
            "max_reduction": round(1.0 - errors.max_mm / self.before.max_mm, 4),
        }


def search_tree(vertices: Array, faces: NDArray[np.integer]) -> ClosestPoints:
    """Return the closest points on a mesh of vertices (V, 3) m; queries in mm."""
    return closest_points_on(Shape(vertices, None, faces.astype(np.int64)))
