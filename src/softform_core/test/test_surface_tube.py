"""A tube is parametrised, fitted, predicted and warped with its seam closed."""

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.spatial import Delaunay

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.forward.pipeline import ForwardPipeline
from softform_core.forward.rbf_warp import SimToReal, gaussians
from softform_core.networks.mlp_weights import MlpWeights
from softform_core.registration.markers import closest_parameters
from softform_core.surface.bspline import derivative_matrices
from softform_core.surface.decoder import SurfaceDecoder
from softform_core.surface.mean_value import parametrise_tube
from softform_core.surface.mesh import directed_edges
from softform_core.surface.patch import ParametrisedMesh, Patch
from softform_core.surface.patch_set import PatchSet
from softform_core.training.shapes import distances_from_mesh

RADIUS, LENGTH = 40.0, 260.0
TUBE = Patch(periodic=True)
SURFACE = PatchSet((TUBE,))
SEAM_MM = 1e-6
V = np.linspace(0.0, 1.0, 301)
EDGES = np.column_stack([np.zeros_like(V), V]), np.column_stack([np.ones_like(V), V])


def irregular() -> tuple[Array, NDArray[np.int64]]:
    """Places (V, 2) around and along the tube, 0 ... 1, scattered at random, and triangles over them, all around."""
    rng = np.random.default_rng(0)
    around, along = 36, 40
    places = np.stack(np.meshgrid(np.arange(around) / around, np.arange(1, along) / along), axis=-1).reshape(-1, 2)
    places += rng.uniform(-0.6, 0.6, places.shape) / [around, along]
    places = places[(places[:, 1] > 0.004) & (places[:, 1] < 0.996)]
    ends = [
        np.column_stack([(np.arange(40) + rng.uniform(-0.3, 0.3, 40)) / 40, np.full(40, end)]) for end in (0.0, 1.0)
    ]
    places = np.concatenate([*ends, places])
    places[:, 0] %= 1.0
    size = np.array([2.0 * np.pi * RADIUS, LENGTH])
    unrolled = size * np.concatenate([places + [turn, 0.0] for turn in (-1, 0, 1)])
    faces = Delaunay(unrolled).simplices
    middle = unrolled[faces, 0].mean(axis=1)
    faces = faces[(middle >= 0.0) & (middle < size[0])]
    a, b, c = unrolled[faces].transpose(1, 0, 2)
    turned = (b - a)[:, 0] * (c - a)[:, 1] < (b - a)[:, 1] * (c - a)[:, 0]
    return places, np.where(turned[:, None], faces[:, ::-1], faces).astype(np.int64) % len(places)


def tube(places: Array, bend: float = 0.9, bulge: float = 1.0) -> Array:
    """Points (P, 3) mm of a tube that is bent by an angle (rad) and bulged by lobes and rings."""
    angle, along = 2.0 * np.pi * places[:, 0], places[:, 1]
    lobes = 8.0 * np.sin(np.pi * along) ** 2 * np.cos(3.0 * angle)
    radius = RADIUS + bulge * (lobes + 6.0 * np.sin(4.0 * np.pi * along) ** 2)
    x, y = radius * np.cos(angle), radius * np.sin(angle)
    if bend == 0.0:
        return np.column_stack([x, y, LENGTH * along])
    arm = LENGTH / bend
    return np.column_stack([arm - (arm - x) * np.cos(bend * along), y, (arm - x) * np.sin(bend * along)])


PLACES, FACES = irregular()
REST, SHAPE = tube(PLACES, 0.0, 0.0), tube(PLACES)


@pytest.fixture(scope="module")
def mesh() -> ParametrisedMesh:
    return TUBE.parametrised(REST, FACES)


def gap(control: Array) -> float:
    """Largest distance (mm) between the two edges of the seam."""
    return float(np.linalg.norm(TUBE.evaluate(control, EDGES[0]) - TUBE.evaluate(control, EDGES[1]), axis=1).max())


def test_the_cut_mesh_covers_the_unit_square_once():
    uv = parametrise_tube(REST, FACES).uv
    lifted = TUBE.parametrised(REST, FACES).corners
    along, across = lifted[:, 1] - lifted[:, 0], lifted[:, 2] - lifted[:, 0]
    areas = 0.5 * (along[:, 0] * across[:, 1] - along[:, 1] * across[:, 0])
    assert areas.min() > 0.0
    assert areas.sum() == pytest.approx(1.0, abs=1e-9)
    # The straight tube unrolls into the parameters that it was made from, but for where u starts.
    around = (uv[:, 0] - PLACES[:, 0] - (uv[0, 0] - PLACES[0, 0]) + 0.5) % 1.0 - 0.5
    assert np.abs(uv[:, 1] - PLACES[:, 1]).max() < 0.01
    assert np.ptp(around) < 0.05


