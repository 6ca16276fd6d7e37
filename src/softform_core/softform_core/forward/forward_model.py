"""Forward models: from an actuation to the points of a predicted shape, with derivatives.

A learned surface (`ForwardPipeline`), the tip of a rod (`TipPoint`, a model of one point) and a simulated body
(`SimulatedModel`) are such models. Those of a robot's surfaces have points at any surface parameters, with normals and
control points.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from copy import copy
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.forward.memory import NO_MEMORY, Memory, State
from softform_core.surface.bspline import apply, unit_normals
from softform_core.surface.patch_set import PatchSet

__all__ = ["Efforts", "ForwardModel", "SplineModel", "SurfaceModel", "Tracker", "batch_of"]


def batch_of(actuation: ArrayLike, degrees_of_freedom: int) -> tuple[Array, tuple[int, ...]]:
    """Return actuations (..., k) as a batch (n, k), and their leading shape.

    Raises:
        SoftformError: If k is not the number of degrees of freedom, or a value is not finite.
    """
    values = np.asarray(actuation, dtype=np.float64)
    if values.ndim == 0 or values.shape[-1] != degrees_of_freedom:
        raise SoftformError(
            f"The actuation has shape {values.shape}, the model takes {degrees_of_freedom} values.",
            "Give one value for each degree of freedom.",
        )
    if not np.isfinite(values).all():
        raise SoftformError("The actuation has NaN or infinite values.", "Give finite values.")
    return values.reshape(-1, degrees_of_freedom), values.shape[:-1]


class DerivedState(NamedTuple):
    """Points (n, P, 3) mm, and what they were derived from, such as another model's state."""

    points: Array
    source: Any


class Efforts(NamedTuple):
    """What an actuation costs and must keep besides its shape, after a step of the actuation (k,).

    Attributes:
        residuals: (r,) mm, such as of tension.
        rows: (r, k) mm per unit, their derivatives.
        margins: (c,) mm, what a step should keep above 0, such as how taut a cable is.
        slopes: (c, k) mm per unit, their derivatives.
        slack_mm: By how much cables are slack, all together: these move nothing until they are taken up.
    """

    residuals: Array
    rows: Array
    margins: Array
    slopes: Array
    slack_mm: float


class Tracker(ABC):
    """A shape that is led towards targets by steps of the actuation, each of which is cheaper than a whole solve.

    A shape between two steps may be a little out of balance: `gap_mm` says by how much. Not to be shared by threads.

    Attributes:
        actuation: (k,) of the shape.
        gap_mm: How far the last step left the shape from its balance, mm; 0 after a whole solve, infinite before any.
        lack_mm: How far the shape was from its balance where it was linearised, mm.
        is_stable: Whether it was stable there.
        steps: Factors so far.
    """

    actuation: Array
    gap_mm: float
    lack_mm: float
    is_stable: bool
    steps: int

    @property
    @abstractmethod
    def shape(self) -> "ForwardModel":
        """The model of the shape as it is, linear about it by the derivatives of the last linearisation."""

    @abstractmethod
    def linearised(self) -> "ForwardModel":
        """Return the model, linear in the actuation, of where the shape is going to be in balance; costs one factor.

        Raises:
            SoftformError: If there is none.
        """

    @abstractmethod
    def efforts(self) -> Efforts:
        """Return what the last linearisation costs and must keep besides its shape; empty of nothing."""

    @abstractmethod
    def advance(self, actuation: Array, corrections: int = 1) -> None:
        """Go from the last linearisation to an actuation (k,), and so many steps towards balance there."""

    @abstractmethod
    def go_back(self) -> bool:
        """Go back to where it was last linearised near a stable balance; returns whether there is such a place."""

    @abstractmethod
    def rebalance(self) -> None:
        """Go from the last linearisation a safe way towards balance, by no more factors; the actuation stays."""

    @abstractmethod
    def settle(self) -> None:
        """Solve for the balance where it is, as exactly as the model can.

        Raises:
            SoftformError: If there is none near.
        """


