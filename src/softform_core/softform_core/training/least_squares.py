"""Least-squares fit of a small network, all samples at once, by L-BFGS in double precision.

The paper trains with Matlab's toolbox (Sec. III-D). L-BFGS with a strong Wolfe line search suits networks of a few
thousand weights: it needs no learning rate and reaches errors far below the paper's.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from softform_core.networks.tip import TipNetwork
from softform_core.threads import one_thread
from softform_core.training.loop import train
from softform_core.training.split import Split

_CHECK_STEPS = 25  # between looks at the validation part
_HISTORY = 50


@dataclass(frozen=True)
class Fit:
    """Result of so many L-BFGS steps, the best of which has least error on the validation part; seconds spent."""

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
        network: Network to train.
        inputs: (s, a).
        outputs: (s, b).
        split: Rows of each part.
        steps: Most steps of L-BFGS.
        patience: Steps without a better validation error after which to stop.
        label: Label of the progress bar.
        progress: Whether to show one on stderr.

    Raises:
        SoftformError: If the loss becomes NaN or infinite.
    """
    task = _LeastSquares(network, inputs, outputs, split)
    with one_thread():
        done = train(
            task, label, epochs=-(-steps // _CHECK_STEPS), patience=patience // _CHECK_STEPS, progress=progress
        )
    return Fit(_CHECK_STEPS * done.epochs, _CHECK_STEPS * done.best_epoch, done.seconds)


class _LeastSquares:
    """The `Task` of the training loop: an epoch is `_CHECK_STEPS` of L-BFGS on all samples."""

    def __init__(self, network: TipNetwork, inputs: Tensor, outputs: Tensor, split: Split) -> None:
        self.nets = network.layers
        self.generator = torch.Generator()
        targets = (outputs - network.output_offset) / network.output_scale
        scaled = (inputs - network.input_offset) / network.input_scale
        self._x, self._y = scaled[split.train], targets[split.train]
        self._validation = scaled[split.validation], targets[split.validation]
        self.optimiser = torch.optim.LBFGS(
            self.nets.parameters(), max_iter=_CHECK_STEPS, max_eval=2 * _CHECK_STEPS, history_size=_HISTORY,
            tolerance_grad=0.0, tolerance_change=0.0, line_search_fn="strong_wolfe",
        )  # fmt: skip

    def run_epoch(self, epoch: int) -> float:
        """Run steps of L-BFGS; returns the mean square at their beginning."""

        def closure() -> Tensor:
            self.optimiser.zero_grad()
            loss = (self.nets(self._x) - self._y).square().mean()
            loss.backward()
            return loss

        return float(self.optimiser.step(closure).detach())

    def validate(self) -> dict[str, float]:
        """Return the root mean square on the validation part, in standard deviations."""
        x, y = self._validation
        with torch.no_grad():
            return {"validation": float((self.nets(x) - y).square().mean().sqrt())}
