"""What exported meshes have is repaired and said; a repaired sheet is flattened like the sheet without faults."""

import logging

import numpy as np
import pytest
import trimesh
from scipy.spatial import Delaunay

from softform_core.surface.mesh import ParametrisationError
from softform_core.surface.mesh_repair import repair
from softform_core.surface.patch import Patch

rng = np.random.default_rng(0)
LINE = np.linspace(0.0, 1.0, 9)
RIM = np.concatenate([[[x, y], [y, x]] for x in LINE for y in (0.0, 1.0)])
XY = np.concatenate([np.unique(RIM, axis=0), rng.uniform(0.05, 0.95, (60, 2))])
VERTICES = np.column_stack([0.3 * XY, 0.02 * np.sin(3.0 * XY[:, 0])])
FACES = Delaunay(XY).simplices.astype(np.int64)
DIRECTION = np.cross(XY[FACES[:, 1]] - XY[FACES[:, 0]], XY[FACES[:, 2]] - XY[FACES[:, 0]])
FACES = np.where(DIRECTION[:, None] < 0.0, FACES[:, ::-1], FACES)
PATCH = Patch(6, 6)


def flattened_alike(vertices: np.ndarray, faces: np.ndarray, *said: str) -> None:
    """The mesh is flattened to the same parameters as the one without faults, and the repairs are these."""
    expected = PATCH.parametrised(VERTICES, FACES)
    assert not expected.repairs
    mesh = PATCH.parametrised(vertices, faces)
    assert len(mesh.repairs) == len(said), mesh.repairs
    for repaired, start in zip(mesh.repairs, said, strict=True):
        assert repaired.startswith(start)
    np.testing.assert_allclose(vertices[mesh.kept], VERTICES, atol=1e-6)
    np.testing.assert_allclose(mesh.uv, expected.uv, atol=1e-6)
    # A deformed shape of the faulty mesh is fitted like that of the other.
    shape = np.column_stack([vertices[:, :2], np.cos(9.0 * vertices[:, 0])])
    right = np.column_stack([VERTICES[:, :2], np.cos(9.0 * VERTICES[:, 0])])
    np.testing.assert_allclose(mesh.fit(shape), expected.fit(right), atol=1e-4)


def test_vertices_of_a_face_of_its_own_are_joined(caplog):
    """As in an STL file: every face brings its own three vertices."""
    with caplog.at_level(logging.WARNING):
        mesh = PATCH.parametrised(VERTICES[FACES].reshape(-1, 3), np.arange(FACES.size).reshape(-1, 3))
    assert len(mesh.kept) == len(VERTICES)
    (said,) = mesh.repairs
    assert said == f"{FACES.size - len(VERTICES)} duplicate vertices were joined."
    assert said in caplog.text


def test_rounded_duplicates_and_the_faces_between_them_are_removed():
    moved = FACES.copy()
    twin = int(FACES[7, 0])
    moved[7, 0] = len(VERTICES)
    vertices = np.concatenate([VERTICES, VERTICES[twin : twin + 1] + 1e-8])
    faces = np.concatenate([moved, [[twin, len(VERTICES), FACES[7, 1]]]])
    flattened_alike(vertices, faces, "1 duplicate vertices were joined", "1 faces with a repeated vertex were removed")


def test_duplicate_faces_are_removed():
    flattened_alike(VERTICES, np.concatenate([FACES, FACES[[3, 5]][:, ::-1]]), "2 duplicate faces were removed")


def test_mixed_winding_is_made_that_of_the_larger_area():
    faces = FACES.copy()
    faces[::3] = faces[::3, ::-1]
    flattened_alike(VERTICES, faces, f"{len(faces[::3])} faces were turned round")


def test_the_largest_part_is_kept():
    aside = np.concatenate([VERTICES, 0.3 * VERTICES + [1.0, 0.0, 0.0], 0.1 * VERTICES - 1.0])
    faces = np.concatenate([FACES, FACES[:, ::-1] + len(VERTICES), FACES + 2 * len(VERTICES)])
    flattened_alike(
        aside, faces, f"2 smaller parts with {2 * len(FACES)} faces were left out: the largest of 3 is kept"
    )


def test_vertices_without_a_face_are_left_out_even_if_they_are_not_finite():
    unused = np.concatenate([VERTICES, [[9.0, 9.0, 9.0], [np.nan, 0.0, 0.0]]])
    flattened_alike(unused, FACES, "2 vertices that belong to no face were left out")


