"""Section `waypoints` of `softform bench ik`: paper 001 on its two robots, in simulation and on a reality."""

from dataclasses import replace

import numpy as np

from softform_core.forward.mlp import fold
from softform_core.forward.tip_model import TipModel, load_tip_model
from softform_core.inverse.follow_path import follow_path, start_near
from softform_core.networks.mlp_weights import extract_mlp
from softform_core.robots import Robot, load_robot
from softform_core.threads import one_thread
from softform_core.training.tips import train_tip_transfer
from softform_rig.live_body import LiveBody
from softform_rig.reality import Reality, load_reality
from softform_studies.waypoints.capture_tips import PAPER_SAMPLES, capture_tips, real_tips
from softform_studies.waypoints.waypoints import EIGHTS, compare, tracking_percent

REALITY = "default"


def waypoints() -> dict[str, object]:
    """Waypoint following of paper 001: tracking, speed, jumps, and the real tip with and without sim-to-real."""
    figures: dict[str, object] = {}
    for name in EIGHTS:
        robot = load_robot(name, "tip")
        figures[name] = {"simulation": compare(robot), "reality": follow_in_reality(robot, REALITY)}
    return figures


def follow_in_reality(robot: Robot, reality_name: str) -> dict[str, object]:
    """Learn N_s2r from as many captured tips as the paper took, and follow the '8' with and without it.

    Raises:
        SoftformError: If a model or the reality cannot be read, or the reality has no equilibrium.
    """
    reality, model = load_reality(reality_name, robot), load_tip_model(robot)
    with one_thread():
        actuations, tips = capture_tips(robot, reality, PAPER_SAMPLES[robot.name])
        samples = model.tip(actuations), actuations, tips, model.workspace_width_mm
        trained = train_tip_transfer(*samples, seed=0, progress=False)
        by_tip = train_tip_transfer(*samples, seed=0, by_tip_alone=True, progress=False)
    real, as_paper = (replace(model, sim_to_real=fold(extract_mlp(one.network))) for one in (trained, by_tip))
    return {
        "reality": reality.name,
        "samples": len(tips),
        "prediction_mean_percent": trained.entry.test_mean_percent,
        "prediction_max_percent": trained.entry.test_max_percent,
        "without_sim_to_real": tracking_in_reality(robot, reality, model),
        "with_sim_to_real_by_tip_alone": tracking_in_reality(robot, reality, as_paper),
        "with_sim_to_real": tracking_in_reality(robot, reality, real),
    }


def tracking_in_reality(robot: Robot, reality: Reality, model: TipModel) -> dict[str, float]:
    """How far the real tip is from the waypoints when it is led along the '8' from rest, % of the workspace's width.

    Raises:
        SoftformError: If an actuation has no equilibrium in this reality.
    """
    points = EIGHTS[robot.name].points()
    path = follow_path(model, points, start_near(model, points[0]))
    tips = real_tips(robot, reality, LiveBody(robot, reality), path.actuations)
    errors = tracking_percent(model, tips, points)
    return {
        "tracking_mean_percent": float(np.mean(errors)),
        "tracking_max_percent": float(np.max(errors)),
        "model_error_max_percent": float(100.0 * path.errors_mm.max() / model.workspace_width_mm),
    }
