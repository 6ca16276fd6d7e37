"""Finds a round marker of one colour in the image, and its place in the robot's plane (paper 001, Sec. III-C2)."""

from dataclasses import dataclass

import cv2
import numpy as np

from softform_capture.camera_tracker.code_sheet import Picture
from softform_capture.camera_tracker.plane_view import PlaneView
from softform_core.arrays import Array
from softform_core.errors import SoftformError

LEAST_AREA, LARGEST_AREA = 0.6, 1.5
"""Limits of the seen area over the disc's: a smaller blob is partly hidden, a larger one another object or blurred."""
LARGEST_ELONGATION = 1.5
"""Largest ratio of long to short axis: a disc seen on the plane has 1."""
_SHORTEST_OUTLINE = 8  # pixels
_LARGEST_BOX = 4.0  # diagonal over the diameter
_HUE_STEP = 2.0  # degrees of hue a level of OpenCV


@dataclass(frozen=True)
class ColourMarker:
    """A disc of one colour.

    Attributes:
        hue: Hue of the marker, degrees: red 0, yellow 60, green 120, blue 240.
        hue_tolerance: Degrees.
        least_saturation: 0 grey to 1.
        least_value: 0 black to 1.
        diameter: Diameter of the marker, m.
    """

    hue: float = 0.0
    hue_tolerance: float = 15.0
    least_saturation: float = 0.5
    least_value: float = 0.2
    diameter: float = 0.012

    @property
    def area(self) -> float:
        """m^2."""
        return float(np.pi) * self.diameter**2 / 4.0


@dataclass(frozen=True)
class _Blob:
    """A blob inside one outline in the plane: centre (2,) m, area in m^2, and ratio of long to short axis."""

    centre: Array
    area: float
    elongation: float

    @classmethod
    def within(cls, outline: cv2.typing.MatLike, view: PlaneView) -> "_Blob":
        """Map the pixels within an outline one by one, and weight each by the area that it covers.

        Perspective moves the middle of a disc's image off the image of its middle.
        """
        x, y, width, height = cv2.boundingRect(outline)
        filled = np.zeros((height, width), dtype=np.uint8)  # with what glares in the middle
        cv2.drawContours(filled, [outline], 0, 255, cv2.FILLED, offset=(-x, -y))
        row, column = np.nonzero(filled)
        pixels = np.stack([column + x, row + y], axis=1).astype(np.float64)
        corner, right, below = (view.place(pixels + shift) for shift in ([-0.5, -0.5], [0.5, -0.5], [-0.5, 0.5]))
        along, down = right - corner, below - corner
        weight = np.abs(along[:, 0] * down[:, 1] - along[:, 1] * down[:, 0])
        area = float(weight.sum())
        places = view.place(pixels)
        short, long = np.linalg.eigvalsh(np.cov(places.T, aweights=weight))
        return cls(weight @ places / area, area, float(np.sqrt(long / max(short, 1e-18))))


def find_marker(image: Picture, marker: ColourMarker, view: PlaneView) -> Array:
    """Return the centre, (2,) m, of the marker in the robot's plane, by an image (height, width, 3), blue, green, red.

    Raises:
        SoftformError: If nothing of the marker's colour and size is there, or more than one such thing.
    """
    outlines, _ = cv2.findContours(_of_colour(image, marker), cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
    outlines = [outline for outline in outlines if len(outline) >= _SHORTEST_OUTLINE]
    if not outlines:
        raise SoftformError("Nothing in the image has the marker's colour.", "Is the marker hidden, or hue wrong?")
    blobs = [_Blob.within(outline, view) for outline in outlines if _may_be(marker, outline, view)]
    sizes = [blob.area / marker.area for blob in blobs]
    fitting = [blob for blob, size in zip(blobs, sizes, strict=True) if LEAST_AREA <= size <= LARGEST_AREA]
    round_ones = [blob for blob in fitting if blob.elongation <= LARGEST_ELONGATION]
    if len(round_ones) == 1:
        return round_ones[0].centre
    if round_ones:
        raise SoftformError(
            f"{len(round_ones)} things in the image look like the marker.", "Remove or cover what is not the marker."
        )
    if fitting:
        raise SoftformError("What has the marker's colour is not round.", "Is it partly hidden, or in fast motion?")
    raise SoftformError(
        f"What has the marker's colour is {', '.join(f'{size:.2f}' for size in sizes) or 'many'} times its area.",
        "Is it partly hidden, or its diameter wrong?",
    )


def _may_be(marker: ColourMarker, outline: cv2.typing.MatLike, view: PlaneView) -> bool:
    """Return whether the inside of an outline is on the plane, and not far larger than the marker."""
    x, y, width, height = cv2.boundingRect(outline)
    corners = view.place(np.array([[x, y], [x + width, y], [x + width, y + height], [x, y + height]], dtype=np.float64))
    diagonals = np.linalg.norm(corners[2:] - corners[:2], axis=1)  # NaN beyond the horizon
    return bool((diagonals < _LARGEST_BOX * marker.diameter).all())


def _of_colour(image: Picture, marker: ColourMarker) -> Picture:
    """Return a mask of the pixels that have the marker's colour, 255 or 0."""
    hsv = cv2.cvtColor(cv2.GaussianBlur(image, (3, 3), 0), cv2.COLOR_BGR2HSV)
    turn = np.arange(256) * _HUE_STEP - marker.hue
    distance = np.abs((turn + 180.0) % 360.0 - 180.0)
    level = np.arange(256) / 255.0
    table = np.stack(
        [distance <= marker.hue_tolerance, level >= marker.least_saturation, level >= marker.least_value], axis=-1
    )
    fits = cv2.LUT(hsv, table.astype(np.uint8)[None] * 255)
    mask = cv2.bitwise_and(cv2.bitwise_and(fits[:, :, 0], fits[:, :, 1]), fits[:, :, 2])
    return np.asarray(cv2.morphologyEx(mask, cv2.MORPH_OPEN, np.ones((3, 3), np.uint8)), dtype=np.uint8)