def test_the_seam_leaves_no_trace(mesh):
    """A vertex of the seam is a convex combination of its neighbours like all others; so a turned tube maps alike."""
    turned = TUBE.parametrised(REST @ np.array([[0.0, 1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]), FACES)
    np.testing.assert_allclose(turned.uv, mesh.uv, atol=1e-9)


@pytest.mark.parametrize("shape", [REST, SHAPE], ids=["rest", "bent and bulged"])
def test_a_fit_is_close_all_over_and_its_seam_is_closed(mesh, shape):
    control = mesh.fit(shape)
    assert control.shape == (30, 30, 3)
    assert mesh.report(shape[None], control[None]).max[0] < 0.05
    points = TUBE.evaluate(control, TUBE.samples(140**2))
    assert distances_from_mesh(points, shape, FACES).max() < 2.5  # what flat triangles cut off the lobes
    assert gap(control) < SEAM_MM
    # It is as smooth there as anywhere: the tangents of both edges agree, and come from both sides.
    before, after = (TUBE.evaluate(control, np.column_stack([np.full_like(V, u), V])) for u in (1.0 - 1e-9, 1e-9))
    assert np.linalg.norm(before - after, axis=1).max() < SEAM_MM
    slopes = [derivative_matrices(edge, *TUBE)[0] @ control.reshape(-1, 3) for edge in EDGES]
    assert np.abs(slopes[0] - slopes[1]).max() < SEAM_MM


def test_the_fit_between_the_vertices_is_the_true_tube(mesh):
    control = mesh.fit(SHAPE)
    rng = np.random.default_rng(1)
    truth = tube(np.column_stack([rng.random(200_000), rng.random(200_000)]))
    points = TUBE.evaluate(control, TUBE.samples(4000))
    nearest = np.array([np.linalg.norm(truth - point, axis=1).min() for point in points[::40]])
    assert nearest.max() < 1.0


def test_whatever_a_network_predicts_has_a_closed_seam(mesh):
    """The network's output is a mean shape and offsets of all control points; none of them opens the seam."""
    rng = np.random.default_rng(0)
    predicted = mesh.fit(SHAPE) + 5.0 * rng.normal(size=(4, 30, 30, 3))
    for control in predicted:
        assert gap(control) < SEAM_MM
    decoder = SurfaceDecoder(SURFACE.basis(np.concatenate(EDGES)), torch.float64)
    first, second = decoder(torch.from_numpy(predicted)).chunk(2, dim=1)
    assert (first - second).norm(dim=-1).max() < SEAM_MM


def test_a_warp_moves_both_edges_of_the_seam_alike(mesh):
    """Eq. 2 with kernels on the tube: p + gamma_0 + Gamma p + sum_i gamma_i phi(|p - q_i|)."""
    control = mesh.fit(SHAPE)
    centers = TUBE.evaluate(control, TUBE.kernels(64))
    gamma = np.random.default_rng(0).normal(size=(64 + 4, 3)) * np.r_[5.0, [0.05] * 3, [8.0] * 64][:, None]

    def warped(uv: Array) -> Array:
        points = TUBE.evaluate(control, uv)
        kernels = gaussians(points[None], centers[None], 1.0 / 40.0**2)[0]
        return points + np.concatenate([np.ones((len(points), 1)), points, kernels], axis=1) @ gamma

    assert np.linalg.norm(warped(EDGES[0]) - TUBE.evaluate(control, EDGES[0]), axis=1).mean() > 5.0
    assert np.linalg.norm(warped(EDGES[0]) - warped(EDGES[1]), axis=1).max() < SEAM_MM


def network(sizes: list[int], seed: int, **normalisation: Array) -> MlpWeights:
    rng = np.random.default_rng(seed)
    layers = list(zip(sizes[:-1], sizes[1:], strict=True))
    weights = [rng.normal(size=(outputs, inputs)) / np.sqrt(inputs) for inputs, outputs in layers]
    return MlpWeights(weights, [0.3 * rng.normal(size=outputs) for _, outputs in layers], "relu", **normalisation)


@pytest.mark.parametrize("transferred", [False, True], ids=["N_fk", "N_fk and N_rbf"])
def test_the_whole_pipeline_keeps_the_seam_closed_and_so_do_its_derivatives(mesh, transferred):
    """Algorithm 1: the learned control points, their spline, and the learned warp, at both edges of the seam."""
    mean, count = mesh.fit(SHAPE).ravel(), 30 * 30 * 3
    scales = {"input_offset": np.zeros(2), "input_scale": np.ones(2)}
    kinematics = network([2, 16, count], 0, **scales, output_offset=mean, output_scale=np.full(count, 6.0))
    identity = np.zeros((36 + 4, 3))
    identity[1:4] = np.eye(3)
    coefficients = network(
        [count, 12, identity.size],
        1,
        input_offset=mean,
        input_scale=np.full(count, 10.0),
        output_offset=identity.ravel(),
        output_scale=np.where(np.arange(40) < 4, 0.02, 3.0).repeat(3),
    )
    sim_to_real = SimToReal(TUBE.kernels(36), coefficients) if transferred else None
    pipeline = ForwardPipeline(kinematics, np.concatenate(EDGES), sim_to_real, SURFACE)
    actuation = np.array([[0.3, -0.7], [1.0, 0.4]])
    points, jacobian = pipeline.points_and_jacobian(actuation)
    simulated = ForwardPipeline(kinematics, np.concatenate(EDGES), None, SURFACE).points(actuation)
    assert (np.abs(points - simulated).max() > 1.0) == transferred
    assert np.linalg.norm(points[0] - points[1], axis=1).max() > 1.0
    first, second = np.split(points, 2, axis=1)
    assert np.linalg.norm(first - second, axis=-1).max() < SEAM_MM
    first, second = np.split(jacobian, 2, axis=1)
    assert np.abs(first - second).max() < SEAM_MM


def test_samples_triangles_and_sides_go_around():
    uv, faces = TUBE.samples(144), TUBE.triangles(144)
    assert len(uv) == 144 and uv[:, 0].max() < 1.0 and uv[:, 1].max() == 1.0
    points = tube(uv, 0.0, 0.0)
    edges = np.sort(directed_edges(faces).reshape(-1, 2), axis=1)
    _, uses = np.unique(edges, axis=0, return_counts=True)
    assert (uses == 1).sum() == 2 * 12  # the two ends: nothing is open along the seam
    a, b, c = points[faces].transpose(1, 0, 2)
    outward = (np.cross(b - a, c - a) * (a + b + c) * [1.0, 1.0, 0.0]).sum(axis=1)
    assert (outward > 0.0).all()  # along du x dv
    assert len(TUBE.sides) == 2 and len(Patch().sides) == 4
    ends = [uv[TUBE.side_samples(144, side)] for side in TUBE.sides]
    for end, value in zip(ends, (0.0, 1.0), strict=True):
        assert len(end) == 12 and (end[:, 1] == value).all()


def test_markers_on_both_sides_of_the_seam_are_found(mesh):
    control, random = mesh.fit(SHAPE), np.random.default_rng(2)
    uv = np.column_stack([np.linspace(-0.02, 0.02, 9) % 1.0, random.uniform(0.05, 0.95, 9)])
    found, distance = closest_parameters(TUBE.evaluate(control, uv), control.reshape(-1, 3), SURFACE)
    assert np.abs((found - uv + 0.5) % 1.0 - 0.5).max() < 1e-6
    assert distance.max() < 1e-6


def test_kernels_are_as_far_apart_across_the_seam_as_elsewhere():
    u = np.unique(TUBE.kernels(36)[:, 0])
    assert np.diff(np.append(u, u[0] + 1.0)) == pytest.approx(1.0 / 6.0)


def test_meshes_that_are_no_tube_are_rejected():
    disk, faces = Patch().samples(100), Patch().triangles(100)
    with pytest.raises(SoftformError, match="no tube: it has 1 outlines"):
        TUBE.parametrised(np.column_stack([disk, 0 * disk[:, 0]]), faces)
    inner = np.flatnonzero((np.abs(PLACES - 0.5) < 0.1).all(axis=1))[0]
    with pytest.raises(SoftformError, match="no tube: it has 3 outlines"):
        TUBE.parametrised(REST, FACES[(inner != FACES).all(axis=1)])
    with pytest.raises(SoftformError, match="no disk: it has 2 outlines"):
        Patch().parametrised(REST, FACES)


def test_a_tube_exported_with_a_cut_is_joined(mesh):
    """Each face of the export brings its own vertices along the seam and elsewhere."""
    soup = TUBE.parametrised(REST[FACES].reshape(-1, 3), np.arange(FACES.size).reshape(-1, 3))
    assert len(soup.uv) == len(mesh.uv)
    assert gap(soup.fit(SHAPE[FACES].reshape(-1, 3))) < SEAM_MM
