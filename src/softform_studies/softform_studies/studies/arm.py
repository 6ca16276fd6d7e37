"""Fig. 18: the arm of bellows, learned from 500 frames of its markers; Chamfer distances of 200 test shapes."""

import math

import numpy as np
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.figure import Figure

from softform_core.arrays import Array
from softform_core.evaluation.drawing import MEASURED_COLOUR, PREDICTED_COLOUR
from softform_core.units import MM_PER_M
from softform_studies.sim_to_real.judge import search_tree
from softform_studies.studies.catalogue import BEFORE, OURS, Outcome, Setting
from softform_studies.studies.laboratory import Learned, learn

_COLOURS = (MEASURED_COLOUR, PREDICTED_COLOUR)
_SHOWN = 6
_RINGS = 12
_APART = 80.0


def arm(setting: Setting) -> Outcome:
    """Return the Chamfer distances between predicted and true surfaces, without and with sim-to-real.

    Raises:
        SoftformError: If a model is missing, the reality has no shape at an actuation, or training fails.
    """
    frames, held_out = setting.scale.pick((500, 200), (6, 2))
    learned = learn(setting, frames, held_out)
    entries, chamfer = [], {}
    for series, predicted in ((BEFORE, learned.before), (OURS, learned.after)):
        distances = chamfer[series] = chamfer_distances(learned, predicted)
        low, median, high = np.percentile(distances, [25.0, 50.0, 75.0])
        quartiles = {"lower_quartile_mm2": low, "median_mm2": median, "upper_quartile_mm2": high}
        of_all = {**quartiles, "mean_mm2": distances.mean(), "largest_mm2": distances.max()}
        errors = learned.judge.figures(learned.judge.errors(predicted))
        entries.append({"series": series, "x": 0, **{key: round(float(v), 3) for key, v in of_all.items()}, **errors})
    return Outcome(entries, _draw(chamfer, learned), f"{frames} frames, {held_out} held-out shapes")


def chamfer_distances(learned: Learned, predicted: Array) -> Array:
    """Eq. 19 of each predicted surface (n, P, 3) mm and the true one, (n,) mm^2.

    Points are measured to the triangles of the other surface, not to its points, whose spacing would count.
    """
    faces = learned.judge.patches.triangles(predicted.shape[1])
    forth = learned.judge.errors(predicted).distances
    pairs = zip(predicted, learned.judge.held_out.vertices, strict=True)
    back = [search_tree(points / MM_PER_M, faces).query(true * MM_PER_M).distances for points, true in pairs]
    return np.asarray(np.mean(forth**2, axis=1) + np.mean(np.square(back), axis=1))


def _draw(chamfer: dict[str, Array], learned: Learned) -> Figure:
    """Draw the box plot, and some test shapes from the side: the true one filled, both predicted ones by rings."""
    figure = Figure(figsize=(16.0, 5.6), dpi=80, layout="constrained")
    box, side = figure.subplots(1, 2, width_ratios=[1.0, 3.0])
    drawn = box.boxplot(list(chamfer.values()), widths=0.5, patch_artist=True, medianprops={"color": "black"})
    for patch, colour in zip(drawn["boxes"], _COLOURS, strict=True):
        patch.set(facecolor=colour, alpha=0.6)
    box.set_xticks([1, 2], list(chamfer))
    box.set(yscale="log", ylabel="Chamfer distance of a test shape, Eq. 19 (mm²)")
    box.grid(axis="y", alpha=0.25)
    true = learned.judge.held_out.vertices[:_SHOWN, :, ::2] * MM_PER_M
    right = 0.0
    rows = math.isqrt(learned.before.shape[1])
    rings = np.linspace(0, rows - 1, _RINGS).astype(int)
    for number, points in enumerate(true):
        place = np.array([right - points[:, 0].min(), 0.0])
        right += float(np.ptp(points[:, 0])) + _APART
        side.add_collection(PolyCollection(list((points + place)[learned.judge.held_out.faces]), color="#cccccc"))
        for predicted, colour in zip((learned.before, learned.after), _COLOURS, strict=True):
            around = predicted[number].reshape(rows, rows, 3)[:, rings, ::2] + place  # u is around the arm
            side.add_collection(LineCollection(list(around.swapaxes(0, 1)), colors=colour, linewidths=1.2))
    side.autoscale_view()
    side.set(aspect="equal", xticks=[], ylabel="z (mm)", title="test shapes from the side, the true ones grey")
    return figure
