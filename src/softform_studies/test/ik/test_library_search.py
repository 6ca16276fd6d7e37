"""What the compiled searches are measured against finds just what they find."""

import numpy as np
import pytest

from softform_core.inverse.closest_points import CloudSearch, MeshSearch
from softform_core.surface.patch_set import SHEET
from softform_studies.ik.library_search import LibraryCloudSearch, LibraryMeshSearch


@pytest.fixture(scope="module")
def sheet():
    xy = (SHEET.samples(900) - 0.5) * 300.0
    z = 20.0 * np.cos(xy[:, 0] / 40.0) * np.sin(xy[:, 1] / 55.0)
    return np.column_stack([xy, z]), SHEET.triangles(900)


@pytest.mark.parametrize("distance", [0.01, 3.0, 60.0])
def test_the_library_finds_the_exact_closest_points_of_a_mesh(sheet, distance):
    rng = np.random.default_rng(3)
    points = sheet[0][rng.integers(900, size=3000)] + distance * rng.normal(size=(3000, 3))
    ours, library = MeshSearch(*sheet).query(points), LibraryMeshSearch(*sheet).query(points)
    assert library.distances == pytest.approx(ours.distances, abs=1e-9)
    assert (library.on_border == ours.on_border).all()
    single = LibraryMeshSearch(*sheet, exact=False).query(points)
    assert np.abs(single.distances - ours.distances).max() > 1e-9
    assert single.distances == pytest.approx(ours.distances, abs=1e-3)


def test_the_library_finds_the_same_points_of_a_cloud(sheet):
    points = sheet[0] + np.random.default_rng(4).normal(size=(900, 3))
    ours, library = CloudSearch(sheet[0]).query(points), LibraryCloudSearch(sheet[0]).query(points)
    assert np.linalg.norm(library.points - ours.points, axis=1).mean() < 0.5
    assert np.median(np.linalg.norm(library.points - ours.points, axis=1)) < 0.05
