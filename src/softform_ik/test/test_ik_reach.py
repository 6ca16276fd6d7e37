"""The parts of a goal without ROS: waiting for the driver, holding a command, throttling, and a goal's whole course."""

from dataclasses import replace

import numpy as np
import pytest
from builtin_interfaces.msg import Time
from granted_lease import GrantedLease
from served_models import served

from softform_client.capture_watch import CaptureWatch
from softform_client.driver_watch import DriverWatch, MeasuredValues
from softform_client.held_command import HeldCommand
from softform_client.reach_goal import Mode, ReachGoal
from softform_core.forward.corrected_pipeline import CorrectedPipeline
from softform_core.forward.history import HistoryKeeper
from softform_core.shapes.features import FeaturePoints
from softform_core.shapes.shape import Shape
from softform_core.surface.patch_set import SHEET
from softform_ik.goals.goal_server import FeedbackThrottle
from softform_ik.goals.reach_limit import ReachSettings
from softform_ik.reach.reach import Reach
from softform_ik.robot.commander import Commander
from softform_ik.robot.hardware import Hardware, HardwareSettings
from softform_ik.robot.stop_request import StopRequest
from softform_interfaces.action import ReachShape
from softform_interfaces.msg import ActuatorState, DriverState
from softform_ros.goal_error import GoalCode, GoalError
from softform_ros.histories import history_message

HIDDEN = np.array([4000.0, 500.0, 3000.0, 800.0, 2500.0, 1500.0, 200.0, 3500.0, 1000.0])
SETTLED, REGULATING = ActuatorState.SETTLED, ActuatorState.MOVING


class Clock:
    """Time that passes only when it is asked for."""

    def __init__(self, step=0.0):
        self.now, self.step = 100.0, step

    def __call__(self):
        self.now += self.step
        return self.now


def never():
    return False


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def driver(robot, clock):
    return DriverWatch(robot, state_timeout=1.0, clock=clock)


def test_readiness_names_what_is_missing(driver, robot, clock):
    for act, code, reason in (
        (lambda: None, GoalCode.DRIVER_NOT_READY, "No driver"),
        (lambda: driver.note_state(DriverState.OFFLINE, "unplugged"), GoalCode.DRIVER_NOT_READY, "unplugged"),
        (lambda: driver.note_state(DriverState.FAULT, "burst"), GoalCode.DRIVER_FAULT, "burst"),
        (lambda: driver.note_state(DriverState.SAFE, ""), GoalCode.DRIVER_NOT_READY, "actuator_state ever"),
        (
            lambda: driver.note_values(["x1"] * 9, [0.0] * 9, [SETTLED] * 9, 1.0),
            GoalCode.DRIVER_NOT_READY,
            "actuator_state ever",
        ),
    ):
        act()
        with pytest.raises(GoalError, match=reason) as rejection:
            driver.check_ready()
        assert rejection.value.code == code
    driver.note_values(robot.actuators, HIDDEN, [SETTLED] * 9, 1.0)
    driver.check_ready()
    assert driver.values == pytest.approx(HIDDEN)
    clock.now += 1.5
    with pytest.raises(GoalError, match=r"for 1\.5 s"):
        driver.check_ready()
    assert driver.values is None


def test_measured_values_are_put_in_the_robots_order(driver, robot):
    order = np.random.default_rng(0).permutation(9)
    driver.note_values([robot.actuators[i] for i in order], HIDDEN[order], [SETTLED] * 9, 1.0)
    assert driver.values == pytest.approx(HIDDEN)


def test_when_the_driver_has_stopped_following(driver):
    assert not driver.note_state(DriverState.SAFE, "at first")
    assert not driver.note_state(DriverState.RUNNING, "")
    assert driver.note_state(DriverState.SAFE, "no command came")
    assert not driver.note_state(DriverState.SAFE, "still")
    assert driver.note_state(DriverState.FAULT, "") and driver.note_state(DriverState.OFFLINE, "")


@pytest.mark.parametrize(
    ("values", "status", "stamp"),
    [(HIDDEN, [SETTLED] * 8 + [REGULATING], 2.0), (HIDDEN, [SETTLED] * 9, 1.0), (HIDDEN + 300.0, [SETTLED] * 9, 2.0)],
    ids=["one still moves", "measured before the command", "settled on another command"],
)
def test_not_yet_settled(robot, values, status, stamp):
    clock = Clock(step=0.2)
    driver = DriverWatch(robot, state_timeout=1e9, clock=clock)
    driver.note_state(DriverState.RUNNING, "")
    driver.note_values(robot.actuators, values, status, stamp)
    with pytest.raises(GoalError, match="did not settle") as failure:
        driver.wait_until_settled(HIDDEN, 250.0, 1.0, since=1.0, should_stop=never)
    assert failure.value.code == GoalCode.SETTLE_TIMEOUT


