"""Radius and length of a deformable linear object from one RGB-D picture (paper 003, Eqs. 13-14), and by ours."""

from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import splev, splprep

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_shaping.camera import Intrinsics, back_projected

__all__ = ["LinearObject", "curve_length", "measured", "printed_radius"]

_FEWEST = 200
_BINS, _SAMPLES = 60, 200
_SMOOTH, _STEP = 0.5, 0.5
"""Of the B-spline, and of the way to its ends, pixels."""
_TRIMMED = 0.05
"""Share at each end where the silhouette is cut by a gripper."""


class LinearObject(NamedTuple):
    """What was measured of one.

    Attributes:
        radius: m.
        length: Between the grippers, m.
        curve: (K, 3) m of its axis in the camera's frame.
        printed_radius: By Eq. 14, m.
        printed_length: By Eq. 13 of the skin's points, m.
    """

    radius: float
    length: float
    curve: Array
    printed_radius: float
    printed_length: float


def curve_length(points: Array) -> float:
    """Eq. 13: sum of the distances of successive points (K, 3), m."""
    return float(np.linalg.norm(np.diff(points, axis=0), axis=1).sum())


def printed_radius(mask: NDArray[np.bool_], depth: NDArray[np.float32], intrinsics: Intrinsics) -> float:
    """Eq. 14: half the largest distance between points within the largest circle of the contour, m.

    Raises:
        SoftformError: If the circle has no depth.
    """
    inside = cv2.distanceTransform(mask.astype(np.uint8), cv2.DIST_L2, 5)
    row, column = np.unravel_index(int(inside.argmax()), inside.shape)
    rows, columns = np.indices(mask.shape)
    circle = mask & (np.hypot(rows - row, columns - column) <= inside[row, column])
    points = back_projected(circle, depth, intrinsics)
    if len(points) < 2:
        raise SoftformError("The object has no depth where it is widest.", "Look at the depth image.")
    widest = 0.0
    for point in points:
        widest = max(widest, float(np.linalg.norm(points - point, axis=1).max()))
    return 0.5 * widest


def measured(mask: NDArray[np.bool_], depth: NDArray[np.float32], intrinsics: Intrinsics) -> LinearObject:
    """Radius, length and axis of the object whose pixels a mask (h, w) has.

    Printed is a B-spline through the contour, which goes around the object, and the depth of its pixels, which is that
    of the skin. Here the curve follows the middle of the mask, its depth is smoothed along it, and the axis lies one
    radius behind the skin.

    Raises:
        SoftformError: If the mask is too small, or hardly has depth.
    """
    count, labels, stats, _ = cv2.connectedComponentsWithStats(mask.astype(np.uint8))
    if count < 2 or stats[1:, cv2.CC_STAT_AREA].max() < _FEWEST:
        raise SoftformError(
            f"The picture shows too little of a linear object: {int(mask.sum())} pixels.", "Bring the camera nearer."
        )
    body = labels == 1 + int(stats[1:, cv2.CC_STAT_AREA].argmax())
    filled = cv2.morphologyEx(body.astype(np.uint8), cv2.MORPH_CLOSE, np.ones((7, 7), np.uint8)).astype(bool)
    middle, width = _middle_line(filled)
    depth_there = _depth_along(middle, body, depth)
    cx, cy = intrinsics.centre
    skin = np.stack(
        [(middle[:, 0] - cx) / intrinsics.focal, (middle[:, 1] - cy) / intrinsics.focal, np.ones(len(middle))], axis=1
    ) * depth_there[:, None]  # fmt: skip
    inner = slice(int(_TRIMMED * len(middle)), len(middle) - int(_TRIMMED * len(middle)))
    # A ray that touches the cylinder is w pixels off the one through its axis: R = (z + R) sin(atan(w / f)).
    sine = np.sin(np.arctan(width[inner] / intrinsics.focal))
    radius = float(np.median(depth_there[inner] * sine / (1.0 - sine)))
    # The axis lies behind the skin across the curve: along the rays it would reach beyond both ends.
    along = np.gradient(skin, axis=0)
    along /= np.linalg.norm(along, axis=1, keepdims=True)
    across = skin - np.einsum("ki,ki->k", skin, along)[:, None] * along
    axis = skin + radius * across / np.linalg.norm(across, axis=1, keepdims=True)
    return LinearObject(radius, curve_length(axis), axis, printed_radius(body, depth, intrinsics), curve_length(skin))


