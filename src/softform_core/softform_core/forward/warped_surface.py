"""N_s2r behind the simulation itself: the surface of the real robot without N_fk in between (paper 000, Eqs. 2-4)."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.forward.forward_model import SplineModel, SurfaceModel, batch_of
from softform_core.forward.memory import Memory
from softform_core.forward.mlp import AffineLayers, fold
from softform_core.forward.rbf_warp import Floats, SimToReal, WarpInputs, gaussians, warp, warp_jacobian, warp_tangents
from softform_core.surface.bspline import apply, unit_normals

__all__ = ["WarpedSurface"]


@dataclass(frozen=True)
class Warped:
    """One evaluation, from which derivatives are taken.

    Attributes:
        points: (n, P, 3) mm, p* of Eq. 4.
        simulated: (n, P, 3) mm, the points before the warp.
        centers: (n, N, 3) mm, the kernels'.
        gaussian: (n, P, N).
        gamma: (n, N + 4, 3).
        control: (n, C, 3) mm of the simulated surface.
        predicted: What the simulation takes its derivatives from.
        actuation: (n, k).
    """

    points: Array
    simulated: Array
    centers: Array
    gaussian: Floats
    gamma: Array
    control: Array
    predicted: Any
    actuation: Array


class WarpedSurface(SurfaceModel):
    """A surface that is known by its control points, corrected by what was learned of the real robot.

    N_s2r was learned behind N_fk; what N_fk misses of the simulation is not corrected twice, as it is small.

    Args:
        surface: The simulation, such as `SimulatedSurface`.
        sim_to_real: N_s2r.

    Raises:
        SoftformError: If N_s2r is of another surface.
    """

    is_solved = True

    def __init__(self, surface: SplineModel, sim_to_real: SimToReal) -> None:
        self._simulation, self.sim_to_real = surface, sim_to_real
        self._coefficients = fold(sim_to_real.coefficients)
        numbers = 3 * surface.patches.control_points
        if self._coefficients.inputs != numbers:
            raise SoftformError(
                f"N_rbf takes {self._coefficients.inputs} numbers, {surface.patches} control points are {numbers}.",
                "Use the sim-to-real model that was trained for this robot's surface.",
            )
        correction = sim_to_real.actuation
        self._correction: AffineLayers | None = None if correction is None else fold(correction.layers)
        self._kernels = surface.patches.basis(sim_to_real.kernel_uv)
        super().__init__(surface.patches, surface.uv, surface.inputs)

    def _sample(self, uv: Array) -> None:
        super()._sample(uv)
        self._basis = self.patches.basis(self.uv)

    @property
    def memory(self) -> Memory:
        """Memory that sim-to-real has learned."""
        memory = self.sim_to_real.memory
        return super().memory if memory is None else memory

    def control_points(self, actuation: Array) -> Array:
        """See `SurfaceModel.control_points`."""
        return self._simulation.control_points(self._of_simulation(np.asarray(actuation, dtype=np.float64)))

    def warp_coefficients(self, actuation: Array) -> Array:
        """See `SurfaceModel.warp_coefficients`."""
        batch, lead = batch_of(actuation, self.degrees_of_freedom)
        return self.forward(batch).gamma.reshape(*lead, -1, 3)

    def kernel_centers(self, actuation: Array) -> Array:
        """See `SurfaceModel.kernel_centers`."""
        batch, lead = batch_of(actuation, self.degrees_of_freedom)
        return self.forward(batch).centers.reshape(*lead, -1, 3)

    @property
    def kernel_width(self) -> float:
        """Width c of the kernels of Eq. 2, 1/mm^2."""
        return self.sim_to_real.width

    def normals(self, actuation: Array) -> Array:
        """See `SurfaceModel.normals`."""
        batch, lead = batch_of(actuation, self.degrees_of_freedom)
        state = self.forward(batch)
        along_u, along_v = (
            warp_tangents(
                state.simulated,
                apply(matrix, state.control[:, None]),
                state.centers,
                state.gaussian,
                state.gamma,
                self.kernel_width,
            )
            for matrix in self._derivatives
        )
        return unit_normals(along_u, along_v).reshape(*lead, -1, 3)

    def forward(self, actuation: Array) -> Warped:
        """Evaluate (n, k); each costs the solve of an equilibrium.

        Raises:
            NoEquilibriumError: If one of them has no equilibrium.
        """
        control, predicted = self._simulation.predict_control(self._of_simulation(actuation))
        simulated, centers = (self._decoded(basis, control) for basis in (self._basis, self._kernels))
        gamma = self._coefficients.values(control.reshape(len(control), -1)).reshape(len(control), -1, 3)
        gaussian = gaussians(simulated, centers, self.kernel_width)
        points = warp(simulated, gaussian, gamma)
        return Warped(points, simulated, centers, gaussian, gamma, control, predicted, actuation)

    def jacobian(self, state: Warped) -> Array:
        """Return the derivative of the points by the actuation (Eq. 17), (n, P, 3, k) mm per unit."""
        moved = self._simulation.control_jacobian(state.predicted)
        if self._correction is not None:
            hidden, k = self._correction.hidden(state.actuation), self.degrees_of_freedom
            unit = np.broadcast_to(np.eye(k), (len(moved), k, k))
            moved = np.einsum("ncxo,nko->ncxk", moved, self._correction.jacobian(hidden, unit))
        motion = np.moveaxis(moved, -1, 1)
        flat = motion.reshape(*motion.shape[:2], -1)
        change = self._coefficients.jacobian(self._coefficients.hidden(state.control.reshape(len(flat), -1)), flat)
        centers = self._decoded(self._kernels, motion).swapaxes(2, 3)
        inputs = WarpInputs(
            state.simulated,
            state.centers,
            state.gaussian,
            state.gamma,
            centers,
            change.reshape(*motion.shape[:2], -1, 3),
            self.kernel_width,
        )
        along = warp_jacobian(self._decoded(self._basis, motion).swapaxes(2, 3), inputs)
        return np.asarray(along.transpose(0, 3, 2, 1))

    def _of_simulation(self, actuation: Array) -> Array:
        """Actuations (..., k) of the simulation that explain those commanded, or in effect."""
        correction = self.sim_to_real.actuation
        return actuation if correction is None else correction.effective(actuation)

    def _decoded(self, basis: Any, control: Array) -> Array:
        """Eq. 1: points (..., P, 3) of control points (..., C, 3)."""
        return np.asarray(apply(basis, control[..., None, :, :]))
