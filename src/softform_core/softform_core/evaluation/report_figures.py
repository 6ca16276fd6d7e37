"""Figures of an evaluation: errors as histograms, bars and colour maps, and how sure the model is; millimetres."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Colormap, Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from mpl_toolkits.mplot3d import Axes3D
from mpl_toolkits.mplot3d.art3d import Poly3DCollection
from scipy.special import erf

from softform_core.arrays import Array
from softform_core.evaluation.comparison import Comparison
from softform_core.evaluation.drawing import (
    ERROR_MAP,
    MEASURED_COLOUR,
    PREDICTED_COLOUR,
    REST_COLOUR,
    SCALE_PERCENTILE,
    Series,
    draw_histogram,
)
from softform_core.evaluation.evaluate import JudgedFrame, worst_median_best
from softform_core.evaluation.metrics import NORMAL_ERROR_CAP
from softform_core.evaluation.summary import share_within

BEFORE, AFTER = "simulation alone", "with sim-to-real"
BEFORE_COLOUR, AFTER_COLOUR = MEASURED_COLOUR, PREDICTED_COLOUR
HOLE_COLOUR = "#c4c4c4"
SIGMA_MAP = "cividis"

_DRAWN_CELLS = 60
_DRAWN_LINES = 10
_VIEW = {"elev": 42.0, "azim": -62.0}
_ZOOM = 1.36
_CELL = 4.2, 2.9  # of a map, inches
_PLACES = ("Largest", "Median", "Smallest")


@dataclass(frozen=True)
class ReportFigure:
    """A figure and what is said below it."""

    name: str
    title: str
    caption: str
    figure: Figure


def report_figures(judged: Sequence[JudgedFrame], others: Sequence[JudgedFrame] = ()) -> list[ReportFigure]:
    """All figures that the frames allow: those that count, and beside them `others`, which are only shown one by one.

    Raises:
        SoftformError: If there is no frame.
    """
    everything = sorted([*judged, *others], key=lambda frame: frame.number)
    drawn = [_error_maps(judged), _histograms(judged), _frame_bars(everything)]
    if any(frame.best.sigma is not None for frame in judged):
        drawn.append(_uncertainty(judged))
    return drawn


def _error_maps(frames: Sequence[JudgedFrame]) -> ReportFigure:
    """Error of every predicted point on its surface, worst to best frame, before and after, on one scale."""
    shown = worst_median_best(frames)
    columns = [(BEFORE, [frame.before for frame in shown])]
    if all(frame.after is not None for frame in shown):
        columns.append((AFTER, [frame.after for frame in shown if frame.after is not None]))
    scale = max(float(np.percentile(one.distances, SCALE_PERCENTILE)) for _, column in columns for one in column)
    width, height = _CELL[0] * len(columns) + 1.6, _CELL[1] * len(shown) + 0.8
    figure = Figure(figsize=(width, height))
    for row, frame in enumerate(shown):
        rank = _PLACES[0] if row == 0 else _PLACES[2] if row == len(shown) - 1 else _PLACES[1]
        bottom = (_CELL[1] * (len(shown) - 1 - row) + 0.2) / height
        figure.text(0.25 / width, bottom + 0.45 * _CELL[1] / height, f"{rank} error\nframe {frame.number}", rotation=90,
                    ha="center", va="center", fontsize=10, fontweight="bold")  # fmt: skip
        for place, (title, column) in enumerate(columns):
            left = (0.5 + place * _CELL[0]) / width
            one = column[row]
            axes = figure.add_axes((left, bottom, _CELL[0] / width, _CELL[1] / height), projection="3d")
            assert isinstance(axes, Axes3D)
            _map(axes, one, one.error_map, scale, ERROR_MAP)
            text = f"mean {one.distances.mean():.2f} mm, max {one.distances.max():.1f} mm"
            centre, top = left + 0.5 * _CELL[0] / width, bottom + 0.97 * _CELL[1] / height
            figure.text(centre, top, text, ha="center", va="top", fontsize=10)
            if row == 0:
                figure.text(centre, 1.0 - 0.3 / height, title, ha="center", fontsize=12, fontweight="bold")
    legend = figure.add_axes(((width - 0.9) / width, 0.2, 0.2 / width, 0.6))
    figure.colorbar(
        ScalarMappable(Normalize(0.0, scale), ERROR_MAP), cax=legend, label="distance to what was captured (mm)",
        extend="max",
    )  # fmt: skip
    hole = [Patch(color=HOLE_COLOUR, label="not captured")]
    figure.legend(handles=hole, loc="upper right", bbox_to_anchor=(1.0, 0.17), frameon=False)
    return ReportFigure(
        "error-maps",
        "Where the errors are",
        "Distance of the predicted surface to the captured one in the frames with the largest, the median and the "
        "smallest mean error, all on one colour scale. Grey: not captured, nothing can be compared. Dots: "
        "markers, if they were captured.",
        figure,
    )


def _histograms(frames: Sequence[JudgedFrame]) -> ReportFigure:
    """Distributions of distances and of normal errors, before and after (as Figs. 10b and 15b)."""
    distances = _series(frames, lambda one: one.distances)
    normals = _series(frames, lambda one: one.normal_errors[one.seen])
    panels = 2 if any(len(values) for values, _, _ in normals) else 1
    figure = Figure(figsize=(5.6 * panels, 3.6), layout="constrained")
    axes = np.atleast_1d(figure.subplots(1, panels))
    draw_histogram(axes[0], distances, max(float(np.percentile(v, 99.5)) for v, _, _ in distances if len(v)))
    axes[0].set(xlabel="distance to the predicted surface (mm)", title="Distance errors")
    axes[0].legend(frameon=False)
    caption = "Dashed: means. The last bin holds all that is larger."
    if panels == 2:
        draw_histogram(axes[1], normals, NORMAL_ERROR_CAP)
        axes[1].set(xlabel="normal error, Eq. 21", title=f"Normal errors, capped at {NORMAL_ERROR_CAP}")
        axes[1].legend(frameon=False)
        caption += f" A normal error of {NORMAL_ERROR_CAP} is an angle of 20°."
    return ReportFigure("histograms", "How errors are distributed", caption, figure)


def _frame_bars(frames: Sequence[JudgedFrame]) -> ReportFigure:
    """Mean and largest distance of every frame, before and after."""
    count = len(frames)
    figure = Figure(figsize=(max(6.0, min(14.0, 3.0 + 0.32 * count)), 3.8), layout="constrained")
    axes = figure.subplots()
    has_after = any(frame.after is not None for frame in frames)
    width = 0.4 if has_after else 0.7
    sides = [(BEFORE, BEFORE_COLOUR, [frame.before for frame in frames])]
    if has_after:
        sides.append((AFTER, AFTER_COLOUR, [frame.best for frame in frames]))
    for place, (_, colour, column) in enumerate(sides):
        x = np.arange(count) + (place - 0.5 * (len(sides) - 1)) * width
        bars = axes.bar(x, [one.distances.mean() for one in column], width, color=colour)
        for bar, frame in zip(bars, frames, strict=True):
            if frame.trained_on:
                bar.set(alpha=0.35)
        axes.plot(x, [one.distances.max() for one in column], "_", color=colour, markersize=7.0)
    handles = [Patch(color=colour, label=name) for name, colour, _ in sides]
    if any(frame.trained_on for frame in frames):
        handles.append(Patch(color=REST_COLOUR, alpha=0.35, label="pale: the model was trained on it"))
    axes.legend(handles=handles, frameon=False, ncols=3, loc="upper left", fontsize=9)
    axes.set(xlabel="frame", ylabel="distance (mm)", xlim=(-0.8, count - 0.2))
    axes.set_ylim(0.0, 1.18 * axes.get_ylim()[1])
    step = max(1, int(np.ceil(count / 40)))
    axes.set_xticks(np.arange(count)[::step], [str(frame.number) for frame in frames[::step]])
    axes.grid(axis="y", alpha=0.25)
    axes.set_axisbelow(True)
    return ReportFigure(
        "frames", "Frame by frame", "Bars: mean distance of the captured points. Dashes above: the largest.", figure
    )


def _uncertainty(frames: Sequence[JudgedFrame]) -> ReportFigure:
    """Predicted standard deviation beside the error of the worst frame, and how often it holds."""
    worst = worst_median_best(frames)[0]
    comparison = worst.best
    sigma = comparison.surface.sigma
    assert sigma is not None
    figure = Figure(figsize=(11.6, 3.9), layout="constrained")
    scale = max(float(sigma.max()), float(np.percentile(comparison.distances, SCALE_PERCENTILE)))
    left = figure.add_subplot(1, 3, 1, projection="3d")
    middle = figure.add_subplot(1, 3, 2, projection="3d")
    assert isinstance(left, Axes3D) and isinstance(middle, Axes3D)
    _map(left, comparison, sigma, scale, SIGMA_MAP)
    left.set_title(f"Predicted standard deviation\nframe {worst.number}", fontsize=10)
    _map(middle, comparison, comparison.error_map, scale, SIGMA_MAP)
    middle.set_title(f"Measured error\nframe {worst.number} (the worst)", fontsize=10)
    figure.colorbar(ScalarMappable(Normalize(0.0, scale), SIGMA_MAP), ax=[left, middle], label="mm, both maps",
                    orientation="horizontal", extend="max", shrink=0.6, aspect=40, pad=0.02)  # fmt: skip
    _reliability(figure.add_subplot(1, 3, 3), [frame.best for frame in frames])
    return ReportFigure(
        "uncertainty",
        "How sure the model is, and whether it is right",
        "Left: one standard deviation that the model predicts along the normal. Middle: what the error was. Right: "
        "share of captured points of all judged frames within k standard deviations, the capture's own noise "
        "included; below the dotted line the model is too sure of itself.",
        figure,
    )


def _reliability(axes: Axes, comparisons: Sequence[Comparison]) -> None:
    deviations = np.linspace(0.0, 3.0, 31)
    shares = [share_within(comparisons, float(k)) for k in deviations]
    axes.plot(deviations, 100.0 * erf(deviations / np.sqrt(2.0)), ":", color=REST_COLOUR, label="Gaussian")
    axes.plot(
        deviations, [100.0 * (share or 0.0) for share in shares], color=AFTER_COLOUR, linewidth=2.0, label="measured"
    )
    for k in (1.0, 2.0):
        share = 100.0 * (share_within(comparisons, k) or 0.0)
        axes.plot(k, share, "o", color=AFTER_COLOUR, markersize=5.0)
        axes.annotate(
            f"{share:.0f} % within {k:.0f}σ", (k, share), (8.0, -12.0), textcoords="offset points", fontsize=9
        )
    axes.set(xlabel="k standard deviations", ylabel="captured points within (%)", xlim=(0.0, 3.0), ylim=(0.0, 101.0))
    axes.set_title("Coverage", fontsize=10)
    axes.legend(frameon=False, loc="lower right")
    axes.grid(alpha=0.25)


def _series(frames: Sequence[JudgedFrame], values_of: Callable[[Comparison], Array]) -> list[Series]:
    before = np.concatenate([values_of(frame.before) for frame in frames])
    after = [values_of(frame.after) for frame in frames if frame.after is not None]
    series: list[Series] = [(before, BEFORE, BEFORE_COLOUR)]
    return [*series, (np.concatenate(after), AFTER, AFTER_COLOUR)] if after else series


def _map(axes: Axes3D, comparison: Comparison, values: Array, scale: float, colours: str) -> None:
    """The predicted surface in perspective, coloured by values (P,) mm; without any, markers by their errors."""
    surface = comparison.surface
    grids = zip(surface.patches.grids(surface.points), surface.patches.grids(values), strict=True)
    for points, grid in grids:
        _map_patch(axes, points, colormaps[colours].with_extremes(bad=HOLE_COLOUR), grid / scale)
    axes.computed_zorder = False  # markers lie on the surface: they are drawn after it, wherever the viewer stands
    if not np.isfinite(values).any():
        axes.scatter(
            *comparison.captured.T, c=comparison.distances, cmap=colours, vmin=0.0, vmax=scale, s=30.0,
            edgecolors="black", linewidths=0.5, depthshade=False, clip_on=False, zorder=3,
        )  # fmt: skip
    low, high = surface.points.min(axis=0), surface.points.max(axis=0)
    size, middle = np.maximum(high - low, 0.2 * (high - low).max()), 0.5 * (low + high)
    low, high = middle - 0.5 * size, middle + 0.5 * size
    axes.set_box_aspect(size / size.max(), zoom=_ZOOM)
    axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), zlim=(low[2], high[2]))
    axes.view_init(**_VIEW)
    axes.patch.set_visible(False)  # it would cover what reaches out of the row above
    axes.set_axis_off()


def _map_patch(axes: Axes3D, points: Array, colours: Colormap, values: Array) -> None:
    """One patch: the grid of its points (m, n, 3) mm, coloured by values (m, n) of which 1 is the end of the scale."""
    along_u, along_v = (
        np.unique(np.linspace(0, count - 1, _DRAWN_CELLS + 1).round().astype(int)) for count in points.shape[:2]
    )
    drawn = np.ix_(along_u, along_v)
    points, values = points[drawn], values[drawn]
    cells = 0.25 * (values[1:, 1:] + values[:-1, 1:] + values[1:, :-1] + values[:-1, :-1])
    cell_colours = colours(np.ma.masked_invalid(cells))
    corners = np.stack([points[:-1, :-1], points[1:, :-1], points[1:, 1:], points[:-1, 1:]], axis=2).reshape(-1, 4, 3)
    # What plot_surface draws, which converts the colours one by one and takes seconds.
    axes.add_collection3d(
        Poly3DCollection(
            corners, facecolors=cell_colours.reshape(-1, 4), linewidths=0.0, antialiaseds=False, rasterized=True,
            clip_on=False,
        )
    )  # fmt: skip
    # Lines of equal u and v show the shape where the colour is even.
    lines = max(1, len(points) // _DRAWN_LINES)
    axes.plot_wireframe(
        *np.moveaxis(points, 2, 0), rstride=lines, cstride=lines, color="white", linewidth=0.5, alpha=0.3, clip_on=False
    )
