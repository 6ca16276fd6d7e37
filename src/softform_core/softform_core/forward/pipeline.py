"""Forward kinematics: actuation to the points of the predicted shape, with its analytic Jacobian.

Paper 000, Algorithm 1 (Eqs. 14, 3, 1, 2, 4: together Eq. 5) and Eqs. 16-17, 23-31. Millimetres out. Exact shortcuts:
N_fk's last layer is multiplied with the B-spline decoder (`DecodedNetwork`) and with N_rbf's first layer once, so that
the control points are never formed while solving.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.forward.forward_model import SurfaceModel, batch_of
from softform_core.forward.memory import Memory
from softform_core.forward.mlp import AffineLayers, fold
from softform_core.forward.rbf_warp import (
    SimToReal,
    WarpInputs,
    gaussians,
    jacobian_along,
    warp,
    warp_jacobian,
    warp_tangents,
)
from softform_core.networks.mlp_weights import MlpWeights
from softform_core.surface.bspline import apply, unit_normals
from softform_core.surface.patch_set import SHEET, PatchSet

Floats = NDArray[np.floating]


class DecodedNetwork:
    """Points of the simulated surface.

    The last layer of N_fk is affine and Eq. 1 is linear: their product is one matrix from the last hidden layer to the
    points (exact), so that no control point is ever formed.

    Args:
        network: N_fk, folded, (k,) -> flattened control points (C * 3,) mm of all patches.
        uv: (Q, 2) surface parameters.
        patches: The robot's surface.
        precision: Type of the derivatives and of the decoded points.
    """

    def __init__(self, network: AffineLayers, uv: Array, patches: PatchSet, precision: type[np.floating]) -> None:
        weight, bias = network.weights[-1], network.biases[-1]
        basis = patches.basis(uv)
        control_points = basis.shape[1]
        # (hidden, 3 * Q), points last: Eq. 1 applied to the last layer's columns.
        decode = (basis @ weight.reshape(control_points, -1)).reshape(len(uv), 3, -1)
        self._decode = np.ascontiguousarray(decode.transpose(2, 1, 0)).reshape(-1, 3 * len(uv))
        self._offset = (basis @ bias.reshape(control_points, 3)).T.ravel()
        self._decode_in_precision = self._decode.astype(precision, copy=False)

    def points(self, last_hidden: Floats) -> Array:
        """Return points (n, Q, 3) mm from the activations (n, width) of the last hidden layer; a view of (n, 3, Q)."""
        decode = self._decode_in_precision if last_hidden.dtype == self._decode_in_precision.dtype else self._decode
        moved = last_hidden @ decode
        return (moved + self._offset).reshape(len(last_hidden), 3, -1).swapaxes(1, 2)

    def jacobian(self, motion: Floats) -> Floats:
        """Return derivatives by the actuation, (n, k, 3, Q) mm/Pa.

        Args:
            motion: (n, k, width), derivative of the activations of the last hidden layer.
        """
        # With ReLU about half of the units stand still.
        moving = np.flatnonzero(motion.any(axis=(0, 1)))
        return (motion[:, :, moving] @ self._decode_in_precision[moving]).reshape(*motion.shape[:2], 3, -1)


@dataclass(frozen=True)
class Forward:
    """One evaluation of the pipeline, from which derivatives are taken without repeating it.

    Attributes:
        actuation: (n, k).
        points: (n, P, 3) mm, p* of Eq. 4.
        simulated: (n, P, 3) mm, the points before the warp.
        centers: (n, N, 3) mm, the kernels', empty without sim-to-real.
        gaussian: (n, P, N), empty without sim-to-real.
        gamma: (n, N + 4, 3), empty without sim-to-real.
        hidden: (n, width) each, activations of N_fk's hidden layers.
        coefficients_hidden: (n, width) each, those of N_rbf; none without sim-to-real.
    """

    actuation: Array
    points: Array
    simulated: Array
    centers: Array
    gaussian: Floats
    gamma: Array
    hidden: tuple[Floats, ...]
    coefficients_hidden: tuple[Floats, ...]


class ForwardPipeline(SurfaceModel):
    """Algorithm 1 for a fixed set of surface points.

    Args:
        forward_kinematics: N_fk (Eq. 14), (k,) -> flattened control points (C * 3,) mm of all patches.
        uv: (P, 2) surface parameters.
        sim_to_real: N_s2r, or None for the simulated shape itself.
        patches: The robot's surface.
        inputs: Names of the k actuations; by default they are numbered.
        precision: Type of the kernels and of all that a solver evaluates (`forward`, `jacobian`). Single takes half
            the time, and is right to 1e-5 of a Jacobian's largest value and to 5e-5 mm of points.

    Attributes:
        network: N_fk behind what sim-to-real corrects of the actuation, (n, k) -> (n, C * 3) mm.
        sim_to_real: N_s2r.

    Raises:
        SoftformError: If network, parameters and control grid do not fit together.
    """

    def __init__(
        self,
        forward_kinematics: MlpWeights,
        uv: Array,
        sim_to_real: SimToReal | None = None,
        patches: PatchSet = SHEET,
        inputs: Sequence[str] | None = None,
        precision: type[np.floating] = np.float32,
    ) -> None:
        """Fold the networks and multiply them with the decoder."""
        numbers = patches.control_points * 3
        if sim_to_real is not None and sim_to_real.actuation is not None:
            forward_kinematics = sim_to_real.actuation.before(forward_kinematics)
        self.network = fold(forward_kinematics)
        self._network_in_precision = self.network.in_precision(precision)
        names = tuple(inputs or (f"actuation_{number + 1}" for number in range(self.network.inputs)))
        if len(names) != self.network.inputs:
            raise SoftformError(
                f"N_fk takes {self.network.inputs} values, the robot has {len(names)}.",
                "Use the model that was trained for this robot.",
            )
        if self.network.weights[-1].shape[0] != numbers:
            raise SoftformError(
                f"N_fk gives {self.network.weights[-1].shape[0]} numbers, {patches} control points need {numbers}.",
                "Use the model that was trained for this robot's surface.",
            )
        self.sim_to_real, self._precision = sim_to_real, precision
        self._kernels: DecodedNetwork | None = None
        self._coefficients: AffineLayers | None = None
        self._coefficients_in_precision: AffineLayers | None = None
        if sim_to_real is not None:
            network = fold(sim_to_real.coefficients)
            if network.inputs != numbers:
                raise SoftformError(
                    f"N_rbf takes {network.inputs} numbers, {patches} control points are {numbers}.",
                    "Use the sim-to-real model that was trained for this robot's surface.",
                )
            self._coefficients = network.after(self.network.weights[-1], self.network.biases[-1])
            self._coefficients_in_precision = self._coefficients.in_precision(precision)
            self._kernels = DecodedNetwork(self.network, sim_to_real.kernel_uv, patches, precision)
        super().__init__(patches, uv, names)

    def _sample(self, uv: Array) -> None:
        super()._sample(uv)
        self._surface = DecodedNetwork(self.network, self.uv, self.patches, self._precision)

    @property
    def memory(self) -> Memory:
        """Memory that sim-to-real has learned."""
        memory = None if self.sim_to_real is None else self.sim_to_real.memory
        return super().memory if memory is None else memory

    def control_points(self, actuation: Array) -> Array:
        """Return the control points of the simulated surface (Eq. 14), (..., k) -> (..., C, 3) mm, of all patches."""
        batch, lead = batch_of(actuation, self.degrees_of_freedom)
        return self.network.values(batch).reshape(*lead, -1, 3)

    def warp_coefficients(self, actuation: Array) -> Array:
        """Return gamma of the warp (Eq. 3), (..., k) -> (..., N + 4, 3); N + 4 is 0 without sim-to-real."""
        batch, lead = batch_of(actuation, self.degrees_of_freedom)
        if self._coefficients is None:
            return np.zeros((*lead, 0, 3))
        return self._coefficients.values(self.network.hidden(batch)[-1]).reshape(*lead, -1, 3)

    def kernel_centers(self, actuation: Array) -> Array:
        """Return centers q_i of the warp's kernels on the simulated surface, (..., k) -> (..., N, 3) mm."""
        batch, lead = batch_of(actuation, self.degrees_of_freedom)
        return self._predicted(batch).centers.reshape(*lead, -1, 3)

    @property
    def kernel_width(self) -> float:
        """Width c of the kernels of Eq. 2, 1/mm^2; 0 without sim-to-real."""
        return 0.0 if self.sim_to_real is None else self.sim_to_real.width

    def normals(self, actuation: Array) -> Array:
        """Return unit normals du x dv of the predicted shape, (..., k) -> (..., P, 3)."""
        batch, lead = batch_of(actuation, self.degrees_of_freedom)
        state, control = self._predicted(batch), self.control_points(batch)
        along_u, along_v = (apply(matrix, control[:, None]) for matrix in self._derivatives)
        if self.sim_to_real is not None:
            along_u, along_v = (
                warp_tangents(
                    state.simulated, tangents, state.centers, state.gaussian, state.gamma, self.sim_to_real.width
                )
                for tangents in (along_u, along_v)
            )
        return unit_normals(along_u, along_v).reshape(*lead, -1, 3)

    def forward(self, actuation: Array) -> Forward:
        """Algorithm 1 for a batch, (n, k), in the pipeline's precision, keeping what derivatives need."""
        return self._evaluated(actuation, self._network_in_precision, self._coefficients_in_precision)

    def _predicted(self, actuation: Array) -> Forward:
        """Algorithm 1 for a batch, (n, k), in double precision but for the kernels."""
        return self._evaluated(actuation, self.network, self._coefficients)

    def _evaluated(self, actuation: Array, network: AffineLayers, coefficients: AffineLayers | None) -> Forward:
        """Algorithm 1 in the precision of the networks given."""
        hidden = network.hidden(actuation.astype(network.weights[0].dtype, copy=False))
        simulated = self._surface.points(hidden[-1])
        if self.sim_to_real is None or coefficients is None or self._kernels is None:
            nothing = np.zeros((len(actuation), 0, 3))
            points = np.ascontiguousarray(simulated)
            return Forward(actuation, points, simulated, nothing, nothing, nothing, hidden, ())
        centers = self._kernels.points(hidden[-1])
        coefficients_hidden = coefficients.hidden(hidden[-1])
        last = (hidden[-1], *coefficients_hidden)[-1]  # N_rbf may be affine: it has no hidden layer then
        gamma = coefficients.output(last).reshape(len(actuation), -1, 3)
        gaussian = gaussians(simulated, centers, self.sim_to_real.width, self._precision)
        return Forward(
            actuation,
            warp(simulated, gaussian, gamma),
            simulated,
            centers,
            gaussian,
            gamma,
            hidden,
            coefficients_hidden,
        )

    def jacobian(self, state: Forward) -> Array:
        """Return the derivative of `state.points` with respect to the actuation (Eq. 17), (n, P, 3, k) mm/Pa."""
        motion = self._hidden_motion(state)
        inputs = None if self.sim_to_real is None else self._warp_inputs(state, motion)
        jacobian = warp_jacobian(self._surface.jacobian(motion), inputs)
        return jacobian.transpose(0, 3, 2, 1).astype(np.float64, copy=False)

    def jacobian_along(self, state: Forward, directions: Array) -> Array:
        """Return each point's derivative along a unit direction (P, 3), d . dp*/da, (P, k) mm/Pa; batch of one."""
        motion, along = self._hidden_motion(state), directions.T[None]
        inputs = None if self.sim_to_real is None else self._warp_inputs(state, motion)
        jacobian = jacobian_along(self._surface.jacobian(motion), inputs, along.astype(motion.dtype))
        return jacobian[0].T.astype(np.float64, copy=False)

    def _hidden_motion(self, state: Forward) -> Floats:
        """Return the derivative of N_fk's last hidden layer by the actuation, (n, k, width)."""
        return self._network_in_precision.hidden_jacobian(self._in_precision(state.hidden))

    def _in_precision(self, hidden: tuple[Floats, ...]) -> tuple[Floats, ...]:
        return tuple(each.astype(self._precision, copy=False) for each in hidden)

    def _warp_inputs(self, state: Forward, motion: Floats) -> WarpInputs:
        assert (
            self.sim_to_real is not None and self._coefficients_in_precision is not None and self._kernels is not None
        )
        hidden = self._in_precision(state.coefficients_hidden)
        gamma = self._coefficients_in_precision.jacobian(hidden, motion)
        return WarpInputs(
            state.simulated,
            state.centers,
            state.gaussian,
            state.gamma,
            self._kernels.jacobian(motion),
            gamma.reshape(*motion.shape[:2], -1, 3),
            self.sim_to_real.width,
        )
