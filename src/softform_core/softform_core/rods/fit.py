"""Least-squares fit of a small network, all samples at once, by L-BFGS in double precision.

The paper trains with Matlab's toolbox (Sec. III-D). L-BFGS with a strong Wolfe line search suits networks of a few
thousand weights: it needs no learning rate and reaches errors far below the paper's.
"""

import copy
import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from tqdm import tqdm

from softform_core.errors import SoftformError
from softform_core.rods.networks import TipNetwork
from softform_core.threads import one_thread

Indices = NDArray[np.int64]

_CHECK_STEPS = 25  # between looks at the validation part
_HISTORY = 50


@dataclass(frozen=True)
class Split:
    """Rows of each part: 70 % train, 20 % select, 10 % test (Sec. III-D)."""

    train: Indices
    validation: Indices
    test: Indices


def split_rows(rows: int, seed: int) -> Split:
    """A seeded shuffle of the rows in three parts."""
    order = np.random.default_rng(seed).permutation(rows)
    train, validation = round(0.7 * rows), round(0.9 * rows)
    return Split(order[:train], order[train:validation], order[validation:])


@dataclass(frozen=True)
class Fit:
    """What a fit came to.

    Attributes:
        steps: of L-BFGS.
        best_step: the one whose weights are kept: least error on the validation part.
        seconds: spent.
    """

    steps: int
    best_step: int
    seconds: float


def fit(
    network: TipNetwork,
    inputs: Tensor,
    outputs: Tensor,
    split: Split,
    steps: int,
    *,
    patience: int,
    label: str,
    progress: bool = True,
) -> Fit:
    """Fit a network in place; it ends with the weights of least validation error.

    Args:
        network: To train.
        inputs: (s, a).
        outputs: (s, b).
        split: Rows of each part.
        steps: Of L-BFGS at most.
        patience: Steps without a better validation error after which to stop.
        label: Of the progress bar.
        progress: Whether to show one on stderr.

    Raises:
        SoftformError: If the loss becomes NaN or infinite.
    """
    began = time.perf_counter()
    targets = (outputs - network.output_offset) / network.output_scale
    scaled = (inputs - network.input_offset) / network.input_scale
    x, y = scaled[split.train], targets[split.train]
    optimiser = torch.optim.LBFGS(
        network.layers.parameters(), max_iter=_CHECK_STEPS, max_eval=2 * _CHECK_STEPS, history_size=_HISTORY,
        tolerance_grad=0.0, tolerance_change=0.0, line_search_fn="strong_wolfe",
    )  # fmt: skip

    def closure() -> Tensor:
        optimiser.zero_grad()
        loss = (network.layers(x) - y).square().mean()
        loss.backward()
        return loss

    validate = _validation(network, scaled[split.validation], targets[split.validation])
    best, best_step, best_state = math.inf, 0, copy.deepcopy(network.layers.state_dict())
    done = 0
    with one_thread(), tqdm(total=steps, unit="step", desc=label, disable=not progress) as bar:
        while done < steps and done - best_step < patience:
            loss = float(optimiser.step(closure).detach())
            done += _CHECK_STEPS
            error = validate()
            if not (math.isfinite(loss) and math.isfinite(error)):
                raise SoftformError(f"{label}: the loss became {loss}.", "Check the samples; try another --seed.")
            if error < best:
                best, best_step, best_state = error, done, copy.deepcopy(network.layers.state_dict())
            bar.update(_CHECK_STEPS)
            bar.set_postfix_str(f"validation {error:.2e}", refresh=False)
    network.layers.load_state_dict(best_state)
    return Fit(done, best_step, time.perf_counter() - began)


def _validation(network: TipNetwork, x: Tensor, y: Tensor) -> Callable[[], float]:
    def error() -> float:
        with torch.no_grad():
            return float((network.layers(x) - y).square().mean().sqrt())

    return error