class ForwardModel(ABC):
    """Actuation to the points of the predicted shape, and its derivatives.

    The state that `forward` returns has `points` (n, P, 3) mm, and is passed to the other methods.
    """

    _inputs: tuple[str, ...]

    is_solved: ClassVar[bool] = False
    """Whether each shape costs the solve of an equilibrium, so that few are asked for that are not needed."""

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the k inputs, in the order of an actuation."""
        return self._inputs

    @abstractmethod
    def forward(self, actuation: Array) -> Any:
        """Evaluate (n, k), each input in the robot's unit (Pa for pressures)."""

    @abstractmethod
    def jacobian(self, state: Any) -> Array:
        """Return the derivative of the points, (n, P, 3, k) mm per unit of the input."""

    @property
    def memory(self) -> Memory:
        """Memory that converts commands to the actuations that the model takes."""
        return NO_MEMORY

    def given(self, state: State) -> Self:
        """Return the shapes that follow a state of its memory; itself where the effective actuation says it all."""
        return self

    @property
    def degrees_of_freedom(self) -> int:
        """Number k of inputs."""
        return len(self.inputs)

    @property
    def coarse(self) -> Self:
        """The same shape at about a hundred points, where a solve makes its first steps; itself if it has few."""
        return self

    def at(self, uv: Array) -> Self:
        """Return the same shape at other surface parameters (M, 2); a model of fixed points is itself."""
        return self

    def tracker(self, actuation: Array) -> "Tracker | None":
        """Return what follows targets from an actuation (k,) a cheap step at a time; None where each shape is solved.

        It is cheap itself: nothing is solved yet, so that commands go on meanwhile.
        """
        return None

    def jacobian_along(self, state: Any, directions: Array) -> Array:
        """Return the derivative of each point along a direction (P, 3) of its own, for a batch of one, (P, k)."""
        return np.asarray((self.jacobian(state)[0] * directions[:, :, None]).sum(axis=1))

    def objective_gradient(self, state: Any, residuals: Array) -> Array:
        """Eq. 16: 2 sum (dp*/da)^T (p* - (R c* + t)) for residuals (P, 3) mm and a batch of one, (k,)."""
        return np.asarray(2.0 * residuals.ravel() @ self.jacobian(state)[0].reshape(residuals.size, -1))


class SurfaceModel(ForwardModel):
    """A model of the patches of a robot, evaluated at a fixed set of their points.

    Args:
        patches: The robot's surface.
        uv: (P, 2) surface parameters of the points.
        inputs: Names of the m actuations.

    Raises:
        SoftformError: If there is no point, or one lies in no patch.
    """

    def __init__(self, patches: PatchSet, uv: Array, inputs: Sequence[str]) -> None:
        self.patches, self._inputs = patches, tuple(inputs)
        self._sample(uv)

    def _sample(self, uv: Array) -> None:
        """Set the surface points; subclasses add what they compute once for them."""
        self.uv = np.asarray(uv, dtype=np.float64)
        if len(self.uv) == 0:
            raise SoftformError(f"Surface parameters have shape {self.uv.shape}.", "Give (P, 2) with P > 0.")
        self._derivatives = self.patches.derivatives(self.uv)

    def at(self, uv: Array) -> Self:
        """Return the same shape at other surface parameters (M, 2); it shares all else, so that it is made quickly."""
        other = copy(self)
        other._sample(uv)
        return other

    def _predicted(self, actuation: Array) -> Any:
        """Evaluate (n, m) as exactly as the model can; `forward` may round for a solver."""
        return self.forward(actuation)

    @abstractmethod
    def control_points(self, actuation: Array) -> Array:
        """Return control points (Eq. 1) of the surface before any warp, (..., m) -> (..., C, 3) mm, of all patches."""

    @abstractmethod
    def normals(self, actuation: Array) -> Array:
        """Return unit normals du x dv of the predicted shape, (..., m) -> (..., P, 3)."""

    @cached_property
    def coarse(self) -> Self:
        """The same shape at about a hundred points, where a solve of inverse kinematics makes its first steps."""
        return self.at(self.patches.coarse())

    def points(self, actuation: Array) -> Array:
        """Return the predicted shape, (..., m) -> (..., P, 3) mm."""
        batch, lead = batch_of(actuation, self.degrees_of_freedom)
        return np.asarray(self._predicted(batch).points).reshape(*lead, -1, 3)

    def points_and_jacobian(self, actuation: Array) -> tuple[Array, Array]:
        """Return the shape, (..., P, 3) mm, and its derivative, (..., P, 3, m) mm per unit, at (..., m)."""
        batch, lead = batch_of(actuation, self.degrees_of_freedom)
        state = self._predicted(batch)
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


class SplineModel(SurfaceModel):
    """A surface model that is known by its control points alone (Eq. 1); subclasses predict these."""

    def _sample(self, uv: Array) -> None:
        super()._sample(uv)
        self._basis = self.patches.basis(self.uv)

    @abstractmethod
    def predict_control(self, actuation: Array) -> tuple[Array, Any]:
        """Return the control points (n, C, 3) mm at actuations (n, m), and what their derivatives are taken from."""

    @abstractmethod
    def control_jacobian(self, predicted: Any) -> Array:
        """Return the derivative of the control points, (n, C, 3, m) mm per unit."""

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

    def forward(self, actuation: Array) -> DerivedState:
        """Evaluate (n, m)."""
        control, predicted = self.predict_control(actuation)
        return DerivedState(apply(self._basis, control[:, None]).reshape(len(control), -1, 3), predicted)

    def jacobian(self, state: DerivedState) -> Array:
        """Return the derivative of the points, (n, P, 3, m) mm per unit."""
        control = self.control_jacobian(state.source)
        return np.stack([(self._basis @ one.reshape(len(one), -1)).reshape(-1, *one.shape[1:]) for one in control])
