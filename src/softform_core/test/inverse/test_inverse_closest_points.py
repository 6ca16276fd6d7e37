"""Closest points: exact on meshes (against brute force and trimesh), sensible on clouds, honest at rims and holes."""

from collections import Counter

import numpy as np
import pytest
import trimesh
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial import Delaunay, cKDTree

from softform_core.errors import SoftformError
from softform_core.geometry.point_tree import PointTree
from softform_core.geometry.triangle_tree import TriangleTree
from softform_core.inverse.closest_points import CloudSearch, MeshSearch, closest_points_on
from softform_core.shapes.shape import Shape
from softform_core.surface.mesh import border_edges
from softform_core.surface.patch_set import SHEET


def wavy_sheet(count=400, amplitude=20.0):
    xy = (SHEET.samples(count) - 0.5) * 300.0
    z = amplitude * np.cos(xy[:, 0] / 40.0) * np.sin(xy[:, 1] / 55.0)
    return np.column_stack([xy, z]), SHEET.triangles(count)


def brute_force(points, corners):
    """Distance to the nearest of all triangles, by trimesh."""
    found = [trimesh.triangles.closest_point(corners, np.tile(point, (len(corners), 1))) for point in points]
    return np.array(
        [np.linalg.norm(closest - point, axis=1).min() for closest, point in zip(found, points, strict=True)]
    )


@pytest.mark.parametrize("distance", [0.01, 3.0, 60.0, 2000.0])
def test_mesh_distances_are_exact(distance):
    vertices, faces = wavy_sheet()
    rng = np.random.default_rng(0)
    points = vertices[rng.integers(len(vertices), size=200)] + distance * rng.normal(size=(200, 3))
    matches = MeshSearch(vertices, faces).query(points)
    assert matches.distances == pytest.approx(brute_force(points, vertices[faces]), abs=1e-9)
    assert np.linalg.norm(points - matches.points, axis=1) == pytest.approx(matches.distances, abs=1e-12)
    assert brute_force(matches.points, vertices[faces]).max() < 1e-9


@settings(max_examples=60)
@given(
    seed=st.integers(0, 2**32 - 1),
    count=st.integers(1, 40),
    flatness=st.sampled_from([1.0, 1e-3, 0.0]),
    size=st.sampled_from([1e-3, 1.0, 1e4]),
)
def test_any_triangle_soup_is_searched_exactly(seed, count, flatness, size):
    rng = np.random.default_rng(seed)
    corners = size * rng.normal(size=(count, 3, 3)) * np.array([1.0, 1.0, flatness])
    points, tree = 2.0 * size * rng.normal(size=(20, 3)), TriangleTree(corners)
    first = np.linalg.norm(points - tree.query(points)[1], axis=1)
    tree.query(rng.permutation(points))  # answers to anything else are what the next search starts from
    triangle, closest, barycentric = tree.query(points)
    assert np.linalg.norm(points - closest, axis=1) == pytest.approx(first, rel=1e-9, abs=1e-9 * size)
    distances = np.linalg.norm(points - closest, axis=1)
    # trimesh's own tolerances are absolute: it is asked about triangles of size one.
    assert distances / size == pytest.approx(brute_force(points / size, corners / size), rel=1e-6, abs=1e-6)
    assert (barycentric >= -1e-12).all() and barycentric.sum(axis=1) == pytest.approx(1.0)
    assert np.allclose(np.einsum("pc,pcx->px", barycentric, corners[triangle]), closest, atol=1e-9 * size)


def test_rim_and_holes_of_a_mesh_are_known():
    vertices, faces = wavy_sheet(900, amplitude=0.0)
    hole = np.linalg.norm(vertices[faces].mean(axis=1), axis=1) < 40.0
    search = MeshSearch(vertices, faces[~hole])
    queries = np.array([[0.0, 0.0, 1.0], [100.0, 20.0, 1.0], [170.0, 0.0, 0.0], [149.0, 0.0, 5.0]])
    matches = search.query(queries)
    assert matches.on_border.tolist() == [True, False, True, False]
    assert matches.distances[1:] == pytest.approx([1.0, 20.0, 5.0])
    assert np.abs(matches.normals[1]) == pytest.approx([0.0, 0.0, 1.0])


