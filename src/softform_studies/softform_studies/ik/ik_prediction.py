"""Cost of one prediction by the virtual rig's shipped sim-to-real ensemble, with its Jacobian, on one core."""

import statistics
import time
from collections.abc import Callable

from softform_core.forward.live_pipeline import LivePipeline
from softform_core.forward.pipeline import ForwardPipeline
from softform_core.forward.robot_pipeline import SURFACE_POINTS
from softform_core.paths import models_of
from softform_core.robots import Robot, load_robot
from softform_core.threads import one_thread


def median_ms(call: Callable[[], object]) -> float:
    """Return the median wall-clock time of a call in milliseconds, after one call that warms the caches up."""
    call()
    seconds = []
    for _ in range(30):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds) * 1e3


SHIPPED = "rig_default"
"""Folder of the shipped sim-to-real model, beside N_fk: of the virtual rig's default reality."""


def shipped_pipeline(robot: Robot, points: int = SURFACE_POINTS) -> ForwardPipeline:
    """Return the pipeline of the virtual rig's default reality."""
    return LivePipeline(robot, points, sim_to_real=str(models_of(robot.name) / SHIPPED)).current


def prediction(points: int = SURFACE_POINTS) -> dict[str, object]:
    """One prediction with its Jacobian (Algorithm 1, Eq. 17) by the shipped ensemble."""
    robot = load_robot("membrane")
    pipeline = shipped_pipeline(robot, points)
    actuation = 0.5 * (robot.actuation_min + robot.actuation_max)
    assert pipeline.sim_to_real is not None
    with one_thread():
        return {
            "points": len(pipeline.uv),
            "kernels": len(pipeline.sim_to_real.kernel_uv),
            "degrees_of_freedom": pipeline.degrees_of_freedom,
            "predict_ms": median_ms(lambda: pipeline.forward(actuation[None])),
            "predict_and_jacobian_ms": median_ms(lambda: pipeline.points_and_jacobian(actuation)),
        }
