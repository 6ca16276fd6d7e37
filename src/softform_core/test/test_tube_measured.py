"""A robot whose surface is a tube: its scans are judged, compared and learned from, and its model is exported.

The seam is closed to 1e-6 mm throughout, and what lies across it is treated as what lies anywhere else.
"""

import io
from types import SimpleNamespace
from typing import Any, Literal

import numpy as np
import pytest
import torch

from softform_core.arrays import Array
from softform_core.evaluation.comparison import PredictedSurface, compare_markers, compare_scan
from softform_core.evaluation.evaluate import JudgedFrame
from softform_core.evaluation.metrics import folded_cells
from softform_core.evaluation.report_figures import report_figures
from softform_core.forward.pipeline import ForwardPipeline
from softform_core.forward.rbf_warp import SimToReal
from softform_core.forward.sim_to_real_store import SIM_TO_REAL, members_of
from softform_core.forward.surface_uncertainty import SurfaceUncertainty
from softform_core.frames.quality import COVERAGE_CELLS, assess_cloud
from softform_core.inverse.residual_field import ResidualField, surface_residuals
from softform_core.networks.card import KinematicsReference
from softform_core.networks.mlp_weights import MlpWeights, mean_of
from softform_core.networks.saved_network import SavedNetwork, export
from softform_core.networks.sim_to_real import ShapeInput
from softform_core.networks.sim_to_real_card import FramesUsed, HeldOutErrors, Training
from softform_core.registration.markers import closest_parameters, register_markers
from softform_core.registration.rest_surface import rest_surface
from softform_core.robots import Robot
from softform_core.robots.body import Body, Outline
from softform_core.robots.description import Description, SurfaceDescription
from softform_core.surface.patch_set import PatchSet
from softform_core.training.cards import make_sim_to_real_card, network_of
from softform_core.training.trained_sim_to_real import TrainedSimToReal
from softform_core.units import MM_PER_M

pytestmark = pytest.mark.slow

RADIUS, LENGTH, SEAM_MM = 0.04, 0.26, 1e-6
TUBE = PatchSet.of(24, 20, 3, periodic=True)
ACTUATION = np.array([4000.0])
V = np.linspace(0.0, 1.0, 201)
EDGES = np.column_stack([np.zeros_like(V), V]), np.column_stack([np.ones_like(V), V])


def tube(uv: Array, bend: float = 0.0) -> Array:
    """Points (P, 3) m of a tube along z that bends by an angle (rad) towards x."""
    angle, along = 2.0 * np.pi * uv[:, 0], LENGTH * uv[:, 1]
    x, y = RADIUS * np.cos(angle), -RADIUS * np.sin(angle)  # du x dv looks outwards
    if bend == 0.0:
        return np.column_stack([x, y, along])
    arm, turned = LENGTH / bend, bend * uv[:, 1]
    return np.column_stack([arm - (arm - x) * np.cos(turned), y, (arm - x) * np.sin(turned)])


class Hose(Body):
    """A hose that bends under its one pressure."""

    kind: Literal["hose"] = "hose"

    @property
    def inputs(self) -> list[str]:
        return ["p"]

    @property
    def size(self) -> float:
        return LENGTH

    @property
    def patches(self) -> dict[str, bool]:
        return {"wall": True}

    def outlines(self) -> list[Outline]:
        return [Outline("from the end", "ellipse", 0.0, 0.0, 0.02, 0.02)]

    def simulator(self) -> Any:
        mesh = PatchSet.of(periodic=True)
        vertices = tube(mesh.samples(48**2))
        return SimpleNamespace(faces=mesh.triangles(48**2), rest=np.zeros(0), points=lambda unknowns: vertices[None])

    def sampled(self) -> Any:
        raise NotImplementedError

    @classmethod
    def reality_type(cls) -> type[Description]:
        return Description


