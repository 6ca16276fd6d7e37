"""The picture of a scene planned both ways: swept surfaces, the stick, and how near they come (paper 000, Fig. 20).

For an arm it shows what is swept, as planned and in reality, seen along its way and along the stick: a ring marks where
the surface comes nearest to the stick, a cross on coloured ground where it meets it.
"""

import numpy as np
import trimesh
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection
from matplotlib.colors import Normalize, to_rgb
from matplotlib.figure import Figure
from matplotlib.gridspec import GridSpec
from matplotlib.patches import Circle, PathPatch
from matplotlib.path import Path
from mpl_toolkits.mplot3d.art3d import Poly3DCollection
from mpl_toolkits.mplot3d.axes3d import Axes3D
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.evaluation.drawing import MEASURED_COLOUR, PALETTE, PREDICTED_COLOUR, REST_COLOUR
from softform_core.planning.clearance import FAR_MM
from softform_core.shapes.shape import Shape
from softform_core.units import MM_PER_M
from softform_studies.planned_motion.bench import Comparison, Motion
from softform_studies.planned_motion.scene import BALL_RADIUS, Scene, Stick, unit

_STICK_COLOUR, _BALL_COLOUR = "#222222", PALETTE[2]
_NEAR_COLOUR, _HIT_COLOUR = "#F0E442", "#FF00FF"
_FADE = 0.8
"""How much nearer to white the first shape is drawn than the last one, 0 … 1."""


def draw_swept_arms(figure: Figure, grid: GridSpec, motions: dict[str, Motion], scene: Scene) -> None:
    """Fill the first four columns of a grid: each motion as planned and in reality, from two sides."""
    ends = {name: motion.shapes[[0, -1]].mean(axis=1) for name, motion in motions.items()}
    views = _views(scene.stick, next(iter(ends.values())))
    for row, (seen, view) in enumerate(views.items()):
        panels = []
        for column, (name, motion) in enumerate(motions.items()):
            for place, (shapes, faces, colour, what) in enumerate(
                (
                    (motion.predicted, motion.predicted_faces, PREDICTED_COLOUR, "planned"),
                    (motion.shapes, motion.faces, MEASURED_COLOUR, "in reality"),
                )
            ):
                axes = figure.add_subplot(grid[row, 2 * column + place])
                _sweep(axes, shapes @ view.T, faces, colour, motion.worst)
                _stick_and_ball(axes, scene, view)
                _mark_nearest(axes, shapes[motion.worst], scene.stick, view, bool(place) and motion.collides)
                if row == 0:
                    least = (
                        motion.outcome if place else f"clear by {motion.predicted_clearances.min() * MM_PER_M:.1f} mm"
                    )
                    axes.set_title(f"{name},\n{what}: {least}", fontsize=10, fontweight="bold" if place else None)
                    axes.title.set_color(_HIT_COLOUR if place and motion.collides else "black")
                panels.append(axes)
        seen_points = np.concatenate([motion.shapes.reshape(-1, 3) for motion in motions.values()]) @ view.T
        _align(panels, seen_points.min(axis=0), seen_points.max(axis=0))
        panels[0].set_ylabel(f"{seen}, z (mm)")


def _views(stick: Stick, ends: Array) -> dict[str, Array]:
    """Return the axes (2, 3) of a view along the way from first to last shape (2, 3) m, and along the stick.

    The arm hangs: its z points down, and so does the second axis.
    """
    down = np.array([0.0, 0.0, 1.0])
    way, along = ends[1] - ends[0], stick.ends[1] - stick.ends[0]
    return {
        f"seen along {name}": np.stack([unit(np.cross(down, one)), down])
        for name, one in (("the way", way), ("the stick", along))
    }


def _sweep(axes: Axes, shapes: Array, faces: NDArray[np.integer], colour: str, worst: int) -> None:
    """Draw shapes (m, V, 2) m over each other, later ones darker, within outlines; the nearest one's is bold."""
    order = [*(one for one in range(len(shapes)) if one != worst), worst]
    for number in order:
        share = _FADE * (1.0 - number / max(1, len(shapes) - 1))
        fill = tuple(share + (1.0 - share) * value for value in to_rgb(colour))
        # What the second one leaves free of the first, whose lines are wider, is the outline.
        edge = "#000000" if number == worst else "#ffffff"
        _fill(axes, shapes[number], faces, edge, 2.5)
        _fill(axes, shapes[number], faces, fill, 0.3)


