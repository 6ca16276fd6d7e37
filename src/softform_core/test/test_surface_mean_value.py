import numpy as np
import pytest
import trimesh
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from scipy.spatial import Delaunay

from softform_core.bodies.membrane.simulator import RealMembrane, build_membrane
from softform_core.robots import load_robot
from softform_core.surface.mean_value import parametrise
from softform_core.surface.mesh import ParametrisationError, boundary_loops
from softform_core.surface.mesh_repair import repair
from softform_core.surface.patch import Patch


def _grid(nx: int = 5, ny: int = 4) -> tuple[np.ndarray, np.ndarray]:
    x, y = np.meshgrid(np.linspace(0, 2, nx), np.linspace(0, 1, ny))
    vertices = np.stack([x.ravel(), y.ravel(), np.zeros(x.size)], axis=1)
    corner = (np.arange(ny - 1)[:, None] * nx + np.arange(nx - 1)).ravel()
    lower = np.stack([corner, corner + 1, corner + nx + 1], axis=1)
    upper = np.stack([corner, corner + nx + 1, corner + nx], axis=1)
    # The two corners that would be ears of three outline vertices are proper corners of the square.
    return vertices, np.concatenate([lower, upper])


def _dish(rings: int, spokes: int) -> tuple[np.ndarray, np.ndarray]:
    """A round disk of rings of triangles, counter-clockwise."""
    angle = 2 * np.pi * np.arange(spokes) / spokes
    ring = np.stack([np.cos(angle), np.sin(angle), np.zeros(spokes)], axis=1)
    vertices = np.concatenate([np.zeros((1, 3)), *[(k + 1) / rings * ring for k in range(rings)]])
    here, following = np.arange(spokes), np.roll(np.arange(spokes), -1)
    faces = [np.stack([np.zeros(spokes, int), 1 + here, 1 + following], axis=1)]
    for k in range(rings - 1):
        inner, outer = 1 + k * spokes, 1 + (k + 1) * spokes
        faces += [np.stack([inner + here, outer + here, outer + following], axis=1)]
        faces += [np.stack([inner + here, outer + following, inner + following], axis=1)]
    return vertices, np.concatenate(faces)


def _signed_areas(uv: np.ndarray, faces: np.ndarray) -> np.ndarray:
    first, second = uv[faces[:, 1]] - uv[faces[:, 0]], uv[faces[:, 2]] - uv[faces[:, 0]]
    return 0.5 * (first[:, 0] * second[:, 1] - first[:, 1] * second[:, 0])


def test_membrane_keeps_its_own_coordinates():
    # Mean-value coordinates have linear precision: a flat rectangle maps to the square affinely.
    robot = load_robot("membrane")
    membrane = build_membrane(robot.body, RealMembrane(cells=12))
    uv = parametrise(membrane.rest_vertices, membrane.faces).uv
    np.testing.assert_allclose(uv, membrane.rest_vertices[:, :2] / robot.extent + 0.5, atol=1e-12)


@settings(max_examples=40)
@given(st.integers(2, 5), st.integers(8, 20), st.floats(0.0, 2.0), st.integers(0, 10_000))
@example(2, 8, 1.5, 11)  # two quarters of its outline are nearest to one vertex
def test_parametrisation_is_a_bijection(rings, spokes, roughness, seed):
    vertices, faces = _dish(rings, spokes)
    rng = np.random.default_rng(seed)
    vertices[:, 2] += roughness * rng.normal(size=len(vertices))
    uv = parametrise(vertices, faces).uv
    areas = _signed_areas(uv, faces)
    assert (areas > 0.0).all()
    assert areas.sum() == pytest.approx(1.0)
    assert {(0.0, 0.0), (1.0, 0.0), (0.0, 1.0), (1.0, 1.0)} <= {tuple(point) for point in uv}


