"""The plane of the robot in the image: lens, and the homography from the printed codes (paper 001, Sec. III-C2)."""

from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np

from softform_capture.camera_tracker.code_sheet import CodeCorners
from softform_core.arrays import Array
from softform_core.errors import SoftformError, reason_of
from softform_core.yaml_files import read_yaml

_DISTORTION_SIZES = (0, 4, 5, 8, 12, 14)
_MODELS = ("plumb_bob", "rational_polynomial")


@dataclass(frozen=True)
class Lens:
    """Pin-hole camera with OpenCV's (`plumb_bob`, `rational_polynomial`) distortion.

    Attributes:
        matrix: (3, 3) camera matrix K, pixels.
        distortion: (D,) coefficients.
        size: Width and height of the images that it was calibrated with, pixels; None if that is not known.
    """

    matrix: Array
    distortion: Array
    size: tuple[int, int] | None = None

    def require_size(self, size: tuple[int, int]) -> None:
        """Reject images of another width and height than it was calibrated with: their pixels are others.

        Raises:
            SoftformError: If they are.
        """
        if self.size is not None and self.size != size:
            raise SoftformError(
                "The images have {}x{} pixels, but the lens was calibrated with {}x{}.".format(*size, *self.size),
                "Set the camera to that size, or calibrate it at this one.",
            )

    def straightened(self, pixels: Array) -> Array:
        """Return where points (N, 2) of an image would be without distortion, pixels."""
        if len(pixels) == 0:
            return pixels
        return cv2.undistortPoints(pixels[:, None], self.matrix, self.distortion, P=self.matrix)[:, 0].astype(float)

    @classmethod
    def from_file(cls, path: str | Path) -> "Lens":
        """Read a file as ROS camera calibration writes it (camera_matrix, distortion_coefficients).

        Raises:
            SoftformError: If it cannot be read or is no such calibration.
        """
        try:
            content = read_yaml(path)
            matrix = np.array(content["camera_matrix"]["data"], dtype=np.float64).reshape(3, 3)
            distortion = np.array(content["distortion_coefficients"]["data"], dtype=np.float64).ravel()
            model = content.get("distortion_model", _MODELS[0])
            sides = [content.get(side) for side in ("image_width", "image_height")]
            size = None if None in sides else (int(sides[0]), int(sides[1]))
        except (SoftformError, KeyError, TypeError, ValueError) as error:
            if isinstance(error.__cause__, OSError):
                raise
            raise SoftformError(
                f"{path} is not a camera calibration ({reason_of(error)}).",
                "Give the YAML file that ROS camera calibration writes.",
            ) from error
        is_camera = matrix[0, 0] > 0.0 and matrix[1, 1] > 0.0 and np.array_equal(matrix[2], [0.0, 0.0, 1.0])
        finite = np.isfinite(matrix).all() and np.isfinite(distortion).all()
        if not (is_camera and finite and len(distortion) in _DISTORTION_SIZES):
            raise SoftformError(
                f"The camera matrix or the distortion in {path} is none.", "Calibrate the camera again."
            )
        if model not in _MODELS:
            raise SoftformError(
                f"{path} is of a lens by the model '{model}'; understood are {' and '.join(_MODELS)}.",
                "Calibrate the camera by one of these.",
            )
        return cls(matrix, distortion, size)


FEWEST_CODES = 3
LARGEST_RESIDUAL = 2.0
"""Largest root mean square residual, pixels; beyond it the sheet is bent or the lens distorts."""
_OUTLIER_PIXELS = 3.0


@dataclass(frozen=True)
class SheetPlacement:
    """Place of the sheet of codes in the robot's plane.

    Attributes:
        x: Coordinate of its origin, m.
        y: Coordinate of its origin, m.
        yaw: Direction of its x axis, rad.
        marker_height: Height of the robot's marker above the sheet, m; parallax is corrected only if a lens is given.
    """

    x: float = 0.0
    y: float = 0.0
    yaw: float = 0.0
    marker_height: float = 0.0

    def matrix(self) -> Array:
        """Return the map from sheet to robot in the plane, (3, 3) homogeneous."""
        c, s = np.cos(self.yaw), np.sin(self.yaw)
        return np.array([[c, -s, self.x], [s, c, self.y], [0.0, 0.0, 1.0]])


