"""Paths of a robot with a tip: three fingers of constant curvature, led by the algorithm of paper 001."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from softform_client.driver_watch import DriverWatch
from softform_client.follow_messages import ActuatorPath, FollowGoal, PointPath
from softform_core.forward.history import History
from softform_core.forward.memory import FRAME_S, NO_MEMORY, Memory, PrandtlIshlinskii
from softform_core.forward.robot_models import ModelRequest, open_models
from softform_core.forward.tip_model import load_tip_model
from softform_core.halton import halton_actuations
from softform_core.inverse.follow_path import follow_path
from softform_core.inverse.out_of_reach import largest_deformation
from softform_core.inverse.timing import fastest_schedule
from softform_core.robots import CENTRE_LINE, load_robot
from softform_core.robots.outputs import LineLearning
from softform_core.units import MM_PER_M
from softform_ik.follow.surface import SurfacePathSolver
from softform_ik.follow.tip import TipPathSolver
from softform_ik.goals.reach_limit import TIP_REACH_PARAMETER, ReachSettings, check_reachable
from softform_ros.goal_error import GoalCode, GoalError

pytestmark = pytest.mark.slow

FINGER_MM = 120.0
POSTURE = np.array([5e3, 40e3, 20e3])


@dataclass(frozen=True)
class Fingers:
    """The tip of three fingers that bend by an angle proportional to their actuation; in reality a little less."""

    actuation_min: np.ndarray
    actuation_max: np.ndarray
    sim_to_real: float | None = None
    dimensions: int = 2
    workspace_width_mm: float = 700.0
    memory: Memory = NO_MEMORY

    @property
    def without_sim_to_real(self):
        return replace(self, sim_to_real=None)

    def tip(self, actuation):
        angles = np.asarray(actuation) / self.actuation_max * np.radians(110.0) * (self.sim_to_real or 1.0)
        headings = np.cumsum(angles, axis=-1) - angles
        half = np.where(np.abs(angles) < 1e-9, 1e-9, angles) / 2.0
        chords = FINGER_MM * np.sin(half) / half
        return np.stack([(chords * turn(headings + half)).sum(axis=-1) for turn in (np.cos, np.sin)], axis=-1)

    def tip_and_jacobian(self, actuation):
        steps = 1.0 * np.eye(len(actuation))
        columns = [(self.tip(actuation + step) - self.tip(actuation - step)) / 2.0 for step in steps]
        return self.tip(actuation), np.stack(columns, axis=-1)


@pytest.fixture(scope="module")
def robot():
    return load_robot("planar_fingers", "tip")


@pytest.fixture(scope="module")
def model(robot):
    return Fingers(robot.actuation_min, robot.actuation_max, sim_to_real=0.9)


@pytest.fixture(scope="module")
def solver(robot, model):
    return TipPathSolver(robot, model, DriverWatch(robot, 60.0))


def eight(model, waypoints=60):
    """The path of paper 001, Fig. 8, (m, 3) m, through places where fingers change sides."""
    phase = np.linspace(0.0, 2.0 * np.pi, waypoints)
    centre = model.tip(POSTURE)
    plane = centre + 40.0 * np.stack([0.5 * np.sin(2.0 * phase), np.sin(phase)], axis=1)
    return np.column_stack([plane, np.zeros(waypoints)]) / 1000.0


def solved(solver, goal, here=None):
    waypoints = list(solver.solve(goal, here, lambda: False))
    return np.array([one.actuation for one in waypoints]), np.array([one.error_mm for one in waypoints])


def test_the_eight_is_followed_without_jumps(robot, model, solver):
    goal = FollowGoal(PointPath(eight(model)))
    actuations, errors_mm = solved(solver, goal, here=robot.actuators_of(POSTURE))
    assert errors_mm.max() < 0.0018 * model.workspace_width_mm, "the paper's largest error"
    assert np.linalg.norm(model.tip(actuations) - 1000.0 * eight(model)[:, :2], axis=1) == pytest.approx(errors_mm)
    steps = np.abs(np.diff(actuations, axis=0)).max()
    assert steps < 0.2 * (robot.actuation_max - robot.actuation_min).max()
    assert solver.uses_sim_to_real(goal)


def test_without_sim_to_real_the_simulated_tip_is_led(robot, model, solver):
    goal = FollowGoal(PointPath(eight(model)), without_sim_to_real=True)
    actuations, errors_mm = solved(solver, goal, here=robot.actuators_of(POSTURE))
    assert errors_mm.max() < 1.0 and not solver.uses_sim_to_real(goal)
    assert np.linalg.norm(model.tip(actuations) - 1000.0 * eight(model)[:, :2], axis=1).max() > 5.0


def test_of_a_pair_of_chambers_one_is_empty_all_along(robot, model, solver):
    goal = FollowGoal(PointPath(eight(model)))
    actuations, _ = solved(solver, goal, here=robot.actuators_of(POSTURE))
    assert (np.sign(actuations).max(axis=0) > np.sign(actuations).min(axis=0)).any(), "a finger changes sides"
    schedule = fastest_schedule(actuations[0], actuations, robot.actuation_slew, 0.0)
    moments = np.linspace(0.0, schedule.duration, 2000)
    values = np.array([solver.values(goal, schedule.at(moment)) for moment in moments])
    assert values.shape[1] == 6 and (values >= 0.0).all()
    assert np.minimum(values[:, ::2], values[:, 1::2]).max() == 0.0
    rates = np.abs(np.diff(values, axis=0)) / np.diff(moments)[:, None]
    assert (rates <= robot.slew_rate * (1.0 + 1e-9)).all()


def test_the_path_begins_where_the_robot_is_if_it_can(robot, model, solver):
    """Redundant: the solution is that near the start (paper 001, Fig. 11)."""
    path = FollowGoal(PointPath(eight(model)[:1]))
    near = np.array([10e3, -10e3, 30e3])
    begun, _ = solved(solver, path, here=robot.actuators_of(near))
    elsewhere, _ = solved(solver, path, here=robot.actuators_of(-near))
    assert np.linalg.norm(begun[0] - near) < np.linalg.norm(elsewhere[0] - near) + 1e-9
    assert (solver.start(path, robot.actuators_of(near)) == near).all()


def test_where_the_robots_posture_does_not_keep_to_the_path_another_is_taken(robot, model, solver):
    path, bad = eight(model), np.array([23e3, -13e3, -44e3])
    stuck = follow_path(model, 1000.0 * path[:, :2], bad).errors_mm
    assert stuck.max() > 1.0, "from there alone the path is lost"
    _, errors_mm = solved(solver, FollowGoal(PointPath(path)), here=robot.actuators_of(bad))
    assert errors_mm.max() < 0.001 * model.workspace_width_mm


@pytest.mark.parametrize("share", [0.0, 0.2], ids=["play", "creeping too"])
def test_a_tip_that_remembers_is_commanded_so_that_the_path_is_in_effect(robot, model, share):
    """At the times of the path: in a hundredth of a frame hardly anything of what creeps has followed."""
    play = PrandtlIshlinskii.play(0.04 * robot.actuation_max)
    memory = replace(
        play, weights=play.weights - share, fading=np.array([0.3]), shares=np.full((1, robot.degrees_of_freedom), share)
    )
    solver = TipPathSolver(robot, replace(model, memory=memory), DriverWatch(robot, 60.0))
    times = 1e-2 * FRAME_S * np.arange(1, len(eight(model)) + 1)
    goal = FollowGoal(PointPath(eight(model)), times=times)
    commanded, errors_mm = solved(solver, goal, here=robot.actuators_of(POSTURE))
    state = memory.state_after(History(), POSTURE, 0.0)
    tips = []
    for one in commanded:
        state = memory.advance(state, one, 1e-2 * FRAME_S)
        tips.append(model.tip(memory.now(state)))
    missed = np.linalg.norm(np.array(tips) - 1000.0 * eight(model)[:, :2], axis=1)
    uncorrected = np.linalg.norm(model.tip(commanded) - 1000.0 * eight(model)[:, :2], axis=1)
    assert errors_mm.max() < 0.0018 * model.workspace_width_mm
    # A command stays where the wanted is nearly in effect, so that noise does not reverse it.
    assert missed.max() < 0.005 * model.workspace_width_mm < 0.5 * uncorrected.mean()


def test_a_point_of_the_centre_line_is_led_along_points():
    line = LineLearning(control_points=8, forward_kinematics=[20])
    rod = load_robot("three_chamber").model_copy(update={"centre_line": line})
    models, driver = open_models("fem", ModelRequest(rod, 9)), DriverWatch(rod, 60.0)
    along_line = SurfacePathSolver(rod, models, ReachSettings(), driver, 0.01)
    solver = TipPathSolver(rod, models.tip, driver, along_line)
    middle = models.current.at(np.array([[2.0, 0.5]]))
    hidden = np.linspace([2e4, 0.5e4, 0.0], [2.4e4, 0.0, 1e4], 4)
    points = np.array([middle.forward(one[None]).points[0, 0] for one in hidden]) / MM_PER_M
    goal = FollowGoal(PointPath(points, np.array([0.0, 0.5]), CENTRE_LINE))
    actuations, errors_mm = solved(solver, goal, here=hidden[0])
    assert errors_mm.max() < 0.1
    reached = np.array([middle.forward(one[None]).points[0, 0] for one in actuations])
    assert np.linalg.norm(reached - MM_PER_M * points, axis=1) == pytest.approx(errors_mm, abs=1e-6)


def test_a_point_out_of_reach_keeps_its_error(robot, solver):
    actuations, errors_mm = solved(solver, FollowGoal(PointPath(np.array([[2.0, 0.0, 0.0]]))))
    assert errors_mm[0] > 1500.0
    assert (actuations >= robot.actuation_min).all() and (actuations <= robot.actuation_max).all()


def test_given_values_of_the_actuators_are_taken_as_they_are(robot, solver):
    values = np.array([[0.0, 10e3, 20e3, 0.0, 0.0, 0.0]])
    goal = FollowGoal(ActuatorPath(values))
    actuations, errors_mm = solved(solver, goal)
    assert (solver.values(goal, actuations) == values).all() and np.isnan(errors_mm).all()
    assert (solver.start(goal, values[0] - 50.0) == np.clip(values[0] - 50.0, 0.0, None)).all()


def test_a_path_whose_first_point_is_out_of_reach_begins_where_the_robot_is(robot, model, solver):
    here = robot.actuators_of(POSTURE)
    outwards = model.tip(POSTURE) / np.linalg.norm(model.tip(POSTURE))
    far = np.array([[*(outwards * 1.2 * 3.0 * FINGER_MM / 1000.0), 0.0]])
    actuations, errors_mm = solved(solver, FollowGoal(PointPath(far)), here)
    alone = follow_path(model, 1000.0 * far[:, :2], POSTURE)
    assert errors_mm[0] > 0.05 * model.workspace_width_mm
    assert actuations[0] == pytest.approx(alone.actuations[0])


@pytest.mark.parametrize("name", ["three_chamber", "planar_fingers", "tendon_rod"])
def test_what_a_tip_can_reach_passes_and_what_lies_half_a_metre_beyond_does_not(name):
    robot = load_robot(name, "tip")
    model = load_tip_model(robot)
    most_mm = TIP_REACH_PARAMETER.default * largest_deformation(model.tip, robot.actuation_min, robot.actuation_max)
    drawn = halton_actuations(robot.actuation_min, robot.actuation_max, 40, seed=0)
    tips = np.zeros((len(drawn), 3))
    tips[:, : model.dimensions] = model.tip(drawn)
    furthest = tips[np.linalg.norm(tips - tips.mean(axis=0), axis=1).argmax()]
    outwards = (furthest - tips.mean(axis=0)) / np.linalg.norm(furthest - tips.mean(axis=0))

    def check(place_mm):
        goal = FollowGoal(PointPath(place_mm[None] / MM_PER_M))
        one = next(TipPathSolver(robot, model, DriverWatch(robot, 60.0)).solve(goal, None, lambda: False))
        check_reachable(one.error_mm, one.miss_mm, most_mm, "waypoint 1")

    for tip in tips:
        check(tip)
    with pytest.raises(GoalError, match=r"(4|5)\d\d\.\d mm away in the direction .*Nothing was moved") as failure:
        check(furthest + 500.0 * outwards)
    assert failure.value.code == GoalCode.UNREACHABLE