def test_inner_vertices_are_mean_value_combinations_of_their_neighbours():
    vertices, faces = _dish(3, 9)
    vertices[:, 2] = np.random.default_rng(1).normal(size=len(vertices))
    uv = parametrise(vertices, faces).uv
    centre, ring = 0, np.arange(1, 10)
    arms = vertices[ring] - vertices[centre]
    lengths = np.linalg.norm(arms, axis=1)
    between = np.arccos(np.sum(arms * np.roll(arms, -1, axis=0), axis=1) / (lengths * np.roll(lengths, -1)))
    weights = (np.tan(between / 2) + np.tan(np.roll(between, 1) / 2)) / lengths  # Floater 2003, Eq. 2.1
    np.testing.assert_allclose(uv[centre], weights @ uv[ring] / weights.sum(), atol=1e-12)


def test_size_place_and_numbering_do_not_matter():
    vertices, faces = _grid()
    uv = parametrise(vertices, faces).uv
    np.testing.assert_allclose(uv, vertices[:, :2] / [2, 1], atol=1e-12)
    np.testing.assert_allclose(parametrise(1e-3 * vertices + 5.0, np.roll(faces, 1, axis=1)).uv, uv, atol=1e-9)
    shuffle = np.random.default_rng(0).permutation(len(vertices))
    renumbered = np.argsort(shuffle)[faces]
    np.testing.assert_allclose(parametrise(vertices[shuffle], renumbered).uv, uv[shuffle], atol=1e-12)


