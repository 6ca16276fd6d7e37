"""A robot whose surface has two patches that meet: simulated, learned, transferred, judged and brought to a shape."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from click.testing import CliRunner

from softform_core.arrays import Array
from softform_core.cli.train import train
from softform_core.errors import SoftformError
from softform_core.evaluation.comparison import PredictedSurface, compare_markers, compare_scan
from softform_core.evaluation.evaluate import JudgedFrame
from softform_core.evaluation.report_figures import report_figures
from softform_core.forward.pipeline import ForwardPipeline
from softform_core.forward.robot_pipeline import load_pipeline
from softform_core.forward.sim_to_real_export import SimToRealNetwork
from softform_core.forward.sim_to_real_store import members_of
from softform_core.forward.surface_uncertainty import SurfaceUncertainty
from softform_core.frames.frames import Frames
from softform_core.frames.quality import COVERAGE_CELLS, assess_cloud
from softform_core.frames.store import create_frames
from softform_core.inverse.closest_points import closest_points_on
from softform_core.inverse.ik_options import IkOptions
from softform_core.inverse.inverse import solve_inverse_kinematics
from softform_core.inverse.residual_field import ResidualField, surface_residuals
from softform_core.networks.mlp_weights import extract_mlp
from softform_core.networks.store import load_forward_kinematics
from softform_core.planning.surface_margins import MarginedSurface
from softform_core.registration.markers import register_markers
from softform_core.registration.rest_surface import rest_surface
from softform_core.robots import Robot, load_robot
from softform_core.shapes.shape import Shape
from softform_core.simulation.generate import generate
from softform_core.simulation.sampling import inflations
from softform_core.simulation.simulated_body import equilibrium_points
from softform_core.surface.patch_set import SHEET
from softform_core.training.border import Border
from softform_core.training.ensemble import TrainingRun
from softform_core.training.recipe import DEFAULT
from softform_core.training.sim_to_real import train_sim_to_real
from softform_core.training.trained_sim_to_real import TrainedSimToReal
from softform_core.units import MM_PER_M

DESCRIPTION = """
name: halves
title: A coarse membrane over two chambers, measured in two halves
source: test
body: {kind: membrane, width: 0.2, length: 0.1, thickness: 0.002, rows: 1, columns: 2, cells: 12, density: 1080.0,
       material: {law: yeoh, coefficients: [160000.0, 1000.0, 4000.0]}, wall_stiffness: 2000.0}
