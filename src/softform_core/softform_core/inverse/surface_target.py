"""A B-spline surface that the robot is asked to take (paper 000, Eq. 1), in metres."""

import numpy as np
from numpy.typing import ArrayLike

from softform_core.errors import SoftformError
from softform_core.shapes.shape import Shape
from softform_core.shapes.validate import check_points
from softform_core.surface.bspline import evaluate
from softform_core.surface.patch_set import SHEET

_SAMPLES = 121**2
"""Vertices of the mesh. Over a membrane of 320 mm the chords then lie within 0.01 mm of the tightest
bend that nine chambers make, and a tenth of that of most."""


def surface_target(control_points: ArrayLike, degree: int = 3) -> Shape:
    """Return a clamped uniform B-spline surface of control points (rows, cols, 3) m as a fine mesh.

    Borders and corners of the mesh are the surface's own.

    Raises:
        SoftformError: On another shape, NaN, too few control points for the degree, or points on one line.
    """
    control = np.asarray(control_points, dtype=np.float64)
    if control.ndim != 3 or control.shape[2] != 3 or degree < 1 or min(control.shape[:2]) < degree + 1:
        raise SoftformError(
            f"Control points of shape {control.shape} make no surface of degree {degree}.",
            f"Give (rows, columns, 3) with at least {max(degree, 1) + 1} rows and columns.",
        )
    check_points(control.reshape(-1, 3), "control net")
    return Shape.from_mesh(evaluate(control, SHEET.samples(_SAMPLES), degree), SHEET.triangles(_SAMPLES))
