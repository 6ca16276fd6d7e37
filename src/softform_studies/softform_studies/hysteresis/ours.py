"""Ours: a physics prior, a state, and a learned residual, over centre lines.

Plays, one for each tendon, tell what the tendons feel; the rod without friction tells the bends of that; and what these
leave is a Gaussian process over what is felt, the last move, and how far plays of several kinds stay behind
(`memories.plays`). It learns from clouds as all others do, through the centre lines that were fitted to them.
"""

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from softform_core.arrays import Array
from softform_studies.hysteresis.curve_models import BATCH, FULL, Felt, Known, Scaled, perceptron, trained
from softform_studies.hysteresis.memories import PLAYS, plays

_SURROGATE_PASSES = 150
_ASCENTS, _RATE = 60, 0.1
_LONG = 1.2
"""Logarithm of the lengths to begin with."""
_HELD = 600
"""Shapes over which the process's scales are found."""


def surrogate(rod: Callable[[Array], Array], configurations: Array, seed: int = 0) -> nn.Module:
    """Return a network that tells the bends of a rod, of configurations (n, k) m.

    Args:
        rod: Bends (n, 2 C + 1) of configurations (n, k) m: the equilibria that it learns from cost nothing but time.
        configurations: (n, k) m, about which it learns.
        seed: Of the network.
    """
    random = np.random.default_rng(seed)
    around = np.where(configurations > 0.0, configurations * random.uniform(0.8, 1.2, configurations.shape), 0.0)
    left = np.where(random.random(configurations.shape) < 0.3, random.uniform(0.0, 0.003, configurations.shape), 0.0)
    asked = np.concatenate([configurations, around, np.maximum(configurations, left)])
    bends = rod(asked)
    torch.manual_seed(seed)
    net, tenth = perceptron(asked.shape[1], bends.shape[1], 96), random.random(len(asked)) < 0.1
    full = Scaled(net, FULL)
    steps = _SURROGATE_PASSES * (1 + len(asked) // BATCH)
    return trained(full, (asked[~tenth], bends[~tenth]), (asked[tenth], bends[tenth]), seed, steps)


class Process:
    """Gaussian process of m outputs that share a kernel, a sum of two squared exponentials.

    The first one is of the first features alone, what does not depend on the past; the second one is of all. Each has
    a length for each group of features, and a weight; both are those that make the targets most likely.

    Args:
        features: (n, f).
        groups: (f,) number of the length of each.
        alone: How many of the features the first kernel is of.
        targets: (n, m).
    """

    def __init__(self, features: Array, groups: NDArray[np.int64], alone: int, targets: Array) -> None:
        self._spread, self._alone = targets.std(axis=0) + 1e-9, alone
        inputs = torch.as_tensor(features, dtype=torch.float64)
        outputs = torch.as_tensor(targets / self._spread, dtype=torch.float64)
        count = int(groups.max()) + 1
        index = torch.as_tensor(np.concatenate([groups[:alone], count + groups]), dtype=torch.long)
        logs = torch.zeros(2 * count + 3, dtype=torch.float64)  # lengths of both, their weights, the noise's variance
        logs += _LONG  # only what tells something is shortened
        logs[-3:] = torch.tensor([-0.7, -0.7, -3.0])
        logs.requires_grad_(True)
        optimiser = torch.optim.Adam([logs], lr=_RATE)
        some = torch.randperm(len(inputs))[:_HELD]
        for _ in range(_ASCENTS):
            optimiser.zero_grad()
            _unlikeliness(_covariance(inputs[some], alone, index, logs), outputs[some]).backward()
            optimiser.step()
        logs = logs.detach()
        covariance = _covariance(inputs, alone, index, logs)
        self._lengths = logs[index].exp().numpy()
        self._shares = logs[-3:-1].exp().numpy().astype(np.float32)
        self._known = [one.astype(np.float32) for one in self._scaled(features)]
        self._squares = [(one**2).sum(axis=1) for one in self._known]
        self._weights = (torch.linalg.solve(covariance, outputs).numpy() * self._spread).astype(np.float32)
        self._inverse = torch.linalg.inv(covariance).numpy()

    def _scaled(self, features: Array) -> tuple[Array, Array]:
        return features[:, : self._alone] / self._lengths[: self._alone], features / self._lengths[self._alone :]

    def mean(self, features: Array) -> Array:
        """Return the expected outputs (n, m)."""
        return np.asarray(self._kernel(features) @ self._weights, dtype=np.float64)

    def deviation(self, features: Array) -> Array:
        """Return the standard deviation (n,) of what is expected, over that of the outputs; without their noise."""
        kernel = self._kernel(features).astype(np.float64)
        told = ((kernel @ self._inverse) * kernel).sum(axis=1)
        return np.asarray(np.sqrt(np.maximum(float(self._shares.sum()) - told, 0.0)))

    def _kernel(self, features: Array) -> NDArray[np.float32]:
        """Covariance (n, l) with what was learned from."""
        kernel = np.zeros((len(features), len(self._weights)), dtype=np.float32)
        for share, scaled, known, square in zip(
            self._shares, self._scaled(features), self._known, self._squares, strict=True
        ):
            asked = scaled.astype(np.float32)
            apart = (asked**2).sum(axis=1)[:, None] + square - 2.0 * asked @ known.T
            kernel += share * np.exp(-0.5 * apart)
        return kernel


def _covariance(features: Tensor, alone: int, index: Tensor, logs: Tensor) -> Tensor:
    """Covariance (n, n) of the targets, noise included."""
    lengths = logs[index].exp()
    found = logs[-1].exp() * torch.eye(len(features), dtype=torch.float64)
    for share, scaled in zip(
        logs[-3:-1], (features[:, :alone] / lengths[:alone], features / lengths[alone:]), strict=True
    ):
        square = (scaled**2).sum(dim=1)
        apart = (square[:, None] + square - 2.0 * scaled @ scaled.T).clamp(min=0.0)
        found = found + share.exp() * (-0.5 * apart).exp()
    return found


def _unlikeliness(covariance: Tensor, outputs: Tensor) -> Tensor:
    """Negative log likelihood a sample and output, but for a constant."""
    root = torch.linalg.cholesky(covariance)
    whitened = torch.linalg.solve_triangular(root, outputs, upper=False)
    return 0.5 * (whitened**2).mean() + root.diagonal().log().mean()


class Ours:
    """Bends of paths by prior, state and residual.

    Args:
        prior: Surrogate of the rod without friction.
        known: What it learns from.
        seed: Of what is drawn.
    """

    def __init__(self, prior: Callable[[Tensor], Tensor], known: Known, seed: int = 0) -> None:
        torch.manual_seed(seed)
        self._felt, whole = Felt(prior, known), known.whole
        self._back = np.linalg.inv(known.metric)
        features, groups = self._features(whole.paths)
        left = (whole.bends - self._felt.bends(whole.paths)) @ known.metric
        self._process = Process(features, groups, known.paths.shape[2], left)

    def bends(self, paths: Array) -> Array:
        """Return the bends (n, 2 C + 1) at the end of paths (n, h, k) m."""
        return self._felt.bends(paths) + self._process.mean(self._features(paths)[0]) @ self._back

    def deviation(self, paths: Array) -> Array:
        """Return how little is known (n,) at the end of paths (n, h, k) m: 0 where it was learned from."""
        return self._process.deviation(self._features(paths)[0])

    def _features(self, paths: Array) -> tuple[Array, NDArray[np.int64]]:
        """Features (n, k (3 + r)), what is felt first, and the group of each: the straight tendons share a length."""
        last = np.arange(paths.shape[2]) == paths.shape[2] - 1
        groups = np.concatenate([2 * row + last for row in range(3 + len(PLAYS))])
        with torch.inference_mode():
            felt = self._felt.felt(torch.as_tensor(paths, dtype=torch.float32)).numpy() / FULL
        behind = plays(paths) / (np.array(PLAYS) @ [FULL, 1.0])[:, None]  # over about how far each may stay behind
        move = 2.0 * (paths[:, -1:] - paths[:, -2:-1]) / FULL
        found = np.concatenate([felt[:, None], behind, np.maximum(move, 0.0), np.maximum(-move, 0.0)], axis=1)
        return found.reshape(len(paths), -1), groups
