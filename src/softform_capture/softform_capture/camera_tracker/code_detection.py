"""Finds the printed codes in an image."""

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from softform_capture.camera_tracker.code_sheet import DICTIONARY, RULER_LENGTH, CodeSheet
from softform_core.arrays import Array

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
