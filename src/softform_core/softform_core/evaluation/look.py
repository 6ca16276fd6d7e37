"""Description of how a file with a shape was read and lies on a robot, shown before anything moves."""

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.spatial import cKDTree
from scipy.spatial.transform import Rotation

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.geometry.rigid import RigidTransform, centroid
from softform_core.inverse.counterpart import beside_share
from softform_core.registration.rest_surface import rest_surface
from softform_core.robots import Robot
from softform_core.shapes.read import UNITS, Unit
from softform_core.shapes.shape import Shape
from softform_core.surface.mesh import Indices, border_loops, connected, doubled_areas, parts_of, with_seams_joined
from softform_core.units import MM_PER_M

_SAMPLES = 5000
_APART = 5.0
"""Distance over the usual spacing of a cloud beyond which points are another part."""


@dataclass(frozen=True)
class Look:
    """Facts about a shape that was read.

    Attributes:
        points: Points of a cloud, or vertices of a mesh.
        triangles: 0 of a cloud.
        area_mm2: Area, mm^2; None for a cloud.
        box_mm: Lowest and highest x, y and z, at the pose.
        parts: Parts that hang together; of a cloud, that are near each other.
        holes: Holes in the largest part of a mesh, besides its rim; None for a cloud.
        repaired: Parts of the file that were left out or mended.
        unit_guess: Unit that makes the shape most nearly as large as the robot.
        beside_robot_share: Share that lies beside the resting robot, 0 … 1; None where the robot has no surface that is
            known, or the pose is still to be solved for.
        pose: Pose of the shape.
    """

    points: int
    triangles: int
    area_mm2: float | None
    box_mm: list[list[float]]
    parts: int
    holes: int | None
    repaired: list[str]
    unit_guess: Unit
    beside_robot_share: float | None
    pose: str

    def line(self) -> str:
        """Return all but `repaired` and `pose` in a sentence."""
        size = " x ".join(f"{high - low:.4g}" for low, high in zip(*self.box_mm, strict=True))
        words = [f"{self.points} points", f"{size} mm", f"{self.parts} part{'s' * (self.parts != 1)}"]
        if self.triangles:
            words[1:1] = [f"{self.triangles} triangles", f"{self.area_mm2:.0f} mm²"]
            words.append(f"{self.holes or 'no'} hole{'s' * (self.holes != 1)}")
        if self.beside_robot_share is not None:
            words.append(f"{100.0 * self.beside_robot_share:.0f} % of the target lies beside the robot")
        return ", ".join(words)


def look_at(shape: Shape, robot: Robot, pose: str = "fixed", repaired: Sequence[str] = (), unit: Unit = "m") -> Look:
    """Look at a shape, m, that lies where it is to be reached by `robot`.

    Args:
        shape: The shape at its pose.
        robot: Robot that is to take the shape.
        pose: Description of the pose; "free": it is still to be solved for.
        repaired: Notes of its reader.
        unit: Unit in which its file was read.
    """
    faces = np.empty((0, 3), dtype=np.int64) if shape.faces is None else shape.faces
    parts, holes = _parts_and_holes(shape.points, faces) if len(faces) else (_parts_of_cloud(shape), None)
    size = float(np.linalg.norm(shape.extent)) * (MM_PER_M if unit == "mm" else 1.0)
    ratios = [size / (MM_PER_M if one == "mm" else 1.0) / robot.body.size for one in UNITS]
    beside = None
    # An imported body may have no data yet, and a computer that only drives has no simulators.
    with contextlib.suppress(SoftformError, ModuleNotFoundError):
        if robot.surfaces and pose != "free":
            beside = round(beside_share(shape, resting_mesh(robot), RigidTransform()), 4)
    return Look(
        len(shape.points),
        len(faces),
        round(0.5 * float(doubled_areas(shape.points, faces).sum()) * MM_PER_M**2, 1) if len(faces) else None,
        np.round(MM_PER_M * np.stack([shape.points.min(axis=0), shape.points.max(axis=0)]), 3).tolist(),
        parts,
        holes,
        list(repaired),
        UNITS[int(np.abs(np.log(ratios)).argmin())],
        beside,
        pose,
    )


def resting_mesh(robot: Robot) -> Shape:
    """Return the surface of a resting robot as a mesh, m.

    Raises:
        SoftformError: As `rest_surface`.
    """
    points = rest_surface(robot).points
    return Shape.from_mesh(points, robot.patches.triangles(len(points)))


def moved(name: str, motion: RigidTransform, shape: Shape) -> tuple[Shape, str]:
    """Return a shape, m, after a motion of this name, and what that did."""
    shift = MM_PER_M * (motion.apply(centroid(shape.points)) - centroid(shape.points))
    angle = np.degrees(Rotation.from_matrix(motion.rotation).magnitude())
    x, y, z = np.round(shift, 2) + 0.0  # no -0
    return (
        shape.transformed(motion.rotation, motion.translation),
        f"{name}: moved by ({x:.2f}, {y:.2f}, {z:.2f}) mm, turned by {angle:.2f} degrees",
    )


def _parts_and_holes(points: Array, faces: Indices) -> tuple[int, int]:
    """Return the connected parts of a mesh, and the largest one's loops of border edges beside its rim."""
    faces = with_seams_joined(points, faces)
    parts, part = parts_of(faces)
    largest = faces[part == np.bincount(part, doubled_areas(points, faces)).argmax()]
    return parts, max(len(border_loops(largest)) - 1, 0)


def _parts_of_cloud(shape: Shape) -> int:
    points = np.unique(shape.sample(_SAMPLES).points, axis=0)  # what was scanned twice would have no spacing
    tree = cKDTree(points)
    spacing = float(np.median(tree.query(points, 2)[0][:, 1]))
    near = tree.query_pairs(_APART * spacing, output_type="ndarray")
    return int(connected(near, len(points)).max()) + 1
