"""The picture of a run: target, predicted and measured error on one scale, histogram, convergence, and the figures."""

import io
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike, NDArray

from softform_core.evaluation.drawing import (
    ERROR_MAP,
    HEIGHT_MAP,
    MEASURED_COLOUR,
    PREDICTED_COLOUR,
    REST_COLOUR,
    SCALE_PERCENTILE,
    draw_histogram,
)
from softform_core.evaluation.errors import summarise_errors
from softform_core.files import write_atomically
from softform_core.shapes.target import TargetShape
from softform_core.units import MM_PER_M

Array = NDArray[np.float64]

_DRAWN_POINTS = 20_000
_MAP_WIDTH = 280.0  # of a map on the page, in typographic points
_MARK_PER_SPACING = 2.0


def write_report(
    path: str | Path,
    target: TargetShape,
    predicted_points: ArrayLike,
    predicted_errors_mm: ArrayLike,
    measured_points: ArrayLike | None,
    measured_errors_mm: ArrayLike | None,
    rest_errors_mm: ArrayLike | None,
    error_history: Sequence[float],
    summary: Mapping[str, str],
) -> None:
    """Write the report of one reached shape as a PNG file.

    Args:
        path: The file; an existing one is replaced.
        target: What was asked for, m, as it was compared (after a pose, if one was solved).
        predicted_points: (P, 3) m, surface that the model predicts.
        predicted_errors_mm: (P,) mm, their distances to the target.
        measured_points: (M, 3) m, captured surface; None if nothing was measured.
        measured_errors_mm: (M,) mm, their distances to the target; None if nothing was measured.
        rest_errors_mm: (R,) mm, distances of the resting robot to the target, for scale; None leaves them out.
        error_history: Mean error at the start and after each iteration of the inverse kinematics, mm.
        summary: What to print beside the figures, in order: name and value, such as {"reality": "silicone_batch_b"}.
            A value may have several lines.

    Raises:
        SoftformError: If there are no errors to show, or the file cannot be written.
    """
    predicted = np.asarray(predicted_points, dtype=np.float64)
    predicted_mm = np.asarray(predicted_errors_mm, dtype=np.float64)
    has_measured = measured_points is not None and measured_errors_mm is not None
    measured = np.asarray(measured_points if has_measured else np.empty((0, 3)), dtype=np.float64)
    measured_mm = np.asarray(measured_errors_mm if has_measured else np.empty(0), dtype=np.float64)
    rest_mm = np.empty(0) if rest_errors_mm is None else np.asarray(rest_errors_mm, dtype=np.float64)
    scale = max(float(np.percentile(e, SCALE_PERCENTILE)) for e in (predicted_mm, measured_mm) if len(e))

    figure = Figure(figsize=(15.0, 9.0), dpi=110, layout="constrained")
    figure.suptitle("Softform: target shape reached", fontsize=15, fontweight="bold", x=0.01, ha="left")
    axes = figure.subplots(2, 3, height_ratios=[1.0, 0.8])
    limits = _limits([target.points, predicted, measured])

    surface = target.sample(_DRAWN_POINTS).points
    heights = _map(axes[0, 0], surface, surface[:, 2] * MM_PER_M, limits, HEIGHT_MAP, None)
    axes[0, 0].set_title("Target")
    figure.colorbar(heights, ax=axes[0, 0], label="height z (mm)", shrink=0.85)

    errors = _map(axes[0, 1], predicted, predicted_mm, limits, ERROR_MAP, scale)
    axes[0, 1].set_title(f"Predicted error (mean {predicted_mm.mean():.2f} mm)")
    if has_measured:
        _map(axes[0, 2], measured, measured_mm, limits, ERROR_MAP, scale)
        axes[0, 2].set_title(f"Measured error (mean {measured_mm.mean():.2f} mm)")
    else:
        axes[0, 2].set_axis_off()
        axes[0, 2].text(0.5, 0.5, "not measured", ha="center", va="center", transform=axes[0, 2].transAxes)
    beside = axes[0, 2] if has_measured else axes[0, 1]
    label = "distance to the target (mm)" + (", both maps" if has_measured else "")
    figure.colorbar(errors, ax=beside, label=label, extend="max", shrink=0.85)

    _histogram(axes[1, 0], predicted_mm, measured_mm, rest_mm)
    _convergence(axes[1, 1], np.asarray(error_history, dtype=np.float64))
    _figures(axes[1, 2], predicted_mm, measured_mm, rest_mm, summary)

    picture = io.BytesIO()
    figure.savefig(picture, format="png")
    write_atomically(path, picture.getvalue())


