"""The stress guard: no move to where the model says that the object would be stressed beyond a limit (Eq. 9)."""

import numpy as np

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_shaping.model import HeldModel, HeldShape

__all__ = ["StressError", "StressGuard"]


class StressError(SoftformError):
    """A move would stress the object beyond the limit, or one did."""


class StressGuard:
    """Knows the limit; it is as good as the material's numbers.

    Args:
        model: Of the object.
        limit: Von Mises stress, Pa; infinite for none.
    """

    def __init__(self, model: HeldModel, limit: float) -> None:
        self._model, self._limit = model, limit
        self._last: HeldShape | None = None

    def require(self, poses: Array, near: Array | None = None) -> None:
        """Reject grippers at `poses` (12,), if they would stress the object beyond the limit.

        Args:
            poses: Of the grippers.
            near: (12,) from where its shape is found; the poses that were asked about last, if nothing is said.

        Raises:
            StressError: If so.
            NoEquilibriumError: If the object finds no shape there.
        """
        if not np.isfinite(self._limit):
            return
        start = self._last if near is None else self._model.shape(near)
        self._last = self._model.shape(poses, start)
        stress = float(self._model.stresses(self._last).max())
        if stress > self._limit:
            raise StressError(
                f"The object would be stressed by {stress:.3g} Pa; {self._limit:.3g} Pa are allowed.",
                "Choose a target that asks less of it, or another limit.",
            )

    def stress(self, believed: HeldShape) -> float:
        """Largest stress, Pa, where the grippers are: by the shape that it judges by, if there is a limit.

        A controller's shape is that of a material that it believes in; no belief moves what the guard compares.

        Args:
            believed: Shape of the controller there, which does where there is no limit.

        Raises:
            NoEquilibriumError: If the object finds no shape there.
        """
        if not np.isfinite(self._limit):
            return float(self._model.stresses(believed).max())
        if self._last is None or not np.array_equal(self._last.poses, believed.poses):
            self._last = self._model.shape(believed.poses, self._last)
        return float(self._model.stresses(self._last).max())
