"""Ours: a physics prior, a state, and a learned residual, over centre lines.

The rod without friction tells the bends of what the tendons feel; what they feel is the state of a play for each
tendon; and what both leave is a Gaussian process over the present configuration and over how far plays of several
kinds stay behind it (`memories.plays`). It learns from clouds as all others do, through the centre lines that were
fitted to them.
"""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn

from softform_core.arrays import Array
from softform_studies.hysteresis.curve_models import FULL, Felt, Known, Scaled, perceptron, present, trained
from softform_studies.hysteresis.memories import PLAYS, plays

_SURROGATE_EPOCHS = 150
_ASCENTS, _RATE = 60, 0.1
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
    return trained(full, (asked[~tenth], bends[~tenth]), (asked[tenth], bends[tenth]), seed, _SURROGATE_EPOCHS)


class Process:
    """Gaussian process of m outputs that share a kernel: squared exponential, one length for each group of features.

    Args:
        features: (n, f).
        groups: (f,) number of the length of each.
        targets: (n, m).
    """

    def __init__(self, features: Array, groups: Array, targets: Array) -> None:
        self._spread = targets.std(axis=0) + 1e-9
        inputs = torch.as_tensor(features, dtype=torch.float64)
        outputs = torch.as_tensor(targets / self._spread, dtype=torch.float64)
        index = torch.as_tensor(groups, dtype=torch.long)
        logs = torch.zeros(int(groups.max()) + 2, dtype=torch.float64)
        logs[-1] = -3.0  # of the noise's variance
        logs.requires_grad_(True)
        optimiser = torch.optim.Adam([logs], lr=_RATE)
        some = torch.randperm(len(inputs))[:_HELD]
        for _ in range(_ASCENTS):
            optimiser.zero_grad()
            _unlikeliness(inputs[some] / logs[:-1].exp()[index], outputs[some], logs[-1]).backward()
            optimiser.step()
        logs = logs.detach()
        self._lengths = logs[:-1].exp()[index].numpy()
        scaled = inputs.numpy() / self._lengths
        covariance = _kernel(torch.as_tensor(scaled), torch.as_tensor(scaled)).numpy()
        covariance += float(logs[-1].exp()) * np.eye(len(scaled))
        self._known = scaled.astype(np.float32)
        self._square = (self._known**2).sum(axis=1)
        self._weights = (np.linalg.solve(covariance, outputs.numpy()) * self._spread).astype(np.float32)

    def mean(self, features: Array) -> Array:
        """Return the expected outputs (n, m)."""
        asked = (features / self._lengths).astype(np.float32)
        apart = (asked**2).sum(axis=1)[:, None] + self._square - 2.0 * asked @ self._known.T
        return np.asarray(np.exp(-0.5 * apart) @ self._weights, dtype=np.float64)


def _kernel(first: Tensor, second: Tensor) -> Tensor:
    return (-0.5 * torch.cdist(first, second) ** 2).exp()


def _unlikeliness(features: Tensor, outputs: Tensor, log_noise: Tensor) -> Tensor:
    """Negative log likelihood a sample and output, but for a constant."""
    square = (features**2).sum(dim=1)
    apart = (square[:, None] + square - 2.0 * features @ features.T).clamp(min=0.0)
    covariance = (-0.5 * apart).exp() + log_noise.exp() * torch.eye(len(features), dtype=torch.float64)
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
        self._felt = Felt(prior, known)
        features, groups = _features(known.paths)
        self._process = Process(features, groups, known.bends - self._felt.bends(known.paths))

    def bends(self, paths: Array) -> Array:
        """Return the bends (n, 2 C + 1) at the end of paths (n, h, k) m."""
        return self._felt.bends(paths) + self._process.mean(_features(paths)[0])


def _features(paths: Array) -> tuple[Array, Array]:
    """Features (n, k (1 + r)) and the group of each: the straight tendons, which are alike, share a length."""
    inputs = paths.shape[2]
    last = np.arange(inputs) == inputs - 1
    groups = np.concatenate([2 * row + last for row in range(1 + len(PLAYS))])
    behind = plays(paths) / (np.array(PLAYS) @ [FULL, 1.0])[:, None]  # over about how far each may stay behind
    return np.concatenate([present(paths), behind.reshape(len(paths), -1)], axis=1), groups
