import numpy as np
import pytest

from softform_core.errors import SoftformError
from softform_core.geometry.triangle_tree import TriangleTree
from softform_core.planning.surface_margins import SIGMAS, MarginedSurface, chords
from softform_core.surface.patch_set import SHEET, PatchSet

REFINED = 4


def test_chords_bound_what_triangles_cut_off(surface, actuations):
    side = surface.side
    fine_side = REFINED * (side - 1) + 1
    fine = surface.pipeline.at(SHEET.samples(fine_side**2)).points(actuations)
    coarse = surface.pipeline.points(actuations)
    bounds = chords(coarse, side).reshape(-1, side, side)
    line = np.arange(fine_side) / REFINED
    below, above = np.floor(line).astype(int), np.ceil(line).astype(int)
    for shape, points, bound in zip(fine, coarse, bounds, strict=True):
        _, closest, _ = TriangleTree(points[SHEET.triangles(side**2)]).query(shape)
        cut_off = np.linalg.norm(shape - closest, axis=1).reshape(fine_side, fine_side)
        at_corners = np.minimum.reduce(
            [bound[np.ix_(one, other)] for one in (below, above) for other in (below, above)]
        )
        assert (cut_off <= at_corners + 0.02).all()
        assert np.median(bound) < 1.0


def test_the_allowance_is_chord_and_two_standard_deviations(models, surface, simulated, actuations):
    assert SIGMAS == 2.0
    states = surface.at(actuations)
    sigma = models.models.uncertainty.along_normals(actuations)
    expected = chords(states.points, surface.side) + 2.0 * sigma
    # The uncertainty is interpolated.
    off = np.abs(states.allowance - expected)
    assert np.quantile(off, 0.99) < 0.2 and off.max() < 0.6 and off.mean() < 0.05
    without = simulated.at(actuations)
    assert without.allowance == pytest.approx(chords(without.points, surface.side))


def test_points_that_are_no_even_grid_are_rejected(models):
    with pytest.raises(SoftformError, match="even grid"):
        MarginedSurface(models.current.at(np.random.default_rng(0).random((100, 2))), None)


def test_chords_of_a_tube_do_not_know_where_its_seam_is():
    side = 24
    u, v = PatchSet.of(periodic=True).samples(side**2).T
    radius, angle = 40.0 + 5.0 * np.cos(6.0 * np.pi * u + 4.0 * v), 2.0 * np.pi * u
    points = np.stack([radius * np.cos(angle), radius * np.sin(angle), 260.0 * v], axis=1).reshape(1, side, side, 3)
    bounds = chords(points, side, periodic=True).reshape(side, side)
    turned = chords(np.roll(points, 7, axis=1), side, periodic=True).reshape(side, side)
    np.testing.assert_allclose(turned, np.roll(bounds, 7, axis=0), rtol=1e-12)
    assert bounds.min() > 0.1
