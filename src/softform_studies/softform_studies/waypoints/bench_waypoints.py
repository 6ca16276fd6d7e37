"""Section `waypoints` of `softform bench ik`: paper 001 on its two robots, in simulation and on a reality.

In simulation ours stands beside the paper's iteration, FK gradients and direct IK learning: all follow the same '8'
with the same networks in the same run, and are judged by the simulator, not by the networks. Direct IK is learned from
the same samples twice: by a network, which averages over the actuations of a redundant robot, and by keeping the
samples, of which the nearest answers. Percentages are of the workspace's width (`training.tips.workspace_width`); jumps
are of an actuation's range.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import ArrayLike
from scipy.spatial import cKDTree
from torch import nn

from softform_core.arrays import Array
from softform_core.forward.history import History
from softform_core.forward.memory import NO_MEMORY, Commands
from softform_core.forward.mlp import AffineLayers, fold
from softform_core.forward.one_point import TipMap
from softform_core.forward.tip_model import TipModel, load_tip_model
from softform_core.inverse.follow_path import TipPath, checked_path, follow_path, start_near
from softform_core.networks.mlp_weights import extract_mlp
from softform_core.networks.store import TIP_KINEMATICS
from softform_core.networks.tip import TipNetwork
from softform_core.paths import models_of
from softform_core.robots import TIP, Robot, load_robot
from softform_core.simulation.sampling import grid_actuations
from softform_core.simulation.simulated_body import equilibrium_points
from softform_core.threads import one_thread
from softform_core.training.least_squares import fit
from softform_core.training.split import split_rows
from softform_core.training.tips import train_tip_transfer
from softform_core.units import MM_PER_M
from softform_rig.live_body import LiveBody
from softform_rig.reality import Reality, load_reality
from softform_studies.ik.autograd_pipeline import TorchPerceptron
from softform_studies.waypoints.capture_tips import PAPER_SAMPLES, capture_tips, real_tips

PAPER_TOLERANCE = 1e-3
"""Tolerance epsilon of Fig. 1: 0.1 % of the workspace's width."""

_MOST_ITERATIONS = 200
_LEAST_DECREASE = 1e-4  # of the objective: less in one iteration ends it (Sec. IV-C2)
_MOST_HALVINGS = 12


def gradient_iteration(model: TipMap, points: ArrayLike, start: ArrayLike) -> TipPath:
    """Return the paper's iteration: gradient descent with line search (Eqs. 2 and 6, Fig. 1), bounded by clipping.

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
    memory = NO_MEMORY

    def tip(self, actuation: ArrayLike) -> Array:
        """Return tips (…, n) mm at actuations (…, m) Pa."""
        values = np.asarray(actuation, dtype=np.float64)
        with torch.no_grad():
            tips = self.network(torch.from_numpy(values.reshape(-1, values.shape[-1]))).numpy()
        return np.asarray(tips.reshape(*values.shape[:-1], -1))

    def tip_and_jacobian(self, actuation: ArrayLike) -> tuple[Array, Array]:
        """Return tip (n,) mm and Jacobian (n, m) mm/Pa at one actuation (m,) Pa: one backward pass a coordinate."""
        c = torch.from_numpy(np.array(actuation, dtype=np.float64)).requires_grad_()
        tip = self.network(c[None])[0]
        rows = [torch.autograd.grad(coordinate, c, retain_graph=True)[0] for coordinate in tip]
        return tip.detach().numpy(), torch.stack(rows).numpy()


def learn_direct_ik(actuations: Array, tips: Array, hidden: list[int], steps: int, seed: int) -> AffineLayers:
    """Train direct IK: a network from tips (s, n) mm to actuations (s, m) Pa, fitted to the same samples as N_fk."""
    inputs, outputs = torch.from_numpy(tips), torch.from_numpy(actuations)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = TipNetwork(inputs, outputs, hidden, one_scale=True)
    fit(
        network, inputs, outputs, split_rows(len(tips), seed), steps,
        patience=steps, label="direct IK", progress=False,
    )  # fmt: skip
    return fold(extract_mlp(network))


WAYPOINTS = 200
"""Number of waypoints on the '8' (paper 001, Sec. IV-A2)."""

DIRECT_IK_STEPS = 300
_REPEATS = 5


@dataclass(frozen=True)
class Eight:
    """An '8' in a plane z = const, mm: half its extents along x and y, or along y and x if `upright`."""

    centre: tuple[float, ...]
    long: float
    short: float
    upright: bool

    def points(self, count: int = WAYPOINTS) -> Array:
        """Return waypoints (count, n) mm, the last one before the first."""
        turn = 2.0 * np.pi * np.arange(count) / count
        along, across = self.long * np.sin(turn), self.short * np.sin(2.0 * turn)
        offsets = np.zeros((count, len(self.centre)))
        offsets[:, 0], offsets[:, 1] = (across, along) if self.upright else (along, across)
        return np.array(self.centre) + offsets


EIGHTS = {
    "three_chamber": Eight((0.0, 0.0, 122.0), 14.0, 8.0, upright=False),
    "planar_fingers": Eight((210.0, 0.0), 110.0, 50.0, upright=True),
}


def tracking_percent(model: TipModel, tips: Array, points: Array) -> Array:
    """Return distances (w,) from tips (w, n) m to waypoints (w, n) mm, % of the workspace's width."""
    return np.asarray(100.0 * np.linalg.norm(MM_PER_M * tips - points, axis=1) / model.workspace_width_mm)


