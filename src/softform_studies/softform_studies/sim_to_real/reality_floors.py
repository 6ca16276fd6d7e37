"""The floors beside which every figure of `softform bench sim2real` is printed."""

from dataclasses import dataclass

import numpy as np

from softform_core.forward.rbf_warp import SimToReal
from softform_core.robots import Robot
from softform_core.simulation.simulated_body import equilibrium_points, rest_points
from softform_core.units import MM_PER_M
from softform_rig.reality import Reality
from softform_studies.sim_to_real.floors import fitted_surface, warped_onto
from softform_studies.sim_to_real.judge import Errors, Judge, search_tree


@dataclass(frozen=True)
class Floors:
    """What remains if all but one step were perfect.

    Attributes:
        figures: Errors and cut of the gap, of `spline` (fit of the true surfaces), `forward_kinematics` (N_fk against
            the simulator) and `warp` (the best warp of each shape by itself).
        gap: `mean_mm` and `max_mm` (mean over the shapes of each one's largest) between simulator and reality: what
            there is to learn. In a reality without a gap, cuts say nothing.
    """

    figures: dict[str, dict[str, float]]
    gap: dict[str, float]


def floors(robot: Robot, reality: Reality, judge: Judge, kernels: SimToReal) -> Floors:
    """Measure the floors at the held-out actuations.

    Args:
        robot: The robot.
        reality: Reality of the robot.
        judge: Judge at the held-out actuations.
        kernels: Transfer whose kernels and width the warp of each frame uses.

    Raises:
        SoftformError: If the simulator has no shape at a held-out actuation.
    """
    held_out = judge.held_out
    rest = rest_points(robot.body.real_simulator(reality.body))
    spline = fitted_surface(rest, MM_PER_M * held_out.vertices, held_out.faces, judge.patches, judge.uv)
    predicted = judge.predicted(None)
    centers = judge.pipeline(kernels).kernel_centers(held_out.actuation)
    shapes = zip(predicted, centers, judge.truths, strict=True)
    warped = np.array([warped_onto(points, center, kernels.width, truth) for points, center, truth in shapes])

    simulator = robot.body.simulator()
    simulated = equilibrium_points(simulator, robot.actuators_of(held_out.actuation))
    of_network = Errors(
        np.array(
            [
                search_tree(shape, simulator.faces).query(points).distances
                for shape, points in zip(simulated, predicted, strict=True)
            ]
        )
    )
    gap = judge.errors(MM_PER_M * simulated)
    return Floors(
        {
            "spline": judge.figures(judge.errors(spline)),
            "forward_kinematics": judge.figures(of_network),
            "warp": judge.figures(judge.errors(warped)),
        },
        {"mean_mm": round(gap.mean_mm, 4), "max_mm": round(gap.max_mm, 3)},
    )
