"""Models of a robot's surfaces: actuation to points at any surface parameters, with normals and control points."""

from abc import abstractmethod
from collections.abc import Sequence
from copy import copy
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.forward.forward_model import ForwardModel, batch_of
from softform_core.forward.memory import State
from softform_core.surface.bspline import apply, unit_normals
from softform_core.surface.patch_set import PatchSet


class SurfaceModel(ForwardModel):
    """A model of the patches of a robot, evaluated at a fixed set of their points.

    Attributes:
        patches: The robot's surface.
        uv: (P, 2) surface parameters of the points.
    """

    patches: PatchSet
    uv: Array

    @abstractmethod
    def at(self, uv: Array) -> "SurfaceModel":
        """Return the same shape at other surface parameters (M, 2); it shares all else, so that it is made quickly."""

    def given(self, state: State) -> "SurfaceModel":
        """See `ForwardModel.given`."""
        return self

    @abstractmethod
    def control_points(self, actuation: Array) -> Array:
        """Return control points (Eq. 1) of the surface before any warp, (..., m) -> (..., C, 3) mm, of all patches."""

    @abstractmethod
    def normals(self, actuation: Array) -> Array:
        """Return unit normals du x dv of the predicted shape, (..., m) -> (..., P, 3)."""

    @cached_property
    def coarse(self) -> "SurfaceModel":
        """The same shape at about a hundred points, where a solve of inverse kinematics makes its first steps."""
        return self.at(self.patches.coarse())

    def points(self, actuation: Array) -> Array:
        """Return the predicted shape, (..., m) -> (..., P, 3) mm."""
        batch, lead = batch_of(actuation, self.degrees_of_freedom)
        return np.asarray(self.forward(batch).points).reshape(*lead, -1, 3)

    def points_and_jacobian(self, actuation: Array) -> tuple[Array, Array]:
        """Return the shape, (..., P, 3) mm, and its derivative, (..., P, 3, m) mm per unit, at (..., m)."""
        batch, lead = batch_of(actuation, self.degrees_of_freedom)
        state = self.forward(batch)
        jacobian = self.jacobian(state)
        return np.asarray(state.points).reshape(*lead, -1, 3), jacobian.reshape(*lead, *jacobian.shape[1:])

    def warp_coefficients(self, actuation: Array) -> Array:
        """Return coefficients gamma of a warp (Eq. 3), (..., m) -> (..., N + 4, 3); none by default, (..., 0, 3)."""
        return np.zeros((*batch_of(actuation, self.degrees_of_freedom)[1], 0, 3))

    def kernel_centers(self, actuation: Array) -> Array:
        """Return centers q_i of the warp's kernels, (..., m) -> (..., N, 3) mm; none by default."""
        return np.zeros((*batch_of(actuation, self.degrees_of_freedom)[1], 0, 3))

    @property
    def kernel_width(self) -> float:
        """Width c of the kernels of Eq. 2, 1/mm^2; 0 without a warp."""
        return 0.0


class SplineState(NamedTuple):
    """Points (n, P, 3) mm, and what gave their control points."""

    points: Array
    control: Any


class SplineModel(SurfaceModel):
    """A surface model that is known by its control points alone (Eq. 1); subclasses predict these.

    Args:
        patches: The robot's surface.
        uv: (P, 2) surface parameters.
        inputs: Names of the m actuations.

    Raises:
        SoftformError: If there is no point, or one lies in no patch.
    """

    def __init__(self, patches: PatchSet, uv: Array, inputs: Sequence[str]) -> None:
        self.patches, self._inputs = patches, tuple(inputs)
        self._sample(uv)

    def _sample(self, uv: Array) -> None:
        self.uv = np.asarray(uv, dtype=np.float64)
        if len(self.uv) == 0:
            raise SoftformError(f"Surface parameters have shape {self.uv.shape}.", "Give (P, 2) with P > 0.")
        self._basis, self._derivatives = self.patches.basis(self.uv), self.patches.derivatives(self.uv)

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the m actuations."""
        return self._inputs

    @abstractmethod
    def predict_control(self, actuation: Array) -> tuple[Array, Any]:
        """Return the control points (n, C, 3) mm at actuations (n, m), and what their derivatives are taken from."""

    @abstractmethod
    def control_jacobian(self, predicted: Any) -> Array:
        """Return the derivative of the control points, (n, C, 3, m) mm per unit."""

    def at(self, uv: Array) -> "SplineModel":
        """See `SurfaceModel.at`."""
        other = copy(self)
        other._sample(uv)
        return other

    def control_points(self, actuation: Array) -> Array:
        """See `SurfaceModel.control_points`."""
        batch, lead = batch_of(actuation, self.degrees_of_freedom)
        return self.predict_control(batch)[0].reshape(*lead, -1, 3)

    def normals(self, actuation: Array) -> Array:
        """See `SurfaceModel.normals`."""
        batch, lead = batch_of(actuation, self.degrees_of_freedom)
        control = self.predict_control(batch)[0]
        along_u, along_v = (apply(matrix, control[:, None]) for matrix in self._derivatives)
        return unit_normals(along_u, along_v).reshape(*lead, -1, 3)

    def forward(self, actuation: Array) -> SplineState:
        """Evaluate (n, m)."""
        control, predicted = self.predict_control(actuation)
        return SplineState(apply(self._basis, control[:, None]).reshape(len(control), -1, 3), predicted)

    def jacobian(self, state: SplineState) -> Array:
        """Return the derivative of the points, (n, P, 3, m) mm per unit."""
        control = self.control_jacobian(state.control)
        return np.stack([(self._basis @ one.reshape(len(one), -1)).reshape(-1, *one.shape[1:]) for one in control])