def test_settled_and_stopped_waits_end(robot, driver):
    driver.note_state(DriverState.RUNNING, "")
    driver.note_values(robot.actuators, HIDDEN + 40.0, [SETTLED] * 9, 2.0)
    settled = driver.wait_until_settled(HIDDEN, 250.0, 1.0, since=1.0, should_stop=never)
    assert settled is not None and settled.stamp == 2.0
    assert driver.wait_until_settled(HIDDEN, 250.0, 1.0, since=1.0, should_stop=lambda: True) is None


def test_captures_before_the_moment_do_not_count():
    captures = CaptureWatch(clock=Clock(step=0.3))
    moment = MeasuredValues(HIDDEN, True, 5.0, 0.0)
    captures.note("early", 5.0)
    assert captures.wait_for_one_after(moment, 1.0, never) is None
    captures.note("late", 6.0)
    captures.note("delayed", 5.5)
    found = captures.wait_for_one_after(moment, 1.0, never)
    assert found is not None and found.cloud == "late"
    assert captures.wait_for_one_after(MeasuredValues(HIDDEN, True, 9.0, 0.0), 1e9, lambda: True) is None


def test_a_clock_that_was_set_back_makes_no_old_capture_new():
    steady, wall = Clock(step=0.3), Clock(step=0.0)
    wall.now = 3600.0
    captures = CaptureWatch(steady, wall)
    captures.note("of the shape before", 3600.0)
    wall.now = 10.0  # set back by an hour; from now on stamps are small
    settled = MeasuredValues(HIDDEN, True, 5.0, steady())
    assert captures.wait_for_one_after(settled, 1.0, never) is None
    captures.note("of the settled robot", 6.0)
    found = captures.wait_for_one_after(settled, 1.0, never)
    assert found is not None and found.cloud == "of the settled robot"
    captures.note("the next one", 7.0)
    following = captures.wait_for_one_after(found, 1.0, never)
    assert following is not None and following.cloud == "the next one"


def test_a_held_command_is_repeated_until_it_is_released():
    sent = []
    held = HeldCommand(sent.append)
    held.repeat()
    assert not sent and not held.release()
    held.hold(HIDDEN)
    held.repeat()
    assert len(sent) == 2 and (sent[1] == HIDDEN).all() and (held.values == HIDDEN).all()
    assert held.release() and held.values is None
    held.repeat()
    assert len(sent) == 2


def test_nothing_is_held_once_it_is_forbidden():
    sent = []
    held = HeldCommand(sent.append)
    assert not held.hold(HIDDEN, lambda: False) and held.values is None
    assert held.hold(HIDDEN) and held.disable() and held.values is None
    assert not held.hold(HIDDEN) and not held.disable()
    held.enable()
    assert held.hold(HIDDEN) and len(sent) == 2


def test_feedback_keeps_its_rate_and_tells_each_stage():
    clock, sent = Clock(), []
    throttle = FeedbackThrottle(sent.append, 20.0, clock)
    for index in range(1000):
        throttle(ReachShape.Feedback(stage="solving", iteration=index))
        clock.now += 0.001
    assert 18 <= len(sent) <= 20
    throttle(ReachShape.Feedback(stage="moving"))
    throttle(ReachShape.Feedback(stage="settling"))
    throttle(ReachShape.Feedback(stage="settling", round=1))
    assert [(one.stage, one.round) for one in sent[-3:]] == [("moving", 0), ("settling", 0), ("settling", 1)]


def test_the_first_wish_to_stop_counts():
    stop = StopRequest()
    assert not stop() and stop.code == GoalCode.NONE
    stop.request(GoalCode.PREEMPTED)
    stop.request(GoalCode.CANCELLED)
    assert stop() and stop.code == GoalCode.PREEMPTED