@pytest.fixture(scope="module")
def robot() -> Robot:
    return Robot(
        name="hose",
        title="Hose",
        source="this test",
        body=Hose(),
        actuators={"quantity": "pressure", "minimum": 0.0, "maximum": 8000.0, "slew_rate": 1e4, "safe": 0.0},
        devices=[{"name": "openpneu", "channels": [0]}],
        surfaces=[SurfaceDescription(patch="wall", rows=24, columns=20, degree=3)],
    )


def kinematics(robot: Robot) -> MlpWeights:
    """N_fk that bends the hose by 1 rad at `ACTUATION`."""
    fit = rest_surface(robot).mesh.fit
    samples = PatchSet.of(periodic=True).samples(48**2)
    straight, bent = (MM_PER_M * fit(tube(samples, bend)).ravel() for bend in (0.0, 1.0))
    one = np.ones(1)
    return MlpWeights(
        [np.eye(1), (bent - straight)[:, None]],
        [np.zeros(1), np.zeros(len(bent))],
        "relu",
        np.zeros(1),
        ACTUATION,
        straight,
        one,
    )


def members() -> list[SimToReal]:
    """An ensemble of warps that move the hose by millimetres."""
    count, kernels = TUBE.control_points * 3, 36
    identity = np.zeros((kernels + 4, 3))
    identity[1:4] = np.eye(3)
    scale = np.where(np.arange(kernels + 4) < 4, 0.02, 3.0).repeat(3)
    made = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        layers = [rng.normal(size=(10, count)) / np.sqrt(count), rng.normal(size=(identity.size, 10)) / np.sqrt(10)]
        biases = [0.3 * rng.normal(size=10), 0.3 * rng.normal(size=identity.size)]
        weights = MlpWeights(layers, biases, "tanh", np.zeros(count), np.full(count, 50.0), identity.ravel(), scale)
        made.append(SimToReal(TUBE.kernels(kernels), weights))
    return made


def pipeline(robot: Robot, uv: Array, sim_to_real: SimToReal | None = None) -> ForwardPipeline:
    return ForwardPipeline(kinematics(robot), uv, sim_to_real, robot.patches, robot.actuation_names)


def scattered(count: int = 12_000) -> Array:
    return np.random.default_rng(3).uniform(0.003, 0.997, (count, 2))


def test_a_bent_tube_is_covered_and_a_hole_at_its_seam_is_found(robot):
    expected = pipeline(robot, robot.patches.samples(2500)).points(ACTUATION) / MM_PER_M
    uv = scattered()
    cloud = pipeline(robot, uv).points(ACTUATION) / MM_PER_M
    whole = assess_cloud(cloud, robot, expected)
    assert (whole.coverage, whole.fault) == (1.0, "")
    cells = 1.0 / COVERAGE_CELLS
    hole = np.abs((uv[:, 0] + 0.5) % 1.0 - 0.5) < 1.2 * cells  # a little more than a cell on either side of the seam
    holed = assess_cloud(cloud[~hole], robot, expected)
    missing = ~holed.covered
    assert missing[[0, -1]].all() and not missing[2:-2].any() and holed.fault == ""
    assert "lie beside robot 'hose'" in assess_cloud(cloud + [0.0, 0.0, 0.2], robot, expected).fault
    resting = assess_cloud(tube(uv), robot)  # without an expected shape it is judged by the rest shape
    assert (resting.coverage, resting.fault) == (1.0, "")


def bump(uv: Array) -> Array:
    """A displacement along the normals that is largest at the seam, mm."""
    return 2.0 * np.cos(2.0 * np.pi * uv[:, 0]) * np.sin(np.pi * uv[:, 1]) ** 2


