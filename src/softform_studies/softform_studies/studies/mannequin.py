"""Fig. 17: the mannequin at four held-out actuations A1 to A4, learned from 40 scans, after ICP to the true surface.

The paper measures against a scan; against the true surface what a scan misses counts, too.
"""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from mpl_toolkits.mplot3d.axes3d import Axes3D
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.evaluation.drawing import (
    MEASURED_COLOUR,
    PREDICTED_COLOUR,
    ColourScale,
    draw_histogram,
    error_scales,
)
from softform_core.geometry.rigid import RigidTransform
from softform_core.inverse.closest_points import ClosestPoints
from softform_studies.ik.gradient_descent import icp
from softform_studies.studies.catalogue import BEFORE, OURS, Outcome, Setting
from softform_studies.studies.laboratory import learn
from softform_studies.torsos.picture import FRONT, draw_panel

_STEPS = 50
_COLOURS = {BEFORE: MEASURED_COLOUR, OURS: PREDICTED_COLOUR}


def mannequin(setting: Setting) -> Outcome:
    """Study mean and largest distances of predicted surfaces in the best pose, without and with sim-to-real.

    Raises:
        SoftformError: If a model is missing, the reality has no shape at an actuation, or training fails.
    """
    frames, held_out = setting.scale.pick((40, 4), (6, 2))
    learned = learn(setting, frames, held_out)
    entries, shown = [], {}
    for series, predicted in ((BEFORE, learned.before), (OURS, learned.after)):
        for number, (points, truth) in enumerate(zip(predicted, learned.judge.truths, strict=True), 1):
            posed = aligned(points, truth)
            distances = truth.query(posed).distances
            shown[series, number] = posed, distances
            figures = {"mean_mm": distances.mean(), "max_mm": distances.max()}
            first = shown[BEFORE, number][1]
            cuts = {"mean_cut": 1.0 - distances.mean() / first.mean(), "max_cut": 1.0 - distances.max() / first.max()}
            rounded = {key: round(float(value), 4) for key, value in {**figures, **cuts}.items()}
            entries.append({"series": series, "x": f"A{number}", **rounded})
    faces = learned.judge.patches.triangles(learned.before.shape[1])
    return Outcome(entries, _draw(shown, faces), f"{frames} frames")


def aligned(points: Array, truth: ClosestPoints) -> Array:
    """Return points (P, 3) mm, moved rigidly to a surface by ICP."""
    pose, _ = icp(points, truth, RigidTransform(), _STEPS + 1, 0.0)  # the last one only measures
    return pose.apply_inverse(points)


def _draw(shown: dict[tuple[str, int], tuple[Array, Array]], faces: NDArray[np.int64]) -> Figure:
    """Draw a column of each actuation: both surfaces with the error as colour, and the histograms of both."""
    numbers = sorted({number for _, number in shown})
    rows = len(_COLOURS) + 1
    figure = Figure(figsize=(3.4 * len(numbers), 10.0), dpi=80, layout="constrained")
    of_series = [np.concatenate([shown[series, number][1] for number in numbers]) for series in _COLOURS]
    scales = dict(zip(_COLOURS, error_scales(of_series), strict=True))
    rows_of: dict[ColourScale, list[Axes]] = {scale: [] for scale in scales.values()}
    for column, number in enumerate(numbers, 1):
        for row, series in enumerate(_COLOURS):
            points, distances = shown[series, number]
            axes = figure.add_subplot(rows, len(numbers), row * len(numbers) + column, projection="3d")
            assert isinstance(axes, Axes3D)
            rows_of[scales[series]].append(axes)
            colours = scales[series].mappable.to_rgba(distances[faces].mean(axis=1))
            title = f"A{number}, {series}:\n{distances.mean():.2f} mm, largest {distances.max():.1f} mm"
            draw_panel(axes, points, faces, colours, FRONT, title, box=(points.min(axis=0), points.max(axis=0)))
        histogram = figure.add_subplot(rows, len(numbers), (rows - 1) * len(numbers) + column)
        draw_histogram(
            histogram, [(shown[each, number][1], each, colour) for each, colour in _COLOURS.items()], scales[BEFORE].end
        )
        histogram.set_xlabel("distance from the true surface (mm)")
        if column == 1:
            histogram.legend(framealpha=0.9, edgecolor="none")
    for scale, panels in rows_of.items():
        figure.colorbar(scale.mappable, ax=panels, label="distance from the true surface (mm)", extend="max")
    return figure
