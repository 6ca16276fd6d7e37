"""Plots of the studies: curves over what is varied, and histograms of errors."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from softform_core.evaluation.drawing import PALETTE
from softform_studies.studies.catalogue import OURS, Run
from softform_studies.studies.laboratory import DISTANCE_EDGES, NORMAL_EDGES

MARKS = ("o", "s", "^", "D", "v", "P")


_ROOM = 1.12
"""Upper end of the axes over the highest value."""


@dataclass(frozen=True)
class Row:
    """A run and its result."""

    run: Run
    result: dict[str, Any]


Rows = Sequence[Row]


def draw(study: str, rows: Rows) -> Figure:
    """Draw the figure of a study of trainings, with a line of panels for each simulator."""
    simulators = list(dict.fromkeys(row.run.simulator for row in rows))
    figure = Figure(figsize=(12.0, 4.8 * len(simulators)), dpi=120, layout="constrained")
    for simulator, (left, right) in zip(simulators, figure.subplots(len(simulators), 2, squeeze=False), strict=True):
        _DRAWERS[study](left, right, [row for row in rows if row.run.simulator == simulator])
        for axes in (left, right):
            axes.grid(alpha=0.25)
            axes.set_title(f"simulator: {simulator}" if simulator else "")
    return figure


def _series(rows: Rows) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row.run.series, []).append(row)
    return found


def curves(
    axes: Axes, points: Sequence[tuple[str, float, float]], x_label: str, y_label: str, most: float = 0.0
) -> None:
    """Draw a curve through each name's places (x, y); the y axis is from zero to above all, and to `most`."""
    for place, name in enumerate(dict.fromkeys(name for name, _, _ in points)):
        x, y = zip(*sorted((x, y) for other, x, y in points if other == name), strict=True)
        axes.plot(x, y, marker=MARKS[place], color=PALETTE[place], label=name, linewidth=1.6, markersize=5)
    highest = max(most, *(y for _, _, y in points))
    axes.set(xlabel=x_label, ylabel=y_label, ylim=(0.0, _ROOM * highest))


def even_ticks(axes: Axes, values: Iterable[float]) -> None:
    """Make an axis logarithmic with a tick at each value that was measured."""
    ticks = sorted(set(values))
    axes.set_xscale("log")
    axes.set_xticks(ticks, [f"{value:g}" for value in ticks])
    axes.minorticks_off()


def _histograms(axes: Axes, rows: Rows, key: str, edges: NDArray[np.float64], label: str) -> None:
    """Draw the share of points in each bin; the axis ends where all histograms have shown 99 %."""
    end = edges[1]
    for place, row in enumerate(rows):
        counts = np.array(row.result[key], dtype=np.float64)
        end = max(end, edges[1 + int(np.searchsorted(np.cumsum(counts), 0.99 * counts.sum()))])
        axes.stairs(
            100.0 * counts / row.result["judged"], edges, color=PALETTE[place], linewidth=1.6, label=row.run.series,
            linestyle=("-", "--")[place % 2],  # what coincides with another is seen
        )  # fmt: skip
    axes.set(xlabel=label, ylabel="share of the points (%)", xlim=(0.0, end))
    axes.set_ylim(bottom=0.0)
    axes.legend(framealpha=0.9, edgecolor="none")


_DISTANCE = "distance from the true surface (mm)"
_MEAN, _MAX = "mean error (mm)", "largest error, mean over shapes (mm)"


def _frames(left: Axes, right: Axes, rows: Rows) -> None:
    curves(left, [(row.run.series, row.run.x, row.result["mean_mm"]) for row in rows], "captured frames", _MEAN)
    even_ticks(left, [row.run.x for row in rows])
    left.legend()
    ends = {series: [part[0], part[-1]] for series, part in _series(rows).items()}
    chosen = [row for row in rows if row.run.x in (40, 400)] or [row for pair in ends.values() for row in pair]
    named = [Row(replace(row.run, series=f"{row.run.series}, {row.run.x:g} frames"), row.result) for row in chosen]
    _histograms(right, named, "distances", DISTANCE_EDGES, _DISTANCE)


def _two_curves(
    left: Axes,
    right: Axes,
    rows: Rows,
    x_label: str,
    of_right: tuple[str, str] = ("max_mm", _MAX),
    x_of: Callable[[Row], float] = lambda row: row.run.x,
) -> None:
    """Draw mean errors beside largest ones, or beside what else is named, as curves."""
    for axes, (key, y_label) in ((left, ("mean_mm", _MEAN)), (right, of_right)):
        curves(axes, [(row.run.series, x_of(row), row.result[key]) for row in rows], x_label, y_label)


def _points(left: Axes, right: Axes, rows: Rows) -> None:
    scans, markers = [row for row in rows if row.run.series == OURS], [row for row in rows if row.run.series != OURS]
    _two_curves(left, right, scans, "points of a scan")
    for axes, key in ((left, "mean_mm"), (right, "max_mm")):
        even_ticks(axes, [row.run.x for row in scans])
        axes.set_ylim(top=_ROOM * max(row.result[key] for row in rows))
        for row in markers:
            axes.axhline(row.result[key], color=PALETTE[1], linestyle="--", label=row.run.series)
        axes.legend()


def _kernels(left: Axes, right: Axes, rows: Rows) -> None:
    _two_curves(left, right, rows, "kernels", ("warp_s", "time for 100 000 warps, one core (s)"))


def _neurons(left: Axes, right: Axes, rows: Rows) -> None:
    _two_curves(left, right, rows, "neurons in the two hidden layers of N_rbf")
    for axes in (left, right):
        even_ticks(axes, [row.run.x for row in rows])


def _geometric(left: Axes, right: Axes, rows: Rows) -> None:
    _histograms(left, rows, "distances", DISTANCE_EDGES, _DISTANCE)
    _histograms(right, rows, "normal_errors", NORMAL_EDGES, "normal error, Eq. 21, capped at 0.06")


def _surrogate(left: Axes, right: Axes, rows: Rows) -> None:
    _histograms(left, rows, "distances", DISTANCE_EDGES, _DISTANCE)
    place = np.arange(len(rows))
    for shift, key, label, colour in ((-0.2, "mean_mm", "mean", PALETTE[0]), (0.2, "max_mm", "largest", PALETTE[1])):
        bars = right.bar(place + shift, [row.result[key] for row in rows], 0.4, label=label, color=colour)
        right.bar_label(bars, fmt="%.2f", fontsize=8)
    right.set_xticks(place, [row.run.series for row in rows])
    right.set(ylabel="error (mm)", ylim=(0.0, 1.25 * max(row.result["max_mm"] for row in rows)))
    right.legend()


def _missing(left: Axes, right: Axes, rows: Rows) -> None:
    _two_curves(
        left, right, rows, "surface missing in a scan (%)", x_of=lambda row: 100.0 * float(row.result["missing"])
    )
    for axes in (left, right):
        axes.legend()


_DRAWERS: dict[str, Callable[[Axes, Axes, Rows], None]] = {
    drawer.__name__.removeprefix("_"): drawer
    for drawer in (_frames, _points, _kernels, _neurons, _geometric, _surrogate, _missing)
}
