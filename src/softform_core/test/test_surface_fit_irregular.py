"""A fit is judged between the vertices: on a dense grid, by exact distances to the mesh that it was made from."""

from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.spatial import Delaunay

from softform_core.arrays import Array
from softform_core.robots import load_robot
from softform_core.surface.bspline import basis_matrix, evaluate
from softform_core.surface.fit import LARGEST_AMPLIFICATION, SurfaceFitter, bending_energy
from softform_core.surface.mean_value import parametrise
from softform_core.training.shapes import distances_from_mesh

SIZE = 320.0
LINE = np.linspace(0.0, 1.0, 136)
DENSE = np.stack(np.meshgrid(LINE, LINE, indexing="ij"), axis=-1).reshape(-1, 2)


@dataclass
class Sheet:
    """An irregular mesh of a sheet: rest vertices (V, 3) mm, faces (F, 3), parameters and a deformed shape."""

    rest: Array
    faces: NDArray[np.int64]
    uv: Array
    shape: Array


def deformed(xy: Array) -> Array:
    """Domes over chambers on a bulge with a step, and the sheet pulled sideways; (P, 2) in 0 ... 1 -> (P, 3) mm."""
    x, y = xy.T
    bulge = 25.0 * np.sin(np.pi * x) * np.sin(np.pi * y)
    domes = 20.0 * (np.sin(3.0 * np.pi * x) * np.sin(3.0 * np.pi * y)) ** 2
    ripple = 4.0 * np.sin(7.0 * np.pi * x) * np.cos(5.0 * np.pi * y)
    step = 6.0 * np.tanh(16.0 * (x - 0.3))
    aside = 3.0 * np.stack([np.sin(6.0 * np.pi * y) * np.sin(np.pi * x), np.sin(5.0 * np.pi * x) * np.sin(np.pi * y)])
    return np.column_stack([SIZE * (xy - 0.5) + aside.T, bulge + domes + ripple + step])


@pytest.fixture(scope="module")
def sheet() -> Sheet:
    """About 1500 vertices: scattered at random, crowded around ten places, missing in four, 0.02 mm off."""
    rng = np.random.default_rng(5)
    line = (np.arange(36) + 0.5) / 36
    even = np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, 2) + rng.uniform(-1.4, 1.4, (36 * 36, 2)) / 36
    even = even[((even > 0.003) & (even < 0.997)).all(axis=1)]
    holes = rng.uniform(0.15, 0.85, (4, 2))
    even = even[(np.linalg.norm(even[:, None] - holes, axis=2) > 0.075).all(axis=1)]
    crowds = (rng.uniform(0.1, 0.9, (10, 1, 2)) + 0.02 * rng.normal(size=(10, 20, 2))).reshape(-1, 2)
    along = (np.arange(36) + np.concatenate([[0.0], rng.uniform(-0.45, 0.45, 35)])) / 36
    rim = [np.stack(side, axis=1) for side in ((along, 0 * along), (1 + 0 * along, along))]
    xy = np.concatenate([even, crowds, *rim, *(1.0 - side for side in rim)])
    faces = Delaunay(xy).simplices.astype(np.int64)
    rest = np.column_stack([SIZE * (xy - 0.5), np.zeros(len(xy))])
    a, b, c = (xy[faces[:, corner]] for corner in range(3))
    doubled = (b - a)[:, 0] * (c - a)[:, 1] - (b - a)[:, 1] * (c - a)[:, 0]
    faces = np.where(doubled[:, None] < 0.0, faces[:, ::-1], faces)
    return Sheet(rest, faces, parametrise(rest, faces).uv, deformed(xy) + 0.02 * rng.normal(size=rest.shape))


def distances_between(sheet: Sheet, control: Array) -> Array:
    """Distances of points all over the surface from the deformed mesh, mm."""
    return distances_from_mesh(evaluate(control, DENSE), sheet.shape, sheet.faces)


