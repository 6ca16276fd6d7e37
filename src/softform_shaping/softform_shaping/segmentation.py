"""Which pixels show the object: between green grippers, near them, and of one hue (paper 003, Fig. 7)."""

from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray
from scipy.cluster.vq import kmeans2

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.geometry.rigid import RigidTransform
from softform_shaping.camera import Intrinsics, Picture, back_projected

__all__ = ["Hue", "cloud_of", "dominant_hue", "gripper_pixels", "object_pixels"]

_GREEN = (50, 75)
"""Hue of the grippers, of 180."""
_LEAST_SATURATION, _LEAST_VALUE = 60, 30
_BEHIND = 0.5
"""Depth beyond the nearest pixel of a gripper from which a pixel is background, m."""
_CLUSTERS, _SAMPLES, _HUE_WIDTH = 3, 4000, 8.0
_FEWEST = 40
_GAP = 7
"""Pieces less than that apart, pixels, are one: where depth is missing what is thin falls into pieces."""
_POINTS = 1200


class Hue(NamedTuple):
    """The object's hue, 0 ... 180, and how far a pixel's may be from it."""

    middle: float
    width: float


def _hsv(picture: Picture) -> NDArray[np.uint8]:
    return np.asarray(cv2.cvtColor(picture.colour, cv2.COLOR_RGB2HSV))


def gripper_pixels(picture: Picture) -> NDArray[np.bool_]:
    """Pixels (h, w) of the grippers, by their known colour."""
    hue, saturation, value = np.moveaxis(_hsv(picture), 2, 0)
    green = (hue >= _GREEN[0]) & (hue <= _GREEN[1]) & (saturation > _LEAST_SATURATION) & (value > _LEAST_VALUE)
    opened = cv2.morphologyEx(green.astype(np.uint8), cv2.MORPH_OPEN, np.ones((3, 3), np.uint8))
    return np.asarray(opened, dtype=bool)


def _candidates(picture: Picture) -> NDArray[np.bool_]:
    """Pixels that are neither gripper, nor outside of them, nor background.

    Raises:
        SoftformError: If not both grippers are seen.
    """
    green = gripper_pixels(picture)
    count, labels, stats, middles = cv2.connectedComponentsWithStats(green.astype(np.uint8))
    large = [index for index in range(1, count) if stats[index, cv2.CC_STAT_AREA] >= _FEWEST]
    if len(large) < 2:
        raise SoftformError(
            f"The picture shows {len(large)} green grippers, not both.",
            "Look whether the camera sees them, and whether something covers one.",
        )
    left, right = _outermost(np.asarray(middles[large], dtype=np.float64))
    rows, columns = np.indices(green.shape)
    along = right - left
    share = ((columns - left[0]) * along[0] + (rows - left[1]) * along[1]) / float(along @ along)
    near = picture.depth[green & (picture.depth > 0.0)]
    limit = (float(near.min()) if len(near) else np.inf) + _BEHIND
    return np.asarray(
        ~cv2.dilate(green.astype(np.uint8), np.ones((3, 3), np.uint8)).astype(bool)
        & (share > 0.0) & (share < 1.0) & (picture.depth > 0.0) & (picture.depth < limit)
    )  # fmt: skip


def _outermost(middles: Array) -> tuple[Array, Array]:
    """The two of the middles (C, 2) that are farthest apart."""
    apart = np.linalg.norm(middles[:, None] - middles, axis=2)
    one, other = np.unravel_index(int(apart.argmax()), apart.shape)
    return middles[min(one, other)], middles[max(one, other)]


def dominant_hue(picture: Picture, seed: int = 0) -> Hue:
    """Hue of most of the remaining pixels, by k-means on the circle of hues; of the first picture.

    Raises:
        SoftformError: If not both grippers, or hardly a coloured pixel between them, are seen.
    """
    hsv = _hsv(picture)
    chosen = _candidates(picture) & (hsv[..., 1] > _LEAST_SATURATION) & (hsv[..., 2] > _LEAST_VALUE)
    hues = hsv[..., 0][chosen].astype(np.float64)
    if len(hues) < _FEWEST:
        raise SoftformError(
            f"{len(hues)} coloured pixels lie between the grippers; {_FEWEST} are needed.",
            "Look whether the object is in view and has a colour that is neither green nor grey.",
        )
    random = np.random.default_rng(seed)
    hues = random.choice(hues, min(len(hues), _SAMPLES), replace=False)
    circle = np.stack([np.cos(np.pi * hues / 90.0), np.sin(np.pi * hues / 90.0)], axis=1)
    middles, labels = kmeans2(circle + 1e-6 * random.standard_normal(circle.shape), _CLUSTERS, minit="++", seed=random)
    largest = int(np.bincount(labels, minlength=_CLUSTERS).argmax())
    middle = float(np.degrees(np.arctan2(middles[largest, 1], middles[largest, 0])) / 2.0 % 180.0)
    return Hue(middle, _HUE_WIDTH)


def object_pixels(picture: Picture, hue: Hue) -> NDArray[np.bool_]:
    """Pixels (h, w) of the object: the candidates with its hue.

    Raises:
        SoftformError: If not both grippers are seen.
    """
    hsv = _hsv(picture)
    apart = np.abs((hsv[..., 0].astype(np.float64) - hue.middle + 90.0) % 180.0 - 90.0)
    mask = _candidates(picture) & (apart < hue.width) & (hsv[..., 1] > _LEAST_SATURATION)
    _, labels = cv2.connectedComponents(cv2.dilate(mask.astype(np.uint8), np.ones((_GAP, _GAP), np.uint8)))
    pixels = np.bincount(labels[mask], minlength=1)
    return np.asarray(mask & (pixels[labels] >= _FEWEST))


def cloud_of(
    picture: Picture, hue: Hue, intrinsics: Intrinsics, camera: RigidTransform, random: np.random.Generator
) -> Array:
    """The object's cloud pc (N, 3) m in the object's frame, thinned at random.

    Args:
        picture: What the camera saw.
        hue: Of the object.
        intrinsics: Of the camera.
        camera: Its pose, as it is believed to be (T_cam^rob).
        random: For the thinning.

    Raises:
        SoftformError: If not both grippers are seen.
    """
    points = back_projected(object_pixels(picture, hue), picture.depth, intrinsics)
    if len(points) > _POINTS:
        points = points[random.choice(len(points), _POINTS, replace=False)]
    return camera.apply(points)
