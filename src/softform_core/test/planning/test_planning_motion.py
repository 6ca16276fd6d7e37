import numpy as np
import pytest
import trimesh

from softform_core.forward.robot_pipeline import load_pipeline
from softform_core.planning.clearance import ClearanceGauge
from softform_core.planning.motion import plan_motion
from softform_core.planning.motion_plan import MotionRequest, MotionSettings, NoMotionError, PlannerSettings, Rejection
from softform_core.planning.obstacles import CloudObstacle, MeshObstacle, lies_within_body
from softform_core.robots import load_robot
from softform_core.shapes.shape import Shape
from softform_core.units import MM_PER_M

pytestmark = pytest.mark.slow

SETTINGS = MotionSettings(PlannerSettings(max_seconds=30.0), goal_starts=2)
START = np.array([4000.0, 500.0, 500.0, 500.0, 3500.0, 500.0, 500.0, 500.0, 4000.0])
GOAL = np.array([500.0, 4000.0, 500.0, 4000.0, 500.0, 4000.0, 500.0, 4000.0, 500.0])


def ball_over(surface, actuation, gap, radius=10.0):
    """A ball whose lowest point is `gap` mm over the highest point of a surface."""
    points = surface.pipeline.points(actuation)
    top = points[points[:, 2].argmax()]
    mesh = trimesh.creation.icosphere(3, radius)
    return MeshObstacle(mesh.vertices + top + [0.0, 0.0, radius + gap], mesh.faces)


def rejection(*arguments, **options):
    with pytest.raises(NoMotionError) as caught:
        plan_motion(*arguments, **options)
    return caught.value


def test_a_plan_keeps_its_margin_and_the_slew_rate(surface, robot):
    stages = []
    request = MotionRequest(START, GOAL, ball_over(surface, 0.5 * (START + GOAL), 20.0), 0.001)
    plan = plan_motion(surface, robot, request, SETTINGS, on_progress=lambda one: stages.append(one.stage))
    assert plan.actuations[0] == pytest.approx(START) and plan.actuations[-1] == pytest.approx(GOAL)
    assert (plan.clearances >= plan.margins).all() and (plan.margins >= 0.001).all()
    assert plan.times[0] == 0.0
    slew = (np.abs(np.diff(plan.actuations, axis=0)) / robot.actuation_slew).max(axis=1) / np.diff(plan.times)
    assert slew == pytest.approx(1.0)
    moved = np.linalg.norm(np.diff(surface.pipeline.points(plan.actuations), axis=0), axis=2).max()
    assert moved < 1.0  # mm
    assert stages[0] == "goal" and plan.states_checked > 0
    assert np.isnan(plan.goal.mean_error_mm)


def test_a_target_shape_is_reached(surface, robot):
    target = Shape(surface.pipeline.points(GOAL) / MM_PER_M, None, surface.faces)
    request = MotionRequest(START, target, ball_over(surface, GOAL, 20.0), 0.001)
    plan = plan_motion(surface, robot, request, SETTINGS)
    assert plan.actuations[-1] == pytest.approx(GOAL, abs=20.0)
    assert plan.goal.mean_error_mm < 0.05 and plan.goal.max_error_mm < 0.5


def test_a_detour_is_made_where_the_straight_motion_rises(simulated, robot):
    """Half-way between two shapes the sheet is here and there a little higher than in both: a plate stops it there."""
    actuations = np.linspace(*_RISING, 9)
    points = simulated.pipeline.points(actuations)
    heights = points[..., 2]
    place = int((heights.max(axis=0) - np.maximum(heights[0], heights[-1])).argmax())
    disc = trimesh.creation.cylinder(6.0, 2.0, sections=24)
    disc.vertices += points[4, place] + [0.0, 0.0, 1.0]
    region = np.array([[-160.0] * 3, [160.0] * 3])
    for rise in np.arange(1.0, 8.0, 0.1):
        obstacle = MeshObstacle(disc.vertices + [0.0, 0.0, rise], disc.faces)
        gauge = ClearanceGauge(obstacle, region, simulated.faces, 1.0)
        if (gauge.spare(simulated.at(actuations[[0, -1]])) > 0.3).all():
            break
    assert gauge.spare(simulated.at(actuations)).min() < 0.25, "the straight motion must be blocked"
    plan = plan_motion(simulated, robot, MotionRequest(*_RISING, obstacle, 0.001), SETTINGS)
    assert len(plan.corners) >= 3
    dense = np.concatenate([np.linspace(a, b, 25) for a, b in zip(plan.corners[:-1], plan.corners[1:], strict=True)])
    assert (gauge.spare(simulated.at(dense)) >= 0.0).all()


