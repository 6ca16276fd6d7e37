"""From one export to the cloud that is published: checked, in the robot's frame, cropped, cleaned, thinned."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from softform_capture.cleaning import inside_box, not_stray, robot_box
from softform_capture.registration import Registration
from softform_core.errors import SoftformError
from softform_core.robots import Robot
from softform_core.shapes.target import TargetShape
from softform_core.shapes.validate import check_target

MIN_CLOUD_POINTS = 100
"""A scan of fewer points on the robot says nothing about its shape."""


@dataclass(frozen=True)
class CloudOptions:
    """How a scan becomes a cloud.

    Attributes:
        crop: Whether to drop what lies outside the robot's box.
        crop_margin: Added to the box on every side, m.
        remove_outliers: Whether to drop stray points (`cleaning.not_stray`).
        max_points: A larger scan is thinned at random to this many points; a mesh is sampled to at most this many.
    """

    crop: bool = True
    crop_margin: float = 0.02
    remove_outliers: bool = True
    max_points: int = 50_000


def captured_cloud(
    scan: TargetShape, registration: Registration, robot: Robot, options: CloudOptions
) -> NDArray[np.float64]:
    """Points of a scan on the robot, in the robot's frame.

    Args:
        scan: Mesh or cloud in the scanner's frame, m.
        registration: Pose of the scanner.
        robot: Who was scanned.
        options: Crop, outliers, size.

    Returns:
        (N, 3) m in `base_link`, `MIN_CLOUD_POINTS` <= N <= `options.max_points`.

    Raises:
        SoftformError: If the scan's size betrays a wrong unit, or too few points lie on the robot.
    """
    check_target(scan.points, robot)
    # A mesh's vertices may be few and uneven; its area is what was seen.
    points = registration.to_robot(scan if scan.faces is None else scan.sample(options.max_points)).points
    kept = points
    if options.crop:
        kept = kept[inside_box(kept, robot_box(robot, options.crop_margin))]
    kept = TargetShape(kept).sample(options.max_points).points
    if options.remove_outliers:
        kept = kept[not_stray(kept)]
    if len(kept) < MIN_CLOUD_POINTS:
        raise SoftformError(
            f"Only {len(kept)} of the scan's {len(points)} points lie on robot '{robot.name}'; "
            f"{MIN_CLOUD_POINTS} are needed.",
            "Check the registration of the scanner, and that the robot is in its view.",
        )
    return kept
