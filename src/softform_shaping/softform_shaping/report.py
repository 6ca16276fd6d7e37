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
from softform_shaping.bench import SUCCESS
from softform_shaping.camera import Picture
from softform_shaping.controllers import Task
from softform_shaping.features import principal_components
from softform_shaping.printed import Printed, first_past
from softform_shaping.scene import Scene
from softform_shaping.session import Shaped

__all__ = ["draw_report"]

_FEATURES = 3
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
    figure = Figure(figsize=(20.0, 9.0), dpi=100, layout="constrained")
    name, first = next(iter(shaped.items()))
    figure.suptitle(f"{title}; shape, camera, arms and histogram: {name}, after {len(first.iterations)} looks")
    panels = figure.add_gridspec(2, 4, width_ratios=[1.2, 1.0, 1.0, 1.0])
    _draw_space(figure.add_subplot(panels[0, 0], projection="3d"), task, scene, [])
    _draw_space(figure.add_subplot(panels[1, 0], projection="3d"), task, scene, links)
    _draw_camera(figure.add_subplot(panels[0, 1]), task, scene, picture, first)
    _draw_histogram(figure.add_subplot(panels[1, 1]), task, scene)
    errors, stress = figure.add_subplot(panels[0, 2]), figure.add_subplot(panels[1, 2])
    for (name, run), colour in zip(shaped.items(), PALETTE, strict=False):
        count = np.arange(1, len(run.iterations) + 1)
        errors.plot(count, [each.true_rms for each in run.iterations], "o-", color=colour, label=f"{name}, true")
        reported = [each.estimate.rms for each in run.iterations]
        errors.plot(count, reported, ":", color=colour, label=f"{name}, self-reported")
        stress.plot(count, [1e-3 * each.stress for each in run.iterations], "o-", color=colour, label=name)
    errors.axhline(SUCCESS, color="#888888", linewidth=0.8)
    errors.set(xlabel="look", ylabel="root mean square error over the nodes (mm)", yscale="log")
    errors.set_title(f"Error; done is a true one below {SUCCESS:g} mm (grey)")
    errors.legend()
    stress.set(xlabel="look", ylabel="largest von Mises stress (kPa)")
    stress.set_title("Stress in the model (Eq. 9), of the model's material")
    stress.legend()
    _draw_features(figure.add_subplot(panels[0, 3]), task, shaped)
    _draw_stress(figure.add_subplot(panels[1, 3], projection="3d"), task, first)
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
    axes.set_yticks([round(low[1]), round(high[1])])
    axes.set(xlabel="z (mm)", ylabel="y (mm)", zlabel="x (mm)", title="True object; red: its target")
    axes.figure.colorbar(solid, ax=axes, shrink=0.7, location="left", label="distance from the target (mm)")


def _draw_camera(axes: Axes, task: Task, scene: Scene, picture: Picture, shaped: Shaped) -> None:
    """What the camera sees, with the nodes that the controller believes (blue) and the target's (red)."""
    intrinsics = scene.camera.intrinsics
    axes.imshow(picture.colour)
    for nodes, colour, size in ((task.target, _RED, 4.0), (shaped.last.estimate.nodes, _BLUE, 1.5)):
        seen = scene.believed.apply_inverse(nodes[task.model.skin])
        cx, cy = intrinsics.centre
        columns, rows = intrinsics.focal * seen[:, 0] / seen[:, 2] + cx, intrinsics.focal * seen[:, 1] / seen[:, 2] + cy
        axes.plot(columns, rows, ".", color=colour, markersize=size)
    axes.set(xticks=[], yticks=[], title="Camera; blue: believed, red: target")
    axes.set(xlim=(0, intrinsics.width), ylim=(intrinsics.height, 0))


def _draw_features(axes: Axes, task: Task, shaped: Mapping[str, Shaped]) -> None:
    """The first features (Eq. 16) of what is believed, by components of shapes at random, and those of the target."""
    model = task.model
    past = first_past(model, model.rest, Printed(), task.limits.stretch, np.random.default_rng(0))
    components = principal_components(past.shapes, _FEATURES)
    wanted = 1e3 * components.features(task.target.ravel())
    for (name, run), style in zip(shaped.items(), ("o-", "-"), strict=False):
        seen = 1e3 * np.array([components.features(each.estimate.nodes.ravel()) for each in run.iterations])
        for index, colour in zip(range(_FEATURES), PALETTE, strict=False):
            axes.plot(
                np.arange(1, len(seen) + 1), seen[:, index], style, color=colour, markersize=4.0, linewidth=1.0,
                label=f"{name}, s{index + 1}",
            )  # fmt: skip
    for value, colour in zip(wanted, PALETTE, strict=False):
        axes.axhline(value, color=colour, linestyle=":")
    axes.set(xlabel="look", ylabel="feature (mm)", title="Features (Eq. 16); dotted: of the target")
    axes.legend(fontsize="small")


def _draw_stress(axes: Axes3D, task: Task, shaped: Shaped) -> None:
    """The model between the grippers, coloured by its stress."""
    order, shape, model = [2, 1, 0], shaped.last.estimate.shape, task.model
    nodes, skin, faces = 1e3 * shape.nodes, model.skin, model.faces
    stress = 1e-3 * model.body.mean_at_nodes @ model.stresses(shape)
    solid = Poly3DCollection(nodes[skin][faces][..., order], edgecolor="none")
    solid.set_array(stress[skin][faces].mean(axis=1))
    solid.set_cmap("inferno")
    axes.add_collection3d(solid)
    low, high = nodes.min(axis=0)[order], nodes.max(axis=0)[order]
    axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), zlim=(low[2], high[2]))
    axes.set_aspect("equal")
    axes.view_init(elev=25.0, azim=-70.0)
    axes.set_axis_off()
    axes.set_title("Stress in the model, mean at its nodes")
    axes.figure.colorbar(solid, ax=axes, shrink=0.7, label="von Mises (kPa)")


def _draw_histogram(axes: Axes, task: Task, scene: Scene) -> None:
    error = 1e3 * np.linalg.norm(scene.truth.nodes - task.target, axis=1)[scene.truth.has]
    axes.hist(error, bins=30, color=PALETTE[0])
    axes.set(xlabel="distance of a node from its target (mm)", ylabel="nodes", title="True error at the end")