def _torn(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A bent rectangle cut out of an irregular mesh along whole triangles: its rim is ragged."""
    rng = np.random.default_rng(seed)
    x, y = np.meshgrid(np.linspace(-0.2, 2.2, 31), np.linspace(-0.2, 1.2, 19))
    flat = np.stack([x.ravel(), y.ravel()], axis=1) + rng.uniform(-0.025, 0.025, (x.size, 2))
    faces = Delaunay(flat).simplices
    middle = flat[faces].mean(axis=1)
    faces = faces[((middle > 0.0) & (middle < [2.0, 1.0])).all(axis=1)]
    mesh = repair(np.column_stack([flat, 0.3 * np.sin(2.0 * flat[:, 0])]), faces)
    return mesh.vertices, mesh.faces


@settings(max_examples=20)
@given(st.integers(0, 10_000))
def test_a_ragged_rim_is_flattened_between_the_corners_of_the_part(seed):
    vertices, faces = _torn(seed)
    try:
        boundary_loops(faces, len(vertices))
    except ParametrisationError:
        assume(False)  # triangles of the rim touch in a single vertex
    uv, flipped, flips = parametrise(vertices, faces)
    assert flips > 0 and len(flipped) == len(faces)
    areas = _signed_areas(uv, flipped)
    assert (areas > 0.0).all() and areas.sum() == pytest.approx(1.0)
    # As on the rectangle, but for the raggedness: zigzags of the rim are no corners.
    ways = [uv, uv[:, ::-1] * [-1, 1] + [1, 0], 1.0 - uv, uv[:, ::-1] * [1, -1] + [0, 1]]
    assert min(np.abs(way - vertices[:, :2] / [2.0, 1.0]).max() for way in ways) < 0.25


def test_a_narrow_strip_keeps_its_corners():
    vertices, faces = _grid(41, 3)
    vertices[:, 0] *= 20.0  # 40 : 1
    np.testing.assert_allclose(parametrise(vertices, faces).uv, vertices[:, :2] / [40.0, 1.0], atol=1e-12)


def test_a_patch_says_which_edges_it_flips():
    vertices, faces = _ear()
    mesh = Patch(6, 6).parametrised(vertices, faces)
    assert mesh.repairs == ("1 edges between vertices of one side were flipped.",)
    assert len(mesh.kept) == len(vertices) and len(mesh.faces) == len(faces)
    assert (np.sort(mesh.faces, axis=1) != np.sort(faces, axis=1)).any(axis=1).sum() == 2


def _closed() -> tuple[np.ndarray, np.ndarray]:
    sphere = trimesh.creation.icosphere(subdivisions=1)
    return np.array(sphere.vertices), np.array(sphere.faces)


def _ring() -> tuple[np.ndarray, np.ndarray]:
    vertices, faces = _dish(3, 8)
    return vertices[1:], faces[8:] - 1


def _two_parts() -> tuple[np.ndarray, np.ndarray]:
    vertices, faces = _grid()
    return np.concatenate([vertices, vertices + 10]), np.concatenate([faces, faces + len(vertices)])


def _three_at_an_edge() -> tuple[np.ndarray, np.ndarray]:
    vertices, faces = _grid()
    first, second = faces[0, :2]
    return np.concatenate([vertices, [[0.3, 0.1, 1.0]], [[0.3, 0.1, -1.0]]]), np.concatenate(
        [faces, [[first, second, len(vertices)], [first, second, len(vertices) + 1]]]
    )


def _turned() -> tuple[np.ndarray, np.ndarray]:
    vertices, faces = _grid()
    faces[3] = faces[3][::-1]
    return vertices, faces


def _touching() -> tuple[np.ndarray, np.ndarray]:
    vertices, faces = _grid()
    joined = faces + len(vertices) - 1
    return np.concatenate([vertices, vertices[1:] + [2, 1, 0]]), np.concatenate([faces, joined])


def _with_nan() -> tuple[np.ndarray, np.ndarray]:
    vertices, faces = _grid()
    vertices[7, 2] = np.nan
    return vertices, faces


def _flat_triangle() -> tuple[np.ndarray, np.ndarray]:
    vertices, faces = _grid()
    vertices[6] = vertices[7]
    return vertices, faces


def _unused_vertex() -> tuple[np.ndarray, np.ndarray]:
    vertices, faces = _grid()
    return np.concatenate([vertices, [[9, 9, 9]]]), faces


def _ear() -> tuple[np.ndarray, np.ndarray]:
    """A square whose lower side carries a triangle of three outline vertices: it has no inside to open into."""
    vertices, faces = _grid()
    return np.concatenate([vertices, [[0.75, -0.01, 0.0]]]), np.concatenate([faces, [[1, len(vertices), 2]]])


def _finger() -> tuple[np.ndarray, np.ndarray]:
    """A disk whose middle stands out by fifty times its width: in the plane nearly nothing is left of its tip."""
    vertices, faces = _dish(12, 8)
    ring = np.concatenate([[0], np.repeat(np.arange(1, 13), 8)])
    vertices[:, :2] *= np.where(ring < 12, 0.1 / np.maximum(ring, 1) * 12, 1.0)[:, None]
    vertices[:, 2] = 0.5 * (12 - ring)
    return vertices, faces


@pytest.mark.parametrize(
    ("mesh", "reason"),
    [
        (_finger, "fold flat"),
        (_closed, "closed"),
        (_ring, "no disk"),
        (_two_parts, "2 separate parts"),
        (_three_at_an_edge, "not manifold"),
        (_turned, "opposite senses"),
        (_touching, "single vertex"),
        (_with_nan, "Vertex 7 is not finite"),
        (_flat_triangle, "no area"),
        (_unused_vertex, "no face"),
    ],
)
def test_meshes_that_cannot_be_flattened_are_rejected(mesh, reason):
    with pytest.raises(ParametrisationError, match=reason):
        parametrise(*mesh())


def test_arguments_that_are_no_mesh_are_rejected():
    vertices, faces = _grid()
    with pytest.raises(ParametrisationError, match="no triangle mesh"):
        parametrise(vertices[:, :2], faces)
    with pytest.raises(ParametrisationError, match="no triangle mesh"):
        parametrise(vertices, faces[:0])
    with pytest.raises(ParametrisationError, match="indices"):
        parametrise(vertices, faces + 5)
