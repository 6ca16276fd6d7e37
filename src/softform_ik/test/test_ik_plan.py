"""Goals of `plan_to_shape` without ROS's transport: which models a plan uses, and what each failure is called."""

from dataclasses import replace

import numpy as np
import pytest
import trimesh
from builtin_interfaces.msg import Time
from served_models import served

from softform_client.driver_watch import DriverWatch
from softform_client.plan_messages import PlanGoal, goal_from_message, goal_to_message
from softform_core.forward.history import HistoryKeeper
from softform_core.forward.live_pipeline import LivePipeline
from softform_core.forward.robot_models import LiveModels
from softform_core.paths import models_dir
from softform_core.planning.motion_plan import MotionSettings, PlannerSettings
from softform_core.shapes.shape import Shape
from softform_core.surface.patch_set import SHEET
from softform_ik.plan.plan import CODE_OF, Plan
from softform_ik.robot.stop_request import StopRequest
from softform_interfaces.msg import ActuatorState
from softform_ros.conversions import stamp_from_seconds
from softform_ros.goal_error import GoalCode
from softform_ros.histories import history_message

START, GOAL = np.full(9, 500.0), np.full(9, 3000.0)
SETTINGS = MotionSettings(PlannerSettings(max_seconds=20.0), goal_starts=1, waypoint_spacing=0.005)


@pytest.fixture(scope="module")
def live(robot):
    return LivePipeline(robot, 41**2, sim_to_real=str(models_dir() / robot.name / "rig_default"))


def ball():
    mesh = trimesh.creation.icosphere(2, 0.01)
    return Shape.from_mesh(mesh.vertices + [0.0, 0.0, 0.09], mesh.faces)


def planned(robot, models, goal, on_progress=lambda _: None, stop=None):
    return Plan(robot, models, SETTINGS, DriverWatch(robot, 60.0)).run(goal, stop or StopRequest(), on_progress)


def test_a_plan_keeps_the_models_that_it_began_with(robot, live):
    goal = PlanGoal(GOAL, ball(), START, 0.001)
    expected = planned(robot, live, goal)
    swapping = served(models=live.models, simulated=live.simulated)

    def swap(_):
        swapping.models = LiveModels(live.simulated, None, None, live.models.since)

    swapped = planned(robot, swapping, goal, swap)
    assert swapping.models.uncertainty is None
    assert swapped.used_sim_to_real and swapped.code == GoalCode.NONE
    assert swapped.plan.clearances == pytest.approx(expected.plan.clearances)
    after = planned(robot, swapping, goal)
    assert not after.used_sim_to_real
    assert abs(after.plan.clearances[-1] - expected.plan.clearances[-1]) > 0.001


def test_what_fails_has_a_code(robot, live, monkeypatch):
    assert set(CODE_OF.values()) == {
        GoalCode.INVALID_OBSTACLES,
        GoalCode.START_IN_COLLISION,
        GoalCode.GOAL_IN_COLLISION,
        GoalCode.UNREACHABLE,
        GoalCode.NO_PATH,
    }
    assert planned(robot, live, PlanGoal(GOAL, ball())).code == GoalCode.INVALID_START
    stop = StopRequest()
    stop.request(GoalCode.CANCELLED)
    assert planned(robot, live, PlanGoal(GOAL, ball(), START), stop=stop).code == GoalCode.CANCELLED

    def breaks(_):
        raise ZeroDivisionError("broken")

    outcome = planned(robot, live, PlanGoal(GOAL, ball(), START), breaks)
    assert outcome.code == GoalCode.INTERNAL_ERROR and "broken" in outcome.message and outcome.plan is None


@pytest.mark.parametrize("target", [GOAL, ball()], ids=["values", "shape"])
def test_a_goal_survives_its_message(robot, target):
    goal = PlanGoal(target, Shape(ball().points), START, 0.002, max_time=12.0, without_sim_to_real=True)
    message = goal_to_message(goal, "base_link", stamp_from_seconds(100.0))
    back = goal_from_message(message, robot, "base_link", 100.0, 60.0)
    if isinstance(target, Shape):
        assert (
            back.target.points == pytest.approx(target.points, abs=1e-6) and (back.target.faces == target.faces).all()
        )
    else:
        assert back.target == pytest.approx(target)
    assert back.obstacle.faces is None and back.obstacle.points == pytest.approx(goal.obstacle.points, abs=1e-6)
    assert back.start == pytest.approx(START)
    assert (back.clearance, back.max_time, back.without_sim_to_real) == (0.002, 12.0, True)


def test_the_commands_of_a_plan_take_a_body_that_remembers_along_it(robot, live, remembering):
    model = remembering.at(SHEET.samples(41**2))
    models = served(models=replace(live.models, pipeline=model), simulated=live.simulated)
    driver, play, keeper = DriverWatch(robot, 60.0), remembering.memory, HistoryKeeper(robot)
    for second, values in enumerate((np.full(9, 1500.0), START)):  # the body came from above
        driver.note_values(robot.actuators, values, [ActuatorState.SETTLED] * 9, 10.0 * second)
        keeper.note(values, 10.0 * second)
    driver.note_history(history_message(keeper.history, robot, Time()))
    outcome = Plan(robot, models, SETTINGS, driver).run(PlanGoal(GOAL, ball()), StopRequest(), lambda _: None)
    assert outcome.code == GoalCode.NONE, outcome.message
    state = play.advance(play.at_rest(np.full(9, 1500.0)), START)
    assert play.now(state) == pytest.approx(START + play.lag)
    assert outcome.plan.actuations[0] == pytest.approx(START + play.lag)
    assert outcome.commands[0] == pytest.approx(START)  # it stays where it is until it goes
    for command, wanted in zip(outcome.commands, outcome.plan.actuations, strict=True):
        state = play.advance(state, command)
        assert play.now(state) == pytest.approx(wanted, abs=0.11 * play.lag.max())
    rates = np.abs(np.diff(outcome.commands, axis=0)) / np.diff(outcome.plan.times)[:, None]
    assert (np.diff(outcome.plan.times) > 0.0).all() and (rates <= robot.actuation_slew * (1.0 + 1e-9)).all()