def test_all_that_lies_beyond_a_round_rim_is_on_it():
    rng = np.random.default_rng(6)
    inner, angle = rng.uniform(-65.0, 65.0, (600, 2)), np.linspace(0.0, 2.0 * np.pi, 60, endpoint=False)
    xy = np.concatenate([inner, 100.0 * np.column_stack([np.cos(angle), np.sin(angle)])])
    search = MeshSearch(np.column_stack([xy, np.zeros(len(xy))]), Delaunay(xy).simplices)
    points = np.column_stack([rng.uniform(-300.0, 300.0, (5000, 2)), rng.normal(size=5000)])
    away = np.linalg.norm(points[:, :2], axis=1)
    on_border = search.query(points).on_border
    assert on_border[away > 100.1].all()
    assert not on_border[away < 99.0].any()


@settings(max_examples=60)
@given(seed=st.integers(0, 2**32 - 1), count=st.integers(1, 60), names=st.integers(3, 40))
def test_edges_of_any_faces_are_counted(seed, count, names):
    faces = np.random.default_rng(seed).integers(names, size=(count, 3))
    edges = [[frozenset((face[corner], face[(corner + 1) % 3])) for corner in range(3)] for face in faces.tolist()]
    uses = Counter(edge for face in edges for edge in face)
    assert border_edges(faces).tolist() == [[uses[edge] == 1 for edge in face] for face in edges]


def test_degenerate_triangles_are_passed_over():
    vertices, faces = wavy_sheet(100)
    degenerate = np.array([[0, 0, 1], [5, 5, 5]])
    queries = vertices + [0.0, 0.0, 2.0]
    with_bad = MeshSearch(vertices, np.concatenate([degenerate, faces])).query(queries)
    without = MeshSearch(vertices, faces).query(queries)
    assert with_bad.distances == pytest.approx(without.distances)
    with pytest.raises(SoftformError, match="no area"):
        MeshSearch(vertices, degenerate)


def test_distance_to_a_cloud_is_to_its_tangent_planes():
    vertices, _ = wavy_sheet(2500, amplitude=0.0)
    search = CloudSearch(vertices, np.tile([0.0, 0.0, -1.0], (len(vertices), 1)))
    spacing = 300.0 / 49.0
    rng = np.random.default_rng(1)
    queries = np.column_stack([rng.uniform(-140.0, 140.0, (300, 2)), rng.uniform(-9.0, 9.0, 300)])
    matches = search.query(queries)
    assert matches.distances == pytest.approx(np.abs(queries[:, 2]), abs=1e-9)
    assert not matches.on_border.any()
    beyond = search.query(np.array([[150.0 + 5.0 * spacing, 0.0, 0.0]]))
    assert beyond.on_border.all() and beyond.distances[0] > 3.0 * spacing


def test_clouds_get_normals_and_large_ones_are_thinned():
    rng = np.random.default_rng(2)
    points = np.column_stack([rng.uniform(-0.15, 0.15, (80_000, 2)), np.zeros(80_000)])
    search = closest_points_on(Shape(points))
    assert len(search.vertices) == 50_000
    assert search.query(np.array([[10.0, 10.0, 7.0]])).distances == pytest.approx([7.0], abs=1e-6)


