"""Pose of a scanner: kept by `softform register`, given as a pose or matrix, or found anew for each scan."""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import AwareDatetime, ValidationError

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.geometry.rigid import RigidTransform
from softform_core.paths import data_dir
from softform_core.registration.scan_alignment import Reference, Scan, placements
from softform_core.robots import Robot
from softform_core.robots.description import Description, NotNegative, Place, Pose
from softform_core.shapes.validate import check_target
from softform_core.yaml_files import read_yaml

_FIELDS = ("registration", "pose", "matrix", "transformation")
_FILES = (".txt", ".yaml", ".yml", ".json")
_NAME = r"[A-Za-z0-9_-]+"


class NotRegisteredError(SoftformError):
    """Raised if no registration of this name is kept."""


class ScannerRegistration(Description):
    """Registration that `./softform register` found.

    Attributes:
        robot: Name of the robot.
        created_at: Time at which it was found.
        command: Command line.
        pose: Pose of the scanner in the robot's frame, x, y, z (m), qx, qy, qz, qw; of a hand-held one, of that scan.
        error: Misfit of the scan, m.
        hand_held: Whether each scan has a frame of its own.
        still: Places around the robot that do not move, m.
    """

    robot: str
    created_at: AwareDatetime
    command: str
    pose: Pose
    error: NotNegative
    hand_held: bool
    still: list[Place]


@dataclass(frozen=True)
class ScannerPlace:
    """How scans of one scanner come into the robot's frame.

    Attributes:
        robot: The robot.
        pose: The scanner's pose; None if each scan has a frame of its own.
        still: (S, 3) m: what stands still around the robot and is seen in scans.
    """

    robot: Robot
    pose: RigidTransform | None
    still: Array = field(default_factory=lambda: np.empty((0, 3)))

    def placed(self, points: Array, actuation: Array) -> Array:
        """Transform a scan, (N, 3) m, of the robot under an actuation (m,) from its own frame to the robot's.

        For a hand-held scanner, points of things that stand still around the robot are left out.

        Raises:
            SoftformError: If the scan is to be aligned, and its shape does not tell how.
        """
        if self.pose is not None:
            return self.pose.apply(points)
        check_target(points, self.robot, "scan")
        surface = Reference.under(self.robot, actuation)
        around = surface.beside(self.still)
        best, *others = placements(Scan(points), around)
        best.check()
        if best.left_open or others:
            what = best.left_open or f"which of {len(others) + 1} ways it is turned"
            raise SoftformError(
                f"The scan's shape does not tell {what}.",
                "Scan what stands still around the robot, too, and register with it: ./softform register --hand-held.",
            )
        placed = best.motion.apply(points)
        return placed[around.tree.query(placed)[1] < len(surface.points)]


def kept_registration(robot: str, name: str) -> Path:
    """Return the path of the registration of a robot's scanner of this name.

    Raises:
        SoftformError: If it is no name: it could not be told from a file or the numbers of a pose.
    """
    if not re.fullmatch(_NAME, name):
        raise SoftformError(f"'{name}' is no name of a scanner.", "Take letters, digits, - and _.")
    return data_dir() / robot / "scanners" / f"{name}.yaml"


def scanner_place(given: str, robot: Robot) -> ScannerPlace:
    """Return the place of a scanner.

    Args:
        given: Name of a registration of the robot; a file of one, of a pose or of a 4 x 4 matrix (`RigidTransform`;
            text, YAML or JSON); or the numbers themselves.
        robot: Robot that is scanned.

    Raises:
        NotRegisteredError: If no registration of this name is kept.
        SoftformError: If it is none of these.
    """
    is_file = Path(given).suffix.lower() in _FILES
    if not is_file and not re.fullmatch(_NAME, given.strip()):
        return ScannerPlace(robot, RigidTransform.from_pose(_numbers(given, "the registration")))
    path = Path(given).expanduser() if is_file else kept_registration(robot.name, given.strip())
    if not is_file and not path.is_file():
        raise NotRegisteredError(
            f"Where scanner '{given.strip()}' stands is not known: there is no {path}.",
            "Register it by a scan of the robot at rest: "
            f"./softform register SCAN --robot {robot.given_as} --unit mm --name {given.strip()}",
        )
    if path.suffix.lower() == ".txt":
        return ScannerPlace(robot, RigidTransform.from_pose(_numbers(_text(path), str(path))))
    content = read_yaml(path)
    if not isinstance(content, dict) or "hand_held" not in content:
        return ScannerPlace(robot, RigidTransform.from_pose(_pose_in(content, path)))
    try:
        kept = ScannerRegistration.model_validate(content)
    except ValidationError as error:
        raise SoftformError(f"{path} is no registration: {error}.", "Register the scanner again.") from error
    if kept.robot != robot.name:
        raise SoftformError(
            f"{path} is of robot '{kept.robot}', not '{robot.name}'.", "Register the scanner for this robot."
        )
    pose = RigidTransform.from_pose(kept.pose)
    return ScannerPlace(robot, None if kept.hand_held else pose, np.array(kept.still).reshape(-1, 3))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise SoftformError(f"{path} cannot be read: {error}.", "Check the file.") from error


def _numbers(text: str, what: str) -> list[float]:
    """Return the numbers with blanks, commas, semicolons or brackets between them."""
    words = [word for word in re.split(r"[\s,;\[\]()]+", text) if word]
    try:
        return [float(word) for word in words]
    except ValueError as error:
        raise SoftformError(
            f"In {what} there is text that is no number: {error}.",
            "Give x, y, z (m), qx, qy, qz, qw or a 4 x 4 matrix (m), row by row, with points in decimals.",
        ) from error


def _pose_in(content: Any, path: Path) -> Any:
    """Return the value of the one field that is a pose, however deep it lies."""
    while isinstance(content, dict):
        named = [name for name in _FIELDS if name in content]
        if len(named) != 1 and len(content) != 1:
            raise SoftformError(
                f"{path} does not say which of {', '.join(map(str, content))} is the pose.",
                f"Call it one of: {', '.join(_FIELDS)}.",
            )
        content = content[named[0]] if named else next(iter(content.values()))
    return content
