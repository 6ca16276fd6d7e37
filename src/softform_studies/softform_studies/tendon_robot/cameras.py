"""Two depth cameras that look at the tendon robot, and what becomes of their clouds (paper 004, Sec. V-A).

Each is calibrated by five points that are identified in its cloud: the tip at home and the corners of the base. Their
clouds are brought into the robot's frame, cut to a hemisphere of the robot's length and a margin about its base,
concatenated, and drawn at random down to 512 points.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.geometry.rigid import RigidTransform, kabsch
from softform_core.robots import Robot
from softform_rig.reality import ScannerDescription
from softform_rig.scanner import Scanner
from softform_studies.tendon_robot.shapes import CLOUD_POINTS

_EYES = np.array([(0.36, -0.10, 0.22), (-0.10, 0.36, 0.22)])
"""Where the cameras are, m: a right angle and 0.5 m apart, as near as they see all of the robot."""
_MIDDLE = (0.0, 0.0, 0.08)
_RADIUS = 0.23
"""Of the sphere about the middle that a camera covers, m."""
_RAYS = 260
"""A side: one point every 1.8 mm. The paper's cameras see finer; what is seen is drawn down to 512 points anyway."""
_NOISE, _GRAZING = 0.0005, 80.0  # m along the ray, degrees
_IDENTIFIED = 0.0007
"""Standard deviation of each coordinate of an identified point, m."""
_CORNERS = np.array([(0.04, 0.04, 0.0), (-0.04, 0.04, 0.0), (-0.04, -0.04, 0.0), (0.04, -0.04, 0.0)])
"""Of the printed structure at the base, m."""
MARGIN = 0.02
"""Epsilon, m."""
_FEWEST = 50
"""Points of the robot that a camera which works sees at least; of a straight one it sees some hundreds."""


@dataclass(frozen=True, eq=False)
class Camera:
    """One camera: what it sees, and where it is believed to be.

    Attributes:
        scanner: In its own frame.
        motion: Takes its frame into the robot's, as calibrated.
    """

    scanner: Scanner
    motion: RigidTransform


class Cameras:
    """Both cameras, calibrated.

    Args:
        robot: What they look at.
        faces: (F, 3) triangles of its skin.
        seed: Of the calibration.
        noise: Further seed, of what they see: one for each worker.
    """

    def __init__(self, robot: Robot, faces: NDArray[np.integer], seed: int, noise: int) -> None:
        self._faces, self._length = faces, robot.body.size
        places = np.vstack([[0.0, 0.0, self._length], _CORNERS])
        self.cameras = []
        random = np.random.default_rng(seed)
        poses = [_looking_at(eye, np.array(_MIDDLE)) for eye in _EYES]
        first, second = (
            pose.apply_inverse(places) + _IDENTIFIED * random.standard_normal(places.shape) for pose in poses
        )
        base_from_first = kabsch(first, places)
        first_from_second = kabsch(second, first)
        motions = (base_from_first, base_from_first.after(first_from_second))
        for index, (pose, motion) in enumerate(zip(poses, motions, strict=True)):
            described = ScannerDescription(
                viewpoints=[tuple(_EYES[index])], look_at=_MIDDLE, rays=_RAYS, noise=_NOISE, grazing_angle=_GRAZING,
                holes=0.0,
            )  # fmt: skip
            self.cameras.append(Camera(Scanner(described, pose, _RADIUS, seed=2 * noise + index), motion))
        self._random = np.random.default_rng([noise, 1])

    def cloud(self, vertices: Array) -> NDArray[np.float32]:
        """Return 512 points (512, 3) m in the robot's frame of a skin with vertices (V, 3) m.

        Raises:
            SoftformError: If the cameras see fewer, or one of them hardly anything.
        """
        seen = [
            self._within(each.motion.apply(each.scanner.scan(vertices, self._faces).points)) for each in self.cameras
        ]
        for number, one in enumerate(seen, 1):
            if len(one) < _FEWEST:  # the other one's side alone would be a shape of its own
                raise SoftformError(
                    f"Camera {number} of {len(seen)} sees {len(one)} points of the robot.",
                    "See whether it is on, uncovered, and still where it was calibrated.",
                )
        points = np.concatenate(seen)
        if len(points) < CLOUD_POINTS:
            raise SoftformError(
                f"The cameras see {len(points)} points of the robot; {CLOUD_POINTS} are needed.",
                "Look whether one is covered, or turned away.",
            )
        return points[self._random.choice(len(points), CLOUD_POINTS, replace=False)].astype(np.float32)

    def _within(self, points: Array) -> Array:
        """Cut points (n, 3) m to the hemisphere."""
        reach = self._length + MARGIN
        return points[(np.vecdot(points, points) <= reach**2) & (points[:, 2] >= -MARGIN)]


def _looking_at(eye: Array, middle: Array) -> RigidTransform:
    """Return the pose of a camera, z towards what it looks at."""
    forward = (middle - eye) / np.linalg.norm(middle - eye)
    side = np.cross(forward, [0.0, 0.0, 1.0])
    side /= np.linalg.norm(side)
    axes = np.stack([side, np.cross(forward, side), forward], axis=1)
    return RigidTransform(Rotation.from_matrix(axes).as_matrix(), eye)
