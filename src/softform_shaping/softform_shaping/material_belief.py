"""What is not known of an object's material and weight: parameters theta, and how the shape depends on them.

Grips are prescribed, so that ratios alone matter: where the object is stiff relative to elsewhere, Poisson's ratio, and
its weight over its stiffness. By the implicit function theorem K dm = - dg/dtheta dtheta, with the factor that the
sensitivity to the poses needs anyway.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from softform_core.arrays import Array

__all__ = ["MaterialBelief", "Spreads"]

_RATIOS = (0.05, 0.45)
"""Poisson's ratios that are believed at most, beside the described one."""
_STIFFEST = 1.2
"""Largest logarithm of a stiffness ratio that is believed."""


@dataclass(frozen=True)
class Spreads:
    """Prior standard deviations.

    Attributes:
        stiffness: Of each mode of the logarithm of the modulus.
        ratio: Of Poisson's ratio.
        weight: Over the shear modulus, 1/m; of each component, for where up is, is not known.
        waves: Modes along the object.
    """

    stiffness: float = 0.3
    ratio: float = 0.05
    weight: float = 0.01
    waves: int = 3


class MaterialBelief:
    """Parameters theta (k,) of a body: modes of log modulus, Poisson's ratio, and weight over modulus.

    Modes are waves along the long axis, each alone and with a slope across; and how much stiffer the outside is than
    the core across each axis, which is what bending is stiff by.

    Args:
        body: As it is described, with `elements: corotational`.
        spreads: Of the prior.

    Attributes:
        prior: (k,) standard deviations of theta about 0.
    """

    def __init__(self, body: Any, spreads: Spreads) -> None:
        self._body = body
        middles = body.rest_nodes[body.tetrahedra].mean(axis=1)
        low, high = body.rest_nodes.min(axis=0), body.rest_nodes.max(axis=0)
        x, y, z = (2.0 * (middles - low) / (high - low) - 1.0).T
        waves = [np.cos(0.5 * np.pi * count * (z + 1.0)) for count in range(spreads.waves + 1)]
        modes = [*waves[1:], *(x * wave for wave in waves[:2]), *(y * wave for wave in waves[:2]), x * x, y * y]
        self._modes = np.stack(modes, axis=1)
        self._modes -= np.average(self._modes, axis=0, weights=body.volumes)
        count = len(modes)
        self.prior = np.concatenate([np.full(count, spreads.stiffness), [spreads.ratio], np.full(3, spreads.weight)])
        corners = body.tetrahedra.ravel()
        size = len(corners)
        self._gather = csr_matrix((np.ones(size), (corners, np.arange(size))), (len(body.rest_nodes), size))

    def poisson_ratio(self, theta: Array) -> float:
        """Poisson's ratio of theta (k,)."""
        described = self._body.poisson_ratio
        low, high = min(_RATIOS[0], described), max(_RATIOS[1], described)
        return float(np.clip(described + theta[-4], low, high))

    def share(self, theta: Array) -> Array:
        """Modulus of each element over the described one, (E,)."""
        return np.exp(np.clip(self._modes @ theta[:-4], -_STIFFEST, _STIFFEST))

    def body(self, theta: Array) -> Any:
        """The body of theta (k,)."""
        weight = self._body.weight + self._body.modulus * theta[-3:]
        return self._body.of_material(self.share(theta), self.poisson_ratio(theta), weight)

    def forces(self, body: Any, unknowns: Array) -> Array:
        """Derivative (3V, k) of the gradient by theta at unknowns (m,) of a `body` of it, by node and axis."""
        by_mu, by_lambda = body.element_forces(unknowns)
        both = (by_mu + by_lambda).reshape(-1, 1, 3)
        modes = np.repeat(self._modes, 4, axis=0)[:, :, None]
        ratio = body.poisson_ratio
        by_ratio = by_lambda.reshape(-1, 1, 3) / (ratio * (1.0 - 2.0 * ratio))
        flat = np.concatenate([modes * both, by_ratio], axis=1)
        found = np.zeros((len(body.rest_nodes), 3, len(self.prior)))
        gathered = self._gather @ flat.reshape(len(flat), -1)
        found[:, :, :-3] = gathered.reshape(len(found), -1, 3).transpose(0, 2, 1)
        for axis in range(3):
            found[:, axis, axis - 3] = -body.modulus * body.volume_at_nodes
        return found.reshape(-1, len(self.prior))
