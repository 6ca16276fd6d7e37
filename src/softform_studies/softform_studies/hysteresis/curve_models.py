"""Models of bends by paths: memory-free, play, Prandtl-Ishlinskii, recurrent, convolutional, turning points.

All learn the bends (n, 2 C + 1) of centre lines that were fitted to clouds, from paths (n, h, k) m of configurations.
What is least squares of is by how much wrong bends move the line (`CentreLines.metric`): one near the base counts more.
"""

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Protocol

import numpy as np
import torch
from torch import Tensor, nn

from softform_core.arrays import Array
from softform_studies.hysteresis.memories import turning_points

BATCH = 64
_LOOKS = 120
"""Looks at what is validated by within a budget of steps."""
_RATE = 2e-3
_STEPS = 800
"""Steps of the fit of a play."""
_LOOK = 10
_NARROW = -4.0
"""Logarithm of growth, and of the width over the full pull, from which plays are fitted."""
_PLAY_WIDTHS = (0.0, 0.0005, 0.001, 0.002, 0.003, 0.005)
_HIDDEN = 64
FULL = 0.01
"""Pull by which configurations are divided, m."""


class CurveModel(Protocol):
    """What tells bends of a path."""

    def bends(self, paths: Array) -> Array:
        """Return the bends (n, 2 C + 1) at the end of paths (n, h, k) m."""


@dataclass(frozen=True, eq=False)
class Known:
    """Paths (n, h, k) m and bends (n, 2 C + 1) to learn from, others to validate by, and how long a network may learn.

    Attributes:
        metric: (2 C + 1, 2 C + 1) mm, by which differences of bends are moves of the line.
        steps: Of its optimiser, whatever the number of shapes.
    """

    paths: Array
    bends: Array
    other_paths: Array
    other_bends: Array
    metric: Array
    steps: int

    @property
    def from_home(self) -> "Known":
        """Those whose prior configuration is home."""
        one, other = ((paths[:, -2] == 0.0).all(axis=1) for paths in (self.paths, self.other_paths))
        return replace(
            self,
            paths=self.paths[one],
            bends=self.bends[one],
            other_paths=self.other_paths[other],
            other_bends=self.other_bends[other],
        )

    @property
    def whole(self) -> "Known":
        """All of them to learn from, those to validate by as well."""
        paths, bends = [self.paths, self.other_paths], [self.bends, self.other_bends]
        return replace(self, paths=np.concatenate(paths), bends=np.concatenate(bends))


class Scaled(nn.Module):
    """A network of inputs that are divided by `full`."""

    def __init__(self, net: nn.Module, full: float) -> None:
        super().__init__()
        self.net, self.full = net, full

    def forward(self, inputs: Tensor) -> Tensor:
        """Return its outputs."""
        return self.net(inputs / self.full)


def perceptron(inputs: int, outputs: int, hidden: int = _HIDDEN) -> nn.Sequential:
    """Return two hidden layers with smooth activations."""
    return nn.Sequential(
        nn.Linear(inputs, hidden), nn.SiLU(), nn.Linear(hidden, hidden), nn.SiLU(), nn.Linear(hidden, outputs)
    )