def test_residuals_and_their_field_go_around(robot):
    uv = scattered()
    at = pipeline(robot, uv)
    captured = at.points(ACTUATION) + bump(uv)[:, None] * at.normals(ACTUATION)
    predicted = pipeline(robot, robot.patches.samples(1600)).points(ACTUATION)
    residuals = surface_residuals(predicted, captured, robot.patches)
    assert len(residuals.uv) > 0.97 * len(uv)
    near_seam = np.abs((residuals.uv[:, 0] + 0.5) % 1.0 - 0.5) < 0.02
    assert near_seam.sum() > 300
    assert np.abs(residuals.along_normal - bump(residuals.uv))[near_seam].max() < 0.05
    field = ResidualField.zero(robot.patches).towards(residuals)
    assert np.abs(field.values(EDGES[0]) - field.values(EDGES[1])).max() < SEAM_MM
    inner = robot.patches.samples(900)
    assert np.abs(field.values(inner) - bump(inner)).max() < 0.1
    # A hole at the seam is bridged from both sides: the field does not fall back to zero beyond either of its edges.
    kept = np.abs((uv[:, 0] + 0.5) % 1.0 - 0.5) > 0.06
    bridged = ResidualField.zero(robot.patches).towards(surface_residuals(predicted, captured[kept], robot.patches))
    middle = EDGES[0][80:120]
    assert np.abs(bridged.values(middle) - bump(middle)).max() < 0.35


def test_scans_and_markers_are_compared_across_the_seam(robot):
    grid = pipeline(robot, robot.patches.samples(60**2))
    surface = PredictedSurface.of(grid, ACTUATION, np.full(60**2, 0.5))
    uv = scattered()
    at = pipeline(robot, uv)
    captured = at.points(ACTUATION) + 1.5 * at.normals(ACTUATION)
    scan = compare_scan(surface, captured / MM_PER_M)
    assert scan.along_normal == pytest.approx(1.5, abs=0.15)
    assert scan.beside == scan.folded == 0
    seen, error_map, turned = (part.reshape(60, 60) for part in (scan.seen, scan.error_map, scan.normal_errors))
    assert seen[:, 2:-2].mean() > 0.97 and seen[[0, -1], 2:-2].mean() > 0.95
    assert np.nanmedian(error_map[[0, -1]]) == pytest.approx(1.5, abs=0.05)
    assert np.nanmax(turned[:, 3:-3]) < 0.05, "also where the tube looks down"
    places = np.array([[0.999, 0.5], [0.001, 0.5], [0.0, 0.3], [0.995, 0.7], [0.4, 0.5]])
    marked = pipeline(robot, places)
    moved = (marked.points(ACTUATION) + 0.8 * marked.normals(ACTUATION)) / MM_PER_M
    markers = compare_markers(surface, moved, places)
    assert markers.along_normal == pytest.approx(0.8, abs=0.1)
    first, second = (surface.at(edge, surface.points) for edge in EDGES)
    assert np.linalg.norm(first - second, axis=1).max() < SEAM_MM
    figures = report_figures([JudgedFrame(0, False, 0.0, scan, scan)])
    assert [figure.name for figure in figures][0] == "error-maps"


def test_a_fold_at_the_seam_is_found(robot):
    points = tube(TUBE.samples(40**2)).reshape(40, 40, 3)
    assert not folded_cells(points, periodic=True).any()
    points[0] = tube(np.column_stack([np.full(40, 0.96), np.linspace(0.0, 1.0, 40)]))  # behind the last line
    folded = folded_cells(points, periodic=True)
    assert folded.shape == (40, 39) and folded[-1].all() and folded[0].all() and not folded[2:-2].any()


def test_markers_are_registered_on_both_sides_of_the_seam(robot):
    uv = np.column_stack([np.linspace(-0.06, 0.06, 7) % 1.0, np.linspace(0.1, 0.9, 7)])
    found = register_markers(robot.patches.evaluate(rest_surface(robot).control_points, uv), robot)
    assert np.abs((found - uv + 0.5) % 1.0 - 0.5).max() < 1e-6


