"""Paths of a robot with a surface: each waypoint solved from the one before, near it, and honestly."""

import numpy as np
import pytest
from builtin_interfaces.msg import Time
from served_models import served

from softform_client.driver_watch import DriverWatch
from softform_client.follow_messages import (
    ActuatorPath,
    FollowGoal,
    PointPath,
    ShapePath,
    goal_from_message,
    goal_to_message,
)
from softform_core.bodies.bellows.skin import outline_of
from softform_core.forward.robot_pipeline import load_pipeline
from softform_core.robots import load_robot
from softform_core.shapes.shape import Shape
from softform_core.simulation.newton import find_equilibria
from softform_core.units import MM_PER_M
from softform_ik.follow.surface import SurfacePathSolver
from softform_ik.goals.reach_limit import ReachSettings

ENDS = np.array([[500.0, 3000.0, 1000.0] * 3, [2500.0, 1000.0, 2000.0] * 3])
MIDDLE = np.array([0.5, 0.5])


@pytest.fixture(scope="module")
def solver(robot, pipeline):
    return solver_of(robot, pipeline)


def solver_of(robot, pipeline):
    models = served(simulated=pipeline, current=pipeline)
    return SurfacePathSolver(robot, models, ReachSettings(), DriverWatch(robot, 60.0), 0.01)


def never():
    return False


def between(parts):
    """Pressures on the line between two ends, (m, 9)."""
    return ENDS[0] + np.asarray(parts)[:, None] * (ENDS[1] - ENDS[0])


def solved(solver, goal, here=None):
    waypoints = list(solver.solve(goal, here, never))
    return np.array([one.actuation for one in waypoints]), np.array([one.error_mm for one in waypoints])


def test_a_path_of_shapes_is_found_again(solver, pipeline):
    hidden = between(np.linspace(0.0, 1.0, 6))
    shapes = tuple(Shape(pipeline.points(values) / MM_PER_M) for values in hidden)
    found, errors_mm = solved(solver, FollowGoal(ShapePath(shapes)), here=np.full(9, 2500.0))
    assert found == pytest.approx(hidden, abs=60.0)
    assert errors_mm.max() < 0.1


def test_one_point_of_the_surface_is_led_along_an_ellipse_without_jumps(solver, robot, pipeline):
    """Nine values and three coordinates: of all that lead the point to its place, those nearby are taken.

    Where a chamber leaves its bound the way forks, by 22 or by 26 % of the range: which way turns on the last digits
    (0.01 Pa at the start), and both are told by the bound below.
    """
    phase = np.linspace(0.0, 2.0 * np.pi, 25)[:, None]
    centre = pipeline.at(MIDDLE[None]).points(np.full(9, 2500.0))[0] / MM_PER_M
    ellipse = centre + np.hstack([0.0005 * np.cos(phase), 0.0 * phase, 0.005 * np.sin(phase)])
    found, errors_mm = solved(solver, FollowGoal(PointPath(ellipse, MIDDLE)), here=np.full(9, 2500.0))
    assert errors_mm.max() < 0.1
    assert np.abs(np.diff(found, axis=0)).max() < 0.3 * (robot.actuation_max - robot.actuation_min).max()
    reached = np.array([pipeline.at(MIDDLE[None]).points(values)[0] for values in found])
    assert np.linalg.norm(reached - ellipse * MM_PER_M, axis=1) == pytest.approx(errors_mm, abs=1e-6)


def test_the_tip_of_an_arm_that_has_a_surface_is_led_by_its_name():
    """From the goal's message to the simulated arm: what is missed is the error of N_fk, and no more."""
    arm = load_robot("compressible")
    pipeline = load_pipeline(arm, 200)
    hidden = arm.actuation_min + np.array([[0.7], [0.6], [0.5]]) * (arm.actuation_max - arm.actuation_min)
    hidden += np.tile([6e3, 0.0, -6e3], 3)
    rim = pipeline.at(arm.point_parameters("tip"))
    path = PointPath(rim.points(hidden).mean(axis=1) / MM_PER_M, output="tip")
    goal = goal_from_message(goal_to_message(FollowGoal(path), "arm", Time()), arm, "arm", 0.0, 1.0)
    found, errors_mm = solved(solver_of(arm, pipeline), goal, here=arm.safe)
    assert errors_mm.max() < 0.01
    reached = rim.points(found).mean(axis=1)
    assert np.linalg.norm(reached - path.points * MM_PER_M, axis=1) == pytest.approx(errors_mm, abs=1e-3)
    assert np.linalg.norm(np.diff(reached, axis=0), axis=1).min() > 30.0
    body = arm.body.simulator()
    plates = body.points(find_equilibria(body, found).unknowns)[:, -len(outline_of(arm.body.section)) :]
    astray = np.linalg.norm(plates.mean(axis=1) - path.points, axis=1)
    assert astray.max() < 0.01 * arm.body.size, astray


def test_a_point_out_of_reach_is_reported_by_its_error_and_stays_within_the_bounds(solver, robot):
    far = np.array([[0.0, 0.0, 0.5]])
    found, errors_mm = solved(solver, FollowGoal(PointPath(far, MIDDLE)))
    assert errors_mm[0] > 300.0
    assert (found >= robot.actuation_min).all() and (found <= robot.actuation_max).all()


def test_the_seed_goes_before_where_the_robot_is(solver, pipeline):
    """With one free point the seed decides which of the many actuations is found."""
    place = pipeline.at(MIDDLE[None]).points(np.full(9, 2000.0)) / MM_PER_M
    seeds = [np.array([0.0, 4000.0, 0.0] * 3), np.array([4000.0, 0.0, 4000.0] * 3)]
    one, other = (
        solved(solver, FollowGoal(PointPath(place, MIDDLE), seed=seed), here=np.full(9, 2000.0))[0][0] for seed in seeds
    )
    assert np.linalg.norm(one - seeds[0]) < np.linalg.norm(other - seeds[0])
    assert np.linalg.norm(other - seeds[1]) < np.linalg.norm(one - seeds[1])


def test_given_actuator_values_are_taken_as_they_are(solver):
    found, errors_mm = solved(solver, FollowGoal(ActuatorPath(ENDS)))
    assert (found == ENDS).all() and np.isnan(errors_mm).all()
    assert (solver.values(FollowGoal(ActuatorPath(ENDS)), found) == ENDS).all()
    assert not solver.uses_sim_to_real(FollowGoal(ActuatorPath(ENDS)))


def test_a_start_measured_beside_the_range_is_taken_into_it(solver, robot):
    start = solver.start(FollowGoal(ActuatorPath(ENDS)), np.array([-40.0] * 8 + [5030.0]))
    assert (start == [0.0] * 8 + [5000.0]).all()


def test_a_path_is_commanded_so_that_a_body_that_remembers_feels_it(robot, remembering):
    hidden = between([0.0, 0.5, 1.0, 0.5, 0.0])
    shapes = tuple(Shape(remembering.points(values) / MM_PER_M) for values in hidden)
    goal = FollowGoal(ShapePath(shapes))
    found, errors_mm = solved(solver_of(robot, remembering), goal, here=np.full(9, 400.0))
    play = remembering.memory
    state = play.at_rest(np.full(9, 400.0))
    for command, wanted in zip(found, hidden, strict=True):
        state = play.advance(state, command)
        assert play.now(state) == pytest.approx(wanted, abs=60.0)
    assert errors_mm.max() < 0.1 and np.abs(found - hidden).max() > 0.9 * play.lag.max()