@settings(max_examples=60)
@given(
    seed=st.integers(0, 2**32 - 1),
    count=st.integers(1, 400),
    flatness=st.sampled_from([1.0, 1e-3, 0.0]),
    size=st.sampled_from([1e-3, 1.0, 1e5]),
    outlier=st.booleans(),
    doubled=st.booleans(),
)
def test_any_cloud_is_searched_exactly(seed, count, flatness, size, outlier, doubled):
    rng = np.random.default_rng(seed)
    points = size * rng.normal(size=(count, 3)) * np.array([1.0, 1.0, flatness])
    if outlier:
        points[0] *= 1e4
    if doubled:
        points[: count // 2] = points[count - count // 2 :]
    queries = np.concatenate([2.0 * size * rng.normal(size=(20, 3)), points[:5]])
    tree, reference = PointTree(points), cKDTree(points)
    # From no answers, from near ones, and from those to anything else.
    for asked in (queries, queries + 1e-3 * size, rng.permutation(queries), queries):
        found = np.linalg.norm(asked - points[tree.order[tree.nearest(asked)]], axis=1)
        assert found == pytest.approx(reference.query(asked)[0], rel=1e-12, abs=1e-12 * size)
    normals, spacing = tree.surroundings(tree.places[:30], 16)
    assert np.linalg.norm(normals, axis=1) == pytest.approx(1.0)
    assert np.isfinite(spacing).all() and (spacing > 0.0).all()
    if flatness == 0.0 and count > 10 and not (doubled or outlier):
        assert np.abs(normals[:, 2]) == pytest.approx(1.0)


@pytest.mark.parametrize("count", [500, 20_000])
@pytest.mark.parametrize("dense", [1.0, 9.0])
def test_planes_through_the_surroundings_lie_on_the_surface(count, dense):
    """A bent sheet, half of it `dense` times as dense as the other, against its own normals and nearest points."""
    rng = np.random.default_rng(count)
    xy = rng.uniform(-150.0, 150.0, (count, 2))
    xy[: int(count * dense / (1.0 + dense)), 0] = -rng.uniform(0.0, 150.0, int(count * dense / (1.0 + dense)))
    points = np.column_stack([xy, 20.0 * np.cos(xy[:, 0] / 40.0)])
    inner = np.flatnonzero((np.abs(xy) < 120.0).all(axis=1) & (np.abs(xy[:, 0]) > 20.0))[:800]
    tree = PointTree(points)
    normals, spacing = tree.surroundings(tree.places[inner], 16)
    true = np.column_stack([0.5 * np.sin(xy[inner, 0] / 40.0), np.zeros(len(inner)), np.ones(len(inner))])
    true /= np.linalg.norm(true, axis=1, keepdims=True)
    off = np.degrees(np.arccos(np.minimum(np.abs(np.einsum("px,px->p", normals, true)), 1.0)))
    near = cKDTree(points).query(points[inner], k=7)[0][:, 1:].mean(axis=1)
    assert np.median(off) < (4.0 if count == 500 else 0.5)
    assert np.median(spacing / near) == pytest.approx(1.0, abs=0.1)
    assert np.percentile(spacing / near, [2, 98]) == pytest.approx([0.7, 1.4], abs=0.25)


def test_planes_of_a_cloud_do_not_depend_on_what_was_asked_before():
    rng = np.random.default_rng(5)
    points = np.column_stack([rng.uniform(-150.0, 150.0, (5000, 2)), np.zeros(5000)])
    points[:, 2] = 20.0 * np.cos(points[:, 0] / 40.0)
    queries = points[rng.integers(5000, size=300)] + rng.normal(size=(300, 3))
    asked = CloudSearch(points)
    for part in np.array_split(rng.permutation(queries), 7):
        asked.query(part)
    fresh, again = CloudSearch(points).query(queries), asked.query(queries)
    for one, other in zip(vars(fresh).values(), vars(again).values(), strict=True):
        assert np.array_equal(one, other)
    assert np.abs(fresh.points - points[cKDTree(points).query(queries)[1]]).max() > 0.1  # the planes are used


@pytest.mark.parametrize("search", [CloudSearch(wavy_sheet()[0]), MeshSearch(*wavy_sheet())])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_points_that_are_not_finite_are_rejected(search, value):
    points = np.zeros((10, 3))
    points[3, 1] = value
    with pytest.raises(SoftformError, match="not finite"):
        search.query(points)


@pytest.mark.parametrize("points", [np.zeros((0, 3)), np.zeros((3, 3)), np.zeros((5, 2)), np.full((5, 3), np.nan)])
def test_bad_targets_are_rejected(points):
    with pytest.raises(SoftformError, match="target"):
        closest_points_on(Shape(points))
