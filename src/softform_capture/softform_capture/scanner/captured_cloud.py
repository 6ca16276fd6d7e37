"""Turn one scan into the published cloud: check, transform to the robot's frame, crop, clean, thin, judge."""

from collections.abc import Callable
from dataclasses import dataclass

from softform_capture.scanner.cleaning import not_stray, thinned_evenly
from softform_capture.scanner.scan_quality import ScanQuality, scan_quality
from softform_capture.scanner.workspace import Workspace, inside_workspace
from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.robots import Robot
from softform_core.shapes.shape import Shape, estimate_normals
from softform_core.shapes.validate import check_target

MIN_CLOUD_POINTS = 100
"""A scan of fewer points on the robot says nothing about its shape."""


@dataclass(frozen=True)
class CloudOptions:
    """Settings of how a scan becomes a cloud.

    Attributes:
        crop: Whether to drop what lies outside the robot's workspace.
        crop_margin: Added to the workspace on every side, m.
        remove_outliers: Whether to drop stray points (`cleaning.not_stray`).
        max_points: A larger scan is thinned at random to this many points; a mesh is sampled to at most this many.
        workspace: Form of the workspace (`workspace.inside_workspace`).
        spacing: Side of the cubes in which one point stays, m; 0 keeps all.
        normals: Whether to estimate them, upwards.
    """

    crop: bool = True
    crop_margin: float = 0.02
    remove_outliers: bool = True
    max_points: int = 50_000
    workspace: Workspace = "box"
    spacing: float = 0.0
    normals: bool = False


@dataclass(frozen=True)
class CapturedCloud:
    """Points of a scan on the robot, in its frame.

    Attributes:
        points: (N, 3) m in `base_link`, `MIN_CLOUD_POINTS` <= N <= `CloudOptions.max_points`.
        normals: (N, 3) unit vectors, or None if they were not asked for.
        quality: Quality of the scan.
    """

    points: Array
    normals: Array | None
    quality: ScanQuality


def captured_cloud(scan: Shape, placed: Callable[[Array], Array], robot: Robot, options: CloudOptions) -> CapturedCloud:
    """Return an export's cloud in the scanner's frame, m; `placed` brings points (N, 3) m to the robot's frame.

    Raises:
        SoftformError: If the scan's size betrays a wrong unit, or too few points lie on the robot; and what `placed`
            raises.
    """
    check_target(scan.points, robot)
    # A mesh's vertices may be few and uneven; its area is what was seen.
    shape = scan if scan.faces is None else scan.sample(options.max_points)
    return cloud_on_robot(placed(shape.points), robot, options)


def cloud_on_robot(points: Array, robot: Robot, options: CloudOptions) -> CapturedCloud:
    """Return the cloud of those of (N, 3) m, in the robot's frame, that lie on the robot.

    Raises:
        SoftformError: If too few points lie on the robot.
    """
    kept = points
    if options.crop:
        kept = kept[inside_workspace(kept, robot, options.workspace, options.crop_margin)]
    if options.spacing > 0.0 and len(kept):
        kept = thinned_evenly(kept, options.spacing)
    thinned = Shape(kept).sample(options.max_points).points
    kept = thinned[not_stray(thinned)] if options.remove_outliers else thinned
    if len(kept) < MIN_CLOUD_POINTS:
        raise SoftformError(
            f"Only {len(kept)} of the scan's {len(points)} points lie on robot '{robot.name}'; "
            f"{MIN_CLOUD_POINTS} are needed.",
            "Check the registration of the scanner, and that the robot is in its view.",
        )
    normals = estimate_normals(kept) if options.normals else None
    return CapturedCloud(kept, normals, scan_quality(kept, robot, 1.0 - len(kept) / len(thinned)))
