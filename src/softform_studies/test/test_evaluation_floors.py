"""Floors of sim-to-real learning on surfaces whose answer is known; confidence as a detector of holes."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from softform_core.errors import SoftformError
from softform_core.inverse.closest_points import closest_points_on
from softform_core.networks.sim_to_real import ShapeInput
from softform_core.robots import load_robot
from softform_core.shapes.shape import Shape
from softform_core.simulation.simulated_body import rest_points
from softform_core.surface.bspline import evaluate
from softform_core.surface.patch_set import SHEET, PatchSet
from softform_studies.sim_to_real.bench_sim_to_real import area_under_curve, confidence_map, holes_auc
from softform_studies.sim_to_real.reality_floors import fitted_surface, patch_faces
from softform_studies.sim_to_real.warp_fit import warped_onto

GRID = PatchSet.of(9, 9)


def control(height: float) -> np.ndarray:
    u, v = np.meshgrid(np.linspace(0, 1, 9), np.linspace(0, 1, 9), indexing="ij")
    return np.stack([200 * u, 200 * v, height * np.sin(np.pi * u) * np.sin(np.pi * v)], axis=-1)


def mesh(side: int, height: float) -> np.ndarray:
    """Vertices whose parameters are an even grid, so that the flat sheet of this grid is their rest shape."""
    return evaluate(control(height), SHEET.samples(side**2))


def test_the_spline_floor_of_an_arm_leaves_its_closed_end_out() -> None:
    robot = load_robot("manipulator")
    body = robot.body.simulator()
    rest = rest_points(body)
    faces = patch_faces(robot, rest, body.faces)
    assert 0 < len(faces) < len(body.faces)
    surface = fitted_surface(1000.0 * rest, 1000.0 * rest[None], faces, robot.patches, robot.patches.samples(400))[0]
    assert np.abs(np.linalg.norm(surface[:, :2], axis=1) - 25.0).max() < 0.3


@pytest.mark.parametrize(("side", "limit"), [(41, 0.2), (8, 2.0), (4, 4.0)])
def test_the_spline_floor_is_small_and_a_mesh_coarser_than_the_control_grid_can_be_fitted(
    side: int, limit: float
) -> None:
    rest = np.column_stack([SHEET.samples(side**2), np.zeros(side**2)])
    shapes = np.array([mesh(side, 30.0), mesh(side, 45.0)])
    uv = SHEET.samples(400)
    fitted = fitted_surface(rest, shapes, SHEET.triangles(side**2), GRID, uv)
    for points, shape in zip(fitted, shapes, strict=True):
        truth = closest_points_on(Shape(0.001 * shape, None, SHEET.triangles(side**2)))
        assert truth.query(points).distances.max() < limit


def test_the_warp_floor_reaches_a_surface_that_a_warp_can_reach() -> None:
    points, centers = evaluate(control(20.0), SHEET.samples(900)), evaluate(control(20.0), SHEET.samples(49))
    truth = closest_points_on(Shape(0.001 * mesh(61, 28.0), None, SHEET.triangles(61**2)))
    before, after = (truth.query(p).distances for p in (points, warped_onto(points, centers, truth, 3e-4, 8, 0.03)))
    assert after.mean() < 0.05 * before.mean()
    assert after.max() < 0.2 * before.max()


def test_the_area_under_the_curve_counts_pairs() -> None:
    random = np.random.default_rng(0)
    shown, hidden = np.round(random.normal(0.7, 0.2, 200), 1), np.round(random.normal(0.5, 0.2, 90), 1)
    pairs = shown[:, None] - hidden[None]
    assert area_under_curve(shown, hidden) == pytest.approx(((pairs > 0) + 0.5 * (pairs == 0)).mean())
    assert np.isnan(area_under_curve(shown, hidden[:0]))


def _in_hole(points: np.ndarray) -> np.ndarray:
    return np.linalg.norm(points[..., :2] - [60.0, 120.0], axis=-1) < 35.0


def test_a_confidence_that_knows_the_hole_is_a_perfect_detector_and_an_inverse_one_is_none() -> None:
    dense = evaluate(control(20.0), SHEET.samples(10_000))
    scans = [dense[~_in_hole(dense)], dense]
    surface = np.repeat(evaluate(control(20.0), SHEET.samples(900))[None], 2, axis=0)

    def members(sign: float) -> list:
        def member(points: torch.Tensor, shape: torch.Tensor) -> torch.Tensor:
            distance = torch.linalg.norm(points[..., :2] - torch.tensor([60.0, 120.0]), dim=-1)
            return torch.sigmoid(0.1 * sign * shape[:, :1] * (distance - 35.0))

        return [member, member]

    # The shape input is 1 for the first frame and 0 for the second: only the first has the hole.
    shape_input = ShapeInput(np.zeros(1), None, np.ones(1))
    control_points = np.array([[1.0], [0.0]])

    def auc(sign: float) -> float:
        trained = SimpleNamespace(confidence=members(sign), shape_input=shape_input)
        return holes_auc(confidence_map(trained, control_points, surface), surface, scans, 4.0)

    assert auc(1.0) > 0.999
    assert auc(-1.0) < 0.001


def test_a_model_from_markers_has_no_confidence() -> None:
    with pytest.raises(SoftformError, match="markers"):
        confidence_map(SimpleNamespace(confidence=[]), np.zeros((1, 3)), np.zeros((1, 1, 3)))
