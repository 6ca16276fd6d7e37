"""The printed sheet of codes by which cameras know where they look: its layout, its drawing, and its codes in images.

Paper 001 (Sec. III-C2) maps image to world with a QR code. Here the sheet is full of ArUco codes (Garrido-Jurado 2014):
each can be distinguished from the others, so that the robot may hide some, and their many corners make the map exact.
"""

from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.files import write_atomically
from softform_core.units import MM_PER_M

DICTIONARY = cv2.aruco.getPredefinedDictionary(cv2.aruco.DICT_4X4_50)
RULER_LENGTH = 0.2
"""Length of the printed ruler, m; its length on paper shows how far the printer has scaled the sheet."""

_PIXELS_PER_MM = 10
"""Resolution of the sheet, 254 dpi: every edge lies on a pixel."""
_FOOT_MM = 12.0
"""Distance of the ruler from the paper's edge, mm, within what printers print."""


@dataclass(frozen=True)
class CodeSheet:
    """Layout of a sheet in its own frame: origin in the middle of the codes, x along the long edge, y up, z to the eye.

    Attributes:
        paper: Width and height of the paper, mm.
        columns: Codes along x.
        rows: Codes along y.
        code_side: Side of a code, mm; a multiple of the six modules that a code is wide.
        gap: White gap between codes, mm; at least one module.
    """

    paper: tuple[int, int]
    columns: int
    rows: int
    code_side: int
    gap: int

    def corners(self, ruler_length: float = RULER_LENGTH) -> Array:
        """Return corners of every code, clockwise from its top left as seen, (codes, 4, 3) m with z = 0.

        Args:
            ruler_length: Length of the printed ruler as measured on paper, m.
        """
        pitch = self.code_side + self.gap
        column, row = np.meshgrid(np.arange(self.columns), np.arange(self.rows))
        left = (column.ravel() - (self.columns - 1) / 2.0) * pitch - self.code_side / 2.0
        top = ((self.rows - 1) / 2.0 - row.ravel()) * pitch + self.code_side / 2.0
        around = np.array([[0, 0], [1, 0], [1, -1], [0, -1]]) * self.code_side
        corners = np.zeros((len(left), 4, 3))
        corners[:, :, :2] = np.stack([left, top], axis=1)[:, None] + around
        return corners / MM_PER_M * (ruler_length / RULER_LENGTH)

    def drawing(self) -> NDArray[np.uint8]:
        """Return the sheet as it is printed, black on white, (height, width) pixels of 0.1 mm."""
        width, height = (size * _PIXELS_PER_MM for size in self.paper)
        picture = Image.new("L", (width, height), 255)
        side = self.code_side * _PIXELS_PER_MM
        for number, corners in enumerate(self.corners() * MM_PER_M * _PIXELS_PER_MM):
            code = cv2.aruco.generateImageMarker(DICTIONARY, number, side)
            picture.paste(Image.fromarray(code), (round(width / 2 + corners[0, 0]), round(height / 2 - corners[0, 1])))
        self._annotate(ImageDraw.Draw(picture), width, height)
        return np.asarray(picture, dtype=np.uint8)

    def _annotate(self, draw: ImageDraw.ImageDraw, width: int, height: int) -> None:
        """Draw a cross at the origin, the name of the axis, and the ruler below the codes."""
        thick = _PIXELS_PER_MM // 3
        for arm in ((2 * _PIXELS_PER_MM, 0), (0, 2 * _PIXELS_PER_MM)):
            draw.line((width / 2 - arm[0], height / 2 - arm[1], width / 2 + arm[0], height / 2 + arm[1]), 0, thick)
        length = RULER_LENGTH * MM_PER_M * _PIXELS_PER_MM
        y, tick = height - _FOOT_MM * _PIXELS_PER_MM, 1.5 * _PIXELS_PER_MM
        left, right = (width - length) / 2, (width + length) / 2
        draw.line((left, y, right, y), 0, thick)
        for x in (left, right):
            draw.line((x, y - tick, x, y + tick), 0, thick)
        font = ImageFont.load_default(3 * _PIXELS_PER_MM)
        draw.text((right + 20, y), f"{RULER_LENGTH * MM_PER_M:.0f} mm", 0, font, anchor="lm")
        draw.text((left - 20, y), "print at 100 %; x to the right", 0, font, anchor="rm")


SHEETS = {
    "A4": CodeSheet((297, 210), columns=6, rows=4, code_side=36, gap=8),
    "A3": CodeSheet((420, 297), columns=8, rows=5, code_side=42, gap=8),
}


def print_sheet(name: str, path: Path) -> None:
    """Write a sheet as .pdf or .png, in the paper's size.

    Raises:
        SoftformError: If the type is another, or the file cannot be written.
    """
    kind = path.suffix.lower()
    if kind not in (".pdf", ".png"):
        raise SoftformError(f"{path} is neither .pdf nor .png.", "Name the file so.")
    content, dots_per_inch = BytesIO(), 25.4 * _PIXELS_PER_MM
    size = {"resolution": dots_per_inch} if kind == ".pdf" else {"dpi": (dots_per_inch, dots_per_inch)}
    Image.fromarray(SHEETS[name].drawing()).save(content, kind[1:], **size)
    write_atomically(path, content.getvalue())


Picture = NDArray[np.uint8]

_DARK, _BRIGHT = 60, 250
_BRIGHT_SHARE = 0.5


@dataclass(frozen=True)
class CodeCorners:
    """Corners of the codes that were found.

    Attributes:
        pixels: (N, 2) places in the image, N four times the codes.
        on_sheet: (N, 3) m, the same corners in the sheet's frame.
    """

    pixels: Array
    on_sheet: Array

    @property
    def codes(self) -> int:
        """Number of codes that were found."""
        return len(self.pixels) // 4


class CodeDetector:
    """Finds the codes of one sheet, whose printed ruler measures `ruler_length`, m."""

    def __init__(self, sheet: CodeSheet, ruler_length: float = RULER_LENGTH) -> None:
        self._corners = sheet.corners(ruler_length)
        parameters = cv2.aruco.DetectorParameters()
        parameters.cornerRefinementMethod = cv2.aruco.CORNER_REFINE_SUBPIX
        self._detector = cv2.aruco.ArucoDetector(DICTIONARY, parameters)

    def find(self, grey: Picture) -> CodeCorners:
        """Return the corners of codes in a grey image (height, width); a code that is seen twice is not used."""
        found, numbers, _ = self._detector.detectMarkers(grey)
        if numbers is None:
            return CodeCorners(np.empty((0, 2)), np.empty((0, 3)))
        names, counts = np.unique(numbers, return_counts=True)
        single = set(names[(counts == 1) & (names < len(self._corners))].tolist())
        kept = [(int(number), quad) for number, quad in zip(numbers.ravel(), found, strict=True) if number in single]
        return CodeCorners(
            np.array([quad for _, quad in kept], dtype=np.float64).reshape(-1, 2),
            np.array([self._corners[number] for number, _ in kept]).reshape(-1, 3),
        )


def exposure_fault(grey: Picture) -> str:
    """Return what is wrong with the exposure of a grey image in which codes are hard to find; empty if it is fine."""
    levels = grey[::4, ::4]
    if np.percentile(levels, 95) < _DARK:
        return "the image is too dark: more light, or a longer exposure"
    if (levels >= _BRIGHT).mean() > _BRIGHT_SHARE:
        return "the image is overexposed: less light, or a shorter exposure"
    return ""
