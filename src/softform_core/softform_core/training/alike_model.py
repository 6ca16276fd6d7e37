"""A correction of the actuation of a body whose sections are alike: one function, the same for all its actuators.

In the notation of `training.actuation_model` the correction adds to each actuator its own gain and offset, and

    sum over the orders in which it sees its section of  weights . tanh(into x[order] + bias),

which is one function of itself and of the others of its section. That sections deform by their own actuators alone, and
how they are turned and mirrored, is known of the body (`robots.body.Body.alike_inputs`); a body softer or thinner than
simulated keeps it. Neurons are random and fixed, so the unknowns are linear. Not in paper 000.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.forward.actuation_correction import ActuationCorrection
from softform_core.training.actuation_model import ActuationModel

_NEURONS = 60
_INTO, _BIAS = 0.7, 0.7
"""Standard deviations of what is before the neurons."""
_WEIGHT = 0.05
"""That is expected of their weights."""


@dataclass(frozen=True)
class AlikeModel(ActuationModel):
    """The correction as a function of its unknowns, in order: offset (k,), gain (k,), weights (h,).

    Attributes:
        alike: (r, s) orders, see `Robot.alike_actuations`.
        into: (h, s).
        bias: (h,).
    """

    alike: NDArray[np.int64]
    into: Array
    bias: Array

    @classmethod
    def of(cls, actuation: Array, middle: Array, half: Array, alike: NDArray[np.int64]) -> "AlikeModel":
        """With neurons that are always the same; see `ActuationModel` for (n, k), (k,), (k,), and above for (r, s)."""
        random = np.random.default_rng(0)
        into = _INTO * random.standard_normal((_NEURONS, alike.shape[1]))
        return cls(actuation, middle, half, alike, into, _BIAS * random.standard_normal(_NEURONS))

    def expected(self, gain: float, offset: float) -> Array:
        """Standard deviations of the unknowns."""
        k, h = len(self.half), len(self.bias)
        return np.concatenate([np.full(k, offset), np.full(k, gain), np.full(h, _WEIGHT)])

    def unknowns(self, offset: Array, matrix: Array) -> Array:
        """Those of this offset (k,) and of the diagonal of this matrix (k, k), the neurons unheard."""
        return np.concatenate([offset, np.diag(matrix), np.zeros(len(self.bias))])

    @cached_property
    def _slopes(self) -> Array:
        linear, x = self._inputs
        n, k = x.shape
        offset, gain = np.broadcast_to(np.eye(k), (n, k, k)), linear[:, :, None] * np.eye(k)
        active = np.tanh(x[:, self.alike] @ self.into.T + self.bias)
        shared = np.zeros((n, k, len(self.bias)))
        for row, order in enumerate(self.alike):
            shared[:, order[0]] += active[:, row]
        return np.concatenate([offset, gain, shared], axis=2)

    def values(self, unknowns: Array) -> Array:
        """D (n, k)."""
        return self._slopes @ unknowns

    def slopes(self, unknowns: Array) -> Array:
        """Derivative of d by the unknowns, (n, k, number): the same everywhere."""
        return self._slopes

    def correction(self, unknowns: Array) -> ActuationCorrection:
        """As one perceptron, whose hidden layer holds each neuron once for every order."""
        k, h = len(self.half), len(self.bias)
        offset, gain, weights = np.split(unknowns, [k, 2 * k])
        into, out = np.zeros((len(self.alike), h, k)), np.zeros((k, len(self.alike), h))
        for row, order in enumerate(self.alike):
            into[row][:, order] = self.into
            out[order[0], row] = weights
        bias = np.tile(self.bias, len(self.alike))
        return self._correction(offset, np.diag(gain), out.reshape(k, -1), into.reshape(-1, k), bias)
