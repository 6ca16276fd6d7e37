"""Whether what the camera sees can be the object that the model describes, held where it should be.

A correction by what is seen draws the model to whatever is there: to half of a torn object, to one that hangs from one
gripper, to another of its colour beside it. So the cloud is judged before.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_shaping.model import HeldModel
from softform_shaping.visual_mesh import VisualMesh

__all__ = ["ElsewhereError", "Sighting", "SightingError"]

_FEWEST = 30
_HIDDEN = 0.03
"""Beside a gripper, m, what it may hide as it turns, and as the object slips in it."""
_SLICE, _MOST_SLICES = 0.01, 24
_ENOUGH = 10
"""Points that one missing patch of depth does not hide: where slices have fewer, neighbours count together."""
_FACING = 0.7
"""Cosine between the normals of what is turned to the camera and their mean."""
_COVERED, _BESIDE = 0.75, 0.5
"""Least share of that which has a point of the cloud nearby, and how near, over the reach."""
_LEAST = 0.1
"""Points of a slice, over the median of all, below which the object counts as not there."""
_ELSEWHERE = (
    "Look whether it slipped out of a gripper, tore or snapped over, whether something else of its colour is in view, "
    "and whether it is the object that is described."
)


class SightingError(SoftformError):
    """What is seen is not the object where it should be."""


class ElsewhereError(SightingError):
    """It is, at least in part, not where it should be."""


class Sighting:
    """Judges clouds of one object.

    Args:
        model: Of the object; its long axis at rest is z.
        visual: Its visual mesh.
        reach: Farther from the mesh, m, a point belongs to something else.
        strange: Largest share of such points.

    Attributes:
        reach: As given.
        slices: Across the object, in which it has to be seen.
    """

    def __init__(self, model: HeldModel, visual: VisualMesh, reach: float, strange: float = 0.25) -> None:
        self._visual, self.reach, self._strange = visual, reach, strange
        along = visual.places(model.rest_nodes)[:, 2]
        left, right = (model.rest_nodes[held, 2] for held in model.held)
        begin, end = float(left.max()) + _HIDDEN, float(right.min()) - _HIDDEN
        self.slices = int(np.clip((end - begin) / _SLICE, 0, _MOST_SLICES))
        share = (along - begin) / max(end - begin, 1e-9)
        inside = (share >= 0.0) & (share < 1.0)
        self._slice = np.where(inside, (share * max(self.slices, 1)).astype(np.int64), -1)

    def require(self, places: Array, cloud: Array) -> None:
        """Reject a cloud that does not show the object where the model has it.

        Args:
            places: Visual nodes (Q, 3) m, as simulated or as they were seen last.
            cloud: (N, 3) m, of the pixels of the object's colour.

        Raises:
            ElsewhereError: If it shows too much elsewhere.
            SightingError: If it shows too little, or nothing of a part of the object.
        """
        if len(cloud) < _FEWEST:
            raise SightingError(
                f"The camera sees {len(cloud)} points of the object; {_FEWEST} are needed.",
                "Look whether it is covered, or whether its colour is that of something else.",
            )
        distance, which = cKDTree(places).query(cloud)
        near = distance < self.reach
        if 1.0 - near.mean() > self._strange:
            raise ElsewhereError(
                f"{1.0 - near.mean():.0%} of what the camera sees is not where the object should be.", _ELSEWHERE
            )
        if self.slices:
            self._require_whole(self._slice[which], near)
            beside = (cloud[near] - places[which[near]]).mean(axis=0)  # by which the camera's pose is off, mostly
            self._require_wide(places, cloud - beside, which[near])

    def _require_whole(self, slices: NDArray[np.int64], near: NDArray[np.bool_]) -> None:
        """Raise if slices have hardly a point that is near, of a cloud whose points (N,) are of these `slices`."""
        counts = self._counts(slices[near])
        joined = int(np.clip(np.ceil(_ENOUGH / max(float(np.median(counts)), 1e-9)), 1, self.slices))
        window = np.ones(joined, dtype=counts.dtype)
        seen, counts = np.convolve(self._counts(slices), window, "valid"), np.convolve(counts, window, "valid")
        least = _LEAST * np.median(counts)
        empty = np.flatnonzero(counts < least) if counts.any() else np.arange(len(counts))
        if not len(empty):
            return
        if (seen[empty] >= max(least, 1.0)).all():
            raise ElsewhereError("A part of what the camera sees is not where the object should be.", _ELSEWHERE)
        first, last = empty[0], empty[-1]
        if first == 0 and last < len(counts) - 1:
            where, what = "beside the left gripper", "it is held there"
        elif last == len(counts) - 1 and first > 0:
            where, what = "beside the right gripper", "it is held there"
        else:
            where, what = f"{(first + 0.5 * joined) / self.slices:.0%} of the way between the grippers", "it is whole"
        raise SightingError(
            f"The camera sees nothing of the object {where}.",
            f"Look whether {what}, whether something covers it, and whether it is the object that is described.",
        )

    def _counts(self, slices: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.bincount(slices[slices >= 0], minlength=self.slices)

    def _require_wide(self, places: Array, cloud: Array, seen: NDArray[np.int64]) -> None:
        """Raise if much of the side that the camera sees has no points: the object is thinner than its model."""
        normals = self._visual.normals(places)
        towards = normals[seen].mean(axis=0)
        facing = (normals @ towards > _FACING * np.linalg.norm(towards)) & (self._slice >= 0)
        if not facing.any():
            return
        covered = float((cKDTree(cloud).query(places[facing])[0] < _BESIDE * self.reach).mean())
        if covered < _COVERED:
            raise SightingError(
                f"Of the side of the object that the camera sees only {covered:.0%} is there.",
                "Look whether something covers it, and whether it is the object that is described.",
            )
