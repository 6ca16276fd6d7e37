"""A camera's lens: focal lengths, principal point and distortion, as ROS camera calibration stores them."""

from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np

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
