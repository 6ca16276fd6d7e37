"""What paper 001 compares, on the same networks and paths: its own iteration, FK gradients, and direct IK learning."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import nn

from softform_core.arrays import Array
from softform_core.forward.mlp import AffineLayers, fold
from softform_core.forward.tip_point import TipMap
from softform_core.inverse.follow_path import TipPath, checked_path
from softform_core.networks.mlp_weights import extract_mlp
from softform_core.networks.tip import TipNetwork
from softform_core.training.least_squares import fit
from softform_core.training.split import split_rows

PAPER_TOLERANCE = 1e-3
"""epsilon of Fig. 1: 0.1 % of the workspace's width."""

_MOST_ITERATIONS = 200
_LEAST_DECREASE = 1e-4  # of the objective: less in one iteration ends it (Sec. IV-C2)
_MOST_HALVINGS = 12


def gradient_iteration(model: TipMap, points: ArrayLike, start: ArrayLike) -> TipPath:
    """The paper's iteration: gradient descent with line search (Eqs. 2 and 6, Fig. 1), bounded by clipping.

    The actuation is counted in ranges. The line search begins with the step that would be best if the Jacobian were
    constant, and halves it until the objective falls.

    Args:
        model: Tip and Jacobian.
        points: (w, n) mm.
        start: (m,) Pa.

    Raises:
        SoftformError: If points or start do not fit the model.
    """
    targets, here = checked_path(model, points, start)
    found = [(here, 0.0, 0)]
    for target in targets:
        found.append(_descend(model, target, found[-1][0]))
    actuations, errors, iterations = zip(*found[1:], strict=True)
    return TipPath(np.array(actuations), np.array(errors), np.array(iterations, dtype=np.int64))


def _descend(model: TipMap, target: Array, here: Array) -> tuple[Array, float, int]:
    low, high = model.actuation_min, model.actuation_max
    span, enough = high - low, (PAPER_TOLERANCE * model.workspace_width_mm) ** 2
    tip, jacobian = model.tip_and_jacobian(here)
    offset = target - tip
    objective = float(offset @ offset)
    for iteration in range(_MOST_ITERATIONS):
        if objective < enough:
            return here, float(np.sqrt(objective)), iteration
        moves = jacobian * span
        gradient = -2.0 * offset @ moves  # Eq. 6
        bend = moves @ gradient
        step = 0.5 * float(gradient @ gradient) / max(float(bend @ bend), 1e-300)
        for _ in range(_MOST_HALVINGS):
            there = np.clip(here - step * span * gradient, low, high)
            tip, jacobian = model.tip_and_jacobian(there)
            left = target - tip
            if left @ left < objective:
                break
            step *= 0.5
        else:
            return here, float(np.sqrt(objective)), iteration
        decrease, here, offset, objective = objective - float(left @ left), there, left, float(left @ left)
        if decrease < _LEAST_DECREASE * objective and objective >= enough:
            return here, float(np.sqrt(objective)), iteration + 1
    return here, float(np.sqrt(objective)), _MOST_ITERATIONS


@dataclass(frozen=True)
class FkGradients:
    """A model whose Jacobian is the gradient of N_fk by automatic differentiation (ref. [25] of the paper).

    Attributes:
        network: N_fk.
        actuation_min: (m,) Pa.
        actuation_max: (m,) Pa.
        workspace_width_mm: Unit of tolerances.
    """

    network: nn.Module
    actuation_min: Array
    actuation_max: Array
    workspace_width_mm: float

    def tip(self, actuation: ArrayLike) -> Array:
        """Tips (…, n) mm at actuations (…, m) Pa."""
        values = np.asarray(actuation, dtype=np.float64)
        with torch.no_grad():
            tips = self.network(torch.from_numpy(values.reshape(-1, values.shape[-1]))).numpy()
        return np.asarray(tips.reshape(*values.shape[:-1], -1))

    def tip_and_jacobian(self, actuation: ArrayLike) -> tuple[Array, Array]:
        """Tip (n,) mm and Jacobian (n, m) mm/Pa at one actuation (m,) Pa: a backward pass for each coordinate."""
        c = torch.from_numpy(np.array(actuation, dtype=np.float64)).requires_grad_()
        tip = self.network(c[None])[0]
        rows = [torch.autograd.grad(coordinate, c, retain_graph=True)[0] for coordinate in tip]
        return tip.detach().numpy(), torch.stack(rows).numpy()


@dataclass(frozen=True)
class ExactGradients:
    """A model whose Jacobian is the derivative of N_fk itself, by the chain rule in numpy: what N_J has to beat.

    Attributes:
        forward_kinematics: N_fk, actuation -> mm.
        actuation_min: (m,) Pa.
        actuation_max: (m,) Pa.
        workspace_width_mm: Unit of tolerances.
    """

    forward_kinematics: AffineLayers
    actuation_min: Array
    actuation_max: Array
    workspace_width_mm: float

    def tip(self, actuation: ArrayLike) -> Array:
        """Tips (…, n) mm at actuations (…, m) Pa."""
        values = np.asarray(actuation, dtype=np.float64)
        tips = self.forward_kinematics.values(values.reshape(-1, values.shape[-1]))
        return tips.reshape(*values.shape[:-1], -1)

    def tip_and_jacobian(self, actuation: ArrayLike) -> tuple[Array, Array]:
        """Tip (n,) mm and Jacobian (n, m) mm/Pa at one actuation (m,) Pa."""
        hidden = self.forward_kinematics.hidden(np.asarray(actuation, dtype=np.float64)[None])
        tips = self.forward_kinematics.output(hidden[-1])
        unit = np.eye(self.forward_kinematics.inputs)[None]
        return tips[0], np.asarray(self.forward_kinematics.jacobian(hidden, unit)[0].T, dtype=np.float64)


def learn_direct_ik(actuations: Array, tips: Array, hidden: list[int], steps: int, seed: int) -> AffineLayers:
    """Direct IK learning: a network from tips (s, n) mm to actuations (s, m) Pa, fitted to the same samples as N_fk."""
    inputs, outputs = torch.from_numpy(tips), torch.from_numpy(actuations)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = TipNetwork(inputs, outputs, hidden, one_scale=True)
    fit(
        network, inputs, outputs, split_rows(len(tips), seed), steps,
        patience=steps, label="direct IK", progress=False,
    )  # fmt: skip
    return fold(extract_mlp(network))
