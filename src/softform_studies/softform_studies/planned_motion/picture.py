"""The picture of a scene planned both ways: swept surfaces, the stick, and how near they come (paper 000, Fig. 20)."""

import numpy as np
import trimesh
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.gridspec import GridSpec
from matplotlib.patches import Circle
from mpl_toolkits.mplot3d.art3d import Poly3DCollection
from mpl_toolkits.mplot3d.axes3d import Axes3D

from softform_core.errors import SoftformError
from softform_core.evaluation.drawing import MEASURED_COLOUR, PREDICTED_COLOUR, REST_COLOUR
from softform_core.planning.clearance import FAR_MM
from softform_core.shapes.target import TargetShape
from softform_core.units import MM_PER_M
from softform_studies.planned_motion.bench import Comparison
from softform_studies.planned_motion.scene import Stick
from softform_studies.planned_motion.swept_arm import draw_swept_arms
from softform_studies.planned_motion.trial import Motion

_SECTION_HALF_WIDTH = 70.0  # mm
_COLOURS = "RdYlBu"
_SCALE_MM = 10.0


def draw_comparison(comparison: Comparison) -> Figure:
    """The picture, without a title.

    Raises:
        SoftformError: If one of the motions was rejected.
    """
    trials = {"without sim-to-real": comparison.without, "with sim-to-real": comparison.with_sim_to_real}
    motions = {name: trial.drawable() for name, trial in trials.items()}
    figure = Figure(figsize=(16.0, 8.4), dpi=100, layout="constrained")
    if isinstance(comparison.scene.goal, TargetShape):
        grid = figure.add_gridspec(2, 3, width_ratios=[1.0, 1.0, 0.9], height_ratios=[1.15, 1.0])
        _draw_sheets(figure, grid, motions, comparison.scene.stick)
    else:
        grid = figure.add_gridspec(2, 5, width_ratios=[1.0, 1.0, 1.0, 1.0, 1.5])
        draw_swept_arms(figure, grid, motions, comparison.scene)
    _clearances(figure.add_subplot(grid[:, -1]), motions)
    return figure


def pictured(comparisons: list[Comparison]) -> Comparison:
    """The first scene whose motion collides if it is planned without sim-to-real, or else the first of all.

    Raises:
        SoftformError: If in no scene both motions were planned.
    """
    both = [one for one in comparisons if one.without.motion and one.with_sim_to_real.motion]
    if not both:
        raise SoftformError("In no scene were both motions planned.", "Try more seeds, or a larger gap.")
    return next((one for one in both if one.without.motion and one.without.motion.collides), both[0])


def _draw_sheets(figure: Figure, grid: GridSpec, motions: dict[str, Motion], stick: Stick) -> None:
    """Where the true surface comes nearest, above; all surfaces in section, below."""
    overviews = []
    for column, (name, motion) in enumerate(motions.items()):
        overviews.append(figure.add_subplot(grid[0, column], projection="3d"))
        _overview(overviews[-1], motion, stick, name)
        _section(figure.add_subplot(grid[1, column]), motion, stick)
    figure.colorbar(
        ScalarMappable(Normalize(0.0, _SCALE_MM), _COLOURS),
        ax=overviews,
        label="true distance to the stick (mm)",
        location="bottom",
        shrink=0.5,
        extend="max",
    )


def _overview(axes: Axes3D, motion: Motion, stick: Stick, name: str) -> None:
    """The true surface where it comes nearest."""
    shape, faces = motion.shapes[motion.worst], motion.faces
    distances = stick.distances(shape[faces].mean(axis=1)) * MM_PER_M
    colours = ScalarMappable(Normalize(0.0, _SCALE_MM), _COLOURS).to_rgba(distances)
    axes.add_collection3d(Poly3DCollection(shape[faces] * MM_PER_M, facecolors=colours, edgecolors="none"))
    mesh = stick.mesh()
    assert mesh.faces is not None
    axes.add_collection3d(Poly3DCollection(mesh.points[mesh.faces] * MM_PER_M, facecolors="#444444", shade=True))
    low, high = shape.min(axis=0) * MM_PER_M, shape.max(axis=0) * MM_PER_M
    axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), zlim=(0.0, 1.3 * high[2]))
    axes.set_box_aspect((1.0, 1.0, 0.45))
    axes.view_init(elev=28.0, azim=-60.0)
    axes.set(xticklabels=[], yticklabels=[], zticklabels=[])
    axes.set_title(f"Planned {name}\nin reality: {motion.outcome}", fontweight="bold")


def _section(axes: Axes, motion: Motion, stick: Stick) -> None:
    """Planned and true surfaces along the motion, cut across the stick where they come nearest."""
    vertices = motion.shapes[motion.worst]
    place = vertices[stick.distances(vertices).argmin()]
    along = stick.ends[1] - stick.ends[0]
    along = along / np.linalg.norm(along)
    across = np.cross([0.0, 0.0, 1.0], along)
    middle = stick.ends[0] + ((place - stick.ends[0]) @ along) * along
    for shapes, faces, colour, label in (
        (motion.predicted, motion.predicted_faces, PREDICTED_COLOUR, "planned"),
        (motion.shapes, motion.faces, MEASURED_COLOUR, "in reality"),
    ):
        for count, shape in enumerate(shapes):
            mesh = trimesh.Trimesh(shape, faces, process=False)
            lines = trimesh.intersections.mesh_plane(mesh, along, middle)
            flat = np.stack([(lines - middle) @ across, lines[..., 2]], axis=-1) * MM_PER_M
            last = count == len(shapes) - 1
            axes.add_collection(
                LineCollection(
                    list(flat),
                    colors=colour,
                    linewidths=2.0 if last else 0.8,
                    alpha=1.0 if last else 0.45,
                    label=label if last else None,
                )
            )
    height = middle[2] * MM_PER_M
    axes.add_patch(Circle((0.0, height), stick.radius * MM_PER_M, color="#444444", label="stick"))
    axes.set(xlim=(-_SECTION_HALF_WIDTH, _SECTION_HALF_WIDTH), ylim=(0.0, height + 12.0), aspect="equal")
    axes.set(xlabel="across the stick (mm)", ylabel="height (mm)", title="Swept surfaces, the last one bold")
    axes.legend(loc="lower right", framealpha=0.9, edgecolor="none")
    axes.grid(alpha=0.25)


def _clearances(axes: Axes, motions: dict[str, Motion]) -> None:
    for (name, motion), style in zip(motions.items(), ("--", "-"), strict=True):
        times, planned = motion.times, motion.predicted_clearances * MM_PER_M
        axes.plot(times, planned, style, color=PREDICTED_COLOUR, label=f"planned {name}")
        axes.plot(times, motion.clearances * MM_PER_M, style, color=MEASURED_COLOUR, label=f"{name}, in reality")
        axes.plot(times, motion.margins * MM_PER_M, style, color=REST_COLOUR, linewidth=1.0, label=f"margin {name}")
    low, high = axes.get_ylim()
    low, high = min(low, -1.0), min(high, FAR_MM)  # beyond it planned clearances are lower bounds
    axes.axhspan(low, 0.0, color="#D55E00", alpha=0.12)
    axes.set(ylim=(low, high), xlabel="time (s)", ylabel="surface to stick (mm)", title="Clearance")
    axes.legend(framealpha=0.9, edgecolor="none")
    axes.grid(alpha=0.25)