class FollowingRobot:
    """Driver and scanner in one: settles on a command at once, is captured a second later."""

    def __init__(self, robot, pipeline, wall):
        self.robot, self.wall = robot, wall
        self.driver = DriverWatch(robot, state_timeout=60.0)
        self.captures, self.keeper = CaptureWatch(), HistoryKeeper(robot)
        self.keeper.note(np.zeros(9), wall() - 1.0)
        self.sent = []
        self.follows, self.scans = True, True
        self.scan = lambda values: pipeline.points(values) / 1000.0
        self.driver.note_state(DriverState.SAFE, "")
        self.driver.note_values(robot.actuators, np.zeros(9), [REGULATING] * 9, wall())

    def command(self, values):
        self.sent.append(values)
        if not self.follows:
            return
        self.wall.now += 1.0
        self.driver.note_values(self.robot.actuators, values, [SETTLED] * 9, self.wall.now)
        self.keeper.note(np.asarray(values), self.wall.now)
        self.driver.note_history(history_message(self.keeper.history, self.robot, Time()))
        if self.scans:
            self.captures.note(self.scan(values), self.wall.now + 1.0)


@pytest.fixture
def following(robot, pipeline):
    return FollowingRobot(robot, pipeline, Clock())


@pytest.fixture
def reach(robot, pipeline, following):
    return make_reach(robot, pipeline, following)


class GivenReach:
    """A `Reach` whose moving goals are given the robot first, as the server does."""

    def __init__(self, reach, commander):
        self.reach, self.commander = reach, commander

    def run(self, goal, stop, on_progress):
        if goal.mode.moves:
            self.commander.begin(stop, 1)
        return self.reach.run(goal, stop, on_progress)


def make_reach(
    robot, pipeline, following, simulated=None, captures=1, read_points=lambda cloud: cloud, most_error_mm=float("inf")
):
    commander = Commander(HeldCommand(following.command), GrantedLease(), since_boot=lambda: 0.0)
    hardware = Hardware(
        robot,
        HardwareSettings(settle_timeout=0.2, capture_timeout=0.2, captures=captures),
        following.driver,
        following.captures,
        commander,
        read_points,
        following.wall,
    )
    pipelines = served(current=pipeline, simulated=simulated or pipeline, mean_error_mm=lambda _: 0.01)
    settings = ReachSettings(tolerance=1e-6, most_error_mm=most_error_mm)
    return GivenReach(Reach(robot, pipelines, settings, hardware), commander)


@pytest.mark.parametrize("mode", list(Mode))
def test_every_mode_does_what_it_says(reach, following, shape_of, mode):
    stages = []
    outcome = reach.run(ReachGoal(shape_of(HIDDEN), mode), StopRequest(), lambda one: stages.append(one.stage))
    assert outcome.code == GoalCode.NONE and outcome.message == "" and outcome.solution is not None
    assert outcome.solution.actuation == pytest.approx(HIDDEN, abs=30.0)
    expected = ["solving"] + ["moving", "settling"] * mode.moves + ["verifying"] * mode.verifies
    assert list(dict.fromkeys(stages)) == expected
    # A robot that is as predicted needs no correction.
    assert len(following.sent) == mode.moves
    assert not outcome.used_sim_to_real and len(outcome.rounds) == mode.verifies
    if mode.verifies:
        assert outcome.measured is not None and outcome.measured.maximum < 1e-4
    else:
        assert outcome.measured is None


def test_feature_points_alone_move_the_robot(reach, following, pipeline):
    uv = np.stack(np.meshgrid([1 / 6, 0.5, 5 / 6], [1 / 6, 0.5, 5 / 6], indexing="ij"), axis=-1).reshape(-1, 2)
    features = FeaturePoints.of(uv, pipeline.at(uv).points(HIDDEN) / 1000.0)
    goal = ReachGoal(None, Mode.PLAN_AND_MOVE, features=features)
    outcome = reach.run(goal, StopRequest(), lambda one: None)
    assert outcome.code == GoalCode.NONE and following.sent[-1] == pytest.approx(HIDDEN, abs=30.0)


def test_a_measurement_may_take_several_captures(robot, pipeline, following, shape_of):
    """Each half of the robot is seen in one of two scans."""
    surface = pipeline.points(HIDDEN) / 1000.0
    right = surface[surface[:, 0] > 0.0]
    following.scan = lambda values: surface[surface[:, 0] <= 0.0]
    goal = ReachGoal(shape_of(HIDDEN), Mode.PLAN_MOVE_AND_VERIFY)

    def read_and_scan_again(cloud):
        following.captures.note(right, following.wall.now + 2.0)
        return cloud

    whole = make_reach(robot, pipeline, following, captures=2, read_points=read_and_scan_again)
    outcome = whole.run(goal, StopRequest(), lambda one: None)
    assert outcome.code == GoalCode.NONE and len(outcome.measured.points) == len(surface)
    one_only = make_reach(robot, pipeline, following, captures=2).run(goal, StopRequest(), lambda one: None)
    assert one_only.code == GoalCode.CAPTURE_TIMEOUT


