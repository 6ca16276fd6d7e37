"""Maps of errors: bodies of any proportions keep to their panels, and what would be black has a scale of its own."""

import itertools

import numpy as np
import pytest
from mpl_toolkits.mplot3d import Axes3D, proj3d

from softform_core.evaluation.comparison import Comparison, PredictedSurface
from softform_core.evaluation.drawing import ERROR_MAPS, error_scales
from softform_core.evaluation.evaluate import JudgedFrame
from softform_core.evaluation.report_figures import report_figures
from softform_core.surface.patch_set import SHEET, PatchSet

TUBE = PatchSet.of(periodic=True)
SIDE = 30


def surface(kind, bend):
    """A sheet of 320 mm, or a tube of 50 x 50 x 300 mm that stands or lies and bends."""
    u, v = (SHEET if kind == "sheet" else TUBE).samples(SIDE**2).T
    if kind == "sheet":
        return PredictedSurface(np.stack([320.0 * u, 320.0 * v, 60.0 * bend * u * v], axis=1))
    angle = 2.0 * np.pi * u
    points = np.stack([25.0 * np.cos(angle) + 150.0 * bend * v**2, -25.0 * np.sin(angle), 300.0 * v], axis=1)
    return PredictedSurface(points if kind == "standing" else points[:, [2, 1, 0]], None, TUBE)


def frame(number, kind, before, after):
    made = surface(kind, number - 1.0)
    distances = np.linspace(0.5, 1.5, len(made.points))
    compared = [
        Comparison(made.points, mm * distances, mm * distances, None, made, mm * distances, 0.01 * distances)
        for mm in (before, after)
    ]
    return JudgedFrame(number, False, 0.0, *compared)


@pytest.mark.parametrize("kind", ["sheet", "standing", "lying"])
def test_no_body_leaves_its_panel_and_no_text_lies_on_one(kind):
    maps = report_figures([frame(number, kind, 3.0 + number, 2.5 + number) for number in range(3)])[0].figure
    maps.canvas.draw()
    panels = [axes for axes in maps.axes if isinstance(axes, Axes3D)]
    assert len(panels) == 6 * (1 if kind == "sheet" else 2), "a tube is seen from both sides"
    boxes = [axes.get_position(original=True).transformed(maps.transFigure) for axes in panels]
    for row, (axes, box) in enumerate(zip(panels, boxes, strict=True)):
        points = surface(kind, [1.0, 0.0, -1.0][row * 3 // len(panels)]).points
        x, y, _ = proj3d.proj_transform(*points.T, axes.get_proj())
        drawn = axes.transData.transform(np.column_stack([x, y]))
        assert (drawn >= np.array(box.min) - 2.0).all() and (drawn <= np.array(box.max) + 2.0).all()
        assert np.max(np.ptp(drawn, axis=0) / box.size) > 0.4, "nor is it lost in it"
    assert not any(a.padded(-1.0).overlaps(b) for a, b in itertools.combinations(boxes, 2))
    texts = [text.get_window_extent() for text in maps.texts]
    assert not any(text.overlaps(box.padded(-1.0)) for text in texts for box in boxes)


@pytest.mark.parametrize(("after", "bars"), [(2.0, 1), (0.2, 2)])
def test_a_column_that_would_be_black_has_its_own_scale(after, bars):
    maps = report_figures([frame(number, "sheet", 3.0, after) for number in range(3)])[0]
    legends = [axes for axes in maps.figure.axes if not isinstance(axes, Axes3D)]
    assert len(legends) == bars
    assert ("own colour scale" in maps.caption) == (bars == 2)


def test_scales_of_errors():
    large, near, small, least = (np.linspace(0.0, end, 200) for end in (10.0, 6.0, 1.0, 0.1))
    first, second, third, fourth = error_scales([small, large, near, least])
    assert second == third and second.colours == ERROR_MAPS[0] and second.end == pytest.approx(9.9)
    assert (first.colours, fourth.colours) == ERROR_MAPS[1:] and first.end == pytest.approx(0.99)
    assert error_scales([np.zeros(5), np.zeros(5)])[0].end == 1.0
