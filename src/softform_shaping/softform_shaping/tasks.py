"""The eleven tasks of paper 003 (Table 4): objects and targets, of which it prints the kind and no numbers.

A target is what the model makes of two poses; the controllers are told the shape, not the poses. In the object's frame
z runs along it, x is up, and the camera looks along y.
"""

from typing import NamedTuple

import numpy as np

from softform_core.arrays import Array

__all__ = ["TASKS", "TASKS_OF_OBJECTS", "ShapingTask"]


class ShapingTask(NamedTuple):
    """One task.

    Attributes:
        what: As Table 4 has it.
        object: Name of a description.
        poses: (12,) of the target, m and rad.
    """

    what: str
    object: str
    poses: Array


def _task(what: str, name: str, left: list[float], right: list[float]) -> ShapingTask:
    return ShapingTask(what, name, np.array([*left, *right]))


TASKS = {
    "sponge_1": _task("bending", "sponge", [0.0, 0.0, 0.015, 0.0, 0.45, 0.0], [0.0, 0.0, -0.015, 0.0, -0.45, 0.0]),
    "sponge_2": _task(
        "compression with rotation", "sponge", [0.01, 0.0, 0.012, 0.0, 0.3, 0.15], [0.01, 0.0, -0.012, 0.0, 0.3, 0.15]
    ),
    "sponge_3": _task("torsion", "sponge", [0.0, 0.0, 0.0, 0.0, 0.0, -0.5], [0.0, 0.0, 0.0, 0.0, 0.0, 0.5]),
    "sponge_4": _task(
        "bending around y", "sponge", [0.0, 0.02, 0.02, -0.55, 0.0, 0.0], [0.0, 0.02, -0.02, 0.55, 0.0, 0.0]
    ),
    "sponge_5": _task(
        "bending with rotation", "sponge", [0.01, 0.0, 0.015, 0.25, 0.5, 0.0], [0.02, 0.01, -0.015, 0.25, -0.3, 0.2]
    ),
    "thin_foam_1": _task(
        "bending with rotation", "thin_foam", [0.0, 0.01, 0.02, -0.5, 0.0, 0.2], [0.0, 0.01, -0.02, 0.5, 0.0, 0.2]
    ),
    "thin_foam_2": _task(
        "stretching", "thin_foam", [0.0, 0.0, -0.008, 0.0, 0.0, 0.0], [0.0, 0.0, 0.008, 0.0, 0.0, 0.0]
    ),
    "convoluted_foam_1": _task(
        "bending, spinning", "convoluted_foam",
        [0.0, 0.0, 0.015, -0.4, 0.0, 0.35], [0.0, 0.0, -0.015, 0.4, 0.0, 0.35],
    ),
    "convoluted_foam_2": _task(
        "torsion", "convoluted_foam", [0.0, 0.0, 0.0, 0.0, 0.0, -0.45], [0.0, 0.0, 0.0, 0.0, 0.0, 0.45]
    ),
    "noodle_1": _task(
        "out-of-plane deformation", "noodle",
        [0.0, 0.0, 0.06, -0.5, 0.5, 0.0], [0.0, 0.0, -0.06, 0.5, -0.5, 0.0],
    ),
    "noodle_2": _task(
        "out-of-plane deformation, with rotation", "noodle",
        [0.03, 0.0, 0.05, -0.5, 0.6, 0.1], [0.0, 0.05, -0.06, 0.4, 0.2, 0.3],
    ),
}  # fmt: skip

TASKS_OF_OBJECTS = {
    **TASKS,
    "rope_1": _task("hanging", "rope", [0.0, 0.0, 0.03, 0.0, -0.5, 0.0], [0.0, 0.0, -0.03, 0.0, 0.5, 0.0]),
}
"""Those of the paper, and of the rope, of which it only measures length and radius."""
