"""Five poses (paper 002, Fig. 8): the model beside the real arm by silhouettes from one viewpoint, and by nodes."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.geometry.triangle_tree import TriangleTree
from softform_core.robots import TIP
from softform_core.units import MM_PER_M
from softform_studies.helix.arms import RATE, LedArm, RealArm

__all__ = ["POSES", "Posed", "node_errors", "posed", "silhouette", "silhouette_iou"]

_HELD = 3.0  # s in which a pose is taken and held
_VIEW = (320, 400)
_OPENING = 30.0  # degrees, of the camera


class Pose(NamedTuple):
    """Where points of the arm are wanted.

    Attributes:
        name: For people.
        along: (m,) of its points on the side, 0 at the base ... 1; the last point is the tip.
        targets: (m + 1, 3) over the arm's length.
    """

    name: str
    along: tuple[float, ...]
    targets: tuple[tuple[float, float, float], ...]


POSES = (
    Pose("one point, aside", (), ((0.32, 0.1, 0.85),)),
    Pose("one point, raised", (), ((-0.55, 0.2, 0.55),)),
    Pose("two points, out of reach", (0.5,), ((-0.5, 0.0, 0.35), (0.6, 0.0, 0.9))),
    Pose("two points, far out of reach", (0.45,), ((1.0, 0.3, 0.2), (1.2, -0.4, 0.6))),
    Pose("three points, out of reach", (0.3, 0.65), ((0.4, 0.0, 0.3), (-0.3, 0.0, 0.6), (0.5, 0.0, 1.2))),
)
"""Two with one feature point and three with several, extreme targets, as in the paper, which prints no place."""


@dataclass(frozen=True, eq=False)
class Posed:
    """A pose as model and reality took it.

    Attributes:
        pose: Which.
        missed_mm: Root mean square distance of the points from their targets, in the model.
        node_mm: (V,) distances of the model's vertices from where the reality has them.
        model: Silhouette of the model, see `silhouette`.
        real: Silhouette of the reality.
    """

    pose: Pose
    missed_mm: float
    node_mm: Array
    model: NDArray[np.bool_]
    real: NDArray[np.bool_]

    @property
    def iou(self) -> float:
        """Intersection of both silhouettes over their union."""
        return silhouette_iou(self.model, self.real)

    def told(self) -> str:
        """A line on it."""
        return f"pose, {self.pose.name}: overlap {self.iou:.2f}, nodes {self.node_mm.mean():.1f} mm apart"


def posed(arm: LedArm, make_real: Callable[[], RealArm]) -> list[Posed]:
    """Take all poses, each from rest, by physics alone.

    Args:
        arm: The model.
        make_real: Makes a real arm at rest.

    Raises:
        NoEquilibriumError: If model or reality has no balance in one of them.
    """
    length, found = arm.robot.body.size, []
    for pose in POSES:
        real = make_real()
        points = arm.points_on([*[""] * len(pose.along), TIP], pose.along)
        targets = length * np.array(pose.targets)
        arm.begin()
        for _ in range(round(_HELD * RATE)):
            tick = arm.lead(points, targets)
            real.follow(tick.command)
        for _ in range(round(RATE)):  # motors are late
            real.follow(tick.command)
        model, true = arm.outside(tick.command), real.outside()
        errors = node_errors(model, arm, true, real)
        views = silhouette(model, arm.faces, length), silhouette(true, real.faces, length)
        found.append(Posed(pose, tick.error_mm, errors, *views))
    return found


def node_errors(model: Array, arm: LedArm, true: Array, real: RealArm) -> Array:
    """Distances (V,) mm of the model's vertices (V, 3) m from the same material places of the real outside.

    Which places are the same is told by where both lie at rest: meshes may differ.
    """
    triangle, _, weights = TriangleTree(real.at_rest()[real.faces]).query(arm.at_rest())
    there = np.einsum("vc,vcx->vx", weights, true[real.faces[triangle]])
    return MM_PER_M * np.linalg.norm(model - there, axis=1)


def silhouette(vertices: Array, faces: NDArray[np.int32], length: float) -> NDArray[np.bool_]:
    """What a camera sees (h, w) of an outside (V, 3) m with faces (F, 3), from the side, z downwards."""
    open3d = import_module("open3d")  # here, as it takes a second
    tensor, scene = open3d.core.Tensor.from_numpy, open3d.t.geometry.RaycastingScene()
    scene.add_triangles(tensor(vertices.astype(np.float32)), tensor(faces.astype(np.uint32)))
    width, height = _VIEW
    eye, centre = [0.0, -2.6 * length, 0.45 * length], [0.0, 0.0, 0.45 * length]
    rays = scene.create_rays_pinhole(
        fov_deg=_OPENING, center=centre, eye=eye, up=[0.0, 0.0, 1.0], width_px=width, height_px=height
    )
    return np.asarray(np.isfinite(scene.cast_rays(rays)["t_hit"].numpy()))


def silhouette_iou(one: NDArray[np.bool_], other: NDArray[np.bool_]) -> float:
    """Intersection of two silhouettes of one size over their union."""
    return float((one & other).sum() / max(int((one | other).sum()), 1))