def test_seed_and_limits_reach_the_solver(reach, shape_of):
    seeded = reach.run(ReachGoal(shape_of(HIDDEN), Mode.PLAN_ONLY, seed=HIDDEN), StopRequest(), lambda one: None)
    assert seeded.solution is not None and seeded.solution.iterations == 0
    coarse = ReachGoal(shape_of(HIDDEN), Mode.PLAN_ONLY, tolerance=0.5)
    assert reach.run(coarse, StopRequest(), lambda one: None).solution.iterations == 0
    rushed = reach.run(ReachGoal(shape_of(HIDDEN), Mode.PLAN_AND_MOVE, max_time=1e-9), StopRequest(), lambda one: None)
    assert rushed.code == GoalCode.SOLVER_FAILED and "max_time" in rushed.message


def test_a_plan_that_time_cut_short_says_so_and_moves_nothing(robot, pipeline, following, shape_of):
    strict = make_reach(robot, pipeline, following, most_error_mm=1e-9)
    goal = ReachGoal(shape_of(HIDDEN), Mode.PLAN_ONLY, max_time=1e-9)
    rushed = strict.run(goal, StopRequest(), lambda one: None)
    assert rushed.code == GoalCode.UNREACHABLE and not following.sent
    assert "time for solving was up" in rushed.message and "more max_time" in rushed.message
    patient = strict.run(replace(goal, max_time=0.0), StopRequest(), lambda one: None)
    assert patient.code == GoalCode.UNREACHABLE and "time" not in patient.message


def test_a_goal_may_ask_for_the_simulated_shape_alone(robot, pipeline, following, shape_of):
    learned = CorrectedPipeline(pipeline, lambda model: np.tile([0.0, 0.0, 4.0], (len(model.uv), 1)))
    reach = make_reach(robot, learned, following, simulated=pipeline)
    seen, blind = (
        reach.run(
            ReachGoal(shape_of(HIDDEN), Mode.PLAN_ONLY, without_sim_to_real=wish), StopRequest(), lambda one: None
        )
        for wish in (False, True)
    )
    assert seen.used_sim_to_real and not blind.used_sim_to_real
    assert blind.solution.actuation == pytest.approx(HIDDEN, abs=30.0)
    assert seen.solution.points == pytest.approx(
        pipeline.points(seen.solution.actuation) + [0.0, 0.0, 4.0]
    ) and seen.solution.actuation != pytest.approx(HIDDEN, abs=100.0)


def test_a_stop_while_solving_moves_nothing(reach, following, shape_of):
    stop = StopRequest()
    outcome = reach.run(
        ReachGoal(shape_of(HIDDEN), Mode.PLAN_AND_MOVE), stop, lambda one: stop.request(GoalCode.CANCELLED)
    )
    assert outcome.code == GoalCode.CANCELLED and outcome.solution is not None and not following.sent


def test_a_cancel_while_settling_holds_what_is_measured(reach, following, shape_of):
    following.follows = False
    stop = StopRequest()
    half = 0.5 * HIDDEN

    def on_progress(progress):
        if progress.stage == "settling":
            following.driver.note_values(following.robot.actuators, half, [REGULATING] * 9, following.wall())
            stop.request(GoalCode.CANCELLED)

    outcome = reach.run(ReachGoal(shape_of(HIDDEN), Mode.PLAN_AND_MOVE), stop, on_progress)
    assert outcome.code == GoalCode.CANCELLED
    assert following.sent[-1] == pytest.approx(half) and len(following.sent) == 2


def test_a_newer_goal_has_the_robot_even_if_the_older_one_was_cancelled(reach, following, shape_of):
    """Between the two wishes to end it the cancelled goal must not hold what was measured."""
    following.follows = False
    stop, newer = StopRequest(), StopRequest()

    def on_progress(progress):
        if progress.stage == "settling":
            stop.request(GoalCode.CANCELLED)
            reach.commander.begin(newer, 1)

    outcome = reach.run(ReachGoal(shape_of(HIDDEN), Mode.PLAN_AND_MOVE), stop, on_progress)
    assert outcome.code == GoalCode.CANCELLED and len(following.sent) == 1
    assert reach.commander.hold(0.5 * HIDDEN, newer) and len(following.sent) == 2


