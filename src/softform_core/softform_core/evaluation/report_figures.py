"""Figures of an evaluation: errors as histograms, bars and colour maps, and how sure the model is; millimetres."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import Colormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from mpl_toolkits.mplot3d import Axes3D, proj3d
from mpl_toolkits.mplot3d.art3d import Poly3DCollection
from numpy.typing import ArrayLike
from scipy.spatial import cKDTree
from scipy.special import erf

from softform_core.arrays import Array
from softform_core.evaluation.comparison import Comparison, PredictedSurface
from softform_core.evaluation.drawing import (
    MEASURED_COLOUR,
    PREDICTED_COLOUR,
    REST_COLOUR,
    SCALE_PERCENTILE,
    ColourScale,
    Series,
    draw_histogram,
    error_scales,
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
_ABOVE_SHEET, _BESIDE_BODY, _AZIMUTH = 42.0, 20.0, -62.0  # degrees
_LONGEST, _SHORTEST = 4.2, 1.3  # sides of a map, inches
_TEXT_WIDTH, _TEXT_HEIGHT, _MARGIN, _ABOVE, _BELOW = 3.2, 0.4, 0.5, 0.5, 1.0
_PLACES = ("Largest", "Median", "Smallest")


@dataclass(frozen=True)
class ReportFigure:
    """A figure and what is said below it."""

    name: str
    title: str
    caption: str
    figure: Figure


def report_figures(judged: Sequence[JudgedFrame], others: Sequence[JudgedFrame] = ()) -> list[ReportFigure]:
    """Return all figures that the frames allow: of those that count, and of `others`, only shown one by one.

    Raises:
        SoftformError: If there is no frame.
    """
    everything = sorted([*judged, *others], key=lambda frame: frame.number)
    drawn = [_error_maps(judged), _histograms(judged), _frame_bars(everything)]
    if any(frame.best.sigma is not None for frame in judged):
        drawn.append(_uncertainty(judged))
    return drawn


def _error_maps(frames: Sequence[JudgedFrame]) -> ReportFigure:
    """Draw the error of every predicted point on its surface, worst to best frame, before and after."""
    shown = worst_median_best(frames)
    columns = _sides(shown)
    scales = error_scales([np.concatenate([one.distances for one in column]) for _, _, column in columns])
    view = _View.of([one.surface for _, _, column in columns for one in column])
    room = np.array([view.width, view.height]) / min(view.width, view.height)
    cell = max(view.width * len(view.azimuths) + 0.2, _TEXT_WIDTH), view.height + _TEXT_HEIGHT
    width, height = _MARGIN + cell[0] * len(columns), cell[1] * len(shown) + _ABOVE + _BELOW
    figure = Figure(figsize=(width, height))
    for row, frame in enumerate(shown):
        rank = _PLACES[0] if row == 0 else _PLACES[2] if row == len(shown) - 1 else _PLACES[1]
        bottom = _BELOW + cell[1] * (len(shown) - 1 - row)
        figure.text(0.25 / width, (bottom + 0.5 * view.height) / height, f"{rank} error\nframe {frame.number}",
                    rotation=90, ha="center", va="center", fontsize=10, fontweight="bold")  # fmt: skip
        for place, (_, _, column) in enumerate(columns):
            left, one = _MARGIN + place * cell[0], column[row]
            first = left + 0.5 * (cell[0] - view.width * len(view.azimuths))
            for turn, azimuth in enumerate(view.azimuths):
                corner = (first + turn * view.width) / width, bottom / height
                axes = figure.add_axes((*corner, view.width / width, view.height / height), projection="3d")
                assert isinstance(axes, Axes3D)
                _map(axes, one, one.error_map, scales[place], view, azimuth, room)
            figure.text((left + 0.5 * cell[0]) / width, (bottom + view.height + 0.07) / height, _means(one),
                        ha="center", fontsize=10)  # fmt: skip
    for place, (title, _, _) in enumerate(columns):
        left = _MARGIN + place * cell[0]
        figure.text((left + 0.5 * cell[0]) / width, 1.0 - 0.3 / height, title, ha="center", fontsize=12,
                    fontweight="bold")  # fmt: skip
        if scales[place] in scales[:place]:
            continue
        long = cell[0] * scales.count(scales[place]) - 0.6
        legend = figure.add_axes(((left + 0.3) / width, 0.75 / height, long / width, 0.16 / height))
        figure.colorbar(scales[place].mappable, cax=legend, orientation="horizontal", extend="max",
                        label="distance to what was captured (mm)")  # fmt: skip
    hole = [Patch(color=HOLE_COLOUR, label="not captured")]
    figure.legend(handles=hole, loc="lower left", frameon=False, fontsize=9)
    several = "each column on its own colour scale" if len(set(scales)) > 1 else "all on one colour scale"
    sides = ", each from the front and from behind" if len(view.azimuths) > 1 else ""
    return ReportFigure(
        "error-maps",
        "Where the errors are",
        "Distance of the predicted surface to the captured one in the frames with the largest, the median and the "
        f"smallest mean error{sides}; all of one size, {several}. Grey: not captured, nothing can be compared. Dots: "
        "markers, if they were captured.",
        figure,
    )


def _means(one: Comparison) -> str:
    return f"mean {one.distances.mean():.2f} mm, max {one.distances.max():.1f} mm"


def _histograms(frames: Sequence[JudgedFrame]) -> ReportFigure:
    """Draw distributions of distances and of normal errors, before and after (as Figs. 10b and 15b)."""
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
    """Draw the mean and largest distance of every frame, before and after."""
    count = len(frames)
    figure = Figure(figsize=(max(6.0, min(14.0, 3.0 + 0.32 * count)), 3.8), layout="constrained")
    axes = figure.subplots()
    sides = _sides(frames)
    width = 0.4 if len(sides) > 1 else 0.7
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
    """Draw the predicted standard deviation beside the error of the worst frame, and how often it holds."""
    worst = worst_median_best(frames)[0]
    comparison = worst.best
    sigma = comparison.surface.sigma
    assert sigma is not None
    figure = Figure(figsize=(11.6, 3.9), layout="constrained")
    scale = max(float(sigma.max()), float(np.percentile(comparison.distances, SCALE_PERCENTILE)))
    colours, view = ColourScale(scale, SIGMA_MAP), _View.of([comparison.surface])
    maps = {
        f"Predicted standard deviation\nframe {worst.number}": sigma,
        f"Measured error\nframe {worst.number} (the worst)": comparison.error_map,
    }
    panels = []
    for place, (title, values) in enumerate(maps.items(), 1):
        panels.append(figure.add_subplot(1, 3, place, projection="3d"))
        _map(panels[-1], comparison, values, colours, view, view.azimuths[0])
        panels[-1].set_title(title, fontsize=10)
    figure.colorbar(colours.mappable, ax=panels, label="mm, both maps", orientation="horizontal", extend="max",
                    shrink=0.6, aspect=40, pad=0.02)  # fmt: skip
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


def _sides(frames: Sequence[JudgedFrame]) -> list[tuple[str, str, list[Comparison]]]:
    """Return name, colour and comparisons of the simulation alone, and of sim-to-real if there is a model."""
    sides = [(BEFORE, BEFORE_COLOUR, [frame.before for frame in frames])]
    after = [frame.after for frame in frames if frame.after is not None]
    return [*sides, (AFTER, AFTER_COLOUR, after)] if after else sides


def _series(frames: Sequence[JudgedFrame], values_of: Callable[[Comparison], Array]) -> list[Series]:
    return [(np.concatenate(list(map(values_of, column))), name, colour) for name, colour, column in _sides(frames)]


@dataclass(frozen=True)
class _View:
    """View of all surfaces in one box: a sheet from above, closed surfaces from two sides.

    Attributes:
        points: (P, 3) mm of all of them.
        elevation: Degrees.
        azimuths: Degrees, of each side.
        width: Inches of what is seen from one side.
        height: Inches.
    """

    points: Array
    elevation: float
    azimuths: tuple[float, ...]
    width: float
    height: float

    @classmethod
    def of(cls, surfaces: Sequence[PredictedSurface]) -> "_View":
        """Return the view of surfaces of one robot."""
        patches = surfaces[0].patches
        # A prediction knows its patches, not its body: a tube is what goes around, several sheets may look anywhere.
        is_sheet = len(patches) == 1 and not patches.has_tube
        elevation, azimuths = (_ABOVE_SHEET, (_AZIMUTH,)) if is_sheet else (_BESIDE_BODY, (_AZIMUTH, _AZIMUTH + 180.0))
        points = np.concatenate([surface.points for surface in surfaces])
        offsets, up = points - 0.5 * (points.min(axis=0) + points.max(axis=0)), np.radians(elevation)
        seen = np.zeros(2)
        for around in np.radians(azimuths):
            right = np.array([-np.sin(around), np.cos(around), 0.0])
            upwards = np.array([-np.sin(up) * np.cos(around), -np.sin(up) * np.sin(around), np.cos(up)])
            seen = np.maximum(seen, 2.0 * np.abs(offsets @ np.stack([right, upwards], axis=1)).max(axis=0))
        width, height = np.maximum(_LONGEST * seen / seen.max(), _SHORTEST)
        return cls(points, elevation, azimuths, float(width), float(height))

    def set_up(self, axes: Axes3D, azimuth: float, room: ArrayLike) -> None:
        """Look from an azimuth, so near that all just has room: width and height over the shorter side of the axes."""
        low, high = self.points.min(axis=0), self.points.max(axis=0)
        size, middle = np.maximum(high - low, 0.2 * (high - low).max()), 0.5 * (low + high)
        low, high = middle - 0.5 * size, middle + 0.5 * size
        axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), zlim=(low[2], high[2]))
        axes.set_proj_type("ortho")  # what is drawn then grows as the zoom, and can be fitted
        axes.set_box_aspect(size)
        axes.apply_aspect()
        reach = np.zeros(2)
        for one in (*self.azimuths, azimuth):  # last, that from which it is drawn
            axes.view_init(elev=self.elevation, azim=one)
            x, y, _ = proj3d.proj_transform(*self.points.T, axes.get_proj())
            drawn = axes.transAxes.inverted().transform(axes.transData.transform(np.column_stack([x, y])))
            reach = np.maximum(reach, np.abs(drawn - 0.5).max(axis=0))
        axes.set_box_aspect(size, zoom=float(np.min(0.5 * np.asarray(room) / reach)))
        axes.patch.set_visible(False)
        axes.set_axis_off()


def _map(
    axes: Axes3D,
    comparison: Comparison,
    values: Array,
    scale: ColourScale,
    view: _View,
    azimuth: float,
    room: ArrayLike = (1.0, 1.0),
) -> None:
    """Draw the predicted surface, coloured by values (P,) mm; without any, markers by their errors."""
    surface = comparison.surface
    grids = zip(surface.patches.grids(surface.points), surface.patches.grids(values), strict=True)
    for points, grid in grids:
        _map_patch(axes, points, colormaps[scale.colours].with_extremes(bad=HOLE_COLOUR), grid / scale.end)
    axes.computed_zorder = False  # markers lie on the surface: they are drawn after it, wherever the viewer stands
    if not np.isfinite(values).any():
        up, around = np.radians([view.elevation, azimuth])
        eye = np.array([np.cos(up) * np.cos(around), np.cos(up) * np.sin(around), np.sin(up)])
        facing = surface.normals[cKDTree(surface.points).query(comparison.captured)[1]] @ eye > 0.0
        axes.scatter(
            *comparison.captured[facing].T, c=comparison.distances[facing], cmap=scale.colours, vmin=0.0,
            vmax=scale.end, s=30.0, edgecolors="black", linewidths=0.5, depthshade=False, clip_on=False, zorder=3,
        )  # fmt: skip
    view.set_up(axes, azimuth, room)


def _map_patch(axes: Axes3D, points: Array, colours: Colormap, values: Array) -> None:
    """Draw one patch: the grid of its points (m, n, 3) mm, coloured by values (m, n), of which 1 ends the scale."""
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
