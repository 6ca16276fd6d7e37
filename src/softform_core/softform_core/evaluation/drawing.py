"""Colours and comparable histograms that all pictures of errors share."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize

from softform_core.arrays import Array

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
"""Okabe and Ito's colours, distinguishable with any colour vision; the maps are perceptually uniform."""
PREDICTED_COLOUR, MEASURED_COLOUR = PALETTE[:2]
REST_COLOUR = "#777777"
HEIGHT_MAP = "viridis"
ERROR_MAPS = "inferno", "cividis", "viridis"
"""Colour map of the largest errors, and two for errors that would be black beside them."""

SCALE_PERCENTILE = 99.0
"""Error scales end at this percentile of the larger error, so that a stray point does not darken the maps."""

_BINS = 40
_DARK = 0.4
"""Share of a scale below which errors that end there get another colour map."""

Series = tuple[Array, str, str]
"""Values, name and colour of a series."""


@dataclass(frozen=True)
class ColourScale:
    """A colour scale from 0 to an end, mm, by the name of its colours."""

    end: float
    colours: str

    @property
    def mappable(self) -> ScalarMappable:
        """Return the object that colours values and makes colour bars."""
        return ScalarMappable(Normalize(0.0, self.end), self.colours)


def error_scales(errors: Sequence[Array]) -> list[ColourScale]:
    """Return scales of several sets of errors, mm: one for all, but another for those that would be dark on it."""
    ends = [float(np.percentile(values, SCALE_PERCENTILE)) for values in errors]
    scales: list[ColourScale] = []
    of = {}
    for end in sorted(ends, reverse=True):
        if not scales or (end < _DARK * scales[-1].end and len(scales) < len(ERROR_MAPS)):
            scales.append(ColourScale(end or 1.0, ERROR_MAPS[len(scales)]))
        of[end] = scales[-1]
    return [of[end] for end in ends]


def draw_histogram(axes: Axes, series: Sequence[Series], end: float) -> None:
    """Draw shares of each series' values from 0 to `end`, larger ones in the last bin; means are dashed."""
    edges = np.linspace(0.0, end if end > 0.0 else 1.0, _BINS + 1).tolist()
    for values, name, colour in series:
        if len(values):
            share = np.full(len(values), 100.0 / len(values))
            shown = np.minimum(values, edges[-1])
            axes.hist(shown, bins=edges, weights=share, histtype="stepfilled", color=colour, alpha=0.35)
            axes.hist(shown, bins=edges, weights=share, histtype="step", color=colour, linewidth=1.5, label=name)
            axes.axvline(float(values.mean()), color=colour, linestyle="--", linewidth=1.2)
    axes.set(xlim=(0.0, edges[-1]), ylabel="share of points (%)")
    axes.grid(alpha=0.25)