def test_failures_keep_the_solution(reach, following, shape_of):
    following.scans = False
    goal = ReachGoal(shape_of(HIDDEN), Mode.PLAN_MOVE_AND_VERIFY)
    no_capture = reach.run(goal, StopRequest(), lambda one: None)
    assert no_capture.code == GoalCode.CAPTURE_TIMEOUT and no_capture.solution is not None
    following.follows = False
    unsettled = reach.run(ReachGoal(shape_of(HIDDEN[::-1]), Mode.PLAN_AND_MOVE), StopRequest(), lambda one: None)
    assert unsettled.code == GoalCode.SETTLE_TIMEOUT and unsettled.solution is not None
    following.driver.note_state(DriverState.FAULT, "burst")
    at_fault = reach.run(ReachGoal(shape_of(HIDDEN), Mode.PLAN_AND_MOVE), StopRequest(), lambda one: None)
    assert at_fault.code == GoalCode.DRIVER_FAULT and "burst" in at_fault.message


def test_a_fault_that_was_reset_before_the_move_ends_the_goal(reach, following, shape_of):
    def on_progress(progress):
        if progress.stage == "moving":
            reach.commander.release()

    outcome = reach.run(ReachGoal(shape_of(HIDDEN), Mode.PLAN_AND_MOVE), StopRequest(), on_progress)
    assert outcome.code == GoalCode.DRIVER_FAULT and "stopped following" in outcome.message and not following.sent


def test_nothing_escapes_the_worker(reach, shape_of):
    def broken(progress):
        raise RuntimeError("feedback is gone")

    outcome = reach.run(ReachGoal(shape_of(HIDDEN), Mode.PLAN_ONLY), StopRequest(), broken)
    assert outcome.code == GoalCode.INTERNAL_ERROR and "feedback is gone" in outcome.message


@pytest.mark.parametrize("mode", [Mode.PLAN_MOVE_AND_VERIFY, Mode.CLOSED_LOOP])
def test_a_body_that_remembers_is_commanded_so_that_it_feels_the_plan(robot, remembering, body, mode):
    """Forth, back, and forth again; each goal starts from where the goal before has left the body."""
    following = FollowingRobot(robot, remembering, Clock())
    following.scan = lambda values: body(values) / 1000.0
    reach = make_reach(robot, remembering, following)
    grid = SHEET.triangles(len(remembering.uv))
    for actuation in (HIDDEN, 0.6 * HIDDEN + 300.0, HIDDEN + 200.0):
        target = Shape.from_mesh(remembering.points(actuation) / 1000.0, grid)
        planned = reach.run(ReachGoal(target, Mode.PLAN_ONLY), StopRequest(), lambda _: None)
        outcome = reach.run(ReachGoal(target, mode), StopRequest(), lambda _: None)
        assert outcome.code == GoalCode.NONE, outcome.message
        assert outcome.commands == pytest.approx(planned.commands, abs=60.0)  # what a plan alone says is to be sent
        assert np.array_equal(outcome.commands, following.sent[-1])
        off = np.abs(outcome.commands - outcome.solution.actuation)
        assert off.max() <= 151.0 and np.median(off) > 130.0  # nearly all actuators moved
        assert outcome.measured.mean < 5e-5


def test_values_at_the_end_of_the_range_are_commanded_no_further(robot, remembering, body):
    following = FollowingRobot(robot, remembering, Clock())
    following.scan = lambda values: body(values) / 1000.0
    grid = SHEET.triangles(len(remembering.uv))
    target = Shape.from_mesh(remembering.points(robot.actuation_max) / 1000.0, grid)
    goal = ReachGoal(target, Mode.PLAN_MOVE_AND_VERIFY)
    outcome = make_reach(robot, remembering, following).run(goal, StopRequest(), lambda _: None)
    assert outcome.code == GoalCode.NONE and (following.sent[-1] <= robot.actuator_max).all()


def test_the_simulation_alone_knows_of_no_memory(robot, pipeline, remembering, following, shape_of):
    reach = make_reach(robot, remembering, following, simulated=pipeline)
    goal = ReachGoal(shape_of(HIDDEN), Mode.PLAN_AND_MOVE, without_sim_to_real=True)
    outcome = reach.run(goal, StopRequest(), lambda _: None)
    assert np.array_equal(outcome.commands, outcome.solution.actuation)
