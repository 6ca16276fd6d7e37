"""The deep decoder of paper 004, Sec. IV: from configurations to a cloud, by fully connected layers."""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from softform_core.arrays import Array
from softform_studies.hysteresis.curve_models import batches
from softform_studies.hysteresis.losses import Potentials, tendon_loss

SIZES = (64, 128, 256, 512)
"""Sizes of the four hidden layers, which increase; the paper's own stand in a picture alone."""
BATCH = 32
LEARNING_RATE = 0.01
_MEASURED = 128
"""Points of a measured cloud that a step looks at, others in each."""
_SINKHORN = 3
_LOOKS = 40
"""Looks at the shapes to validate by within a budget of steps."""

Loss = Literal["tendon", "chamfer", "mse"]


@dataclass(frozen=True)
class Recipe:
    """How a decoder is trained.

    Attributes:
        loss: `tendon` is L_tendon, `mse` pairs points by their numbers.
        weight: lambda of L_tendon, mm.
        steps: Of the optimiser, each of a batch, at most.
        drop: Steps after each of which the rate is a tenth.
        patience: Steps without a better validation after which training ends.
        every: Steps from one validation to the next.
        seed: Of weights and batches.
    """

    loss: Loss
    weight: float
    steps: int
    drop: int
    patience: int
    every: int
    seed: int = 0

    @classmethod
    def of_steps(cls, loss: Loss, weight: float, steps: int) -> "Recipe":
        """Return one that takes so many steps, whatever it learns from; the rate falls twice, as in the paper."""
        return cls(loss, weight, steps, drop=max(1, steps // 3), patience=steps, every=max(1, steps // _LOOKS))

    @classmethod
    def printed(cls, loss: Loss, weight: float, shapes: int) -> "Recipe":
        """Return that of paper 004: 300 epochs, a tenth of the rate after each 100, patience of 50."""
        epoch = max(1, shapes // BATCH)
        return cls(loss, weight, steps=300 * epoch, drop=100 * epoch, patience=50 * epoch, every=epoch)


class Decoder(nn.Module):
    """Four layers, each ReLU and batch norm, then a linear one to 3 M: the cloud (n, M, 3) mm.

    Args:
        inputs: Number of configuration values.
        points: M.
        scale: (inputs,) by which configurations are divided, m.
        centre: (3,) mm, of the clouds.
        spread: Size of the clouds, mm.

    Attributes:
        steps: In which it was trained.
    """

    scale: Tensor
    centre: Tensor

    def __init__(self, inputs: int, points: int, scale: Array, centre: Array, spread: float) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for size in SIZES:
            layers += [nn.Linear(inputs, size), nn.ReLU(), nn.BatchNorm1d(size)]
            inputs = size
        self.layers = nn.Sequential(*layers, nn.Linear(inputs, 3 * points))
        for layer in self.layers:
            if isinstance(layer, nn.Linear):
                nn.init.xavier_uniform_(layer.weight)
        self.spread, self.steps = spread, 0
        self.register_buffer("scale", torch.as_tensor(scale, dtype=torch.float32))
        self.register_buffer("centre", torch.as_tensor(centre, dtype=torch.float32))

    def forward(self, configurations: Tensor) -> Tensor:
        """Return clouds (n, M, 3) mm of configurations (n, inputs) m."""
        flat = self.layers(configurations / self.scale)
        return self.centre + self.spread * flat.reshape(len(flat), -1, 3)

    def clouds(self, configurations: Array) -> NDArray[np.float32]:
        """Return clouds (n, M, 3) mm, as used."""
        self.eval()
        with torch.inference_mode():
            return np.asarray(self(torch.as_tensor(configurations, dtype=torch.float32)).numpy())


def train_decoder(
    learned: tuple[Array, NDArray[np.float32]],
    validated: tuple[Array, NDArray[np.float32]],
    recipe: Recipe,
    report: Callable[[str], None],
) -> Decoder:
    """Train a decoder.

    Args:
        learned: Configurations (n, inputs) m, and clouds (n, M, 3) mm.
        validated: The same, of others: the weights that fit these best are kept.
        recipe: How.
        report: Called with a line at the end.
    """
    torch.manual_seed(recipe.seed)
    inputs, clouds = (torch.as_tensor(one, dtype=torch.float32) for one in learned)
    some = [torch.as_tensor(one, dtype=torch.float32) for one in validated]
    scale = np.maximum(np.abs(learned[0]).max(axis=0), 1e-9)
    centre, spread = learned[1].mean(axis=(0, 1)), float(learned[1].std())
    net = Decoder(inputs.shape[1], clouds.shape[1], scale, centre, spread)
    optimiser = torch.optim.Adam(net.parameters(), lr=LEARNING_RATE)
    schedule = torch.optim.lr_scheduler.StepLR(optimiser, recipe.drop)
    potentials = Potentials.of(len(clouds), clouds.shape[1])
    best, kept, found_at = np.inf, copy.deepcopy(net.state_dict()), 0
    for rows in islice(batches(len(clouds), BATCH), recipe.steps):
        net.train()
        optimiser.zero_grad()
        _loss(net(inputs[rows]), clouds, rows, potentials, recipe).backward()
        optimiser.step()
        schedule.step()
        net.steps += 1
        if net.steps % recipe.every and net.steps < recipe.steps:
            continue
        wrong = _validation(net, some[0], some[1])
        if wrong < best:
            best, kept, found_at = wrong, copy.deepcopy(net.state_dict()), net.steps
        elif net.steps - found_at >= recipe.patience:
            break
    net.load_state_dict(kept)
    report(f"  {recipe.loss}, lambda {recipe.weight:g} mm: {net.steps} steps, C {best:.4f} m² of clouds to validate")
    return net.eval()


def _loss(predicted: Tensor, clouds: Tensor, rows: Tensor, potentials: Potentials, recipe: Recipe) -> Tensor:
    if recipe.loss == "mse":
        return ((predicted - clouds[rows]) ** 2).mean()
    points = torch.randperm(clouds.shape[1])[:_MEASURED]
    weight = recipe.weight if recipe.loss == "tendon" else 0.0
    return tendon_loss(predicted, clouds[rows][:, points], rows, points, potentials, weight, _SINKHORN)


def _validation(net: Decoder, inputs: Tensor, clouds: Tensor) -> float:
    """Mean Chamfer's distance, m²."""
    net.eval()
    with torch.inference_mode():
        found = 0.0
        for part, truth in zip(inputs.split(50), clouds.split(50), strict=True):
            square = torch.cdist(net(part), truth) ** 2
            found += float((square.min(dim=1).values.sum(dim=1) + square.min(dim=2).values.sum(dim=1)).sum())
    return found / len(inputs) * 1e-6
