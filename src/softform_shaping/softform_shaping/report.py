"""The picture of a shaping run: what the camera sees, the true object against its target, errors, features, stress."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from mpl_toolkits.mplot3d import Axes3D
from mpl_toolkits.mplot3d.art3d import Poly3DCollection

from softform_core.arrays import Array
from softform_core.evaluation.drawing import PALETTE
from softform_shaping.camera import Picture
from softform_shaping.controllers import Task
from softform_shaping.scene import Scene
from softform_shaping.session import Shaped

__all__ = ["draw_report"]

_BLUE, _RED = "#2060ff", "#e02020"


def draw_report(
    path: Path, title: str, task: Task, scene: Scene, picture: Picture, shaped: Mapping[str, Shaped], links: list[Array]
) -> None:
    """Draw the report.

    Args:
        path: Of the picture.
        title: What the task was.
        task: With the target.
        scene: The rig as the first of the runs left it.
        picture: What its camera sees then.
        shaped: Runs by the name of their controller, the first one shown.
        links: Points (J, 3) m along each arm, for the picture.
    """
    figure = Figure(figsize=(16.0, 9.0), dpi=100, layout="constrained")
    figure.suptitle(title)
    panels = figure.add_gridspec(2, 3, width_ratios=[1.2, 1.0, 1.0])
    first = next(iter(shaped.values()))
    _draw_space(figure.add_subplot(panels[0, 0], projection="3d"), task, scene, [])
    _draw_space(figure.add_subplot(panels[1, 0], projection="3d"), task, scene, links)
    _draw_camera(figure.add_subplot(panels[0, 1]), task, scene, picture, first)
    errors, stress = figure.add_subplot(panels[0, 2]), figure.add_subplot(panels[1, 2])
    for (name, run), colour in zip(shaped.items(), PALETTE, strict=False):
        count = np.arange(1, len(run.iterations) + 1)
        errors.plot(count, [each.true_rms for each in run.iterations], "o-", color=colour, label=f"{name}, true")
        reported = [each.estimate.rms for each in run.iterations]
        errors.plot(count, reported, ":", color=colour, label=f"{name}, self-reported")
        stress.plot(count, [1e-3 * each.stress for each in run.iterations], "o-", color=colour, label=name)
    errors.set(xlabel="iteration", ylabel="root mean square error (mm)", yscale="log", title="Error (Eq. 28)")
    errors.legend()
    stress.set(xlabel="iteration", ylabel="largest von Mises stress (kPa)", title="Stress in the model (Eq. 9)")
    stress.legend()
    _draw_histogram(figure.add_subplot(panels[1, 1]), task, scene)
    figure.savefig(path)


def _draw_space(axes: Axes3D, task: Task, scene: Scene, links: list[Array]) -> None:
    """The true object, coloured by its error, its target as a net, grippers and arms; z along the object."""
    order = [2, 1, 0]
    true, target = 1e3 * scene.truth.nodes, 1e3 * task.target
    error = np.linalg.norm(true - target, axis=1)
    skin, faces = task.model.skin, task.model.faces
    solid = Poly3DCollection(true[skin][faces][..., order], alpha=0.9, edgecolor="none")
    solid.set_array(error[skin][faces].mean(axis=1))
    solid.set_cmap("viridis")
    axes.add_collection3d(solid)
    net = Poly3DCollection(
        target[skin][faces][..., order], facecolor="none", edgecolor=_RED, linewidth=0.1 if links else 0.25
    )
    axes.add_collection3d(net)
    points = [true]
    for jaw in scene.solids()[1:]:
        places = 1e3 * jaw.vertices
        axes.add_collection3d(
            Poly3DCollection(places[jaw.faces][..., order], facecolor="#30b050", edgecolor="none", alpha=0.35)
        )
        points.append(places)
    for chain in links:
        axes.plot(*(1e3 * chain[:, order].T), "o-", color="#555555", linewidth=5.0, markersize=7.0)
        points.append(1e3 * chain)
    every = np.concatenate(points)[:, order]
    low, high = every.min(axis=0), every.max(axis=0)
    axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), zlim=(low[2], high[2]))
    axes.set_aspect("equal")
    axes.view_init(elev=25.0, azim=-70.0)
    if links:
        axes.set_axis_off()
        axes.set_title("Both arms")
        return
    axes.locator_params(nbins=3)
    axes.set(xlabel="z (mm)", ylabel="y (mm)", zlabel="x (mm)", title="True object; red: its target")
    axes.figure.colorbar(solid, ax=axes, shrink=0.7, location="left", label="distance from the target (mm)")


def _draw_camera(axes: Axes, task: Task, scene: Scene, picture: Picture, shaped: Shaped) -> None:
    """What the camera sees, with the nodes that the controller believes (blue) and the target's (red)."""
    intrinsics = scene.camera.intrinsics
    axes.imshow(picture.colour)
    for nodes, colour in ((task.target, _RED), (shaped.last.estimate.nodes, _BLUE)):
        seen = scene.believed.apply_inverse(nodes[task.model.skin])
        cx, cy = intrinsics.centre
        columns, rows = intrinsics.focal * seen[:, 0] / seen[:, 2] + cx, intrinsics.focal * seen[:, 1] / seen[:, 2] + cy
        axes.plot(columns, rows, ".", color=colour, markersize=1.5)
    axes.set(xticks=[], yticks=[], title="Camera; blue: believed, red: target")
    axes.set(xlim=(0, intrinsics.width), ylim=(intrinsics.height, 0))


def _draw_histogram(axes: Axes, task: Task, scene: Scene) -> None:
    error = 1e3 * np.linalg.norm(scene.truth.nodes - task.target, axis=1)[scene.truth.has]
    axes.hist(error, bins=30, color=PALETTE[0])
    axes.set(xlabel="distance of a node from its target (mm)", ylabel="nodes", title="True error at the end")