def _limits(clouds: list[Array]) -> tuple[tuple[float, float], tuple[float, float]]:
    """Common x and y limits of the maps, mm, from percentiles: a stray scan point must not shrink them."""
    bounds = []
    for axis in (0, 1):
        low = min(float(np.percentile(cloud[:, axis], 0.5)) for cloud in clouds if len(cloud)) * MM_PER_M
        high = max(float(np.percentile(cloud[:, axis], 99.5)) for cloud in clouds if len(cloud)) * MM_PER_M
        margin = 0.04 * (high - low)
        bounds.append((low - margin, high + margin))
    return bounds[0], bounds[1]


def _map(
    axes: Axes,
    points: Array,
    values: Array,
    limits: tuple[tuple[float, float], tuple[float, float]],
    colours: str,
    scale: float | None,
) -> PathCollection:
    """Points seen along -z and coloured by `values`; gaps in a scan stay gaps."""
    if len(points) > _DRAWN_POINTS:
        chosen = np.random.default_rng(0).choice(len(points), _DRAWN_POINTS, replace=False)
        points, values = points[chosen], values[chosen]
    order = np.argsort(points[:, 2])
    (left, right), (bottom, top) = limits
    axes.set(xlim=limits[0], ylim=limits[1], aspect="equal", xlabel="x (mm)", ylabel="y (mm)", facecolor="#e8e8e8")
    # Marks twice as large as the mean spacing of the points cover the surface without hiding its holes.
    spacing = np.sqrt((right - left) * (top - bottom) / max(len(points), 1))
    mark = np.clip(_MARK_PER_SPACING * spacing / (right - left) * _MAP_WIDTH, 1.5, 14.0)
    drawn = axes.scatter(
        points[order, 0] * MM_PER_M,
        points[order, 1] * MM_PER_M,
        c=values[order],
        s=mark**2,
        marker="s",
        linewidths=0,
        cmap=colours,
        vmin=0.0 if scale is not None else None,
        vmax=scale,
    )
    return drawn


def _histogram(axes: Axes, predicted_mm: Array, measured_mm: Array, rest_mm: Array) -> None:
    shown = [e for e in (predicted_mm, measured_mm) if len(e)]
    end = max(float(np.percentile(e, 99.5)) for e in shown)
    draw_histogram(
        axes, [(predicted_mm, "predicted", PREDICTED_COLOUR), (measured_mm, "measured", MEASURED_COLOUR)], end
    )
    if len(rest_mm) and rest_mm.mean() <= end:
        axes.axvline(float(rest_mm.mean()), color=REST_COLOUR, linestyle=":", linewidth=1.8, label="mean at rest")
    axes.set(xlabel="distance to the target (mm)", title="Errors (dashed: means)")
    axes.legend(framealpha=0.95, edgecolor="none")


def _convergence(axes: Axes, history_mm: Array) -> None:
    axes.set_title("Convergence of the inverse kinematics")
    axes.set(xlabel="iteration", ylabel="mean error (mm)")
    if len(history_mm) == 0:
        axes.text(0.5, 0.5, "no iterations", ha="center", va="center", transform=axes.transAxes)
        return
    axes.plot(np.arange(len(history_mm)), history_mm, "o-", color=PREDICTED_COLOUR, markersize=4, linewidth=1.5)
    axes.set_ylim(0.0, 1.08 * float(history_mm.max()))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.annotate(
        f"{history_mm[-1]:.2f} mm",
        (len(history_mm) - 1, history_mm[-1]),
        textcoords="offset points",
        xytext=(-4, 10),
        ha="right",
    )
    axes.grid(alpha=0.25)


def _figures(axes: Axes, predicted_mm: Array, measured_mm: Array, rest_mm: Array, summary: Mapping[str, str]) -> None:
    """Table of the error figures, and the lines of `summary` below it."""
    axes.set_axis_off()
    lines = [f"{'mm':<11}{'mean':>8}{'RMS':>8}{'median':>8}{'p90':>8}{'max':>8}"]
    for name, values in (("at rest", rest_mm), ("predicted", predicted_mm), ("measured", measured_mm)):
        if len(values):
            s = summarise_errors(values)
            figures = (s.mean_mm, s.rms_mm, s.median_mm, s.p90_mm, s.max_mm)
            lines.append(f"{name:<11}" + "".join(f"{value:8.2f}" for value in figures))
    lines.append("")
    width = max((len(name) for name in summary), default=0)
    indent = "\n" + " " * (width + 2)
    lines += [f"{name:<{width}}  {value}".replace("\n", indent) for name, value in summary.items()]
    axes.text(
        -0.08, 1.0, "\n".join(lines), family="monospace", fontsize=9.5, va="top", linespacing=1.5,
        transform=axes.transAxes, in_layout=False,
    )  # fmt: skip