def _fill(axes: Axes, points: Array, faces: NDArray[np.integer], colour: str | tuple[float, ...], width: float) -> None:
    """Fill the silhouette of triangles (F, 3) over (V, 2) m."""
    corners = points[faces] * MM_PER_M
    sides = corners[:, 1:] - corners[:, :1]
    turned = sides[:, 0, 0] * sides[:, 1, 1] < sides[:, 0, 1] * sides[:, 1, 0]
    corners[turned] = corners[turned, ::-1]  # all the same way around: where two turns cancel nothing is filled
    closed = np.concatenate([corners, corners[:, :1]], axis=1).reshape(-1, 2)
    codes = np.tile([Path.MOVETO, Path.LINETO, Path.LINETO, Path.CLOSEPOLY], len(faces))
    patch = PathPatch(Path(closed, codes), facecolor=colour, edgecolor=colour, linewidth=width)
    patch.set_in_layout(False)  # to find its extent takes longer than to draw it
    axes.add_artist(patch)


def _stick_and_ball(axes: Axes, scene: Scene, view: Array) -> None:
    assert scene.ball is not None
    mesh = scene.stick.mesh()
    assert mesh.faces is not None
    _fill(axes, mesh.points @ view.T, mesh.faces, _STICK_COLOUR, 0.3)
    ball = scene.ball @ view.T * MM_PER_M
    axes.add_patch(Circle((float(ball[0]), float(ball[1])), BALL_RADIUS * MM_PER_M, color=_BALL_COLOUR, alpha=0.8))


def _mark_nearest(axes: Axes, shape: Array, stick: Stick, view: Array, collides: bool) -> None:
    """Mark where a shape (V, 3) m comes nearest to the stick: a ring, or a cross where both meet."""
    x, y = shape[stick.distances(shape).argmin()] @ view.T * MM_PER_M
    if collides:
        axes.set_facecolor("#FFE3FF")
    for colour, size, width in (("white", 20.0, 6.0), (_HIT_COLOUR if collides else _NEAR_COLOUR, 18.0, 3.0)):
        marker = "x" if collides else "o"
        axes.plot(x, y, marker, color=colour, markersize=size, markeredgewidth=width, fillstyle="none", zorder=5.0)


def _align(panels: list[Axes], low: Array, high: Array) -> None:
    """Set the same range in all, so that shapes between two corners (2,) m are seen, z downwards."""
    room = 2.0 * BALL_RADIUS
    for axes in panels:
        axes.set(xlim=MM_PER_M * np.array([low[0] - room, high[0] + room]), ylim=(MM_PER_M * (high[1] + room), 0.0))
        axes.set_aspect("equal")
        axes.grid(alpha=0.25)


_SECTION_HALF_WIDTH = 70.0  # mm
_COLOURS = "RdYlBu"
_SCALE_MM = 10.0


def draw_comparison(comparison: Comparison) -> Figure:
    """Draw the picture, without a title.

    Raises:
        SoftformError: If one of the motions was rejected.
    """
    trials = {"without sim-to-real": comparison.without, "with sim-to-real": comparison.with_sim_to_real}
    motions = {name: trial.drawable() for name, trial in trials.items()}
    figure = Figure(figsize=(16.0, 8.4), dpi=100, layout="constrained")
    if isinstance(comparison.scene.goal, Shape):
        grid = figure.add_gridspec(2, 3, width_ratios=[1.0, 1.0, 0.9], height_ratios=[1.15, 1.0])
        _draw_sheets(figure, grid, motions, comparison.scene.stick)
    else:
        grid = figure.add_gridspec(2, 5, width_ratios=[1.0, 1.0, 1.0, 1.0, 1.5])
        draw_swept_arms(figure, grid, motions, comparison.scene)
    _clearances(figure.add_subplot(grid[:, -1]), motions)
    return figure


def pictured(comparisons: list[Comparison]) -> Comparison:
    """Return the first scene whose motion collides if it is planned without sim-to-real, or else the first of all.

    Raises:
        SoftformError: If in no scene both motions were planned.
    """
    both = [one for one in comparisons if one.without.motion and one.with_sim_to_real.motion]
    if not both:
        raise SoftformError("In no scene were both motions planned.", "Try more seeds, or a larger gap.")
    return next((one for one in both if one.without.motion and one.without.motion.collides), both[0])


def _draw_sheets(figure: Figure, grid: GridSpec, motions: dict[str, Motion], stick: Stick) -> None:
    """Draw the true surface's nearest place, above, and all surfaces in section, below."""
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
    """Draw the true surface where it comes nearest."""
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
    """Draw planned and true surfaces along the motion, cut across the stick where they come nearest."""
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
    axes.axhspan(low, 0.0, color=MEASURED_COLOUR, alpha=0.12)
    axes.set(ylim=(low, high), xlabel="time (s)", ylabel="surface to stick (mm)", title="Clearance")
    axes.legend(framealpha=0.9, edgecolor="none")
    axes.grid(alpha=0.25)
