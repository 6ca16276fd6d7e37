"""The picture of the torsos: each target from the front, and the shape found for it from the front and the back."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LightSource, Normalize
from matplotlib.figure import Figure
from mpl_toolkits.mplot3d.art3d import Poly3DCollection
from mpl_toolkits.mplot3d.axes3d import Axes3D
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.files import write_figure
from softform_core.robots import Robot
from softform_core.units import MM_PER_M
from softform_studies.torsos.bench import Case

_COLUMNS = 5
ERROR_COLOURS = "viridis"
SCALE_MM = 10.0
_HIDDEN = (0.8, 0.8, 0.8, 1.0)
SKIN = (0.95, 0.78, 0.6, 1.0)
FRONT, _BACK = 20.0, 200.0  # degrees of azimuth: the robot's front is +x
_BOX_MM = (np.array([-110.0, -110.0, 0.0]), np.array([110.0, 110.0, 330.0]))
"""Lower and upper corner, mm, of the box in which every torso is drawn, at one scale."""


def draw_torsos(path: Path, robot: Robot, cases: Sequence[Case]) -> None:
    """Write the picture as a PNG file; an existing one is replaced.

    Raises:
        SoftformError: If it cannot be written.
    """
    groups = -(-len(cases) // _COLUMNS)
    figure = Figure(figsize=(2.4 * _COLUMNS, 9.6 * groups), dpi=80, layout="constrained")
    rows = 3 * groups
    for number, case in enumerate(cases):
        group, column = divmod(number, _COLUMNS)

        def panel(row: int, group: int = group, column: int = column) -> Axes3D:
            place = (3 * group + row) * _COLUMNS + column + 1
            axes = figure.add_subplot(rows, _COLUMNS, place, projection="3d")
            assert isinstance(axes, Axes3D)
            return axes

        _draw_case(case, robot, panel)
    bar = ScalarMappable(Normalize(0.0, SCALE_MM), ERROR_COLOURS)
    label = "distance of the shape found to the target (mm); grey: no counterpart on it"
    figure.colorbar(bar, ax=figure.axes, label=label, location="bottom", shrink=0.5, aspect=40, pad=0.01, extend="max")
    write_figure(path, figure)


def _draw_case(case: Case, robot: Robot, panel: Callable[[int], Axes3D]) -> None:
    shape = case.target.shape
    posed = case.race.found.pose.apply(shape.points * MM_PER_M)
    assert shape.faces is not None
    stature = f"{case.target.stature:.2f} m" + ("" if case.target.fits else ", another size")
    skin = np.tile(SKIN, (len(shape.faces), 1))
    draw_panel(panel(0), posed, shape.faces, skin, FRONT, f"{case.target.name}: {stature}", lit=True)
    points, faces = case.race.found.points, robot.patches.triangles(len(case.race.found.points))
    colours = error_colours(faces, case.race.found.matches.distances, case.race.found.covered)
    error = f"mean {case.race.ours.mean_error_mm:.1f} mm (at rest {case.rest_error_mm:.1f})"
    draw_panel(panel(1), points, faces, colours, FRONT, error)
    draw_panel(panel(2), points, faces, colours, _BACK, f"from the back; largest {case.race.ours.max_error_mm:.0f} mm")


def error_colours(faces: NDArray[np.integer], distances: Array, covered: NDArray[np.bool_]) -> Array:
    """Return colours (F, 4) of triangles over points with distances (P,) mm; grey where a corner has no counterpart."""
    colours = ScalarMappable(Normalize(0.0, SCALE_MM), ERROR_COLOURS).to_rgba(distances[faces].mean(axis=1))
    return np.where(np.all(covered[faces], axis=1, keepdims=True), colours, _HIDDEN)


def draw_panel(
    axes: Axes3D,
    points: Array,
    faces: NDArray[np.integer],
    colours: Array,
    azimuth: float,
    title: str,
    lit: bool = False,
    box: tuple[Array, Array] = _BOX_MM,
) -> None:
    """Draw triangles (F, 3) over points (P, 3) mm of a body, coloured, in a box, from an azimuth in degrees."""
    light, (low, high) = LightSource(azdeg=60.0, altdeg=40.0) if lit else None, box
    axes.add_collection3d(
        Poly3DCollection(points[faces], facecolors=colours, linewidths=0.0, shade=lit, lightsource=light)
    )
    axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), zlim=(low[2], high[2]))
    axes.set_box_aspect(high - low, zoom=1.3)
    axes.view_init(elev=8.0, azim=azimuth)
    axes.set_axis_off()
    axes.set_title(title, fontsize=8, y=1.03)
