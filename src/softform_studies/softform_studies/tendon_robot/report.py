"""The picture of the demo of a robot that remembers: clouds and truth of one pair, tips by way, errors by approach."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.evaluation.drawing import PALETTE
from softform_core.units import MM_PER_M
from softform_studies.tendon_robot.approaches import Approach


class Pair(NamedTuple):
    """One shape: its true centre line (S, 3) m, and what the cameras saw, (512, 3) m."""

    line: Array
    cloud: NDArray[np.float32]


def draw_report(
    path: Path, shapes: Mapping[str, Pair], apart: float, errors: Mapping[Approach, Array], best: Array, way: Array
) -> None:
    """Draw the report.

    Args:
        path: Of the picture.
        shapes: The same configuration by two ways.
        apart: Distance of their tips, mm.
        errors: (rounds + 1, n) mm by approach.
        best: (n,) mm, the least error found for each target.
        way: (n,) mm between the tips at one configuration by two ways.
    """
    figure = Figure(figsize=(15.0, 5.2), dpi=110, layout="constrained")
    panels = figure.add_gridspec(1, 3, width_ratios=[1.1, 0.8, 1.2])
    space = figure.add_subplot(panels[0], projection="3d")
    for (name, shape), colour in zip(shapes.items(), PALETTE, strict=False):
        space.scatter(*(MM_PER_M * shape.cloud.T), s=3, color=colour, alpha=0.45)
        space.plot(*(MM_PER_M * shape.line.T), color=colour, linewidth=2.0, label=f"by way of {name}")
    space.set_aspect("equal")
    space.locator_params(nbins=5)
    space.set(xlabel="x (mm)", ylabel="y (mm)", zlabel="z (mm)")
    space.set_title(f"One configuration: tips {apart:.0f} mm apart\nlines true, points seen by two depth cameras")
    space.legend(loc="upper left")
    tips = figure.add_subplot(panels[1])
    tips.hist(way, bins=12, color=PALETTE[0])
    tips.set(xlabel="distance of the tips by two ways (mm)", ylabel="configurations")
    tips.set_title(f"What the way does: {way.mean():.1f} ± {way.std():.1f} mm")
    loops = figure.add_subplot(panels[2])
    for (name, found), colour in zip(errors.items(), PALETTE, strict=False):
        rounds = np.arange(len(found))
        low, middle, high = np.quantile(found, [0.25, 0.5, 0.75], axis=1)
        loops.plot(rounds, middle, "o-", color=colour, label=name.replace("_", " "))
        loops.fill_between(rounds, low, high, color=colour, alpha=0.15)
    loops.axhline(float(np.median(best)), color="black", linestyle=":", label="best found")
    loops.set(xlabel="corrections", ylabel="error of the tip (mm)", ylim=(0.0, None))
    loops.set_xticks(np.arange(max(len(found) for found in errors.values())))
    loops.set_title("Error by approach: median and quartiles")
    loops.legend()
    figure.savefig(path)
