"""A cable through points of a body: straight between them and without friction, and in Bowden tubes between its runs.

Of its length counts what lies in its runs: a Bowden tube keeps its own length however the body moves. With the points
p = sum N_a x_a of segment s, d_s = p_end - p_begin and e_s = d_s / |d_s|, and +-N_a the weights of the nodes in d_s:

    l(x)                  = sum |d_s|
    dl/dx_a               = sum +-N_a e_s
    d2l/dx_a dx_b         = sum (+-N_a) (+-N_b) (1 - e_s e_s^T) / |d_s|

Under a tension T its potential is T l. Under the pull u of a motor the cable of stiffness k is stretched by
d = l(x) - l(X) + u, and its potential is k phi(d), see `taut_energy`: T = k phi'(d), and the Hessian has k phi''(d)
dl/dx dl/dx^T besides T d2l/dx2, which joins all nodes along the cable (paper 002, Sec. II-A, is the same with
k / 2 max(0, d)^2).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.bodies.loads.load import Load, Product

TAKE_UP = 2e-5
"""Stretch w over which a slack tendon takes up its stiffness, m."""


def taut_energy(stretch: Array, take_up: float = TAKE_UP) -> Array:
    """Values phi (…) m^2 of stretches (…) m of a tendon or cable: it pulls and never pushes.

    Its energy over its stiffness k is phi(d) of the stretch d: zero for d <= 0, d^2 / 2 less a constant slope for
    d >= w, and between these a cubic that makes the stiffness continuous: Newton's method would swing to and fro at a
    kink.
    """
    taut = np.maximum(stretch, 0.0)
    past = taut - 0.5 * take_up
    return np.where(taut < take_up, taut**3 / (6.0 * take_up), 0.5 * past * past + take_up**2 / 24.0)


def taut_slopes(stretch: Array, take_up: float = TAKE_UP) -> tuple[Array, Array]:
    """Derivatives phi' (…) m, and phi'' (…), of stretches (…) m."""
    taut = np.maximum(stretch, 0.0)
    slope = np.where(taut < take_up, taut * taut / (2.0 * take_up), taut - 0.5 * take_up)
    return slope, np.minimum(taut / take_up, 1.0)


class Segments(NamedTuple):
    """S straight pieces of a cable: d_s = sum of weights times nodes, plus offsets.

    Attributes:
        nodes: (S, n) nodes of the elements that hold both ends.
        weights: (S, n) of them in d_s: those of its end, and less those of its begin.
        offsets: (S, 3) m, what ends that are fixed in space add.
    """

    nodes: NDArray[np.int64]
    weights: Array
    offsets: Array


class Cable(Load):
    """One cable; its value is the pull of its motor, m, or its tension, N.

    Args:
        segments: Its pieces.
        rest: (V, 3) m, nodes at rest.
        stiffness: Axial stiffness EA, N, of a cable that is pulled; None of one whose tension is given.
        force: About the force that strains the body by one, N, for the tolerance.

    Attributes:
        rest_length: l(X), m.
        stiffness: k, N/m, of a cable that is pulled, else None.
    """

    inputs = 1

    def __init__(self, segments: Segments, rest: Array, stiffness: float | None, force: float) -> None:
        self._segments, self.groups = segments, (segments.nodes,)
        self.rest_length = float(np.linalg.norm(self._pieces(rest), axis=1).sum())
        self.stiffness = None if stiffness is None else stiffness / self.rest_length
        self._force = 1.0 if stiffness is None else force / self.rest_length

    def stretch(self, nodes: Array, pull: float) -> float:
        """Stretch d, m, under a pull; below 0 by how much the cable is slack."""
        return float(np.linalg.norm(self._pieces(nodes), axis=1).sum()) - self.rest_length + pull

    def tension(self, nodes: Array, values: Array) -> float:
        """Tension T, N."""
        return self._tensions(nodes, values)[0]

    def energy(self, nodes: Array, values: Array) -> float:
        """T l, or k phi(d), J."""
        if self.stiffness is None:
            return float(values[0] * np.linalg.norm(self._pieces(nodes), axis=1).sum())
        return self.stiffness * float(taut_energy(np.array(self.stretch(nodes, values[0]))))

    def add_gradient(self, nodes: Array, values: Array, gradient: Array) -> None:
        """T dl/dx."""
        tension = self.tension(nodes, values)
        if tension:
            gradient += tension * self._longer(nodes)

    def blocks(self, nodes: Array, before: Array, values: Array) -> list[Array]:
        """T times the part of d2l/dx2 of each segment, T that which the last step linearly led to.

        What it lacks of the tension there, in a stiff cable, is mostly that of a finite turn, which no balance has.
        """
        d = self._pieces(nodes)
        length = np.linalg.norm(d, axis=1)[:, None]
        along, weights = d / length, self._segments.weights
        tension, rise = self._tensions(before, values)
        if rise:
            tension = max(0.0, tension + rise * float(np.sum(self._longer(before) * (nodes - before))))
        across = tension / length[..., None] * (np.eye(3) - along[:, :, None] * along[:, None])
        return [np.einsum("sa,sb,sij->saibj", weights, weights, across, optimize=True)]

    def products(self, nodes: Array, values: Array) -> list[Product]:
        """K phi''(d) dl/dx dl/dx^T."""
        rise = self._tensions(nodes, values)[1]
        return [Product(self._longer(nodes), rise)] if rise > 0.0 else []

    def by_values(self, nodes: Array, values: Array) -> Array:
        """dT/du dl/dx; of a tension dl/dx."""
        rise = 1.0 if self.stiffness is None else self._tensions(nodes, values)[1]
        return rise * self._longer(nodes)[None]

    def size(self, values: Array) -> float:
        """The tension, or that of a body which gives way by the whole pull, N."""
        return self._force * abs(float(values[0]))

    def _tensions(self, nodes: Array, values: Array) -> tuple[float, float]:
        """T, N, and its derivative by the stretch, N/m."""
        if self.stiffness is None:
            return float(values[0]), 0.0
        slope, curvature = taut_slopes(np.array(self.stretch(nodes, values[0])))
        return self.stiffness * float(slope), self.stiffness * float(curvature)

    def _pieces(self, nodes: Array) -> Array:
        """Segments d_s (S, 3) m."""
        return self._segments.offsets + np.einsum("sa,sai->si", self._segments.weights, nodes[self._segments.nodes])

    def _longer(self, nodes: Array) -> Array:
        """dl/dx (V, 3)."""
        d = self._pieces(nodes)
        along = d / np.linalg.norm(d, axis=1, keepdims=True)
        longer = np.zeros_like(nodes)
        np.add.at(longer, self._segments.nodes, self._segments.weights[:, :, None] * along[:, None])
        return longer
