"""A structured-light scanner that looks at a surface: rays, occlusion, range noise, outliers and holes.

Points come in the scanner's own frame, metres. A ray returns the first surface it meets, so that hidden parts are never
seen; it returns nothing where the surface is seen from behind, at a grazing angle, or within a hole (gloss or shadow
that a real scanner cannot read: spheres around random points of the surface, other ones in each scan).
"""

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from softform_core.arrays import Array
from softform_core.geometry.rigid import RigidTransform
from softform_core.robots import Robot
from softform_rig.reality import ScannerDescription

if TYPE_CHECKING:
    from open3d.t.geometry import RaycastingScene

_STANDING = 0.6
"""Of the height of a body that is slimmer than high: its ends are wide, too."""


@dataclass(frozen=True)
class Scan:
    """One scan in the scanner's frame.

    Attributes:
        points: (N, 3) m.
        normals: (N, 3) unit vectors out of the surface, as a scanner's export gives them.
        is_outlier: (N,) which points are false, for evaluation only; it is not exported.
    """

    points: Array
    normals: Array
    is_outlier: NDArray[np.bool_]


def half_size(robot: Robot) -> float:
    """How far a robot at rest reaches from its middle, m: half a sheet's diagonal, a little more than half a height."""
    return max(0.5 * float(np.linalg.norm(robot.extent)), _STANDING * robot.body.size)


class Scanner:
    """A scanner with its own random noise.

    Args:
        description: viewpoints, resolution, noise and holes.
        pose: frame in which its points come.
        radius: Radius of the sphere around `look_at` that the scanner covers, m.
        seed: Seed of noise, outliers and holes.
    """

    def __init__(self, description: ScannerDescription, pose: RigidTransform, radius: float, seed: int) -> None:
        self.description = description
        self.pose = pose
        self._radius = radius
        self._random = np.random.default_rng(seed)
        self._registration = np.random.default_rng([seed, 1])
        self._open3d = import_module("open3d")  # here, as it takes a second, and rigs without a scanner do not need it

    def scan(self, vertices: Array, faces: NDArray[np.integer]) -> Scan:
        """Look at a surface, (V, 3) m in the robot's frame and (F, 3), from all viewpoints; merge what is seen."""
        described = self.description
        tensor = self._open3d.core.Tensor.from_numpy
        scene: RaycastingScene = self._open3d.t.geometry.RaycastingScene()
        scene.add_triangles(tensor(vertices.astype(np.float32)), tensor(faces.astype(np.uint32)))
        seen = [self._look(scene, vertices[faces], np.array(viewpoint)) for viewpoint in described.viewpoints]
        points, normals, rays = (np.concatenate(parts) for parts in zip(*seen, strict=True))
        kept = self._outside_holes(points)
        points, normals, rays = points[kept], normals[kept], rays[kept]
        is_outlier = self._random.random(len(points)) < described.outlier_fraction
        along = described.noise * self._random.standard_normal(len(points))
        along[is_outlier] += self._random.uniform(-described.outlier_range, described.outlier_range, is_outlier.sum())
        points = points + along[:, None] * rays
        points, normals = self._registered(points, normals)
        return Scan(self.pose.apply_inverse(points), normals @ self.pose.rotation, is_outlier)

    def _registered(self, points: Array, normals: Array) -> tuple[Array, Array]:
        """Points and normals as this scan's registration has them."""
        described, pivot = self.description, np.array(self.description.look_at)
        turn = Rotation.from_rotvec(described.registration_turn * self._registration.standard_normal(3)).as_matrix()
        shift = described.registration_shift * self._registration.standard_normal(3)
        return (points - pivot) @ turn.T + pivot + shift, normals @ turn.T

    def _look(self, scene: "RaycastingScene", corners: Array, eye: Array) -> tuple[Array, Array, Array]:
        """Points, normals and rays (n, 3) of one viewpoint, of the triangles' corners (F, 3, 3) that are hit."""
        rays = self._bundle(eye)
        cast = np.hstack([np.broadcast_to(eye, rays.shape), rays]).astype(np.float32)
        triangle = scene.cast_rays(self._open3d.core.Tensor.from_numpy(cast))["primitive_ids"].numpy()
        hit = triangle != scene.INVALID_ID
        rays, (a, b, c) = rays[hit], corners[triangle[hit]].transpose(1, 0, 2)
        normals = np.cross(b - a, c - a)
        normals /= np.linalg.norm(normals, axis=1, keepdims=True)
        facing = -np.einsum("nd,nd->n", normals, rays)
        readable = facing > np.cos(np.radians(self.description.grazing_angle))
        a, rays, normals, facing = a[readable], rays[readable], normals[readable], facing[readable]
        # The scene computes in single precision: where a ray meets the plane of its triangle is taken in double.
        distance = np.einsum("nd,nd->n", eye - a, normals) / facing
        return eye + distance[:, None] * rays, normals, rays

    def _bundle(self, eye: Array) -> Array:
        """Unit rays (n, 3) of one viewpoint over the covered sphere, shifted at random by less than their spacing."""
        forward = np.array(self.description.look_at) - eye
        distance = float(np.linalg.norm(forward))
        forward /= distance
        side = np.cross(forward, [0.0, 1.0, 0.0] if abs(forward[1]) < 0.9 else [1.0, 0.0, 0.0])
        side /= np.linalg.norm(side)
        spacing = 2.0 * self._radius / self.description.rays
        steps = -self._radius + spacing * (np.arange(self.description.rays) + self._random.random())
        across, up = np.meshgrid(steps, steps)
        rays = distance * forward + across.reshape(-1, 1) * side + up.reshape(-1, 1) * np.cross(side, forward)
        return rays / np.linalg.norm(rays, axis=1, keepdims=True)

    def _outside_holes(self, points: Array) -> NDArray[np.bool_]:
        kept = np.ones(len(points), dtype=bool)
        if len(points) == 0:
            return kept
        for _ in range(self._random.poisson(self.description.holes)):
            centre = points[self._random.integers(len(points))]
            radius = self.description.hole_radius * self._random.uniform(0.6, 1.4)
            kept &= np.einsum("nd,nd->n", points - centre, points - centre) > radius**2
        return kept
