"""What an arm sweeps past a stick, as planned and in reality, seen along its way and along the stick.

A ring marks where the surface comes nearest to the stick, a cross on coloured ground where it meets it.
"""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.gridspec import GridSpec
from matplotlib.patches import Circle, PathPatch
from matplotlib.path import Path
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.evaluation.drawing import MEASURED_COLOUR, PREDICTED_COLOUR
from softform_core.units import MM_PER_M
from softform_studies.planned_motion.arm_scene import BALL_RADIUS
from softform_studies.planned_motion.scene import Scene, Stick, unit
from softform_studies.planned_motion.trial import Motion

_STICK_COLOUR, _BALL_COLOUR = "#222222", "#009E73"
_NEAR_COLOUR, _HIT_COLOUR = "#F0E442", "#FF00FF"
_FADE = 0.8
"""How much nearer to white than the last shape the first one is."""


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
    """Axes of the picture (2, 3) of a view along the way from first to last shape (2, 3) m, and one along the stick.

    The arm hangs: its z points down, and so does the second axis.
    """
    down = np.array([0.0, 0.0, 1.0])
    way, along = ends[1] - ends[0], stick.ends[1] - stick.ends[0]
    return {
        f"seen along {name}": np.stack([unit(np.cross(down, one)), down])
        for name, one in (("the way", way), ("the stick", along))
    }


def _sweep(axes: Axes, shapes: Array, faces: NDArray[np.integer], colour: str, worst: int) -> None:
    """Shapes (m, V, 2) m one over the other, later ones darker, each within its outline; the nearest one's is bold."""
    order = [*(one for one in range(len(shapes)) if one != worst), worst]
    for number in order:
        share = _FADE * (1.0 - number / max(1, len(shapes) - 1))
        fill = tuple(share + (1.0 - share) * value for value in to_rgb(colour))
        # What the second one leaves free of the first, whose lines are wider, is the outline.
        edge = "#000000" if number == worst else "#ffffff"
        _fill(axes, shapes[number], faces, edge, 2.5)
        _fill(axes, shapes[number], faces, fill, 0.3)


def _fill(axes: Axes, points: Array, faces: NDArray[np.integer], colour: str | tuple[float, ...], width: float) -> None:
    """The silhouette of triangles (F, 3) over (V, 2) m."""
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
    """Where a shape (V, 3) m comes nearest to the stick: a ring, or a cross where both meet."""
    x, y = shape[stick.distances(shape).argmin()] @ view.T * MM_PER_M
    if collides:
        axes.set_facecolor("#FFE3FF")
    for colour, size, width in (("white", 20.0, 6.0), (_HIT_COLOUR if collides else _NEAR_COLOUR, 18.0, 3.0)):
        marker = "x" if collides else "o"
        axes.plot(x, y, marker, color=colour, markersize=size, markeredgewidth=width, fillstyle="none", zorder=5.0)


def _align(panels: list[Axes], low: Array, high: Array) -> None:
    """The same range in all, so that shapes between two corners (2,) m are seen, z downwards."""
    room = 2.0 * BALL_RADIUS
    for axes in panels:
        axes.set(xlim=MM_PER_M * np.array([low[0] - room, high[0] + room]), ylim=(MM_PER_M * (high[1] + room), 0.0))
        axes.set_aspect("equal")
        axes.grid(alpha=0.25)
