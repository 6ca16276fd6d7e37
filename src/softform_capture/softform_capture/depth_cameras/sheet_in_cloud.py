"""Corners of the printed codes in the coloured cloud of a depth camera.

Depth is noisy, and worst at edges between black and white. So no corner is looked up in the cloud: the plane of
the sheet and the pin-hole projection are fitted to thousands of its points, and the corners' rays meet that plane.
"""

import time
from collections.abc import Mapping, Sequence
from functools import partial

import cv2
import numpy as np
from numpy.typing import NDArray
from sensor_msgs.msg import PointCloud2

from softform_capture.camera_tracker.code_sheet import CodeCorners, CodeDetector, exposure_fault
from softform_capture.camera_tracker.plane_view import FEWEST_CODES
from softform_capture.depth_cameras.extrinsics import Points
from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.units import MM_PER_M
from softform_ros.background_node import BackgroundNode
from softform_ros.conversions import fields_from_cloud, points_from_cloud
from softform_ros.qos import CAMERA_INPUT

_CLOUDS, _TIME_LIMIT = 10, 20.0
"""Number of clouds that are awaited from each camera, and the time limit, s."""


def listen(topics: Mapping[str, str], namespace: str) -> dict[str, list[PointCloud2]]:
    """Return some clouds of each camera, whose topics are relative to the namespace.

    Raises:
        SoftformError: If a camera does not send so many in time.
    """
    heard: dict[str, list[PointCloud2]] = {camera: [] for camera in topics}
    with BackgroundNode("calibrate_cameras", namespace) as node:
        for camera, topic in topics.items():
            node.create_subscription(PointCloud2, topic, partial(_keep, heard[camera]), CAMERA_INPUT)
        deadline = time.monotonic() + _TIME_LIMIT
        while any(len(clouds) < _CLOUDS for clouds in heard.values()):
            if time.monotonic() > deadline:
                got = ", ".join(f"{len(heard[camera])} of {_CLOUDS} on {topic}" for camera, topic in topics.items())
                raise SoftformError(
                    f"In {_TIME_LIMIT:.0f} s these clouds came: {got}.", "Are the cameras' drivers running?"
                )
            time.sleep(0.02)
    return heard


def _keep(clouds: list[PointCloud2], message: PointCloud2) -> None:
    if len(clouds) < _CLOUDS:
        clouds.append(message)


_FEWEST_POINTS = 200
_INLIER_SPREADS = 3.0


def corners_in_clouds(clouds: Sequence[PointCloud2], detector: CodeDetector) -> Points:
    """Return corners of the codes in several clouds of one camera that stands still.

    Returns:
        Name, which is the corner's place on the sheet -> mean place in the camera's frame, (3,) m.

    Raises:
        SoftformError: If no cloud shows the codes: the error of the last one.
    """
    seen: dict[str, list[Array]] = {}
    failure: SoftformError | None = None
    for cloud in clouds:
        try:
            for name, place in corners_in_cloud(cloud, detector).items():
                seen.setdefault(name, []).append(place)
        except SoftformError as error:
            failure = error
    if not seen and failure is not None:
        raise failure
    return {name: np.asarray(np.mean(places, axis=0)) for name, places in seen.items()}


def corners_in_cloud(cloud: PointCloud2, detector: CodeDetector) -> Points:
    """Return corners of the codes in one organised cloud with a field `rgb` or `rgba`.

    Raises:
        SoftformError: If the cloud has no rows or no colours, or too few codes or points of the sheet are seen.
    """
    if cloud.height < 2:
        raise SoftformError(
            "The cloud is not organised: its points do not lie in the rows of an image.",
            "Let the driver send ordered clouds (RealSense: pointcloud.ordered_pc).",
        )
    grey = _grey(cloud)
    corners = detector.find(grey)
    if corners.codes < FEWEST_CODES:
        raise SoftformError(
            f"{corners.codes} codes of the sheet are seen, {FEWEST_CODES} are needed.",
            exposure_fault(grey) or "Lay the printed sheet into the camera's view, sharp and well lit.",
        )
    points = points_from_cloud(cloud).reshape(cloud.height, cloud.width, 3)
    places = corners_on_plane(corners, points)
    return {sheet_point(corner): place for corner, place in zip(corners.on_sheet, places, strict=True)}


def sheet_point(corner: Array) -> str:
    """Return the name of a corner by its place (3,) m on the sheet."""
    return f"sheet {corner[0] * MM_PER_M:.1f}, {corner[1] * MM_PER_M:.1f} mm"


def _grey(cloud: PointCloud2) -> NDArray[np.uint8]:
    """Return the grey image from the packed colours of a cloud, (height, width)."""
    name = "rgba" if any(field.name == "rgba" for field in cloud.fields) else "rgb"
    packed = np.ascontiguousarray(fields_from_cloud(cloud, [name])[name])
    if packed.dtype.itemsize != 4:
        raise SoftformError(f"The field {name} of the cloud is not of four bytes.", "Check the camera's driver.")
    bytes_of = packed.view(np.uint8).reshape(*packed.shape, 4)
    bgr = bytes_of[:, :, 3:0:-1] if cloud.is_bigendian else bytes_of[:, :, :3]
    return np.asarray(cv2.cvtColor(np.ascontiguousarray(bgr), cv2.COLOR_BGR2GRAY), dtype=np.uint8)


def corners_on_plane(corners: CodeCorners, points: Array) -> Array:
    """Intersect the rays of the corners with the plane that points (height, width, 3) m show; returns (N, 3) m.

    Raises:
        SoftformError: If too few points between the corners have a depth.
    """
    hull = cv2.convexHull(corners.pixels.astype(np.float32)).astype(np.int32)
    mask = cv2.fillConvexPoly(np.zeros(points.shape[:2], dtype=np.uint8), hull, 1).astype(bool)
    mask &= np.isfinite(points).all(axis=2) & (points[:, :, 2] > 0.0)
    if mask.sum() < _FEWEST_POINTS:
        raise SoftformError(
            f"Only {int(mask.sum())} points of the sheet have a depth.", "Bring the camera nearer, and avoid glare."
        )
    row, column = np.nonzero(mask)
    pixels, sheet = np.stack([column, row, np.ones(len(row))], axis=1).astype(np.float64), points[mask]
    # x / z and y / z are linear in the pixel: the pin-hole projection by which the driver made the cloud.
    to_ray = np.linalg.lstsq(pixels, sheet[:, :2] / sheet[:, 2:], rcond=None)[0]
    # 1 / z is linear in the pixel too, on a plane.
    to_inverse = np.linalg.lstsq(pixels, 1.0 / sheet[:, 2], rcond=None)[0]
    off = np.abs(1.0 / (pixels @ to_inverse) - sheet[:, 2])
    near = off <= _INLIER_SPREADS * max(1.4826 * float(np.median(off)), 1e-6)
    to_inverse = np.linalg.lstsq(pixels[near], 1.0 / sheet[near, 2], rcond=None)[0]
    at = np.column_stack([corners.pixels, np.ones(len(corners.pixels))])
    depth = 1.0 / (at @ to_inverse)
    return np.column_stack([(at @ to_ray) * depth[:, None], depth])