def test_least_squares_alone_swing_off_between_the_vertices_and_the_fit_does_not(sheet):
    assert 1450 < len(sheet.rest) < 1600
    basis = basis_matrix(sheet.uv)
    normal = (basis.T @ basis).toarray()
    assert 1e9 < np.linalg.cond(normal) < 1e12  # determined, by the check that least squares alone had
    alone = cho_solve(cho_factor(normal), basis.T @ sheet.shape).reshape(30, 30, 3)
    misfit = np.linalg.norm(basis @ alone.reshape(-1, 3) - sheet.shape, axis=1)
    assert misfit.max() < 0.1
    assert distances_between(sheet, alone).max() > 100.0

    fitter = SurfaceFitter(sheet.uv)
    control = fitter.fit(sheet.shape)
    report = fitter.report(sheet.shape[None], control[None])
    assert report.mean[0] < 1.1 * misfit.mean()
    assert report.max[0] < 1.1 * misfit.max()
    between = distances_between(sheet, control)
    # Where vertices are missing, flat triangles cut through the domes: the true surface is as far off there.
    assert between.max() < 8.0
    assert np.sqrt((between**2).mean()) < 0.8
    assert np.linalg.norm(evaluate(control, DENSE) - deformed(DENSE), axis=1).max() < 2.0


def test_the_rule_takes_the_least_smoothing_that_keeps_errors_from_being_amplified(sheet):
    fitter = SurfaceFitter(sheet.uv)
    assert 1e-5 < fitter.smoothing < 1e-2
    normal, bending = (fitter.basis.T @ fitter.basis).toarray(), bending_energy(30, 30)
    bending *= np.trace(normal) / np.trace(bending)
    line = np.linspace(0.0, 1.0, 55)
    dense = basis_matrix(np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, 2))

    def amplification(smoothing: float) -> float:
        hat = dense @ np.linalg.solve(normal + smoothing * bending, fitter.basis.T.toarray())
        return float(np.linalg.norm(hat, axis=1).max())

    assert amplification(fitter.smoothing) == pytest.approx(LARGEST_AMPLIFICATION, rel=0.01)
    assert amplification(0.5 * fitter.smoothing) > LARGEST_AMPLIFICATION


def test_the_membranes_own_meshes_are_fitted_by_least_squares_alone():
    robot = load_robot("membrane")
    membrane = robot.body.simulator().membrane
    (mesh,) = robot.parametrised(membrane.rest_vertices, membrane.faces).meshes
    assert not mesh.repairs
    fitter = mesh.fitter
    assert fitter.smoothing == 0.0
    shape = deformed(membrane.rest_vertices[:, :2] / robot.extent + 0.5)
    expected = np.linalg.lstsq(fitter.basis.toarray(), shape, rcond=None)[0]
    assert np.abs(fitter.fit(shape).reshape(-1, 3) - expected).max() < 1e-8


@pytest.mark.parametrize("periodic", [False, True])
def test_bending_energy_is_the_integral_over_the_surface(periodic):
    rows, cols = 24, 20
    rng = np.random.default_rng(0)
    control = rng.normal(size=(rows, cols, 3))
    nodes, weights = np.polynomial.legendre.leggauss(5)

    def second_differences(step: float = 1e-4) -> float:
        """The energy from central differences of the surface on the Gauss nodes of its spans."""
        spans_u, spans_v = np.linspace(0, 1, (rows if periodic else rows - 3) + 1), np.linspace(0, 1, cols - 2)
        (u, weight_u), (v, weight_v) = (
            (
                (spans[:-1, None] + np.diff(spans)[:, None] * (nodes + 1) / 2).ravel(),
                (np.diff(spans)[:, None] * weights / 2).ravel(),
            )
            for spans in (spans_u, spans_v)
        )
        grid = np.stack(np.meshgrid(u, v, indexing="ij"), axis=-1).reshape(-1, 2)

        def at(du: float, dv: float) -> Array:
            return evaluate(control, grid + step * np.array([du, dv]), 3, periodic)

        middle = at(0, 0)
        along_u, along_v = at(1, 0) - 2 * middle + at(-1, 0), at(0, 1) - 2 * middle + at(0, -1)
        across = (at(1, 1) - at(1, -1) - at(-1, 1) + at(-1, -1)) / 4
        squares = ((along_u**2 + along_v**2 + 2 * across**2) / step**4).sum(axis=1)
        return float((weight_u[:, None] * weight_v).ravel() @ squares)

    flat = control.reshape(-1, 3)
    energy = float(np.trace(flat.T @ bending_energy(rows, cols, 3, periodic) @ flat))
    assert energy == pytest.approx(second_differences(), rel=1e-4)


def test_planes_do_not_bend():
    uv = np.random.default_rng(0).random((900, 2))
    uv[:4] = [[0, 0], [0, 1], [1, 0], [1, 1]]
    plane = SurfaceFitter(uv, 9, 8).fit(uv @ np.array([[3.0, 1.0, -2.0], [0.5, 4.0, 1.0]]))
    flat = plane.reshape(-1, 3)
    assert abs(np.trace(flat.T @ bending_energy(9, 8) @ flat)) < 1e-9
