"""Files of depth cameras: where each is, how well that fits and where it comes from; points to find that by."""

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import AwareDatetime, Field

from softform_capture.depth_cameras.extrinsics import CameraExtrinsics
from softform_core.errors import SoftformError
from softform_core.geometry.rigid import RigidTransform
from softform_core.paths import data_dir
from softform_core.robots.description import Description, NotNegative, Place, Pose
from softform_core.units import MM_PER_M
from softform_core.yaml_files import read_yaml

SECONDS_PER_DAY = 86_400.0
_FURTHEST = 20.0
"""Largest distance of a point from robot or camera, m: no depth camera sees further."""
_REMEDY = "Calibrate again: ./softform calibrate-cameras."
_Counted = Annotated[int, Field(ge=3)]
_File = TypeVar("_File", bound=Description)


class CameraDescription(Description):
    """One camera: the topic of its clouds, their frame, and its pose (x, y, z, qx, qy, qz, qw) in the robot's frame.

    `residual` is the root of the mean squared distance of the `points` that it was calibrated with, m.
    """

    topic: str
    frame_id: str
    pose: Pose
    residual: NotNegative
    points: _Counted

    def registration(self) -> RigidTransform:
        """Return the pose as what moves its clouds."""
        return RigidTransform.from_pose(self.pose)


class CameraCalibration(Description):
    """All cameras of one robot, and when and by which command they were calibrated."""

    robot: str
    created_at: AwareDatetime
    command: str
    cameras: Annotated[dict[str, CameraDescription], Field(min_length=1)]

    @property
    def age(self) -> float:
        """Time since it was made, s."""
        return time.time() - self.created_at.timestamp()

    def check(self, robot: str, largest_residual: float, longest_age: float) -> None:
        """Reject what cannot be trusted any more, by the residual of its cameras, m, and its age, s.

        Raises:
            SoftformError: If it is of another robot, too old, from the future, or a camera's residual is too large.
        """
        if self.robot != robot:
            raise SoftformError(f"The cameras were calibrated for robot '{self.robot}', not '{robot}'.", _REMEDY)
        if not 0.0 <= self.age <= longest_age:
            raise SoftformError(
                f"The calibration of the cameras was made {self.age / SECONDS_PER_DAY:.1f} days ago; "
                f"at most {longest_age / SECONDS_PER_DAY:.1f} are allowed.",
                _REMEDY,
            )
        for name, camera in self.cameras.items():
            if camera.residual > largest_residual:
                raise SoftformError(
                    f"Camera {name} was calibrated to {camera.residual * MM_PER_M:.1f} mm; "
                    f"at most {largest_residual * MM_PER_M:.1f} mm are allowed.",
                    _REMEDY,
                )


def default_calibration(robot: str) -> Path:
    """Return the default path of a robot's calibration."""
    return data_dir() / robot / "cameras.yaml"


def made_calibration(
    robot: str, command: str, found: dict[str, CameraExtrinsics], clouds: dict[str, tuple[str, str]]
) -> CameraCalibration:
    """Make a calibration of now by that command line; `clouds` are topic and frame of each camera."""
    cameras = {
        name: CameraDescription(
            topic=clouds[name][0],
            frame_id=clouds[name][1],
            pose=each.motion.pose,
            residual=each.residual,
            points=each.points,
        )
        for name, each in found.items()
    }
    return CameraCalibration(robot=robot, created_at=datetime.now(UTC), command=command, cameras=cameras)


def load_calibration(path: Path) -> CameraCalibration:
    """Read a calibration.

    Raises:
        SoftformError: If there is none, or it is damaged.
    """
    calibration = _loaded(CameraCalibration, path, "calibration of cameras", (_REMEDY, _REMEDY))
    for camera in calibration.cameras.values():
        camera.registration()
    return calibration


class SeenPoints(Description, coerce_numbers_to_str=True):
    """Points seen in one camera's clouds: their topic and frame, and points by name, m in that frame."""

    topic: str
    frame_id: str
    points: dict[str, Place]


class Correspondences(Description, coerce_numbers_to_str=True):
    """The same points in the robot's frame (`places`, m; not all need be known) and in each camera's."""

    places: dict[str, Place]
    cameras: dict[str, SeenPoints]


def load_correspondences(path: Path) -> Correspondences:
    """Read a file of points that someone has identified in the clouds of the cameras.

    Raises:
        SoftformError: If it cannot be read, is no such file, or is in another unit.
    """
    remedies = "Check the path.", "See docs/steps/capture.md for an example."
    given = _loaded(Correspondences, path, "file of corresponding points", remedies)
    for whose, points in {
        "places": given.places,
        **{name: each.points for name, each in given.cameras.items()},
    }.items():
        for name, point in points.items():
            if max(map(abs, point)) > _FURTHEST:
                raise SoftformError(
                    f"Point {name} of {whose} in {path} is {max(map(abs, point)):g} m off: it is not in metres.",
                    "Give the points of all cameras, and their places, in metres.",
                )
    return given


def _loaded(kind: type[_File], path: Path, what: str, remedies: tuple[str, str]) -> _File:
    """Return a file of YAML; remedies for one that cannot be read, and for one of something else."""
    try:
        return kind.model_validate(read_yaml(path))
    except SoftformError as error:
        raise SoftformError(error.message, remedies[0]) from error
    except ValueError as error:
        raise SoftformError(f"{path} is no {what}: {error}", remedies[1]) from error