def largest_jump_percent(model: TipModel, actuations: Array) -> float:
    """Return the largest change of an actuation between neighbouring waypoints, % of its range."""
    span = model.actuation_max - model.actuation_min
    return float(100.0 * np.max(np.abs(np.diff(actuations, axis=0)) / span))


def compare(robot: Robot) -> dict[str, object]:
    """Follow the robot's '8' every way, on one core.

    Raises:
        SoftformError: If the robot's models cannot be read.
    """
    with one_thread():
        model, points = load_tip_model(robot), EIGHTS[robot.name].points()
        kinematics, _ = TIP_KINEMATICS.load(models_of(robot.name), robot)
        network = TorchPerceptron(extract_mlp(kinematics.forward_kinematics), torch.float64)
        gradients = FkGradients(network, model.actuation_min, model.actuation_max, model.workspace_width_mm)
        start = start_near(model, points[0])
        learned = time.process_time()
        grid = grid_actuations(robot.actuation_min, robot.actuation_max, robot.tip.segments)
        direct = learn_direct_ik(grid, model.tip(grid), robot.tip.forward_kinematics, DIRECT_IK_STEPS, seed=0)
        learned = time.process_time() - learned

        samples = cKDTree(model.tip(grid))

        def answered(found: Array) -> TipPath:
            found = np.clip(found, model.actuation_min, model.actuation_max)
            return TipPath(found, np.linalg.norm(model.tip(found) - points, axis=1), np.zeros(len(found), np.int64))

        ways: dict[str, Callable[[], TipPath]] = {
            "ours": lambda: follow_path(model, points, start),
            "paper_gradient": lambda: gradient_iteration(model, points, start),
            "paper_gradient_by_fk_gradients": lambda: gradient_iteration(gradients, points, start),
            "ours_by_fk_gradients": lambda: follow_path(gradients, points, start),
            "direct_ik_network": lambda: answered(np.array([direct.values(point[None])[0] for point in points])),
            "direct_ik_nearest_sample": lambda: answered(np.array([grid[samples.query(point)[1]] for point in points])),
        }
        figures = {name: _figures(robot, model, points, follow) for name, follow in ways.items()}
    jumps = {name: one["largest_jump_percent"] for name, one in figures.items()}
    return {
        "waypoints": len(points),
        "workspace_width_mm": model.workspace_width_mm,
        "direct_ik_training_core_seconds": learned,
        "jump_over_direct_ik_network": jumps["ours"] / jumps["direct_ik_network"],
        "jump_over_direct_ik_nearest_sample": jumps["ours"] / jumps["direct_ik_nearest_sample"],
        **figures,
    }