@dataclass(frozen=True)
class PlaneView:
    """One look at the plane.

    Attributes:
        to_plane: (3, 3) homography from the image's (straightened) pixels to the robot's plane, m; the third
            homogeneous coordinate is positive on the camera's side of the horizon.
        residual: Root of the mean squared distance of the codes' corners from where the map puts them, pixels.
        codes: Number of codes that the homography was fitted to.
        lens: Straightens pixels; None for a lens that draws straight.
    """

    to_plane: Array
    residual: float
    codes: int
    lens: Lens | None

    def place(self, pixels: Array) -> Array:
        """Return places (N, 2) m in the robot's plane of points (N, 2) of the image; NaN at the horizon and beyond."""
        straight = pixels if self.lens is None else self.lens.straightened(pixels)
        return _mapped(self.to_plane, straight)


def view_plane(corners: CodeCorners, placement: SheetPlacement, lens: Lens | None) -> PlaneView:
    """Return the map from image to plane that brings the codes' corners to their places.

    Raises:
        SoftformError: If too few codes are seen, or their corners do not lie as on a flat sheet.
    """
    if corners.codes < FEWEST_CODES:
        raise SoftformError(
            f"{corners.codes} codes of the sheet are seen, {FEWEST_CODES} are needed.",
            "Lay the printed sheet flat into the camera's view, sharp and well lit.",
        )
    pixels = corners.pixels if lens is None else lens.straightened(corners.pixels)
    homography, _ = cv2.findHomography(corners.on_sheet[:, :2], pixels, cv2.RANSAC, _OUTLIER_PIXELS)
    if homography is None or not np.isfinite(homography).all():
        raise SoftformError("The codes do not lie in a plane.", "Lay the printed sheet flat.")
    sheet_to_image = np.asarray(homography, dtype=np.float64)
    off = _mapped(sheet_to_image, corners.on_sheet[:, :2]) - pixels
    residual = float(np.sqrt(np.square(off).sum(axis=1).mean()))
    if not residual <= LARGEST_RESIDUAL:
        raise SoftformError(
            f"The codes lie {residual:.1f} pixels off a flat sheet, more than {LARGEST_RESIDUAL:.1f}.",
            "Lay the sheet flat; give the calibration of a lens that distorts.",
        )
    if placement.marker_height != 0.0:
        sheet_to_image = _raised(sheet_to_image, placement.marker_height, lens)
    to_plane = placement.matrix() @ np.linalg.inv(sheet_to_image)
    to_plane *= np.sign(to_plane[2] @ [*pixels.mean(axis=0), 1.0])
    return PlaneView(to_plane, residual, corners.codes, lens)


def _raised(sheet_to_image: Array, height: float, lens: Lens | None) -> Array:
    """Return the homography of the plane at a height above the sheet: H = K (r1 r2 t) becomes K (r1 r2 t + h r3)."""
    if lens is None:
        raise SoftformError("A marker above the sheet needs the lens.", "Give camera_calibration, or marker_height 0.")
    columns = np.linalg.inv(lens.matrix) @ sheet_to_image
    columns /= np.sqrt(np.linalg.norm(columns[:, 0]) * np.linalg.norm(columns[:, 1]))
    columns *= np.sign(columns[2, 2])  # the sheet lies in front of the camera
    columns[:, 2] += height * np.cross(columns[:, 0], columns[:, 1])
    return lens.matrix @ columns


def _mapped(homography: Array, points: Array) -> Array:
    mapped = np.column_stack([points, np.ones(len(points))]) @ homography.T
    depth = np.where(mapped[:, 2:] > 0.0, mapped[:, 2:], np.nan)
    return mapped[:, :2] / depth
