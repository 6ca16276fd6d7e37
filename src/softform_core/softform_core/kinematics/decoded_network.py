"""N_fk followed by the B-spline decoder at fixed surface parameters (paper 000, Eqs. 14 and 1), with its Jacobian."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from softform_core.kinematics.mlp import AffineLayers
from softform_core.surface.bspline import basis_matrix

Array = NDArray[np.float64]
Floats = NDArray[np.floating]


class DecodedNetwork:
    """Points of the simulated surface.

    The last layer of N_fk is affine and Eq. 1 is linear: their product is one matrix from the last hidden layer to the
    points (exact), so that no control point is ever formed.

    Args:
        network: N_fk, folded, (k,) Pa -> flattened control points (rows * cols * 3,) mm.
        uv: (Q, 2) surface parameters in the unit square.
        grid: Rows and columns of control points, and the degree of the B-spline.
        precision: Of the Jacobian's products.
    """

    def __init__(
        self, network: AffineLayers, uv: Array, grid: tuple[int, int, int], precision: type[np.floating]
    ) -> None:
        """Multiply decoder and last layer."""
        weight, bias = network.weights[-1], network.biases[-1]
        basis = basis_matrix(uv, *grid)
        control_points = basis.shape[1]
        self._network, self._slopes = network, network.in_precision(precision)
        # (hidden, Q * 3): Eq. 1 applied to the last layer's columns.
        decode = (basis @ weight.reshape(control_points, -1)).reshape(len(uv) * 3, -1)
        self._decode = np.ascontiguousarray(decode.T)
        # (hidden, 3 * Q): points last, as the loops over them want it.
        by_coordinate = self._decode.reshape(-1, len(uv), 3).swapaxes(1, 2)
        self._decode_slopes = by_coordinate.reshape(len(self._decode), -1).astype(precision)
        self._offset = (basis @ bias.reshape(control_points, 3)).ravel()
        self._identity = np.eye(network.inputs, dtype=precision)

    def hidden(self, actuation: Array) -> tuple[Array, ...]:
        """Activations of N_fk's hidden layers, (n, k) Pa -> (n, width) each."""
        return self._network.hidden(actuation)

    def points(self, last_hidden: Array) -> Array:
        """Points (n, Q, 3) mm from the activations of the last hidden layer."""
        if len(last_hidden) == 1:
            points = self._offset.copy()
            _add_rows(last_hidden[0], self._decode, points)
        else:
            points = last_hidden @ self._decode + self._offset
        return points.reshape(len(last_hidden), -1, 3)

    def jacobian(self, hidden: tuple[Array, ...]) -> tuple[Floats, Floats]:
        """Derivatives by the actuation.

        Args:
            hidden: From `hidden`.

        Returns:
            Of the points (n, k, 3, Q) mm/Pa and of the last hidden layer (n, width, k).
        """
        slope = self._slopes.hidden_jacobian(hidden, self._identity)
        # With ReLU more than half of the units stand still at any one actuation.
        moving = slope.any(axis=(0, 2))
        decode, motion = self._decode_slopes, slope
        if not moving.all():
            decode, motion = decode[moving], motion[:, moving]
        return (motion.swapaxes(1, 2) @ decode).reshape(len(slope), slope.shape[2], 3, -1), slope


@njit(cache=True, nogil=True, fastmath={"contract", "nsz"})
def _add_rows(weights: Array, rows: Array, out: Array) -> None:  # pragma: no cover - compiled
    """Add weighted rows (h, m) to out (m,). With ReLU most weights are zero: their rows are not even read."""
    for row in range(len(weights)):
        weight = weights[row]
        if weight != 0.0:
            for column in range(len(out)):
                out[column] += weight * rows[row, column]
