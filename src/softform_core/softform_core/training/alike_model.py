"""A correction of the actuation of a body whose sections are alike: one function, nearly the same for all actuators.

In the notation of `training.actuation_model` the correction adds to each actuator its own gain and offset, and

    sum over the orders in which it sees its section of  (weights + own weights) . tanh(into x[order] + bias),

a function of itself and of the others of its section. That sections deform by their own actuators alone, and how they
are turned and mirrored, is known of the body (`robots.body.Body.alike_inputs`), and a body softer or thinner than
simulated keeps it; that no two chambers are cast alike is left to their own weights, which are expected to be small.
Neurons are random and fixed, so what is unknown is linear. Not in paper 000.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.forward.actuation_correction import ActuationCorrection
from softform_core.training.actuation_model import ActuationModel

_NEURONS = 24
"""Number of neurons; 60 are no better."""
_INTO, _BIAS = 0.3, 0.5
"""Standard deviations of weights before the neurons and of biases; larger ones bend more than frames tell."""
_WEIGHT, _OWN = 0.16, 0.016
"""Standard deviations that are expected of the weights, over half the range."""


@dataclass(frozen=True)
class AlikeModel(ActuationModel):
    """The correction as a function of its unknowns, in order: offset (k,), gain (k,), weights (h,), own weights (k, h).

    Attributes:
        alike: (r, c) orders, see `Robot.alike_actuations`.
    """

    alike: NDArray[np.int64]

    @cached_property
    def _neurons(self) -> tuple[Array, Array]:
        """Into (h, c) and bias (h,): always the same."""
        random = np.random.default_rng(0)
        into = _INTO * random.standard_normal((_NEURONS, self.alike.shape[1]))
        return into, _BIAS * random.standard_normal(_NEURONS)

    @cached_property
    def _slopes(self) -> Array:
        linear, x = self._inputs
        into, bias = self._neurons
        (n, k), h = x.shape, len(bias)
        active = np.tanh(x[:, self.alike] @ into.T + bias)
        shared, own = np.zeros((n, k, h)), np.zeros((n, k, k, h))
        for row, order in enumerate(self.alike):
            shared[:, order[0]] += active[:, row]
        own[:, np.arange(k), np.arange(k)] = shared
        offset, gain = np.broadcast_to(np.eye(k), (n, k, k)), linear[:, :, None] * np.eye(k)
        return np.concatenate([offset, gain, shared, own.reshape(n, k, -1)], axis=2)

    def expected(self, gain: float, offset: float) -> Array:
        """Return standard deviations of the unknowns."""
        k = len(self.half)
        return np.repeat([offset, gain, _WEIGHT, _OWN], [k, k, _NEURONS, k * _NEURONS])

    def unknowns(self, offset: Array, matrix: Array) -> Array:
        """Return the unknowns of this offset (k,) and of the diagonal of this matrix (k, k), the neurons silent."""
        return np.concatenate([offset, np.diag(matrix), np.zeros((1 + len(offset)) * _NEURONS)])

    def values(self, unknowns: Array) -> Array:
        """Return d (n, k)."""
        return self._slopes @ unknowns

    def slopes(self, unknowns: Array) -> Array:
        """Return the derivative of d by the unknowns, (n, k, number): the same everywhere."""
        return self._slopes

    def correction(self, unknowns: Array) -> ActuationCorrection:
        """Return one perceptron, whose hidden layer holds each neuron once for every order."""
        k, rows = len(self.half), len(self.alike)
        into, bias = self._neurons
        offset, gain, weights, own = np.split(unknowns, np.cumsum([k, k, _NEURONS]))
        by_actuator = weights + own.reshape(k, _NEURONS)
        every_into, out = np.zeros((rows, _NEURONS, k)), np.zeros((k, rows, _NEURONS))
        for row, order in enumerate(self.alike):
            every_into[row][:, order] = into
            out[order[0], row] = by_actuator[order[0]]
        hidden = every_into.reshape(-1, k), np.tile(bias, rows)
        return self._correction(offset, np.diag(gain), out.reshape(k, -1), *hidden)