def test_markers_on_an_arm_that_leans_keep_their_side_of_it(robot):
    """The end lies more than half the radius beside the simulated one: closest points lie far around the arm."""
    count = 16
    uv = np.column_stack([np.arange(count) * 0.618 % 1.0, np.linspace(0.03, 0.97, count)])
    control, along = rest_surface(robot).control_points, uv[:, 1]
    beside = np.column_stack([0.7 * RADIUS * along**2, -0.3 * RADIUS * along**3, np.zeros(count)])
    markers = robot.patches.evaluate(control, uv) + beside

    def around(found: Array) -> Array:
        return np.abs((found[:, 0] - uv[:, 0] + 0.5) % 1.0 - 0.5)

    closest, _ = closest_parameters(markers, control, robot.patches)
    assert around(closest).max() > 0.08, "or the arm does not lean enough to tell"
    found = register_markers(markers, robot)
    assert around(found).max() < 0.002
    assert np.abs(found[:, 1] - along).max() < 0.002


def test_a_transfer_is_exported_with_its_seam_closed_and_a_card_that_names_the_tube(robot, tmp_path):
    ensemble = members()
    mean = SimToReal(ensemble[0].kernel_uv, mean_of([one.coefficients for one in ensemble]), ensemble[0].width)
    count = TUBE.control_points * 3
    shape_input = ShapeInput(np.zeros(count), None, np.ones(count))
    trained = TrainedSimToReal(mean, ensemble, [], shape_input, [0.5], [10], 1.0, 1.5, 0.2)
    weights = export(network_of(robot, trained))
    saved = SavedNetwork(weights)
    network = torch.jit.load(io.BytesIO(weights))
    at = pipeline(robot, np.concatenate(EDGES))
    control = torch.from_numpy(at.control_points(ACTUATION).reshape(1, -1))
    warped, sigma = network(control, torch.from_numpy(at.points(ACTUATION))[None])
    corrected = pipeline(robot, np.concatenate(EDGES), mean)
    assert np.linalg.norm(corrected.points(ACTUATION) - at.points(ACTUATION), axis=1).mean() > 1.0
    assert np.abs(warped[0].numpy() - corrected.points(ACTUATION)).max() < 1e-4
    first, second = warped[0].chunk(2)
    assert (first - second).norm(dim=-1).max() < SEAM_MM
    one_side, other_side = sigma[0].chunk(2)
    assert (one_side - other_side).abs().max() < SEAM_MM
    exact = SurfaceUncertainty(corrected, ensemble, 1.5, 0.2).along_normals(ACTUATION)
    assert sigma[0].numpy() == pytest.approx(exact, rel=0.1)
    assert len(members_of(saved)) == 3

    simulated = SimpleNamespace(weights_sha256="0" * 64)
    frames = FramesUsed(
        store="frames.zarr", via="scanner", source="this test", seed=0, created="2026-01-01", git_revision="none",
        used=[0], held_out=[1], left_out={}, points_per_frame=10, coverage_mean=1.0,
    )  # fmt: skip
    training = Training(
        recipe="default", seed=0, best_epochs=[1], validation_mm=[0.5], seconds=1.0, threads=1, continues=None
    )
    errors = HeldOutErrors(
        frames=1, before_mean=2.0, before_99_percentile=4.0, after_mean=0.5, after_99_percentile=1.0,
        noise_floor_mean=None, within_one_sigma=0.7, within_two_sigma=0.9,
    )  # fmt: skip
    made = make_sim_to_real_card(robot, simulated, trained, frames, training, errors, weights, "softform train s2r")
    SIM_TO_REAL.save(tmp_path, weights, made)
    loaded, card = SIM_TO_REAL.load(tmp_path, robot)
    assert card.forward_kinematics == KinematicsReference(weights_sha256="0" * 64)
    (surface,) = card.surfaces
    assert (surface.patch, surface.rows, surface.cols, surface.degree, surface.periodic) == ("wall", 24, 20, 3, True)
    assert [one.name for one in card.actuations] == ["p"]
    assert "(tube, u around it)" in (tmp_path / "sim_to_real.md").read_text()
    assert loaded.arrays().keys() == saved.arrays().keys()
