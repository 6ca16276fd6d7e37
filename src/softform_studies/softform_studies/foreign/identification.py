"""Identification of the tentacle: its parameters and, as Gaussian processes, errors of poses along the rod's modes.

With the parameters theta ~ N(mean, sd²) of `PRIORS`, the errors delta of all poses along `MODES` ~ N(0, K), and what
the rod predicts f(theta, delta), the identified values are the most probable ones under markers y ~ N(f, sigma²):

    min |y - f(theta, delta)|² / sigma² + |(theta - mean) / sd|² + delta^T K^-1 delta,

found by Levenberg-Marquardt over whitened unknowns. Errors of poses that were not seen follow from those that were,
K_* K^-1 delta, and go through the rod. K is a squared exponential of the tensions, less between sessions, of which a
share obeys the mirror symmetry of the robot (x, z plane: tendons change places), and a share is each pose's own.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from scipy.linalg import solve_triangular

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.simulation.newton import find_equilibria
from softform_core.simulation.sensitivity import equilibrium_sensitivities
from softform_studies.foreign.tentacle_poses import Poses
from softform_studies.foreign.tentacle_rod import MODES, PRIORS, Tentacle

_SPREADS = np.array([0.03, 0.03, 0.15, 0.15, 0.3, 0.3])
"""Standard deviation of errors along `MODES` at a scale of 1."""
_MIRRORED = np.array([1, 0, 2, 3, 4, 5])
_SIGNS = np.array([1.0, 1.0, 1.0, -1.0, 1.0, -1.0])
"""Mode that each becomes in the mirror, and its sign."""
_NOISE = 0.002
"""Of a coordinate of a marker, m: what the modes cannot follow."""
_ROUNDS, _TRIES = 30, 8
_GAIN = 1e-4


@dataclass(frozen=True)
class Process:
    """The Gaussian process of the errors; there are none if `scale` is 0.

    Attributes:
        scale: Of their standard deviations.
        reach: Tension over which they are alike, N.
        mirrored: Share that obeys the mirror symmetry.
        own: Share that each pose has for itself, friction that came to rest here or there.
        sessions: Correlation between the two sessions.
    """

    scale: float = 1.0
    reach: float = 3.0
    mirrored: float = 0.5
    own: float = 0.2
    sessions: float = 0.7

    def covariance(self, first: Poses, second: Poses) -> Array:
        """Return what errors (n, 6) and (m, 6) of poses share, (n 6, m 6), without what each pose has for itself."""
        swapped = replace(second, tensions=second.tensions[:, ::-1])
        here, there = self._alike(first, second), self._alike(first, swapped)
        mirror = np.zeros((len(MODES), len(MODES)))
        mirror[np.arange(len(MODES)), _MIRRORED] = _SIGNS
        plain = (1.0 - 0.5 * self.mirrored) * np.kron(here, np.eye(len(MODES)))
        both = plain + 0.5 * self.mirrored * np.kron(there, mirror)
        spread = self.scale * _SPREADS
        return np.asarray((1.0 - self.own) * np.tile(spread, len(first))[:, None] * both * np.tile(spread, len(second)))

    def covariance_within(self, poses: Poses) -> Array:
        """Return the covariance (n 6, n 6) of errors of poses."""
        own = self.own * np.tile((self.scale * _SPREADS) ** 2, len(poses))
        return self.covariance(poses, poses) + np.diag(own + 1e-12)

    def _alike(self, first: Poses, second: Poses) -> Array:
        apart = ((first.tensions[:, None] - second.tensions[None]) ** 2).sum(axis=2)
        same = first.is_later[:, None] == second.is_later[None]
        return np.asarray(np.exp(-0.5 * apart / self.reach**2) * np.where(same, 1.0, self.sessions))


CANDIDATES = [
    Process(scale, reach, mirrored, own, sessions)
    for scale, reach, mirrored, own, sessions in product(
        (1.0, 2.0, 4.0), (2.0, 3.0, 4.5), (0.0, 0.5, 1.0), (0.03, 0.1, 0.3), (0.4, 0.8)
    )
]
"""Processes among which `identify` may choose, by the poses that it is given alone."""

RIGID = Process(scale=0.0)
"""No errors: all is left to the parameters."""


@dataclass(frozen=True, eq=False)
class Identified:
    """An identified tentacle.

    Attributes:
        tentacle: With the values of its parameters.
        process: Of the errors.
        poses: From which it was identified.
        errors: (n, 6) of these, along `MODES`.
    """

    tentacle: Tentacle
    process: Process
    poses: Poses
    errors: Array

    def predict(self, poses: Poses) -> Array:
        """Return the markers (n, 4, 3) m that are expected at the tensions of poses.

        Raises:
            SoftformError: If the rod finds no equilibrium there.
        """
        errors = np.zeros((len(poses), len(MODES)))
        if self.process.scale > 0.0:
            within = self.process.covariance_within(self.poses)
            shared = self.process.covariance(poses, self.poses)
            errors = (shared @ np.linalg.solve(within, self.errors.ravel())).reshape(errors.shape)
        loads = self.tentacle.loads(poses, errors)
        return self.tentacle.markers(poses, _balanced(self.tentacle, loads, None))


def identify(poses: Poses, free: Sequence[str], processes: Sequence[Process]) -> Identified:
    """Return the tentacle that is most probable given poses.

    Args:
        poses: What was measured. Nothing else is looked at.
        free: Names of the parameters of `PRIORS` that are identified; the others stay at their means.
        processes: The first one serves to begin with; the one is chosen under which the markers are most likely.

    Raises:
        SoftformError: If the rod finds no equilibrium in one of the poses.
    """
    found = _Search(poses, free, processes[0]).run()
    if len(processes) == 1:
        return found.identified()
    best = max(processes, key=found.evidence)
    return _Search(poses, free, best, found.unknowns[: len(free)]).run().identified()


def _balanced(tentacle: Tentacle, loads: Array, start: Array | None) -> Array:
    found = find_equilibria(tentacle.rod, loads, start)
    if not found.found.all():
        raise SoftformError(
            f"The tentacle has no equilibrium: {next(filter(None, found.failures))}", "Look at its tensions."
        )
    return found.unknowns


@dataclass(frozen=True, eq=False)
class _State:
    tentacle: Tentacle
    errors: Array
    loads: Array
    bends: Array
    markers: Array
    cost: float


class _Search:
    """Levenberg-Marquardt over whitened parameters (p,) and errors (n 6,)."""

    def __init__(self, poses: Poses, free: Sequence[str], process: Process, start: Array | None = None) -> None:
        self._poses, self._free, self._process = poses, list(free), process
        self._sd = np.array([PRIORS[name][1] for name in free])
        within = process.covariance_within(poses)
        self._root = np.linalg.cholesky(within) if process.scale > 0.0 else np.zeros((len(within), 0))
        self.unknowns = np.zeros(len(free) + self._root.shape[1])
        if start is not None:
            self.unknowns[: len(free)] = start
        self._state = self._at(self.unknowns, None)
        self._jacobian: Array | None = None

    def run(self) -> "_Search":
        """Search, and return itself."""
        damping = 1.0
        for _ in range(_ROUNDS):
            wrong = self._wrong(self._state)
            jacobian = self._whitened(self._derivatives())
            matrix = jacobian.T @ jacobian + np.eye(len(self.unknowns))
            slope = jacobian.T @ wrong - self.unknowns
            cost = self._state.cost
            for _ in range(_TRIES):
                step = np.linalg.solve(matrix + damping * np.eye(len(matrix)), slope)
                try:
                    tried = self._at(self.unknowns + step, self._state.bends)
                except SoftformError:
                    tried = None
                if tried is not None and tried.cost < cost:
                    break
                damping = max(5.0 * damping, 1e-3)
            else:
                break
            self.unknowns, self._state, damping = self.unknowns + step, tried, 0.2 * damping
            if cost - tried.cost < _GAIN * cost:
                break
        return self

    def identified(self) -> Identified:
        """Return what was found."""
        return Identified(self._state.tentacle, self._process, self._poses, self._state.errors)

    def evidence(self, process: Process) -> float:
        """Return the log likelihood of the markers y under a process, linearised about what was found.

        With their covariance C over all parameters and errors it is -(y^T C^-1 y + log|C|) / 2, but for a constant.
        """
        if self._jacobian is None:
            self._jacobian = self._derivatives()
        by_values, by_errors = self._jacobian[:, : len(self._free)], self._jacobian[:, len(self._free) :]
        wrong = _NOISE * self._wrong(self._state)
        off = wrong + by_values @ (self._sd * self.unknowns[: len(self._free)]) + by_errors @ self._state.errors.ravel()
        covariance = (by_values * self._sd**2) @ by_values.T + _NOISE**2 * np.eye(len(off))
        if process.scale > 0.0:
            covariance += by_errors @ process.covariance_within(self._poses) @ by_errors.T
        root = np.linalg.cholesky(covariance)
        whitened = solve_triangular(root, off, lower=True)
        return float(-0.5 * whitened @ whitened - np.log(np.diagonal(root)).sum())

    def _values(self, unknowns: Array) -> dict[str, float]:
        values = {name: mean for name, (mean, _) in PRIORS.items()}
        shifts = self._sd * unknowns[: len(self._free)]
        return values | {name: values[name] + float(shift) for name, shift in zip(self._free, shifts, strict=True)}

    def _at(self, unknowns: Array, start: Array | None) -> _State:
        tentacle = Tentacle.of(self._values(unknowns))
        errors = (self._root @ unknowns[len(self._free) :]).reshape(len(self._poses), len(MODES))
        loads = tentacle.loads(self._poses, errors)
        bends = _balanced(tentacle, loads, start)
        markers = tentacle.markers(self._poses, bends)
        wrong = (self._poses.markers - markers).ravel() / _NOISE
        return _State(tentacle, errors, loads, bends, markers, float(wrong @ wrong + unknowns @ unknowns))

    def _wrong(self, state: _State) -> Array:
        return (self._poses.markers - state.markers).ravel() / _NOISE

    def _whitened(self, jacobian: Array) -> Array:
        """By whitened unknowns, over the noise."""
        count = len(self._free)
        return np.hstack([jacobian[:, :count] * self._sd, jacobian[:, count:] @ self._root]) / _NOISE

    def _derivatives(self) -> Array:
        """Derivatives (n 12, p + n 6) of all markers by parameters and errors: implicit function theorem.

        What a parameter does to gradient and markers directly is taken from a small difference.
        """
        state, poses = self._state, self._poses
        gradient, hessian = state.tentacle.rod.derivatives(state.bends, state.loads)
        count, size = len(poses), state.markers[0].size
        found = np.zeros((count, size, len(self._free) + count * len(MODES)))
        changed, slopes, steps = [], [], 1e-4 * self._sd
        for name, step in zip(self._free, steps, strict=True):
            other = Tentacle.of(state.tentacle.values | {name: state.tentacle.values[name] + step})
            changed.append(other)
            there = other.rod.derivatives(state.bends, other.loads(poses, state.errors))[0]
            slopes.append((there - gradient) / step)
        moves = -hessian.factorised().solve(np.stack(slopes, axis=2))
        for column, (other, step) in enumerate(zip(changed, steps, strict=True)):
            moved = other.markers(poses, state.bends + step * moves[:, :, column])
            found[:, :, column] = ((moved - state.markers) / step).reshape(count, size)
        by_loads = equilibrium_sensitivities(state.tentacle.rod, state.bends, state.loads)
        by_errors = self._loads_by_errors()
        for mode in range(len(MODES)):
            move = by_loads[:, :, mode] * by_errors[:, mode, None]
            step = 1e-4 * _SPREADS[mode]
            moved = state.tentacle.markers(poses, state.bends + step * move)
            for pose in range(count):
                column = len(self._free) + pose * len(MODES) + mode
                found[pose, :, column] = ((moved[pose] - state.markers[pose]) / step).ravel()
        return found.reshape(count * size, -1)

    def _loads_by_errors(self) -> Array:
        """Derivative (n, 6) of each load by the error of its mode."""
        ideal = self._state.tentacle.loads(self._poses, np.zeros_like(self._state.errors))
        return np.concatenate([ideal[:, :2], np.ones((len(self._poses), len(MODES) - 2))], axis=1)
