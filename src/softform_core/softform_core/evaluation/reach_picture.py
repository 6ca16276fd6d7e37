"""The picture of a reached shape: the target, the measured errors of each way to it, in plan and space, and figures."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from mpl_toolkits.mplot3d.axes3d import Axes3D

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.evaluation.drawing import (
    HEIGHT_MAP,
    MEASURED_COLOUR,
    PALETTE,
    PREDICTED_COLOUR,
    REST_COLOUR,
    ColourScale,
    draw_histogram,
    error_scales,
)
from softform_core.evaluation.errors import summarise_errors
from softform_core.evaluation.measured_errors import MeasuredErrors
from softform_core.files import write_figure
from softform_core.shapes.shape import Shape
from softform_core.units import MM_PER_M

Limits = tuple[tuple[float, float], tuple[float, float]]

COLOURS = MEASURED_COLOUR, PREDICTED_COLOUR, PALETTE[2]

_DRAWN_POINTS, _DRAWN_IN_SPACE = 20_000, 6_000
_MAP_WIDTH = 230.0  # of a map on the page, in typographic points
_MARK_PER_SPACING = 2.0
_APART = 1.25  # distance of two views, of the target's width


def write_picture(
    path: str | Path,
    target: Shape,
    ways: Mapping[str, MeasuredErrors],
    rest_errors_mm: Array,
    rounds_mm: Sequence[float],
    best_fit_mm: float | None,
    summary: Mapping[str, str],
    rest: Shape,
) -> None:
    """Write the picture as a PNG file; an existing one is replaced.

    Args:
        path: The file.
        target: Target shape, m, in the solved pose.
        ways: What one to three methods have reached, by their labels, from the worst to the best.
        rest_errors_mm: (R,) mm, distances of the resting robot to the target, for scale.
        rounds_mm: Measured mean error of each round of the closed loop, mm; the first is the open loop's. May be empty.
        best_fit_mm: Mean error of the closest shape that the robot can take, mm; None if it is not known.
        summary: Name and value of each printed line, in order; a value may have several lines.
        rest: The robot's surface at rest as a mesh, m.

    Raises:
        SoftformError: If there are no errors to show, or the file cannot be written.
    """
    if not 1 <= len(ways) <= len(COLOURS) or any(len(way.points) == 0 for way in ways.values()):
        raise SoftformError(f"{len(ways)} measured shapes cannot be drawn.", "Give one to three, with points.")
    scales = error_scales([MM_PER_M * way.errors for way in ways.values()])
    figure = Figure(figsize=(17.0, 9.2), dpi=100, layout="constrained")
    figure.suptitle("Softform: target shape reached", fontsize=15, fontweight="bold", x=0.01, ha="left")
    grid = figure.add_gridspec(2, 4, height_ratios=[1.0, 0.85])
    view = _view_of(target)
    clouds = [view.seen(points) for points in (target.points, *(way.points for way in ways.values()))]
    (left, front, _), (right, back, _) = rest.points.min(axis=0), rest.points.max(axis=0)
    outline = np.array([[left, front], [right, front], [right, back], [left, back], [left, front]])
    limits = _limits(clouds if view.is_upright else [*clouds, outline])

    maps = [figure.add_subplot(grid[0, column]) for column in range(1 + len(ways))]
    surface = target.sample(_DRAWN_POINTS).points
    heights = _map(maps[0], view, surface, view.relief(surface) * MM_PER_M, limits, None)
    maps[0].set_title("Target" if view.is_upright else "Target (dashed: the robot)")
    for axes in [] if view.is_upright else maps:
        axes.plot(*(outline * MM_PER_M).T, color=REST_COLOUR, linestyle="--", linewidth=1.5, zorder=3.0)
    figure.colorbar(heights, ax=maps[0], label=view.relief_label, location="bottom", shrink=0.9)
    for axes, (name, way), colour, scale in zip(maps[1:], ways.items(), COLOURS, scales, strict=False):
        _map(axes, view, way.points, MM_PER_M * way.errors, limits, scale)
        axes.set_title(f"{name}: {MM_PER_M * way.mean:.2f} mm", color=colour, fontweight="bold")
    label, is_one = "measured distance to the target (mm)", len(set(scales)) == 1
    for place, scale in enumerate(scales[:1] if is_one else scales, 1):
        figure.colorbar(scale.mappable, ax=maps[1:] if is_one else maps[place], extend="max", location="bottom",
                        label=f"{label}, one scale" if is_one else label, shrink=0.6 if is_one else 0.9,
                        aspect=50 if is_one else 20)  # fmt: skip

    even_mm = {name: MM_PER_M * way.errors[way.even] for name, way in ways.items()}
    end_mm = MM_PER_M * max(float(np.percentile(way.errors, 99.5)) for way in ways.values())
    _histogram(figure.add_subplot(grid[1, 0]), even_mm, rest_errors_mm, end_mm)
    _in_space(figure.add_subplot(grid[1, 1], projection="3d"), *list(ways.items())[-1], scales[-1], rest)
    _rounds(figure.add_subplot(grid[1, 2]), rounds_mm, best_fit_mm)
    _figures(figure.add_subplot(grid[1, 3]), even_mm, rest_errors_mm, summary)

    write_figure(path, figure)


@dataclass(frozen=True)
class _View:
    """Direction of view: a sheet from above; what stands upright or hangs from the front, and from the back.

    Attributes:
        is_upright: Whether it stands or hangs: its front is at +x.
        middle: (3,) m, of the target.
        apart: Distance of the two views, m.
    """

    is_upright: bool
    middle: Array
    apart: float

    @property
    def labels(self) -> tuple[str, str]:
        """Labels of the two axes of the page."""
        return ("from the front (+x)        from the back (-x)", "z (mm)") if self.is_upright else ("x (mm)", "y (mm)")

    @property
    def relief_label(self) -> str:
        """Name of what `relief` gives."""
        return "distance from the middle axis (mm)" if self.is_upright else "height z (mm)"

    def seen(self, points: Array) -> Array:
        """Return coordinates to the right, upwards and towards the eye, m: (P, 3), or (2 P, 3) of both views."""
        if not self.is_upright:
            return points
        x, y, z = points.T - [[self.middle[0]], [self.middle[1]], [0.0]]
        front, back = np.stack([y - self.apart / 2, z, x], axis=1), np.stack([self.apart / 2 - y, z, -x], axis=1)
        return np.concatenate([front, back])

    def relief(self, points: Array) -> Array:
        """Return the value that colours each point of a target, (P,) m."""
        return np.linalg.norm((points - self.middle)[:, :2], axis=1) if self.is_upright else points[:, 2]


def _view_of(target: Shape) -> _View:
    width, depth, height = target.extent
    middle = 0.5 * (target.points.min(axis=0) + target.points.max(axis=0))
    return _View(height > max(width, depth), middle, _APART * float(depth))


def _limits(clouds: list[Array]) -> Limits:
    """Return the common x and y limits of the maps, mm, from percentiles: a stray scan point must not shrink them."""
    bounds = []
    for axis in (0, 1):
        low = min(float(np.percentile(cloud[:, axis], 0.5)) for cloud in clouds) * MM_PER_M
        high = max(float(np.percentile(cloud[:, axis], 99.5)) for cloud in clouds) * MM_PER_M
        margin = 0.04 * (high - low)
        bounds.append((low - margin, high + margin))
    return bounds[0], bounds[1]


def _map(
    axes: Axes,
    view: _View,
    points: Array,
    values: Array,
    limits: Limits,
    scale: ColourScale | None,
) -> PathCollection:
    """Draw a cloud, m, in a view, coloured by `values`, errors on a scale or heights; gaps in a scan stay gaps."""
    points, values = _thinned(points, values, _DRAWN_POINTS)
    points = view.seen(points)
    values = np.resize(values, len(points))  # again in the second view
    order = np.argsort(points[:, 2])
    (left, right), (bottom, top) = limits
    axes.set(xlim=limits[0], ylim=limits[1], aspect="equal", facecolor="#e8e8e8")
    axes.set(xlabel=view.labels[0], ylabel=view.labels[1])
    if view.is_upright:
        axes.set_xticks([])
    # Marks twice as large as the mean spacing of the points cover the surface without hiding its holes.
    spacing = np.sqrt((right - left) * (top - bottom) / max(len(points), 1))
    mark = np.clip(_MARK_PER_SPACING * spacing / (right - left) * _MAP_WIDTH, 1.5, 14.0)
    return axes.scatter(
        points[order, 0] * MM_PER_M,
        points[order, 1] * MM_PER_M,
        c=values[order],
        s=mark**2,
        marker="s",
        linewidths=0,
        cmap=HEIGHT_MAP if scale is None else scale.colours,
        vmin=None if scale is None else 0.0,
        vmax=None if scale is None else scale.end,
    )


def _in_space(axes: Axes3D, name: str, way: MeasuredErrors, scale: ColourScale, rest: Shape) -> None:
    points, values = _thinned(way.points, MM_PER_M * way.errors, _DRAWN_IN_SPACE)
    axes.plot_trisurf(*MM_PER_M * rest.points.T, triangles=rest.faces, color=REST_COLOUR, alpha=0.2)
    axes.scatter(
        *MM_PER_M * points.T, c=values, cmap=scale.colours, vmin=0.0, vmax=scale.end, s=9.0, marker="s", linewidths=0,
        depthshade=False,
    )  # fmt: skip
    axes.set(title=f"In space: {name} (grey: at rest)", xlabel="x (mm)", ylabel="y (mm)")
    axes.set_box_aspect([np.ptp(one) for one in (axes.get_xlim(), axes.get_ylim(), axes.get_zlim())], zoom=0.95)
    axes.view_init(elev=22.0, azim=30.0)
    axes.locator_params(nbins=4)
    axes.locator_params("z", nbins=3)
    axes.tick_params(labelsize=7)


def _thinned(points: Array, values: Array, most: int) -> tuple[Array, Array]:
    if len(points) <= most:
        return points, values
    chosen = np.random.default_rng(0).choice(len(points), most, replace=False)
    return points[chosen], values[chosen]


def _histogram(axes: Axes, even_mm: Mapping[str, Array], rest_mm: Array, end: float) -> None:
    draw_histogram(axes, [(mm, name, c) for (name, mm), c in zip(even_mm.items(), COLOURS, strict=False)], end)
    if len(rest_mm) and rest_mm.mean() <= end:
        axes.axvline(float(rest_mm.mean()), color=REST_COLOUR, linestyle=":", linewidth=1.8, label="mean at rest")
    axes.set(xlabel="measured distance to the target (mm)", title="Errors (dashed: means)")
    axes.legend(framealpha=0.95, edgecolor="none")


def _rounds(axes: Axes, rounds_mm: Sequence[float], best_fit_mm: float | None) -> None:
    axes.set(title="Closed loop", xlabel="round (0: open loop)", ylabel="measured mean error (mm)")
    if not rounds_mm:
        axes.set_title("Closed loop: not finished")
        axes.set_axis_off()
        return
    axes.plot(np.arange(len(rounds_mm)), rounds_mm, "o-", color=COLOURS[-1], markersize=5, linewidth=1.5)
    best = int(np.argmin(rounds_mm))
    axes.plot(
        best, rounds_mm[best], "o", color=COLOURS[-1], markersize=13, fillstyle="none", label="the robot ends here"
    )
    if best_fit_mm is not None:
        axes.axhline(best_fit_mm, color=REST_COLOUR, linestyle=":", linewidth=1.8, label="closest reachable shape")
    axes.set_ylim(0.0, 1.25 * max(*rounds_mm, best_fit_mm or 0.0))
    axes.set_xlim(-0.3, len(rounds_mm) - 0.7)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    axes.legend(framealpha=0.95, edgecolor="none", loc="upper right")
    axes.grid(alpha=0.25)


def _figures(axes: Axes, even_mm: Mapping[str, Array], rest_mm: Array, summary: Mapping[str, str]) -> None:
    """Draw the table of the error figures, and the lines of `summary` below it."""
    axes.set_axis_off()
    columns = [("at rest", rest_mm), *even_mm.items()]
    width = max(len(name) for name, _ in columns)
    lines = [f"{'mm':<{width}}" + "".join(f"{title:>7}" for title in ("mean", "RMS", "p90", "max"))]
    for name, values in columns:
        s = summarise_errors(values)
        figures = (s.mean_mm, s.rms_mm, s.p90_mm, s.max_mm)
        lines.append(f"{name:<{width}}" + "".join(f"{value:7.2f}" for value in figures))
    lines.append("")
    width = max((len(name) for name in summary), default=0)
    indent = "\n" + " " * (width + 2)
    lines += [f"{name:<{width}}  {value}".replace("\n", indent) for name, value in summary.items()]
    axes.text(
        0.03, 1.0, "\n".join(lines), family="monospace", fontsize=8.5, va="top", linespacing=1.5,
        transform=axes.transAxes, in_layout=False,
    )  # fmt: skip