def _figures(robot: Robot, model: TipModel, points: Array, follow: Callable[[], TipPath]) -> dict[str, float]:
    times = []
    for _ in range(_REPEATS):
        began = time.process_time()
        path = follow()
        times.append(time.process_time() - began)
    tracking = tracking_percent(model, simulated_tips(robot, path.actuations), points)
    return {
        "tracking_mean_percent": float(tracking.mean()),
        "tracking_max_percent": float(tracking.max()),
        "core_ms_per_waypoint": 1e3 * min(times) / len(points),
        "iterations_mean": float(path.iterations.mean()),
        "largest_jump_percent": largest_jump_percent(model, path.actuations),
    }


def simulated_tips(robot: Robot, actuations: Array) -> Array:
    """Return tips (n, d) m of the simulated robot."""
    body = robot.body.simulator()
    return equilibrium_points(body, robot.actuators_of(actuations))[:, body.frames[TIP], : robot.tip_dimensions]


def waypoints() -> dict[str, object]:
    """Waypoint following of paper 001: tracking, speed, jumps, and the real tip with and without sim-to-real."""
    figures: dict[str, object] = {}
    for name in EIGHTS:
        robot = load_robot(name, "tip")
        figures[name] = {"simulation": compare(robot), "reality": follow_in_reality(robot, "default")}
    return figures


def follow_in_reality(robot: Robot, reality_name: str) -> dict[str, object]:
    """Learn N_s2r from as many captured tips as the paper took, and follow the '8' with and without it.

    Raises:
        SoftformError: If a model or the reality cannot be read, or the reality has no equilibrium.
    """
    reality, model = load_reality(reality_name, robot), load_tip_model(robot)
    kinematics = extract_mlp(TIP_KINEMATICS.load(models_of(robot.name), robot)[0].forward_kinematics)
    with one_thread():
        samples = capture_tips(robot, reality, PAPER_SAMPLES[robot.name])
        given = robot, kinematics, samples, model.workspace_width_mm
        trained = train_tip_transfer(*given, seed=0, progress=False)
        by_tip = train_tip_transfer(*given, seed=0, by_tip_alone=True, with_memory=False, progress=False)
    real, as_paper = (model.with_transfer(robot, one.network) for one in (trained, by_tip))
    return {
        "reality": reality.name,
        "samples": len(samples.tips),
        "prediction_mean_percent": trained.entry.test_mean_percent,
        "prediction_max_percent": trained.entry.test_max_percent,
        "without_sim_to_real": tracking_in_reality(robot, reality, model),
        "with_sim_to_real_by_tip_alone": tracking_in_reality(robot, reality, as_paper),
        "with_sim_to_real": tracking_in_reality(robot, reality, real),
    }


def tracking_in_reality(robot: Robot, reality: Reality, model: TipModel) -> dict[str, float]:
    """Return the real tip's distance from the waypoints of the '8', led from rest, % of the workspace's width.

    Raises:
        SoftformError: If an actuation has no equilibrium in this reality.
    """
    points = EIGHTS[robot.name].points()
    path = follow_path(model, points, start_near(model, points[0]))
    commands = Commands.of(robot, model.memory, History(), robot.rest_actuation)
    commanded = np.array([commands.command(actuation) for actuation in path.actuations])
    tips = real_tips(robot, LiveBody(robot, reality), commanded)
    errors = tracking_percent(model, tips, points)
    return {
        "tracking_mean_percent": float(np.mean(errors)),
        "tracking_max_percent": float(np.max(errors)),
        "model_error_max_percent": float(100.0 * path.errors_mm.max() / model.workspace_width_mm),
    }