_RISING = np.array(
    [[0.0, 0.0, 0.0, 5000.0, 5000.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 5000.0, 5000.0, 0.0, 0.0, 0.0]]
)


def test_the_margin_grows_with_the_uncertainty(surface, simulated, robot):
    obstacle = ball_over(surface, GOAL, 15.0)
    request = MotionRequest(GOAL, START, obstacle, 0.001)
    sure, unsure = (plan_motion(one, robot, request, SETTINGS).margins[0] for one in (simulated, surface))
    assert unsure > sure + 0.0003


def test_a_start_in_the_margin_is_rejected(surface, robot):
    error = rejection(surface, robot, MotionRequest(START, GOAL, ball_over(surface, START, 1.5), 0.001), SETTINGS)
    assert error.rejection is Rejection.START_IN_COLLISION and "1.5" in str(error) and "clearance" in str(error)


@pytest.mark.parametrize("as_shape", [True, False])
def test_a_goal_in_the_obstacle_is_rejected_and_not_replaced(surface, robot, as_shape):
    goal = Shape(surface.pipeline.points(GOAL) / MM_PER_M, None, surface.faces) if as_shape else GOAL
    request = MotionRequest(np.zeros(9), goal, ball_over(surface, GOAL, -3.0), 0.001)
    error = rejection(surface, robot, request, SETTINGS)
    assert error.rejection is Rejection.GOAL_IN_COLLISION and "keep" in str(error)


def test_an_obstacle_around_the_robot_is_rejected(surface, robot):
    room = trimesh.creation.box(extents=(1000.0, 1000.0, 1000.0))
    error = rejection(
        surface, robot, MotionRequest(START, GOAL, MeshObstacle(room.vertices, room.faces), 0.001), SETTINGS
    )
    assert error.rejection is Rejection.OBSTACLE_ENCLOSES


@pytest.mark.parametrize("kind", [MeshObstacle, lambda vertices, faces: CloudObstacle(vertices)])
def test_an_obstacle_under_the_sheet_is_rejected(surface, robot, kind):
    mesh = trimesh.creation.icosphere(2, 5.0)
    obstacle = kind(mesh.vertices + [0.0, 0.0, 22.0], mesh.faces)
    start = np.full(9, 4000.0)
    error = rejection(surface, robot, MotionRequest(start, GOAL, obstacle, 0.001), SETTINGS)
    assert error.rejection is Rejection.START_IN_COLLISION and "inside its body" in str(error)


def test_where_an_arm_has_left_its_resting_place_is_not_in_its_body():
    arm = load_robot("manipulator")
    pipeline = load_pipeline(arm, 21**2)
    bent, resting = pipeline.points(np.array([[6e4, 0.0, 0.0, 6e4, 0.0, 0.0], arm.rest_actuation]))
    ball, faces = trimesh.creation.icosphere(1, 5.0), arm.patches.triangles(21**2)
    for place, expected in ((resting, False), (bent, True)):
        obstacle = MeshObstacle(ball.vertices + place[place[:, 2] > 200.0].mean(axis=0), ball.faces)
        assert lies_within_body(obstacle, bent, resting, faces) is expected


def test_a_stop_ends_planning(surface, robot):
    asked = []

    def should_stop():
        asked.append(True)
        return len(asked) > 1

    request = MotionRequest(START, GOAL, ball_over(surface, START, 30.0), 0.001)
    assert rejection(surface, robot, request, SETTINGS, should_stop).rejection is Rejection.STOPPED
