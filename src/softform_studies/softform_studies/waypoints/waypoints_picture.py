"""Pictures like Figs. 7, 8 and 11 of paper 001."""

from pathlib import Path

from matplotlib.figure import Figure
from scipy.spatial import cKDTree

from softform_core.files import write_figure
from softform_core.forward.tip_model import load_tip_model
from softform_core.inverse.follow_path import follow_path, start_near
from softform_core.paths import models_of
from softform_core.robots import Robot
from softform_core.simulation.sampling import grid_actuations
from softform_core.units import MM_PER_M, PA_PER_KPA
from softform_rig.live_body import LiveBody
from softform_rig.reality import load_reality
from softform_studies.ik.ik_prediction import SHIPPED
from softform_studies.waypoints.bench_waypoints import EIGHTS
from softform_studies.waypoints.capture_tips import real_tips


def draw_waypoints(robot: Robot, reality_name: str, path: Path) -> None:
    """Draw the '8', the real tips with and without N_s2r, and actuations of two starts and of direct IK.

    Raises:
        SoftformError: If a model or the reality cannot be read, or the picture cannot be written.
    """
    reality, points = load_reality(reality_name, robot), EIGHTS[robot.name].points()
    model = load_tip_model(robot, sim_to_real=models_of(robot.name) / SHIPPED)
    start = start_near(model, points[0])
    grid = grid_actuations(robot.actuation_min, robot.actuation_max, robot.tip.segments)
    nearest = grid[cKDTree(model.tip(grid)).query(points)[1]]
    ours = follow_path(model, points, start).actuations
    simulated = follow_path(model.without_sim_to_real, points, start).actuations
    mirrored = follow_path(
        model, points, -start if (robot.actuation_min < 0.0).all() else robot.actuation_max
    ).actuations

    figure = Figure(figsize=(11, 5.5), dpi=100, layout="constrained")
    columns = figure.subplot_mosaic([["tip", "ours"], ["tip", "mirrored"], ["tip", "nearest"]], width_ratios=[1.2, 1])
    tip_axes = columns["tip"]
    tip_axes.plot(*points[:, :2].T, color="black", label="waypoints")
    for actuations, label in ((simulated, "real tip, without N_s2r"), (ours, "real tip, with N_s2r")):
        tips = MM_PER_M * real_tips(robot, reality, LiveBody(robot, reality), actuations)
        tip_axes.plot(*tips[:, :2].T, ".", markersize=3, label=label)
    tip_axes.set(xlabel="x, mm", ylabel="y, mm", aspect="equal", title=f"{robot.title}, reality '{reality.name}'")
    tip_axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.1), fontsize="small", ncols=3)
    titles = {"ours": "actuations, kPa", "mirrored": "from another start", "nearest": "direct IK, nearest sample"}
    for name, actuations in (("ours", ours), ("mirrored", mirrored), ("nearest", nearest)):
        columns[name].plot(actuations / PA_PER_KPA, label=robot.actuation_names)
        columns[name].set_title(titles[name], fontsize="medium")
    figure.legend(*columns["ours"].get_legend_handles_labels(), loc="outside right center", fontsize="small")
    columns["nearest"].set_xlabel("waypoint")
    write_figure(path, figure)
