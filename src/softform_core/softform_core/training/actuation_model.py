"""The form of a correction of the actuation while it is fitted, and Levenberg-Marquardt on what frames tell of it.

In relative actuations, a / half and x = (a - middle) / half of the working range, the correction adds

    d(a) = offset + matrix (a / half) + out tanh(into x + bias)

to (a - middle) / half. What of these numbers is unknown is said by each model. Not in paper 000.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.forward.rbf_warp import ActuationCorrection
from softform_core.networks.mlp_weights import MlpWeights

_PASS = 1e-3
"""Slope of the neurons that pass the actuation on: tanh is straight to 3e-7 so near zero."""
_DAMPING = 1e-2
_TRIALS = 6
_STEPS = 12


@dataclass(frozen=True)
class QuadraticMisfit:
    """Quadratic misfit of n frames, to first order about the relative actuations at which they were looked at.

    With the change d (n, k) of these and the change m (q,) of the body's motion, their misfit is
    d . (matrix d / 2 + by_motion m - right) + m . (motion m / 2 - motion_right), over the variance of the noise.

    Attributes:
        effective: (n, k) relative actuations at which they were looked at.
        moved: (q,) the body's motion then.
        matrix: (n, k, k).
        right: (n, k).
        by_motion: (n, k, q); q is 6, or 0 where the body is known not to move.
        motion: (q, q).
        motion_right: (q,).
    """

    effective: Array
    moved: Array
    matrix: Array
    right: Array
    by_motion: Array
    motion: Array
    motion_right: Array

    def misfit(self, change: Array, moved: Array) -> float:
        """Return the misfit at a change (n, k) and a motion (q,)."""
        pulled = np.einsum("nij,nj->ni", 0.5 * self.matrix, change) + self.by_motion @ moved - self.right
        return float((change * pulled).sum() + moved @ (0.5 * self.motion @ moved - self.motion_right))


@dataclass(frozen=True)
class ActuationModel(ABC):
    """The correction at the actuations of n frames, as a function of its unknowns.

    Attributes:
        actuation: (n, k), commanded, or effective after the commands before.
        middle: (k,) of the working range.
        half: (k,) half of the working range.
    """

    actuation: Array
    middle: Array
    half: Array

    @cached_property
    def _inputs(self) -> tuple[Array, Array]:
        """A / half and x."""
        return self.actuation / self.half, (self.actuation - self.middle) / self.half

    @abstractmethod
    def correction(self, members: list[Array]) -> ActuationCorrection:
        """Return the mean of the corrections of several unknowns."""

    @abstractmethod
    def values(self, unknowns: Array) -> Array:
        """Return d (n, k)."""

    def effective(self, unknowns: Array) -> Array:
        """Return relative actuations (n, k) of the simulation."""
        return np.asarray(self._inputs[0] + self.values(unknowns))

    @abstractmethod
    def slopes(self, unknowns: Array) -> Array:
        """Return the derivative of d by the unknowns, (n, k, number)."""

    @abstractmethod
    def response(self, unknowns: Array) -> Array:
        """Return the derivative of `effective` by the relative actuation, (n, k, k)."""

    def improved(
        self, unknowns: Array, motion: Array, quadratic: QuadraticMisfit, expected: Array, expected_motion: Array
    ) -> tuple[Array, Array, float]:
        """Return unknowns and motion (q,) that explain better what the frames tell, beside what is expected.

        Args:
            unknowns: Unknowns to begin with.
            motion: (q,) the body's motion to begin with.
            quadratic: Misfit of the frames.
            expected: Standard deviations of the unknowns; those of zero stay as they are.
            expected_motion: (q,) those of the motion.

        Returns:
            Unknowns, motion, and the misfit that is left, with that of what is expected.
        """
        free, number = expected > 0.0, int((expected > 0.0).sum())
        deviation = np.concatenate([expected[free], expected_motion])

        def cost(trial: Array, moved: Array) -> float:
            prior = np.concatenate([trial[free], moved]) / deviation
            return quadratic.misfit(self.effective(trial) - quadratic.effective, moved - quadratic.moved) + 0.5 * float(
                prior @ prior
            )

        damping, reached = _DAMPING, cost(unknowns, motion)
        for _ in range(_STEPS):
            change, slopes = self.effective(unknowns) - quadratic.effective, self.slopes(unknowns)[..., free]
            moved = motion - quadratic.moved
            pulled = np.einsum("nij,nj->ni", quadratic.matrix, change) + quadratic.by_motion @ moved - quadratic.right
            flat = slopes.reshape(-1, number)
            across = flat.T @ quadratic.by_motion.reshape(len(flat), len(motion))
            own = flat.T @ (quadratic.matrix @ slopes).reshape(-1, number)
            matrix = np.block([[own, across], [across.T, quadratic.motion]]) + np.diag(deviation**-2)
            of_motion = (
                np.einsum("niq,ni->q", quadratic.by_motion, change) + quadratic.motion @ moved - quadratic.motion_right
            )
            gradient = np.concatenate([flat.T @ pulled.ravel(), of_motion])
            gradient += np.concatenate([unknowns[free], motion]) / deviation**2
            for _ in range(_TRIALS):
                step = -np.linalg.solve(matrix + damping * np.diag(np.diag(matrix)), gradient)
                trial = unknowns.copy()
                trial[free] += step[:number]
                if (now := cost(trial, motion + step[number:])) < reached:
                    unknowns, motion, reached, damping = trial, motion + step[number:], now, 0.3 * damping
                    break
                damping *= 5.0
            else:
                break
        return unknowns, motion, reached

    def _correction(self, offset: Array, matrix: Array, out: Array, into: Array, bias: Array) -> ActuationCorrection:
        """Return one perceptron from (k,), (k, k), (k, h), (h, k) and (h,); h may be 0."""
        k = len(self.half)
        offset, linear = offset + matrix @ (self.middle / self.half), np.eye(k) + matrix
        ends = self.middle, self.half, self.middle, self.half
        if not len(bias):
            return ActuationCorrection(MlpWeights([linear], [offset], "tanh", *ends))
        into, bias = np.vstack([_PASS * np.eye(k), into]), np.concatenate([np.zeros(k), bias])
        return ActuationCorrection(MlpWeights([into, np.hstack([linear / _PASS, out])], [bias, offset], "tanh", *ends))


@dataclass(frozen=True)
class PerceptronModel(ActuationModel):
    """All numbers are unknown: a few neurons learn what bends, as bellows whose folds touch early.

    Unknowns, in order: offset (k,), matrix (k, k), out (k, h), into (h, k), bias (h,); with no neurons these are empty.

    Attributes:
        neurons: Their number h.
    """

    neurons: int = 0

    def parts(self, unknowns: Array) -> tuple[Array, Array, Array, Array, Array]:
        """Return the offset, matrix, out, into and bias."""
        k, h = len(self.half), self.neurons
        offset, matrix, out, into, bias = np.split(unknowns, np.cumsum([k, k * k, k * h, h * k]))
        return offset, matrix.reshape(k, k), out.reshape(k, h), into.reshape(h, k), bias

    def values(self, unknowns: Array) -> Array:
        """Return d (n, k)."""
        offset, matrix, out, into, bias = self.parts(unknowns)
        linear, x = self._inputs
        return np.asarray(offset + linear @ matrix.T + np.tanh(x @ into.T + bias) @ out.T)

    def slopes(self, unknowns: Array) -> Array:
        """Return the derivative of d by the unknowns, (n, k, number)."""
        _, _, out, into, bias = self.parts(unknowns)
        linear, x = self._inputs
        (n, k), h = x.shape, self.neurons
        active = np.tanh(x @ into.T + bias)
        slopes, each = np.zeros((n, k, len(unknowns))), np.arange(k)
        slopes[:, each, each] = 1.0
        for i in each:
            slopes[:, i, k * (1 + i) : k * (2 + i)] = linear
            at = k + k * k + h * i
            slopes[:, i, at : at + h] = active
        through = out * (1.0 - active**2)[:, None]
        at = k + k * k + k * h
        slopes[:, :, at : at + h * k] = (through[..., None] * x[:, None, None, :]).reshape(n, k, -1)
        slopes[:, :, at + h * k :] = through
        return slopes

    def response(self, unknowns: Array) -> Array:
        """Return the derivative of `effective` by the relative actuation, (n, k, k)."""
        _, matrix, out, into, bias = self.parts(unknowns)
        bent = 1.0 - np.tanh(self._inputs[1] @ into.T + bias) ** 2
        return np.asarray(np.eye(len(self.half)) + matrix + (out * bent[:, None]) @ into)

    def correction(self, members: list[Array]) -> ActuationCorrection:
        """Return the mean of the corrections of several unknowns."""
        offsets, matrices, outs, intos, biases = zip(*map(self.parts, members), strict=True)
        out = np.hstack(outs) / len(members)
        offset, matrix = np.mean(offsets, axis=0), np.mean(matrices, axis=0)
        return self._correction(offset, matrix, out, np.vstack(intos), np.concatenate(biases))


_NEURONS = 24
"""Number of neurons; 60 are no better."""
_INTO, _BIAS = 0.3, 0.5
"""Standard deviations of weights before the neurons and of biases; larger ones bend more than frames tell."""
_WEIGHT, _OWN = 0.16, 0.016
"""Standard deviations that are expected of the weights, over half the range."""


@dataclass(frozen=True)
class AlikeModel(ActuationModel):
    """The correction of a body whose sections are alike: one function, nearly the same for all actuators.

    It adds to each actuator its own gain and offset, and

        sum over the orders in which it sees its section of  (weights + own weights) . tanh(into x[order] + bias),

    a function of itself and of the others of its section. That sections deform by their own actuators alone, and how
    they are turned and mirrored, is known of the body (`robots.body.Body.alike_inputs`), and a body softer or thinner
    than simulated keeps it; that no two chambers are cast alike is left to their own weights, which are expected to be
    small. Neurons are random and fixed, so what is unknown is linear. Unknowns, in order: offset (k,), gain (k,),
    weights (h,), own weights (k, h).

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

    def response(self, unknowns: Array) -> Array:
        """Return the derivative of `effective` by the relative actuation, (n, k, k)."""
        k, x = len(self.half), self._inputs[1]
        into, bias = self._neurons
        _, gain, weights, own = np.split(unknowns, np.cumsum([k, k, _NEURONS]))
        by_actuator = weights + own.reshape(k, _NEURONS)
        response = np.zeros((*x.shape, k)) + np.eye(k) + np.diag(gain)
        bent = 1.0 - np.tanh(x[:, self.alike] @ into.T + bias) ** 2
        for row, order in enumerate(self.alike):
            response[:, order[0], order] += (bent[:, row] * by_actuator[order[0]]) @ into
        return response

    def correction(self, members: list[Array]) -> ActuationCorrection:
        """Return the correction of the mean of several unknowns.

        It is one perceptron, whose hidden layer holds each neuron once for every order.
        """
        k, rows = len(self.half), len(self.alike)
        into, bias = self._neurons
        offset, gain, weights, own = np.split(np.mean(members, axis=0), np.cumsum([k, k, _NEURONS]))
        by_actuator = weights + own.reshape(k, _NEURONS)
        every_into, out = np.zeros((rows, _NEURONS, k)), np.zeros((k, rows, _NEURONS))
        for row, order in enumerate(self.alike):
            every_into[row][:, order] = into
            out[order[0], row] = by_actuator[order[0]]
        hidden = every_into.reshape(-1, k), np.tile(bias, rows)
        return self._correction(offset, np.diag(gain), out.reshape(k, -1), *hidden)
