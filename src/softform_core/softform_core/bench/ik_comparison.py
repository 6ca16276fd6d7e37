"""IK side by side on one core: Levenberg-Marquardt, analytic; and Algorithm 2 of paper 000 by autograd.

Both solve Eq. 15 for the same targets with the same networks, surface points and stopping rule (lambda, i_max). The
chain is the complete one of Algorithm 1: the robot's trained N_fk, and N_rbf of Table II with 100 kernels, which has
seeded random weights about the identity: autograd can go through it, and it costs what trained ones do.
"""

import statistics
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from softform_core.bench.timing import median_ms
from softform_core.kinematics.autograd_pipeline import AutogradPipeline
from softform_core.kinematics.closest_points import closest_points_on
from softform_core.kinematics.forward_model import ForwardModel
from softform_core.kinematics.ik_options import IkOptions
from softform_core.kinematics.ik_result import IkResult
from softform_core.kinematics.inverse import Method, solve_inverse_kinematics
from softform_core.kinematics.pipeline import ForwardPipeline, grid_faces, grid_uv
from softform_core.kinematics.rbf_warp import SimToReal
from softform_core.networks.layers import extract_mlp, perceptron
from softform_core.networks.store import load_forward_kinematics
from softform_core.registration.rigid import RigidTransform
from softform_core.robots import load_robot
from softform_core.shapes.dem import dem_target
from softform_core.shapes.target import TargetShape
from softform_core.threads import one_thread
from softform_core.units import MM_PER_M

KERNELS = 100
SEED = 7
TOLERANCE_MM = 0.01
"""Both methods stop at this mean error where the target can be reached: an exact fit is of no use to a robot."""

_REPEATS = 5
_MOVED = RigidTransform().moved(np.array([0.05, -0.03, 0.08]), np.array([0.01, -0.006, 0.012]), np.zeros(3))


class StandInWarp(nn.Module):
    """N_rbf with random weights: a smooth warp of about a millimetre around the identity (2 x 24 neurons, Table II)."""

    activation = "relu"
    input_offset: Tensor
    input_scale: Tensor
    output_offset: Tensor
    output_scale: Tensor

    def __init__(self, control_points: int, mean_shape: Tensor) -> None:
        """Draw the weights; torch's seed decides them."""
        super().__init__()
        gamma = torch.zeros(KERNELS + 4, 3)
        gamma[1:4] = torch.eye(3)
        self.layers = perceptron((control_points * 3, 24, 24, gamma.numel()))
        self.register_buffer("input_offset", mean_shape.reshape(-1))
        self.register_buffer("input_scale", torch.full((control_points * 3,), 10.0))
        self.register_buffer("output_offset", gamma.reshape(-1))
        scale = torch.full_like(gamma, 0.5)
        scale[1:4] = 0.01
        self.register_buffer("output_scale", scale.reshape(-1))

    def forward(self, control_points: Tensor) -> Tensor:
        """Coefficients gamma (n, (N + 4) * 3) of flattened control points (n, rows * cols * 3) mm (Eq. 3)."""
        normalised = (control_points - self.input_offset) / self.input_scale
        return self.output_offset + self.output_scale * self.layers(normalised)


def comparison(points: int = 1000) -> dict[str, object]:
    """Ours and Algorithm 2 of the paper, posed and unposed targets side by side.

    Args:
        points: Surface points of Eq. 15.

    Returns:
        Figures by target: milliseconds, iterations, errors of both and their ratio; and the parts of one iteration.
    """
    with one_thread():
        return _run(points)


