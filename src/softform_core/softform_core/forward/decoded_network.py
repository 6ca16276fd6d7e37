"""N_fk followed by the B-spline decoder at fixed surface parameters (paper 000, Eqs. 14 and 1), with its Jacobian."""

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.forward.mlp import AffineLayers
from softform_core.surface.patch_set import PatchSet

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