def batches(count: int, size: int) -> Iterator[Tensor]:
    """Draw rows of so many, `size` at a time, without end: all of them in each pass, but for a rest below `size`."""
    while True:
        passed = torch.randperm(count).split(size)
        yield from passed[: max(1, count // size)]


def trained(net: nn.Module, known: tuple[Array, Array], other: tuple[Array, Array], seed: int, steps: int) -> nn.Module:
    """Train a network by mean squares with Adam, its rate along a cosine; the weights best on `other` are kept."""
    torch.manual_seed(seed)
    inputs, targets = (torch.as_tensor(one, dtype=torch.float32) for one in known)
    other_inputs, other_targets = (torch.as_tensor(one, dtype=torch.float32) for one in other)
    optimiser = torch.optim.Adam(net.parameters(), lr=_RATE)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps)
    best, kept = np.inf, copy.deepcopy(net.state_dict())
    every = max(1, steps // _LOOKS)
    for step, rows in enumerate(islice(batches(len(inputs), BATCH), steps), 1):
        net.train()
        optimiser.zero_grad()
        ((net(inputs[rows]) - targets[rows]) ** 2).mean().backward()
        optimiser.step()
        schedule.step()
        if step % every and step < steps:
            continue
        net.eval()
        with torch.inference_mode():
            wrong = float(((net(other_inputs) - other_targets) ** 2).mean())
        if wrong < best:
            best, kept = wrong, copy.deepcopy(net.state_dict())
    net.load_state_dict(kept)
    return net.eval()


class Network:
    """A network over features of paths, whose outputs are moves of the line over their spread.

    Args:
        features: Of paths (n, h, k) m.
        make: The network, of the shape of one feature and the number of outputs.
        known: What it learns from.
        seed: Of weights and batches.
    """

    def __init__(
        self,
        features: Callable[[Array], Array],
        make: Callable[[tuple[int, ...], int], nn.Module],
        known: Known,
        seed: int = 0,
    ) -> None:
        torch.manual_seed(seed)
        self._features = features
        self._mean, spread = known.bends.mean(axis=0), float((known.bends @ known.metric).std()) + 1e-9
        self._in, self._out = known.metric / spread, spread * np.linalg.inv(known.metric)
        inputs = features(known.paths)
        other = features(known.other_paths), self._standard(known.other_bends)
        net = make(inputs.shape[1:], known.bends.shape[1])
        self.net = trained(net, (inputs, self._standard(known.bends)), other, seed, known.steps)

    def _standard(self, bends: Array) -> Array:
        return np.asarray((bends - self._mean) @ self._in)

    def of_features(self, features: Tensor) -> Tensor:
        """Return bends of features, for gradients by these."""
        mean, out = (torch.as_tensor(one, dtype=torch.float32) for one in (self._mean, self._out))
        return mean + self.net(features) @ out

    def of_configurations(self, configurations: Tensor) -> Tensor:
        """Return bends of present configurations (n, k) m, of a network of these alone."""
        return self.of_features(configurations / FULL)

    def bends(self, paths: Array) -> Array:
        """Return the bends (n, 2 C + 1) at the end of paths."""
        with torch.inference_mode():
            features = torch.as_tensor(self._features(paths), dtype=torch.float32)
            return np.asarray(self.of_features(features).numpy(), dtype=np.float64)


def present(paths: Array) -> Array:
    """Return the present configuration alone, over the full pull."""
    return np.asarray(paths[:, -1] / FULL)


def _whole(paths: Array) -> Array:
    return paths / FULL


def _turns(paths: Array) -> Array:
    before = turning_points(paths) - paths[:, -1:]
    return (
        np.concatenate([paths[:, -1:], paths[:, -2:-1] - paths[:, -1:], before], axis=1).reshape(len(paths), -1) / FULL
    )


class _Recurrent(nn.Module):
    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.cell, self.last = nn.GRU(inputs, _HIDDEN, batch_first=True), nn.Linear(_HIDDEN, outputs)

    def forward(self, paths: Tensor) -> Tensor:
        return self.last(self.cell(paths)[0][:, -1])


class _Convolutional(nn.Module):
    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.first = nn.Conv1d(inputs, _HIDDEN, 2)
        self.second = nn.Conv1d(_HIDDEN, _HIDDEN, 2, dilation=2)
        self.last = nn.Sequential(nn.Linear(_HIDDEN + inputs, _HIDDEN), nn.SiLU(), nn.Linear(_HIDDEN, outputs))
        self.act = nn.SiLU()

    def forward(self, paths: Tensor) -> Tensor:
        along = paths.mT
        seen = self.act(self.second(self.act(self.first(along))))
        return self.last(torch.cat([seen[..., -1], along[..., -1]], dim=1))


def memory_free(known: Known, seed: int = 0) -> Network:
    """Return a network of the present configuration alone."""
    return Network(present, lambda shape, outputs: perceptron(shape[0], outputs), known, seed)


def recurrent(known: Known, seed: int = 0) -> Network:
    """Return a GRU with 64 units over the path."""
    return Network(_whole, lambda shape, outputs: _Recurrent(shape[-1], outputs), known, seed)


def convolutional(known: Known, seed: int = 0) -> Network:
    """Return a temporal convolutional network over the path."""
    return Network(_whole, lambda shape, outputs: _Convolutional(shape[-1], outputs), known, seed)


def by_turning_points(known: Known, seed: int = 0) -> Network:
    """Return a network of the present and prior configuration and the last turning points of each tendon."""
    return Network(_turns, lambda shape, outputs: perceptron(shape[0], outputs), known, seed)


class Felt:
    """A memory-free model of what tendons feel behind plays that are loaded from home.

    What a tendon feels is x = sum_r w_r x_r, x_r <- max(q, min((1 + a) q + b_r, x_r)): widths that grow with the
    pull, as capstan friction has them, and fixed ones. One play has b and a for each tendon, eight parameters; of
    several, the widths are given and the weights are learned (Prandtl-Ishlinskii).

    Args:
        base: Bends of configurations (n, k) m.
        known: What its few parameters are fitted to; those that fit the others best are kept.
        widths: Of several plays, m; of none, one play.
    """

    def __init__(
        self,
        base: Callable[[Tensor], Tensor],
        known: Known,
        widths: tuple[float, ...] = (),
    ) -> None:
        self._base = base
        inputs = known.paths.shape[2]
        self._widths = torch.as_tensor(widths, dtype=torch.float32) if widths else None
        # From narrow plays on: what begins with wide ones may stay where none fits.
        self._free = [torch.full((inputs,), _NARROW), torch.full((inputs,), _NARROW)]
        if widths:
            self._free[1] = torch.zeros(len(widths), inputs)
        for one in self._free:
            one.requires_grad_(True)
        paths, target, other_paths, other, metric = (
            torch.as_tensor(one, dtype=torch.float32)
            for one in (known.paths, known.bends, known.other_paths, known.other_bends, known.metric)
        )
        optimiser = torch.optim.Adam(self._free, lr=0.02)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, _STEPS)
        best, kept = np.inf, copy.deepcopy(self._free)
        for step in range(_STEPS):
            rows = torch.randperm(len(paths))[:256]
            optimiser.zero_grad()
            (((self._at(paths[rows]) - target[rows]) @ metric) ** 2).mean().backward()
            optimiser.step()
            schedule.step()
            if step % _LOOK == 0:
                with torch.inference_mode():
                    wrong = float((((self._at(other_paths) - other) @ metric) ** 2).mean())
                if wrong < best:
                    best, kept = wrong, copy.deepcopy(self._free)
        with torch.no_grad():
            for one, value in zip(self._free, kept, strict=True):
                one.requires_grad_(False).copy_(value)

    def _at(self, paths: Tensor) -> Tensor:
        return self._base(self.felt(paths))

    @property
    def parameters(self) -> int:
        """Number of fitted parameters."""
        return sum(one.numel() for one in self._free)

    def felt(self, paths: Tensor) -> Tensor:
        """Return what the tendons feel, (n, k) m, at the end of paths (n, h, k) m."""
        growth = self._free[0].exp()
        width = FULL * self._free[1].exp()[None] if self._widths is None else self._widths[:, None]
        state = paths[:, :1].expand(-1, len(width), -1)
        for step in range(1, paths.shape[1]):
            low = paths[:, step : step + 1]
            state = torch.maximum(low, torch.minimum((1.0 + growth) * low + width, state))
        if self._widths is None:
            return state[:, 0]
        return (self._free[1].softmax(dim=0) * state).sum(dim=1)

    def bends(self, paths: Array) -> Array:
        """Return the bends (n, 2 C + 1) at the end of paths."""
        with torch.inference_mode():
            return np.asarray(self._at(torch.as_tensor(paths, dtype=torch.float32)).numpy(), dtype=np.float64)


def play(known: Known, seed: int = 0) -> Felt:
    """Return one play for each tendon, eight parameters, before a memory-free network of the shapes from home."""
    torch.manual_seed(seed)
    return Felt(memory_free(known.from_home, seed).of_configurations, known)


def prandtl_ishlinskii(known: Known, seed: int = 0) -> Felt:
    """Return sums of plays before a memory-free network of the shapes from home."""
    torch.manual_seed(seed)
    return Felt(memory_free(known.from_home, seed).of_configurations, known, _PLAY_WIDTHS)
