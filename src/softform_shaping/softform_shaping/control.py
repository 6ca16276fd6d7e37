"""What the controller of paper 003 commands, and the error that it goes by."""

import numpy as np

from softform_core.arrays import Array
from softform_core.geometry.rigid import RigidTransform
from softform_shaping.features import Components

__all__ = ["command", "intermediate_target", "shape_error", "shape_errors"]


def intermediate_target(target: Array, shape: Array, parts: float) -> Array:
    """Eq. 20, read as a shape: m_i + (m* - m_i) / n, (3n,).

    Printed is (m* - m_i) / n, an increment; Eq. 21 subtracts the mean shape from it as from a shape.
    """
    return np.asarray(shape + (target - shape) / parts)


def command(inverse: Array, components: Components, intermediate: Array, shape: Array, gains: Array) -> Array:
    """Eqs. 21-22: dr = Lambda L^-1 (s* - s), (12,) m and rad.

    Args:
        inverse: L^-1 (12, k).
        components: Of the features.
        intermediate: Target of this iteration, (3n,) m.
        shape: (3n,) m.
        gains: (12,), the diagonal of Lambda.
    """
    return np.asarray(gains * (inverse @ (components.features(intermediate) - components.features(shape))))


def shape_error(target: Array, shape: Array, alignment: RigidTransform) -> float:
    """Eq. 28: e = |m* - T^-1 m|, m, the Frobenius norm over nodes (n, 3); T takes the cloud to the mesh."""
    return float(np.linalg.norm(target - alignment.apply_inverse(shape)))


def shape_errors(target: Array, shape: Array) -> tuple[float, float]:
    """Root mean square and largest distance of nodes (n, 3), mm: Eq. 28 grows with the number of nodes."""
    distance = 1e3 * np.linalg.norm(target - shape, axis=1)
    return float(np.sqrt((distance**2).mean())), float(distance.max())
