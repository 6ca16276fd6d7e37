"""Algorithm 2 of paper 000: recovers pressures and pose, agrees with ours, respects limits and the caller."""

from dataclasses import replace

import numpy as np
import pytest

from softform_core.geometry.rigid import RigidTransform
from softform_core.inverse.closest_points import MeshSearch, closest_points_on
from softform_core.inverse.ik_options import Termination
from softform_core.inverse.inverse import solve_inverse_kinematics
from softform_core.shapes.shape import Shape
from softform_core.surface.patch_set import SHEET
from softform_studies.ik.gradient_descent import descend, icp

pytestmark = pytest.mark.slow

MOVED = RigidTransform().moved(np.array([0.1, -0.05, 0.15]), np.array([0.012, -0.007, 0.02]), np.zeros(3))


def hidden_actuation(seed):
    return np.random.default_rng(seed).uniform(0.0, 5000.0, 9)


def test_recovers_the_pose_of_a_moved_target(membrane, shape_of, options):
    hidden = hidden_actuation(3)
    target = shape_of(membrane, hidden).transformed(MOVED.rotation, MOVED.translation)
    result = descend(membrane, closest_points_on(target), replace(options, fix_pose=False, max_iterations=300))
    assert result.mean_error_mm < 0.01
    assert result.actuation == pytest.approx(hidden, abs=5.0)
    assert np.allclose(result.pose.rotation @ MOVED.rotation, np.eye(3), atol=1e-3)
    assert descend(membrane, closest_points_on(target), options).mean_error_mm > 1.0


@pytest.mark.parametrize("reachable", [True, False])
@pytest.mark.parametrize("fix_pose", [True, False])
def test_both_methods_agree_on_the_objective(membrane, shape_of, options, reachable, fix_pose):
    target = shape_of(membrane, hidden_actuation(8))
    if not reachable:
        target = Shape(target.points * [1.0, 1.0, 1.4] + [0.0, 0.0, 0.004], None, target.faces)
    exact = replace(options, fix_pose=fix_pose, relative_decrease=1e-7, max_iterations=1000)
    ours = solve_inverse_kinematics(membrane, target, exact)
    reference = descend(membrane, closest_points_on(target), exact)
    assert ours.objective <= reference.objective * 1.02 + 1e-3
    assert ours.iterations < reference.iterations
    if not reachable:
        assert ours.objective > 1.0
    if not reachable and fix_pose:
        assert ours.objective == pytest.approx(reference.objective, rel=0.02)


def test_objective_never_rises_and_is_eq_15(membrane, shape_of, options):
    target = shape_of(membrane, hidden_actuation(9))
    result = descend(membrane, closest_points_on(target), replace(options, fix_pose=False))
    objectives = [step.objective for step in result.history]
    assert all(later <= earlier for earlier, later in zip(objectives[:-1], objectives[1:], strict=True))
    assert result.objective == pytest.approx(float((result.matches.distances[result.covered] ** 2).sum()), rel=1e-9)


def test_cancel_and_limits_give_the_best_so_far(membrane, shape_of, options):
    target, seen = shape_of(membrane, hidden_actuation(12)), []
    cancelled = descend(membrane, closest_points_on(target), options, seen.append, lambda: len(seen) >= 3)
    assert cancelled.termination is Termination.CANCELLED
    assert [step.iteration for step in seen] == [0, 1, 2]
    assert (cancelled.actuation == seen[-1].actuation).all() and cancelled.mean_error_mm == seen[-1].mean_error_mm
    few = descend(membrane, closest_points_on(target), replace(options, max_iterations=2))
    assert few.termination is Termination.MAX_ITERATIONS and few.iterations == 2
    short = descend(membrane, closest_points_on(target), replace(options, max_seconds=1e-9))
    assert short.termination is Termination.TIME_LIMIT and (short.actuation == 2500.0).all()


def test_icp_brings_a_moved_target_back(membrane):
    points = membrane.points(np.array([4000.0, 500, 500, 500, 2500, 500, 500, 500, 1000]))
    motion = RigidTransform().moved(np.array([0.02, -0.03, 0.05]), np.array([2.0, -3.0, 4.0]), np.zeros(3))
    target = MeshSearch(motion.apply(points), SHEET.triangles(len(points)))
    start_error = np.linalg.norm(target.query(points).distances)
    pose, matchings = icp(points, target, RigidTransform(), max_iterations=200, relative_decrease=1e-6)
    error = np.linalg.norm(target.query(pose.apply_inverse(points)).distances)
    assert error < 0.02 * start_error and 1 < matchings <= 200
    one, used = icp(points, target, RigidTransform(), max_iterations=1)
    assert used == 1 and np.allclose(one.rotation, np.eye(3))
