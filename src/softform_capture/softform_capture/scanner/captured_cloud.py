"""Turn one scan into the published cloud: check, transform to the robot's frame, crop, clean, thin, judge."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from softform_capture.scanner.scan_quality import ScanQuality, scan_quality
from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.robots import Robot
from softform_core.shapes.shape import Shape, estimate_normals
from softform_core.shapes.validate import check_target

Workspace = Literal["box", "hemisphere"]
WORKSPACES: tuple[Workspace, ...] = ("box", "hemisphere")


def inside_workspace(points: Array, robot: Robot, workspace: Workspace, margin: float) -> NDArray[np.bool_]:
    """Return which points (N, 3) m, in the robot's frame, lie where the robot can be, (N,).

    Args:
        points: See above.
        robot: The scanned robot.
        workspace: `box` is around every shape that the body takes, close around a membrane's. `hemisphere` is that of
            paper 004, Sec. V-A: about the base, of the robot's reach, on the side of the base to which the box reaches
            further. The reach is half the diagonal of a sheet, and that of the box if that is longer.
        margin: Added on every side, m; the paper's epsilon.
    """
    low, high = robot.body.box
    if workspace == "hemisphere":
        reach = max(float(np.linalg.norm(robot.extent)) / 2.0, float(np.abs([low, high]).max())) + margin
        side = np.sign(high[2] + low[2])  # 1 of a body above its base, -1 of one that hangs, 0 of one to both sides
        return np.asarray((np.square(points).sum(axis=1) <= reach**2) & (side * points[:, 2] >= -margin))
    return np.all((points >= low - margin) & (points <= high + margin), axis=1)


NEIGHBOURS = 8
"""Points that a point is compared with."""

LONELY = 4.0
"""A point is stray if it is lonelier than the median by more than this many spreads."""

OFF_PLANE = 0.4
"""A point is stray if it is further from its neighbours' plane than this share of its mean distance from them.

What it keeps of true and false points: docs/notes/open3d.md."""


def thinned_evenly(points: Array, spacing: float) -> Array:
    """Return one point for each cube of side `spacing` (m) that holds any: the mean of those in it, (M, 3) m.

    Where cameras overlap, or one is close, a cloud is denser; what is learned from it must not weigh more for that.
    """
    import open3d  # here, as it takes a second, and most scanners need no thinning

    cloud = open3d.geometry.PointCloud(open3d.utility.Vector3dVector(points))
    return np.asarray(cloud.voxel_down_sample(spacing).points)


def not_stray(points: Array) -> NDArray[np.bool_]:
    """Return which of (N, 3) m points belong to a surface, (N,): neither lonely nor off their neighbours' plane.

    Loneliness is the mean distance to the neighbours, as in the statistical outlier removal of Rusu 2008, but against
    robust statistics: the median of all points and 1.4826 times the median absolute deviation (at least a quarter of
    the median, as an even grid has none). That alone misses what lies a few spacings off the surface; so the distance
    from the plane of the neighbours must be small against their distance too. Open3D's filters, which know distances
    alone, leave ten times as many false points even where they drop ten times as many true ones.
    """
    if len(points) <= NEIGHBOURS:
        return np.ones(len(points), dtype=bool)
    distances, indices = cKDTree(points).query(points, k=NEIGHBOURS + 1)
    loneliness = distances[:, 1:].mean(axis=1)
    median = float(np.median(loneliness))
    spread = max(1.4826 * float(np.median(np.abs(loneliness - median))), 0.25 * median)
    near = points[indices[:, 1:]]
    centre = near.mean(axis=1)
    near -= centre[:, None]
    normals = np.linalg.eigh(np.einsum("nki,nkj->nij", near, near))[1][:, :, 0]
    off_plane = np.abs(np.einsum("ni,ni->n", points - centre, normals))
    return (loneliness <= median + LONELY * spread) & (off_plane <= OFF_PLANE * loneliness)


MIN_CLOUD_POINTS = 100
"""A scan of fewer points on the robot says nothing about its shape."""


@dataclass(frozen=True)
class CloudOptions:
    """Settings of how a scan becomes a cloud.

    Attributes:
        crop: Whether to drop what lies outside the robot's workspace.
        crop_margin: Added to the workspace on every side, m.
        remove_outliers: Whether to drop stray points (`not_stray`).
        max_points: A larger scan is thinned at random to this many points; a mesh is sampled to at most this many.
        workspace: Form of the workspace (`inside_workspace`).
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
    check_target(scan.points, robot, "scan")
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
