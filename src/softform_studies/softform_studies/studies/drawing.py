"""Plots of the studies: curves over what is varied, and histograms of errors."""

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from softform_studies.studies.catalogue import OURS, Run
from softform_studies.studies.laboratory import DISTANCE_EDGES, NORMAL_EDGES

# Okabe and Ito's colours, distinguishable with any colour vision.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
MARKS = ("o", "s", "^", "D", "v", "P")


_ROOM = 1.12
"""The axes end so much above the highest value."""


@dataclass(frozen=True)
class Row:
    """A run and its result."""

    run: Run
    result: dict[str, Any]


Rows = Sequence[Row]


def draw(study: str, rows: Rows) -> Figure:
    """The figure of a study of trainings, with a line of panels for each simulator."""
    simulators = list(dict.fromkeys(row.run.simulator for row in rows))
    figure = Figure(figsize=(12.0, 4.8 * len(simulators)), dpi=120, layout="constrained")
    for simulator, (left, right) in zip(simulators, figure.subplots(len(simulators), 2, squeeze=False), strict=True):
        _DRAWERS[study](left, right, [row for row in rows if row.run.simulator == simulator])
        for axes in (left, right):
            axes.grid(alpha=0.25)
            axes.set_title(f"simulator: {simulator}" if simulator else "")
    return figure


def png(figure: Figure, caption: str) -> bytes:
    """A figure under its caption as a PNG file."""
    figure.suptitle(caption, fontsize=10, wrap=True)
    picture = io.BytesIO()
    figure.savefig(picture, format="png")
    return picture.getvalue()


def _series(rows: Rows) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row.run.series, []).append(row)
    return found


def _curves(
    axes: Axes, rows: Rows, key: str, x_label: str, y_label: str, x_of: Callable[[Row], float] = lambda row: row.run.x
) -> None:
    for place, (name, part) in enumerate(_series(rows).items()):
        x, y = zip(*sorted((x_of(row), row.result[key]) for row in part), strict=True)
        axes.plot(x, y, marker=MARKS[place], color=COLOURS[place], label=name, linewidth=1.6, markersize=5)
    axes.set(xlabel=x_label, ylabel=y_label, ylim=(0.0, _ROOM * max(row.result[key] for row in rows)))


def _even_ticks(axes: Axes, rows: Rows) -> None:
    """A logarithmic axis with a tick at each value that was measured."""
    values = sorted({row.run.x for row in rows})
    axes.set_xscale("log")
    axes.set_xticks(values, [f"{value:g}" for value in values])
    axes.minorticks_off()


def _histograms(axes: Axes, rows: Rows, key: str, edges: NDArray[np.float64], label: str) -> None:
    """Share of the points in each bin; the axis ends where every histogram has had 99 % of what it shows."""
    end = edges[1]
    for place, row in enumerate(rows):
        counts = np.array(row.result[key], dtype=np.float64)
        end = max(end, edges[1 + int(np.searchsorted(np.cumsum(counts), 0.99 * counts.sum()))])
        axes.stairs(
            100.0 * counts / row.result["judged"], edges, color=COLOURS[place], linewidth=1.6, label=row.run.series,
            linestyle=("-", "--")[place % 2],  # what coincides with another is seen
        )  # fmt: skip
    axes.set(xlabel=label, ylabel="share of the points (%)", xlim=(0.0, end))
    axes.set_ylim(bottom=0.0)
    axes.legend(framealpha=0.9, edgecolor="none")


_DISTANCE = "distance from the true surface (mm)"
_MEAN, _MAX = "mean error (mm)", "largest error, mean over shapes (mm)"


def _frames(left: Axes, right: Axes, rows: Rows) -> None:
    _curves(left, rows, "mean_mm", "captured frames", _MEAN)
    _even_ticks(left, rows)
    left.legend()
    ends = {series: [part[0], part[-1]] for series, part in _series(rows).items()}
    chosen = [row for row in rows if row.run.x in (40, 400)] or [row for pair in ends.values() for row in pair]
    named = [Row(replace(row.run, series=f"{row.run.series}, {row.run.x:g} frames"), row.result) for row in chosen]
    _histograms(right, named, "distances", DISTANCE_EDGES, _DISTANCE)


def _points(left: Axes, right: Axes, rows: Rows) -> None:
    scans, markers = [row for row in rows if row.run.series == OURS], [row for row in rows if row.run.series != OURS]
    for axes, key, label in ((left, "mean_mm", _MEAN), (right, "max_mm", _MAX)):
        _curves(axes, scans, key, "points of a scan", label)
        _even_ticks(axes, scans)
        axes.set_ylim(top=_ROOM * max(row.result[key] for row in rows))
        for row in markers:
            axes.axhline(row.result[key], color=COLOURS[1], linestyle="--", label=row.run.series)
        axes.legend()


def _kernels(left: Axes, right: Axes, rows: Rows) -> None:
    _curves(left, rows, "mean_mm", "kernels", _MEAN)
    _curves(right, rows, "warp_s", "kernels", "time for 100 000 warps, one core (s)")


def _neurons(left: Axes, right: Axes, rows: Rows) -> None:
    for axes, key, label in ((left, "mean_mm", _MEAN), (right, "max_mm", _MAX)):
        _curves(axes, rows, key, "neurons in the two hidden layers of N_rbf", label)
        _even_ticks(axes, rows)


def _geometric(left: Axes, right: Axes, rows: Rows) -> None:
    _histograms(left, rows, "distances", DISTANCE_EDGES, _DISTANCE)
    _histograms(right, rows, "normal_errors", NORMAL_EDGES, "normal error, Eq. 21, capped at 0.06")


def _surrogate(left: Axes, right: Axes, rows: Rows) -> None:
    _histograms(left, rows, "distances", DISTANCE_EDGES, _DISTANCE)
    place = np.arange(len(rows))
    for shift, key, label, colour in ((-0.2, "mean_mm", "mean", COLOURS[0]), (0.2, "max_mm", "largest", COLOURS[1])):
        bars = right.bar(place + shift, [row.result[key] for row in rows], 0.4, label=label, color=colour)
        right.bar_label(bars, fmt="%.2f", fontsize=8)
    right.set_xticks(place, [row.run.series for row in rows])
    right.set(ylabel="error (mm)", ylim=(0.0, 1.25 * max(row.result["max_mm"] for row in rows)))
    right.legend()


def _missing(left: Axes, right: Axes, rows: Rows) -> None:
    def share(row: Row) -> float:
        return 100.0 * float(row.result["missing"])

    for axes, key, label in ((left, "mean_mm", _MEAN), (right, "max_mm", _MAX)):
        _curves(axes, rows, key, "surface missing in a scan (%)", label, share)
        axes.legend()


_DRAWERS: dict[str, Callable[[Axes, Axes, Rows], None]] = {
    "frames": _frames,
    "points": _points,
    "kernels": _kernels,
    "neurons": _neurons,
    "geometric": _geometric,
    "surrogate": _surrogate,
    "missing": _missing,
}