def _run(points: int) -> dict[str, object]:
    robot = load_robot("membrane")
    surface = robot.surface
    network, _ = load_forward_kinematics(robot)
    uv, kernel_uv = grid_uv(points), grid_uv(KERNELS)
    torch.manual_seed(SEED)
    weights = extract_mlp(network)
    warp = StandInWarp(surface.rows * surface.columns, torch.tensor(weights.output_offset, dtype=torch.float32))
    grid = (surface.rows, surface.columns, surface.degree)
    ours = ForwardPipeline(weights, uv, SimToReal(kernel_uv, extract_mlp(warp)), *grid)
    reference = AutogradPipeline(network, robot.degrees_of_freedom, uv, warp, kernel_uv, *grid)

    hidden = np.random.default_rng(SEED).uniform(robot.pressure_min, robot.pressure_max)
    own = TargetShape(ours.points(hidden) / MM_PER_M, None, grid_faces(points))
    dem = dem_target(robot)
    fixed = IkOptions(
        robot.pressure_min, robot.pressure_max, tolerance_mm=TOLERANCE_MM, max_iterations=200, max_seconds=60.0
    )
    free = replace(fixed, fix_pose=False)
    cases = {
        "hidden_pressures": (own, fixed),
        "hidden_pressures_moved": (own.transformed(_MOVED.rotation, _MOVED.translation), free),
        "dem": (dem, fixed),
        "dem_free_pose": (dem, free),
    }
    targets = {name: _compare(ours, reference, target, options) for name, (target, options) in cases.items()}
    return {
        "robot": robot.name,
        "points": len(uv),
        "kernels": KERNELS,
        "degrees_of_freedom": robot.degrees_of_freedom,
        "stop_at_relative_decrease": fixed.relative_decrease,
        "stop_at_mean_error_mm": fixed.tolerance_mm,
        "parts_ms": _parts(ours, reference, own, hidden),
        "targets": targets,
        "total_time_ratio": _geometric_mean(targets, "total_time_ratio"),
        "iteration_time_ratio": _geometric_mean(targets, "iteration_time_ratio"),
    }


def _compare(
    ours: ForwardModel, reference: ForwardModel, target: TargetShape, options: IkOptions
) -> dict[str, dict[str, object] | float]:
    best = _figures(ours, target, options, "levenberg_marquardt", _REPEATS)
    paper = _figures(reference, target, options, "gradient_descent", 1)
    return {
        "ours": best[0],
        "algorithm_2_autograd": paper[0],
        "total_time_ratio": paper[1].seconds / best[1].seconds,
        "iteration_time_ratio": _iteration_ms(paper[1]) / _iteration_ms(best[1]),
    }


def _figures(
    pipeline: ForwardModel, target: TargetShape, options: IkOptions, method: Method, repeats: int
) -> tuple[dict[str, object], IkResult]:
    """Figures of the run of median time, after one that warms the caches up."""
    solve_inverse_kinematics(pipeline, target, replace(options, max_iterations=2), method)
    results = [solve_inverse_kinematics(pipeline, target, options, method) for _ in range(repeats)]
    result = sorted(results, key=lambda one: one.seconds)[repeats // 2]
    figures: dict[str, object] = {
        "total_ms": result.seconds * 1e3,
        "iterations": result.iterations,
        "iteration_ms": _iteration_ms(result),
        "objective_mm2": result.objective,
        "mean_error_mm": result.mean_error_mm,
        "max_error_mm": result.max_error_mm,
        "termination": result.termination.name.lower(),
    }
    return figures, result


def _iteration_ms(result: IkResult) -> float:
    return result.seconds * 1e3 / max(result.iterations, 1)


def _parts(
    ours: ForwardPipeline, reference: AutogradPipeline, target: TargetShape, actuation: NDArray[np.float64]
) -> dict[str, float]:
    state, torch_state = ours.forward(actuation[None]), reference.forward(actuation[None])
    search = closest_points_on(target)
    residuals = np.ones_like(state.points[0])
    return {
        "ours_forward": median_ms(lambda: ours.forward(actuation[None])),
        "ours_forward_and_jacobian": median_ms(lambda: ours.points_and_jacobian(actuation)),
        "autograd_forward": median_ms(lambda: reference.forward(actuation[None])),
        "autograd_gradient": median_ms(lambda: reference.objective_gradient(torch_state, residuals)),
        "closest_points": median_ms(lambda: search.query(state.points[0] + 1.0)),
    }


def _geometric_mean(targets: dict[str, dict[str, dict[str, object] | float]], key: str) -> float:
    values: Sequence[float] = [float(figures[key]) for figures in targets.values()]  # type: ignore[arg-type]
    return statistics.geometric_mean(values)