def test_a_face_whose_vertices_lie_in_a_line_gives_its_middle_vertex_to_the_next():
    # Vertex m in the middle of an inner edge a-b that only one of the two faces knows of: a crack, closed by a face
    # without area.
    edges = {(int(f[c]), int(f[(c + 1) % 3])): (face, c) for face, f in enumerate(FACES) for c in range(3)}
    a, b = next(edge for edge in edges if edge[::-1] in edges)
    m, face = len(VERTICES), edges[(a, b)][0]
    (top,) = np.setdiff1d(FACES[face], [a, b])
    vertices = np.concatenate([VERTICES, [(VERTICES[a] + VERTICES[b]) / 2]])
    split = np.concatenate([np.delete(FACES, face, axis=0), [[a, m, top], [m, b, top]]])
    cracked = np.concatenate([split, [[a, b, m]]])
    mesh = repair(vertices, cracked)
    assert mesh.repairs == ("1 faces without area were removed.",)
    assert len(mesh.faces) == len(FACES) + 2 - 1 + 1
    other = FACES[edges[(b, a)][0]]
    (beyond,) = np.setdiff1d(other, [a, b])
    assert {m, a, int(beyond)} in [set(f.tolist()) for f in mesh.faces]
    flat = PATCH.parametrised(vertices, cracked)
    expected = PATCH.parametrised(VERTICES, FACES)
    assert np.abs(flat.uv[:-1] - expected.uv).max() < 0.02


def test_a_face_without_area_at_the_outline_is_removed():
    bottom = np.flatnonzero(XY[:, 1] == 0.0)
    first, second, third = bottom[np.argsort(XY[bottom, 0])][:3]
    flat = VERTICES.copy()
    flat[[first, second, third], 2] = 0.0
    mesh = repair(flat, np.concatenate([FACES, [[third, second, first]]]))
    assert mesh.repairs == ("1 faces without area were removed.",)
    assert len(mesh.faces) == len(FACES)


def sphere() -> tuple[np.ndarray, np.ndarray]:
    mesh = trimesh.creation.icosphere(subdivisions=1)
    return np.array(mesh.vertices), np.array(mesh.faces)


def with_a_hole() -> tuple[np.ndarray, np.ndarray]:
    middle = np.linalg.norm(XY - 0.5, axis=1).argmin()
    return VERTICES, FACES[(middle != FACES).all(axis=1)]


def three_at_an_edge() -> tuple[np.ndarray, np.ndarray]:
    return np.concatenate([VERTICES, [[0.1, 0.1, 1.0], [0.1, 0.1, -1.0]]]), np.concatenate(
        [FACES, [[*FACES[0, :2], len(VERTICES)], [*FACES[0, :2], len(VERTICES) + 1]]]
    )


def moebius_strip() -> tuple[np.ndarray, np.ndarray]:
    angle = np.linspace(0.0, 2.0 * np.pi, 12, endpoint=False)
    ring = [
        np.stack([(1 + s * np.cos(angle / 2)) * np.cos(angle), (1 + s * np.cos(angle / 2)) * np.sin(angle),
                  s * np.sin(angle / 2)], axis=1)
        for s in (-0.3, 0.3)
    ]  # fmt: skip
    faces = []
    for i in range(12):
        low, high = (i, i + 12), ((i + 1) % 12, (i + 1) % 12 + 12)
        far = high if i < 11 else high[::-1]
        faces += [[low[0], far[0], far[1]], [low[0], far[1], low[1]]]
    return np.concatenate(ring), np.array(faces)


def with_nan() -> tuple[np.ndarray, np.ndarray]:
    vertices = VERTICES.copy()
    vertices[7, 2] = np.nan
    return vertices, FACES


def in_a_point() -> tuple[np.ndarray, np.ndarray]:
    return np.zeros((3, 3)), np.array([[0, 1, 2]])


def in_a_line() -> tuple[np.ndarray, np.ndarray]:
    return np.array([[0.0, 0, 0], [1, 0, 0], [2, 0, 0]]), np.array([[0, 1, 2]])


@pytest.mark.parametrize(
    ("mesh", "reason"),
    [
        (sphere, "closed"),
        (with_a_hole, "no disk: it has 2 outlines"),
        (three_at_an_edge, "not manifold"),
        (moebius_strip, "one-sided"),
        (with_nan, "Vertex 7 is not finite"),
        (in_a_point, "No face of the mesh has an area"),
        (in_a_line, "no area"),
        (lambda: (VERTICES, FACES[:0]), "no triangle mesh"),
        (lambda: (VERTICES, FACES + 5), "indices"),
    ],
)
def test_what_cannot_be_repaired_is_rejected(mesh, reason):
    with pytest.raises(ParametrisationError, match=reason):
        PATCH.parametrised(*mesh())
