"""Last check before a captured cloud is acted on: can it show the robot in the predicted shape?"""

from itertools import product

import numpy as np

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.geometry.triangle_tree import TriangleTree
from softform_core.surface.patch_set import PatchSet

MAX_MISFIT_PART = 0.05
"""Largest mean distance of a cloud from the prediction, over the robot's size; beyond it the cloud shows something
else. The gap of the virtual rig's realities is below 0.01."""

MIRROR_PART = 0.0025
"""Mean distance, as a part of the robot's size, below which no mirrored capture is suspected."""

MIRROR_RATIO = 0.8
"""A cloud is mirrored or turned if its image comes nearer to the prediction than this part of its own distance. Of 15
true shapes of three realities, predicted without sim-to-real, no image came nearer than 0.99 times the shape itself; of
their 225 images 202 are found, the others belong to nearly symmetric shapes."""

_EXAMINED_POINTS = 1000
_PARTS = 8


def check_agreement(captured: Array, predicted: Array, patches: PatchSet) -> None:
    """Reject a cloud (N, 3) mm too far from the prediction over `patches.samples`, or fitting if mirrored or turned.

    Raises:
        SoftformError: If the cloud is not of the predicted shape.
    """
    tree = TriangleTree(predicted[patches.triangles(len(predicted))])
    size = float(np.linalg.norm(np.ptp(predicted, axis=0)))
    examined = captured[:: max(1, len(captured) // _EXAMINED_POINTS)]

    def misfit(points: Array, limit: float = np.inf) -> float:
        """Return the mean distance; infinite as soon as it cannot be below the limit, as that of most images."""
        total = 0.0
        for first in range(_PARTS):
            part = points[first::_PARTS]
            total += float(np.linalg.norm(part - tree.query(part)[1], axis=1).sum())
            if total >= limit * len(points):
                return np.inf
        return total / len(points)

    here = misfit(examined)
    if here > MIRROR_PART * size:
        best = min(misfit(examined @ image.T, MIRROR_RATIO * here) for image in mirrored_or_turned())
        if best < np.inf:
            raise SoftformError(
                f"The captured cloud is {here:.1f} mm from the predicted surface, its mirrored or turned image only "
                f"{best:.1f} mm.",
                "Check the axes of the scanner's export and its registration.",
            )
    if here > MAX_MISFIT_PART * size:
        raise SoftformError(
            f"The captured cloud is on average {here:.0f} mm from the predicted surface.",
            "Check that the scan shows this robot, and the scanner's registration.",
        )


def mirrored_or_turned() -> list[Array]:
    """Return the 15 ways to mirror and turn a cloud about the robot's axes that are not the identity, (3, 3) each."""
    swap = np.eye(3)[[1, 0, 2]]
    images = [np.diag(signs) @ frame for frame in (np.eye(3), swap) for signs in product((1.0, -1.0), repeat=3)]
    return images[1:]
