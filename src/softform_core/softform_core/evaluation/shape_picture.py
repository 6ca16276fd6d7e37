"""The picture of a shape over the resting robot that is to take it, before anything moves."""

from pathlib import Path

import numpy as np
from matplotlib.cm import ScalarMappable
from matplotlib.collections import PolyCollection
from matplotlib.colors import Normalize, to_rgba
from matplotlib.figure import Figure
from mpl_toolkits.mplot3d.art3d import Poly3DCollection

from softform_core.evaluation.drawing import HEIGHT_MAP, MEASURED_COLOUR, REST_COLOUR
from softform_core.files import write_figure
from softform_core.inverse.counterpart import lies_beside
from softform_core.shapes.shape import Shape
from softform_core.units import MM_PER_M

_MOST_FACES = 30_000
"""Most faces of a drawn mesh; one with more is drawn as points, as a cloud is."""

_SAMPLES = 12_000
_AXES = "xyz"


def draw_shape(path: Path, shape: Shape, resting: Shape | None, title: str) -> None:
    """Draw a shape in space and in plan, coloured by height, what lies beside the robot in another colour.

    A robot that stands or hangs is seen from the front in place of the plan.

    Args:
        path: A picture; an existing one is replaced.
        shape: The shape at its pose, m.
        resting: The robot's surface at rest as a mesh, m; None of a robot without a surface.
        title: Name of what was read.

    Raises:
        SoftformError: If the file cannot be written.
    """
    is_surface = shape.faces is not None and len(shape.faces) <= _MOST_FACES
    corners = (shape.points[shape.faces] if is_surface else shape.sample(_SAMPLES).points[:, None]) * MM_PER_M
    places = corners.mean(axis=1)
    figure = Figure(figsize=(13.0, 6.2), dpi=100, layout="constrained")
    figure.suptitle(title, fontsize=11)
    space = figure.add_subplot(1, 2, 1, projection="3d", computed_zorder=False)
    plan = figure.add_subplot(1, 2, 2)
    beside, across = np.zeros(len(places), dtype=bool), [0, 1]
    if resting is not None:
        beside, robot = lies_beside(places / MM_PER_M, resting), resting.points * MM_PER_M
        across = [0, 1] if resting.extent.argmin() == 2 else [1, 2]
        space.plot_trisurf(*robot.T, triangles=resting.faces, color=REST_COLOUR, alpha=0.25)
        plan.triplot(*robot[:, across].T, resting.faces, color=REST_COLOUR, linewidth=0.2, zorder=0.0)
        plan.plot([], [], color=REST_COLOUR, label="the robot at rest")
    heights = ScalarMappable(
        Normalize(*np.percentile(places[~beside, 2], [0, 100]) if not beside.all() else ()), HEIGHT_MAP
    )
    colours = heights.to_rgba(places[:, 2])
    colours[beside] = to_rgba(MEASURED_COLOUR)
    upwards = places[:, 3 - sum(across)].argsort()
    if is_surface:
        space.add_collection3d(Poly3DCollection(corners, facecolors=colours))
        plan.add_collection(PolyCollection(corners[upwards][:, :, across], facecolors=colours[upwards]))
        space.auto_scale_xyz(*corners.reshape(-1, 3).T, had_data=resting is not None)
        plan.autoscale_view()
    else:
        space.scatter(*places.T, s=4, c=colours, depthshade=False)
        flat = places[upwards][:, across]
        plan.scatter(flat[:, 0], flat[:, 1], s=4, c=colours[upwards])
    if beside.any():
        plan.plot([], [], "s", color=MEASURED_COLOUR, label="of the shape, beside the robot")
    figure.colorbar(heights, ax=plan, label="height z of the shape (mm)", shrink=0.8)
    plan.set(aspect="equal", xlabel=f"{_AXES[across[0]]} (mm)", ylabel=f"{_AXES[across[1]]} (mm)")
    if plan.get_legend_handles_labels()[0]:
        figure.legend(*plan.get_legend_handles_labels(), loc="outside lower center", ncols=2)
    space.set(xlabel="x (mm)", ylabel="y (mm)", zlabel="z (mm)", aspect="equal")
    space.locator_params("z", nbins=3)
    write_figure(path, figure)