actuators: {minimum: 0.0, maximum: 5000.0, slew_rate: 4000.0}
surfaces: [{patch: left, rows: 6, columns: 8, degree: 3}, {patch: right, rows: 5, columns: 8, degree: 3}]
devices: [{name: board, channels: [0, 1]}]
"""
UNSEEN = np.array([1600.0, 4100.0])
TALLER = np.array([1.0, 1.0, 1.2])
TINY = replace(DEFAULT, epochs=100, patience=100, batch_size=4, kernels=32, surface_points=200, components=2,
               hidden=(16, 16), members=2, confidence_steps=5, folds=4)  # fmt: skip


def anywhere(count: int, seed: int = 0) -> Array:
    """Random parameters on both patches, not too near to their borders."""
    random = np.random.default_rng(seed)
    return random.uniform(0.02, 0.98, (count, 2)) + [2.0, 0.0] * random.integers(2, size=(count, 1))


@pytest.fixture(scope="module")
def robot(tmp_path_factory) -> Robot:
    path = tmp_path_factory.mktemp("halves") / "halves.yaml"
    path.write_text(DESCRIPTION)
    return load_robot(path)


@pytest.fixture(scope="module")
def model(robot: Robot) -> Path:
    """Its N_fk, from really simulated shapes, by the command."""
    place = Path(robot.given_as).parent
    generate(robot, inflations(robot, 40, seed=0), place / "halves.zarr", jobs=1, progress=False)
    arguments = ["fk", "--robot", robot.given_as, "--data", place / "halves.zarr", "--output", place, "--epochs", "400"]
    done = CliRunner().invoke(train, [str(one) for one in arguments], env={"SOFTFORM_RUNS": str(place / "runs")})
    assert done.exit_code == 0, done.output
    assert "6 x 8 control points" in (place / "README.md").read_text()
    return place


@pytest.fixture(scope="module")
def pipeline(robot: Robot, model: Path) -> ForwardPipeline:
    return load_pipeline(robot, 800, model)


@pytest.fixture(scope="module")
def transfer(robot: Robot, model: Path, pipeline: ForwardPipeline) -> TrainedSimToReal:
    """What was learned of a robot that rises higher than simulated."""
    actuation = np.random.default_rng(1).uniform(0.0, 5000.0, (12, 2))
    seen = pipeline.at(anywhere(600))
    clouds, normals = TALLER * seen.points(actuation) / MM_PER_M, seen.normals(actuation) / TALLER
    normals /= np.linalg.norm(normals, axis=-1, keepdims=True)
    weights = extract_mlp(load_forward_kinematics(robot, model)[0])
    run = TrainingRun(0, robot.patches)
    return train_sim_to_real(weights, Frames(actuation, list(clouds), list(normals)), TINY, run)


@pytest.fixture(scope="module")
def real(pipeline: ForwardPipeline, robot: Robot, model: Path, transfer: TrainedSimToReal) -> ForwardPipeline:
    weights = extract_mlp(load_forward_kinematics(robot, model)[0])
    return ForwardPipeline(weights, pipeline.uv, transfer.sim_to_real, robot.patches, precision=np.float64)


@pytest.mark.long
def test_the_halves_meet_and_lie_on_the_simulated_mesh(robot: Robot, pipeline: ForwardPipeline, real: ForwardPipeline):
    assert (robot.patches.control_points, len(pipeline.uv)) == (6 * 8 + 5 * 8, 2 * 20**2)
    v = np.linspace(0.0, 1.0, 30)
    for surface in (pipeline, real):
        last, first = (surface.at(np.column_stack([np.full(30, u), v])).points(UNSEEN) for u in (1.0, 2.0))
        assert np.linalg.norm(last - first, axis=1).max() < 0.05
    left, right = np.split(pipeline.points(UNSEEN), 2)
    assert left[:, 0].max() < 0.6 and right[:, 0].min() > -0.6
    faces = robot.patches.triangles(800)
    assert len(faces) == 2 * 2 * 19**2 and not ((faces < 400).any(axis=1) & (faces >= 400).any(axis=1)).any()


def test_an_unseen_simulated_shape_is_reached(robot: Robot, pipeline: ForwardPipeline):
    body = robot.body.simulator()
    target = Shape.from_mesh(equilibrium_points(body, UNSEEN[None])[0], body.faces.astype(np.int64))
    result = solve_inverse_kinematics(
        pipeline, target, IkOptions(robot.actuation_min, robot.actuation_max, fix_pose=True)
    )
    assert result.mean_error_mm < 0.3 and result.actuation == pytest.approx(UNSEEN, abs=300.0)


def test_derivatives_on_both_patches(real: ForwardPipeline):
    jacobian = real.points_and_jacobian(UNSEEN)[1]
    for chamber, step in enumerate(0.01 * np.eye(2)):  # small: N_fk has kinks
        moved = (real.points(UNSEEN + step) - real.points(UNSEEN - step)) / 0.02
        assert jacobian[..., chamber] == pytest.approx(moved, abs=1e-4 * np.abs(moved).max())
    uv, step = anywhere(20), 1e-5
    along = [real.at(uv + shift).points(UNSEEN) - real.at(uv - shift).points(UNSEEN) for shift in step * np.eye(2)]
    normals = np.cross(*along)
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    assert real.at(uv).normals(UNSEEN) == pytest.approx(normals, abs=1e-3)


def test_the_transfer_corrects_both_patches_and_its_export_agrees(robot, pipeline, real, transfer):
    for simulated, corrected in zip(
        np.split(pipeline.points(UNSEEN), 2), np.split(real.points(UNSEEN), 2), strict=True
    ):
        true = closest_points_on(Shape.from_mesh(TALLER * simulated / MM_PER_M, SHEET.triangles(400)))
        before, after = (true.query(points).distances.mean() for points in (simulated, corrected))
        assert after < 0.25 * before, (after, before)
    network = torch.jit.script(SimToRealNetwork(transfer.members, 1.0, 0.1, robot.patches))
    effective = network.effective(torch.from_numpy(UNSEEN[None]))[0].numpy()
    control, points = pipeline.control_points(effective).reshape(1, -1), pipeline.points(effective)[None]
    warped, sigma = network(torch.from_numpy(control), torch.from_numpy(points))
    assert warped[0].numpy() == pytest.approx(real.points(UNSEEN), abs=1e-3)
    spread = SurfaceUncertainty(real, transfer.members, 1.0, 0.1)
    assert sigma[0].numpy() == pytest.approx(spread.along_normals(UNSEEN), rel=0.1)
    assert np.array_equal(members_of(network)[0].kernel_uv, robot.patches.kernels(32))


def test_only_sides_at_which_the_surface_ends_are_borders(robot: Robot, pipeline: ForwardPipeline):
    border = Border.of(robot.patches, pipeline.points(UNSEEN))
    uv = pipeline.uv[border.index]
    assert len(uv) == 6 * 18 and not np.isin(uv[:, 0], (1.0, 2.0)).any()
    assert {0.0, 3.0} <= set(uv[:, 0])
    ones = torch.ones(1, len(uv))
    assert border.running_sum(ones).max() == 7.0


def test_captures_are_judged_on_both_patches(robot: Robot, pipeline: ForwardPipeline, tmp_path: Path):
    scattered = pipeline.at(anywhere(4000))
    captured = (scattered.points(UNSEEN) + 0.5 * scattered.normals(UNSEEN)) / MM_PER_M
    quality = assess_cloud(captured, robot, pipeline.points(UNSEEN) / MM_PER_M)
    assert quality.fault == "" and quality.covered.shape == (2 * COVERAGE_CELLS, COVERAGE_CELLS)
    assert quality.coverage > 0.95
    without_right = assess_cloud(captured[captured[:, 0] < 0.0], robot)
    assert without_right.covered[:COVERAGE_CELLS].mean() > 0.9 and not without_right.covered[COVERAGE_CELLS + 1 :].any()
    provenance = {"seed": 0, "source": "test", "via": "scanner", "git_revision": "none", "created": "now"}
    store = create_frames(tmp_path / "frames.zarr", robot, UNSEEN[None], provenance)
    store.write_captured(0, captured, UNSEEN, 1.0, quality)
    assert np.array_equal(store.covered[0], quality.covered)

    surface = PredictedSurface.of(pipeline, UNSEEN, np.full(800, 0.5))
    scan = compare_scan(surface, captured)
    assert scan.beside == scan.folded == 0 and np.abs(scan.along_normal - 0.5).mean() < 0.05
    places = anywhere(12)
    markers = compare_markers(surface, pipeline.at(places).points(UNSEEN) / MM_PER_M + [0.0, 0.0, 1e-3], places)
    assert markers.distances == pytest.approx(1.0, abs=0.15)
    drawn = report_figures([JudgedFrame(0, False, 0.0, scan, scan)])[0].figure.axes[0].collections
    assert sum(type(one).__name__ == "Poly3DCollection" for one in drawn) == 2

    residuals = surface_residuals(pipeline.points(UNSEEN), captured * MM_PER_M, robot.patches)
    field = ResidualField.zero(robot.patches).towards(residuals)
    assert np.abs(field.values(anywhere(200, 3)) - 0.5).mean() < 0.02
    with pytest.raises(SoftformError, match="unit square"):
        pipeline.at(np.array([[1.5, 0.5]]))


def test_markers_are_found_on_either_patch_and_margins_kept(robot: Robot, pipeline: ForwardPipeline):
    places = anywhere(12)
    found = register_markers(robot.patches.evaluate(rest_surface(robot).control_points, places), robot)
    assert found == pytest.approx(places, abs=1e-4)
    states = MarginedSurface(pipeline, None).at(UNSEEN[None])
    assert states.allowance.shape == (1, 800) and 0.0 < states.allowance.max() < 5.0


def test_a_patch_is_named_once(tmp_path: Path):
    content = yaml.safe_load(DESCRIPTION)
    content["surfaces"] = 2 * content["surfaces"][:1]
    (tmp_path / "twice.yaml").write_text(yaml.safe_dump(content))
    with pytest.raises(SoftformError, match="each patch may be named once"):
        load_robot(tmp_path / "twice.yaml")
