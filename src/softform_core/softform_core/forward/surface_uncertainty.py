"""Uncertainty of a predicted surface: calibrated spread of an ensemble along the normals; millimetres.

One standard deviation of a predicted point along the normal of the surface:

    sigma = sqrt((spread_factor * spread)^2 + spread_floor^2)

The mean of the members is what is predicted; `evaluation.uncertainty` finds factor and floor.
"""

from collections.abc import Sequence
from copy import copy

import numpy as np

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.forward.mlp import fold
from softform_core.forward.pipeline import ForwardPipeline
from softform_core.forward.rbf_warp import SimToReal, gaussians, warp
from softform_core.forward.warped_surface import WarpedSurface


def members_spread(predictions: Array, normals: Array) -> Array:
    """Return the deviation (..., P) mm along unit normals (..., P, 3) of predictions (k, ..., P, 3) mm."""
    along = np.einsum("k...x,...x->k...", predictions - predictions.mean(axis=0), normals)
    return np.sqrt(np.square(along).sum(axis=0) / max(1, len(predictions) - 1))


class SurfaceUncertainty:
    """Uncertainty of a pipeline of the members' mean: root of squares of `factor` times their spread and `floor_mm`.

    Attributes:
        members: N_rbf of each member.

    Raises:
        SoftformError: If the members' kernels are not those of the pipeline.
    """

    def __init__(
        self, pipeline: ForwardPipeline | WarpedSurface, members: Sequence[SimToReal], factor: float, floor_mm: float
    ) -> None:
        mean = pipeline.sim_to_real
        if mean is None or any(
            member.width != mean.width or not np.array_equal(member.kernel_uv, mean.kernel_uv) for member in members
        ):
            raise SoftformError(
                "The members of the ensemble have other kernels than the pipeline.", "Use members of one model."
            )
        self._pipeline, self._factor, self._floor = pipeline, factor, floor_mm
        self.members = [fold(member.coefficients) for member in members]

    def at(self, uv: Array) -> "SurfaceUncertainty":
        """Return the same at other surface parameters, (P, 2)."""
        other = copy(self)
        other._pipeline = self._pipeline.at(uv)
        return other

    def along_normals(self, actuation: Array) -> Array:
        """Return one standard deviation along the normals, (..., k) -> (..., P) mm."""
        actuation = np.asarray(actuation, dtype=np.float64)
        batch = actuation.reshape(-1, actuation.shape[-1])
        state, normals = self._pipeline.forward(batch), self._pipeline.normals(batch)
        control = self._pipeline.control_points(batch).reshape(len(batch), -1)
        # In double precision: the spread of the members is a small difference of what they predict.
        points, gaussian = state.simulated, gaussians(state.simulated, state.centers, self._pipeline.kernel_width)
        predictions = [
            warp(points, gaussian, member.values(control).reshape(len(batch), -1, 3)) for member in self.members
        ]
        return self.of_spread(members_spread(np.array(predictions), normals)).reshape(*actuation.shape[:-1], -1)

    def of_spread(self, spread: Array) -> Array:
        """Return one standard deviation, mm, from the spread of the members (any shape), mm."""
        return np.hypot(self._factor * spread, self._floor)
