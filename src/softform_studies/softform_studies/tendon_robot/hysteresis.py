"""How much a recorded robot's shape depends on what it did before: paper 004, Sec. VI-B."""

import numpy as np
from scipy.spatial import cKDTree

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.units import MM_PER_M
from softform_studies.tendon_robot.shapes import Part, RecordedShapes

PRINTED = {"tip_mm": [18.0, 13.0], "tip_percent": [9.0, 6.5], "chamfer_m2": [0.04, 0.1]}
"""Means and standard deviations of the paper's robot; its Chamfer distance sums squares, so that its unit is m^2."""


def chamfer(first: Array, second: Array) -> float:
    """Return the Chamfer distance C (Sec. IV) of clouds (N, 3) and (M, 3): sums of squares, in the unit squared."""
    there, back = cKDTree(second).query(first)[0], cKDTree(first).query(second)[0]
    return float(np.square(there).sum() + np.square(back).sum())


def measured_hysteresis(shapes: RecordedShapes, other: Part = "random_1") -> dict[str, object]:
    """Return means and standard deviations over all configurations reached by way of home, and by another way.

    Raises:
        SoftformError: If no configuration was reached in both ways.
    """
    home, elsewhere = shapes.of_parts("home"), shapes.of_parts(other)
    places = {configuration.tobytes(): place for place, configuration in enumerate(elsewhere.q_current)}
    pairs = [(row, places[q.tobytes()]) for row, q in enumerate(home.q_current) if q.tobytes() in places]
    if not pairs:
        raise SoftformError(
            "No configuration was reached both by way of home and by another one.", "Make the shapes again."
        )
    first, second = np.array(pairs).T
    tips = np.linalg.norm(home.tip[first] - elsewhere.tip[second], axis=1)
    clouds = [chamfer(home.cloud[a], elsewhere.cloud[b]) / MM_PER_M**2 for a, b in pairs]
    length = float(np.linalg.norm(np.diff(home.centre_line[0], axis=0), axis=1).sum())

    def spread(values: Array) -> list[float]:
        return [float(np.mean(values)), float(np.std(values))]

    return {
        "pairs": len(pairs),
        "tip_mm": spread(tips),
        "tip_percent": spread(100.0 * tips / length),
        "chamfer_m2": spread(np.array(clouds)),
        "whole_skin_floor_m2": 2.0 * shapes.area / np.pi / MM_PER_M**2,
        "printed": PRINTED,
    }