def _middle_line(mask: NDArray[np.bool_]) -> tuple[Array, Array]:
    """Pixels (K, 2), column and row, along the middle of a mask, and half its width there (K,), in pixels."""
    inside = cv2.distanceTransform(mask.astype(np.uint8), cv2.DIST_L2, 5)
    along = _geodesic(mask)
    edges = np.linspace(0.0, along[mask].max() * (1.0 + 1e-9), _BINS + 1)
    rows, columns = np.nonzero(mask)
    which = np.digitize(along[mask], edges) - 1
    sizes = np.bincount(which, minlength=_BINS)
    if (sizes == 0).any():
        raise SoftformError("The object is in pieces in the picture.", "Look what lies before it.")
    middle = np.stack([np.bincount(which, columns) / sizes, np.bincount(which, rows) / sizes], axis=1)
    # Near its ends lines of equal distance from a corner are no cross-sections.
    skipped = min(_BINS // 4, int(np.ceil(2.0 * inside.max() / (edges[1] - edges[0]))))
    middle = middle[skipped : _BINS - skipped]
    spline, _ = splprep(middle.T, s=len(middle) * _SMOOTH**2)
    line = np.stack(splev(np.linspace(0.0, 1.0, _SAMPLES), spline), axis=1)
    line = np.vstack([_to_the_end(line[5], line[0], mask)[::-1], line, _to_the_end(line[-6], line[-1], mask)])
    near = np.clip(np.round(line).astype(int), 0, np.array(mask.shape)[::-1] - 1)
    return line, cv2.dilate(inside, np.ones((3, 3), np.uint8))[near[:, 1], near[:, 0]].astype(np.float64)


def _to_the_end(before: Array, last: Array, mask: NDArray[np.bool_]) -> Array:
    """Pixels (K, 2) straight on from `last`, as long as the mask goes."""
    way = (last - before) / np.linalg.norm(last - before)
    found = [last + _STEP * way]
    for _ in range(int(sum(mask.shape) / _STEP)):
        column, row = np.round(found[-1] + _STEP * way).astype(int)
        if not (0 <= row < mask.shape[0] and 0 <= column < mask.shape[1] and mask[row, column]):
            break
        found.append(found[-1] + _STEP * way)
    return np.array(found)


def _geodesic(mask: NDArray[np.bool_]) -> Array:
    """Distance of each pixel within the mask from one of its ends, along it, (h, w): by the widest extent first."""
    rows, columns = np.nonzero(mask)
    start = int(np.argmin(columns) if np.ptp(columns) >= np.ptp(rows) else np.argmin(rows))
    for _ in range(2):  # the pixel farthest from any is an end
        along = np.full(mask.shape, np.inf)
        front = np.zeros(mask.shape, dtype=np.uint8)
        front[rows[start], columns[start]] = 1
        along[front > 0] = 0.0
        step, cross, square = 0.0, cv2.getStructuringElement(cv2.MORPH_CROSS, (3, 3)), np.ones((3, 3), np.uint8)
        for index in range(4 * max(mask.shape)):
            grown = cv2.dilate(front, square if index % 2 else cross) & mask.astype(np.uint8)
            new = (grown > 0) & ~np.isfinite(along)
            if not new.any():
                break
            step += 1.0
            along[new] = step
            front = grown
        reached = np.where(np.isfinite(along[mask]), along[mask], -1.0)
        start = int(reached.argmax())
    return np.where(np.isfinite(along), along, 0.0)


def _depth_along(middle: Array, mask: NDArray[np.bool_], depth: NDArray[np.float32]) -> Array:
    """Depth (K,) m of the skin along a line of pixels (K, 2), a quintic over it: noise and holes do not lengthen it."""
    near = np.clip(np.round(middle).astype(int), 0, np.array(mask.shape)[::-1] - 1)
    values = np.zeros(len(middle))
    for dx, dy in ((0, 0), (1, 0), (-1, 0), (0, 1), (0, -1)):
        column, row = (np.clip(near[:, 0] + dx, 0, mask.shape[1] - 1), np.clip(near[:, 1] + dy, 0, mask.shape[0] - 1))
        found = np.where(mask[row, column], depth[row, column], 0.0)
        values = np.where(values > 0.0, values, found)
    known = values > 0.0
    if known.mean() < 0.3:
        raise SoftformError(
            "The object hardly has a depth along its middle.", "It is thinner than the camera resolves."
        )
    # By the way along the line, not by its samples, which are closer together near the ends.
    way = np.append(0.0, np.cumsum(np.linalg.norm(np.diff(middle, axis=0), axis=1)))
    share = 2.0 * way / way[-1] - 1.0
    for _ in range(2):  # once more without what is far off
        fit = np.polynomial.Polynomial.fit(share[known], values[known], 5, domain=[-1.0, 1.0])
        off = np.abs(values - fit(share))
        known &= off <= 4.0 * max(float(np.median(off[known])), 1e-6)
    return np.asarray(fit(share))
