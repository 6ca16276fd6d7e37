"""Following without ROS, in a time of its own: schedules obeyed, and every way in which a path can end."""

import numpy as np
import pytest
from granted_lease import GrantedLease

from softform_client.capture_watch import CaptureWatch
from softform_client.follow_messages import ActuatorPath, FollowGoal, PointPath
from softform_client.held_command import HeldCommand
from softform_core.errors import SoftformError
from softform_ik.follow.follow import Follow, FollowSettings, TipRecord
from softform_ik.follow.motion import LONGEST_STEP, PathMover
from softform_ik.follow.solver import SolvedWaypoint
from softform_ik.robot.commander import Commander
from softform_ik.robot.hardware import Hardware, HardwareSettings
from softform_ik.robot.stop_request import StopRequest
from softform_ros.goal_error import GoalCode, GoalError

SLEW_RATE = 4000.0
SETTLE_TIME = 0.6
SETTLES_IN = 0.9
PATH = np.array([[1000.0] * 9, [2000.0] * 9, [0.0] * 9, [3000.0, *[500.0] * 8]])


class Laboratory:
    """A robot whose driver follows at once; time passes only while somebody sleeps or waits."""

    def __init__(self, robot):
        self.robot, self.now = robot, 0.0
        self.fault = None
        self.settles = True
        self.stall_at = np.inf
        self.at = {}
        self.commands = []
        self.held = HeldCommand(self.publish)
        self.commander = Commander(self.held, GrantedLease(), wall_clock=self.clock)
        hardware = Hardware(robot, HardwareSettings(), self, CaptureWatch(), self.commander, lambda cloud: cloud)
        self.mover = PathMover(0.1, self, self.commander, hardware, self.clock, lambda: 1e6 + self.now, self.sleep)
        self.tip = TipRecord()

    def publish(self, values):
        self.commands.append((self.now, values))

    def clock(self):
        return self.now

    def sleep(self, seconds):
        if self.now >= self.stall_at:
            self.stall_at, seconds = np.inf, 5.0
        self.now += seconds
        for moment in [moment for moment in self.at if moment <= self.now]:
            self.at.pop(moment)()

    @property
    def values(self):
        return self.commands[-1][1] if self.commands else np.zeros(9)

    def check_ready(self):
        if self.fault:
            raise GoalError(GoalCode.DRIVER_FAULT, f"The pneumatic driver is at fault: {self.fault}", "Reset it.")

    def wait_until_settled(self, command, tolerance, timeout, since, should_stop):
        assert self.values == pytest.approx(command)
        if not self.settles:
            raise GoalError(GoalCode.SETTLE_TIMEOUT, "The robot did not settle.", "Look for a leak.")
        self.sleep(SETTLES_IN)
        self.check_ready()

    def follow(self, solver=None):
        solver = solver or GivenPaths()
        solver.robot = self.robot
        return Follow(solver, FollowSettings(SETTLE_TIME), self.mover, self.tip)

    def run(self, goal, stop=None, solver=None, on_progress=lambda progress: None):
        stop = stop or StopRequest()
        if not goal.plan_only:
            self.commander.begin(stop, 1)
        return self.follow(solver).run(goal, stop, on_progress)

    def assert_never_faster_than_the_slew_rate(self):
        assert len(self.commands) > 10
        for (before, earlier), (after, later) in zip(self.commands, self.commands[1:], strict=False):
            assert np.abs(later - earlier).max() <= SLEW_RATE * (after - before) + 1e-6


class GivenPaths:
    """Takes actuator values as they are; the waypoint numbered `fails_at` cannot be solved for."""

    def __init__(self, fails_at=None, failure=None):
        self.fails_at, self.failure = fails_at, failure

    def solve(self, goal, here, should_stop):
        waypoints = goal.path.values if isinstance(goal.path, ActuatorPath) else PATH[: len(goal.path.points)]
        for number, values in enumerate(waypoints, 1):
            if number == self.fails_at:
                raise self.failure
            yield SolvedWaypoint(values, 0.25)

    def start(self, goal, here):
        return here

    def values(self, goal, actuations):
        return actuations

    def slew_rate(self, goal):
        return np.full(PATH.shape[1], SLEW_RATE)

    def uses_sim_to_real(self, goal):
        return not goal.without_sim_to_real


@pytest.fixture
def laboratory(robot):
    return Laboratory(robot)


def test_without_times_the_robot_settles_at_every_waypoint(laboratory):
    seen = []
    outcome = laboratory.run(FollowGoal(ActuatorPath(PATH)), on_progress=seen.append)
    assert (outcome.code, outcome.message) == (GoalCode.NONE, "") and (outcome.values == PATH).all()
    laboratory.assert_never_faster_than_the_slew_rate()
    assert (laboratory.commander.values == PATH[-1]).all()
    legs = np.array([1000.0, 1000.0, 2000.0, 3000.0]) / SLEW_RATE
    assert outcome.due == pytest.approx(np.cumsum(legs + SETTLE_TIME + SETTLES_IN), abs=0.01)
    assert [(one.stage, one.waypoint) for one in seen] == [
        *(("solving", number) for number in (1, 2, 3, 4)),
        *(("moving", number) for number in (1, 2, 3, 4)),
    ]
    assert outcome.used_sim_to_real and np.isnan(outcome.measured_errors_mm).all()
    assert len(outcome.measured_errors_mm) == 4


def test_with_times_every_waypoint_is_reached_at_its_time(laboratory):
    times = np.array([0.5, 0.75, 2.0, 2.75])
    reached = []
    outcome = laboratory.run(
        FollowGoal(ActuatorPath(PATH), times),
        on_progress=lambda one: one.stage == "moving" and reached.append((laboratory.now, laboratory.values)),
    )
    assert outcome.code == GoalCode.NONE and outcome.due == pytest.approx(times, abs=0.01)
    assert [moment for moment, _ in reached] == pytest.approx(times, abs=0.01)
    assert np.array([values for _, values in reached]) == pytest.approx(PATH)
    laboratory.assert_never_faster_than_the_slew_rate()


def test_a_process_that_stalls_goes_on_later_and_not_faster(laboratory):
    laboratory.stall_at = 0.6
    outcome = laboratory.run(FollowGoal(ActuatorPath(PATH), np.array([0.5, 0.75, 2.0, 2.75])))
    assert outcome.code == GoalCode.NONE and outcome.due[-1] > 7.0
    steps = np.abs(np.diff([values for _, values in laboratory.commands], axis=0))
    assert steps.max() <= SLEW_RATE * 0.1 * LONGEST_STEP + 1e-6


def test_planning_alone_commands_nothing(laboratory):
    outcome = laboratory.run(FollowGoal(ActuatorPath(PATH), plan_only=True, without_sim_to_real=True))
    assert outcome.code == GoalCode.NONE and not laboratory.commands
    assert outcome.due == pytest.approx(np.cumsum(np.array([0.25, 0.25, 0.5, 0.75]) + SETTLE_TIME))
    assert len(outcome.measured_errors_mm) == 0 and not outcome.used_sim_to_real


def test_times_that_the_slew_rate_does_not_allow_move_nothing(laboratory):
    outcome = laboratory.run(FollowGoal(ActuatorPath(PATH), np.array([0.5, 0.7, 2.0, 3.0])))
    assert outcome.code == GoalCode.INVALID_TIMES and "Waypoint 2" in outcome.message
    assert not laboratory.commands and (outcome.values == PATH).all() and len(outcome.due) == 0


@pytest.mark.parametrize(
    ("failure", "code"),
    [
        (SoftformError("No such shape.", "Give another."), GoalCode.SOLVER_FAILED),
        (KeyError("bug"), GoalCode.INTERNAL_ERROR),
    ],
)
def test_a_waypoint_that_cannot_be_solved_for_moves_nothing(laboratory, failure, code):
    outcome = laboratory.run(FollowGoal(ActuatorPath(PATH)), solver=GivenPaths(3, failure))
    assert outcome.code == code and outcome.message
    assert (outcome.values == PATH[:2]).all() and not laboratory.commands


def test_cancelled_the_robot_stays_where_it_is(laboratory):
    stop = StopRequest()
    laboratory.at[2.3] = lambda: stop.request(GoalCode.CANCELLED)
    outcome = laboratory.run(FollowGoal(ActuatorPath(PATH)), stop)
    assert outcome.code == GoalCode.CANCELLED and "1 of 4 waypoints were reached" in outcome.message
    count = len(laboratory.commands)
    laboratory.held.repeat()
    assert len(laboratory.commands) == count + 1 and (laboratory.values == laboratory.commands[-2][1]).all()
    assert 1000.0 <= laboratory.values[0] <= 2000.0
    assert len(outcome.measured_errors_mm) == 1 and (outcome.values == PATH).all()


def test_preempted_it_commands_nothing_more(laboratory):
    newer = StopRequest()
    laboratory.at[2.3] = lambda: laboratory.commander.begin(newer, 1)
    outcome = laboratory.run(FollowGoal(ActuatorPath(PATH)))
    assert outcome.code == GoalCode.PREEMPTED
    assert laboratory.commands[-1][0] < 2.3
    assert laboratory.commander.hold(PATH[0], newer)


def test_a_fault_of_the_driver_ends_the_motion_with_its_reason(laboratory):
    laboratory.at[2.0] = lambda: setattr(laboratory, "fault", "burst hose")
    outcome = laboratory.run(FollowGoal(ActuatorPath(PATH), np.array([0.5, 1.5, 2.5, 3.5])))
    assert outcome.code == GoalCode.DRIVER_FAULT and "burst hose" in outcome.message and "2 of 4" in outcome.message
    assert laboratory.commands[-1][0] < 2.0


def test_after_a_fault_that_was_reset_at_once_the_robot_does_not_go_on_by_itself(laboratory):
    laboratory.at[2.0] = laboratory.commander.release
    outcome = laboratory.run(FollowGoal(ActuatorPath(PATH), np.array([0.5, 1.5, 2.5, 3.5])))
    assert outcome.code == GoalCode.DRIVER_FAULT and "stopped following" in outcome.message
    assert laboratory.commands[-1][0] < 2.0 and laboratory.commander.values is None


def test_a_robot_that_does_not_settle_is_reported(laboratory):
    laboratory.settles = False
    outcome = laboratory.run(FollowGoal(ActuatorPath(PATH)))
    assert outcome.code == GoalCode.SETTLE_TIMEOUT and "0 of 4" in outcome.message
    assert (laboratory.commander.values == PATH[0]).all()


def test_deactivated_while_it_plans(laboratory):
    stop = StopRequest()
    outcome = laboratory.run(
        FollowGoal(ActuatorPath(PATH)), stop, on_progress=lambda one: stop.request(GoalCode.NODE_DEACTIVATED)
    )
    assert outcome.code == GoalCode.NODE_DEACTIVATED and not laboratory.commands


def test_measured_errors_are_those_of_the_tip_when_each_point_was_reached(laboratory):
    points = np.array([[0.0, 0.0, 0.1], [0.01, 0.0, 0.1], [0.02, 0.0, 0.1]])
    goal = FollowGoal(PointPath(points, np.zeros(2)), np.array([0.5, 1.5, 3.5]))
    for moment, offset in ((0.48, 0.001), (0.9, 0.5), (1.55, np.nan), (3.42, 0.003)):
        point = points[int(np.searchsorted([0.5, 1.6], moment))]
        laboratory.tip.note(point + [0.0, offset, 0.0], 1e6 + moment)
    outcome = laboratory.run(goal)
    assert outcome.code == GoalCode.NONE
    assert outcome.measured_errors_mm == pytest.approx([1.0, np.nan, 3.0], nan_ok=True)
    assert outcome.errors_mm == pytest.approx([0.25] * 3)


def test_the_tip_is_looked_up_near_a_moment_only():
    record = TipRecord()
    assert np.isnan(record.near(0.0, 1e9)).all()
    record.note(np.array([1.0, 0.0, 0.0]), 5.0)
    record.note(np.array([2.0, 0.0, 0.0]), 5.2)
    assert (record.near(5.12, 0.1) == [2.0, 0.0, 0.0]).all() and np.isnan(record.near(5.31, 0.1)).all()


@pytest.mark.parametrize("period", [0.02, 0.1, 0.5])
@pytest.mark.parametrize("between", [0.03, 2.0])
def test_what_sleeps_take_too_long_does_not_add_up(robot, period, between):
    """Waypoints 30 ms apart, as a motion plan has them, and far apart; by a sleep that is always 10 ms late."""
    laboratory = Laboratory(robot)
    on_time = laboratory.sleep
    laboratory.mover = PathMover(
        period,
        laboratory,
        laboratory.commander,
        laboratory.mover._hardware,
        laboratory.clock,
        laboratory.clock,
        lambda seconds: on_time(seconds + 0.01),
    )
    path = np.linspace(0.0, 3000.0, 100)[:, None] * np.ones(9)
    times = between * np.arange(1, 101)
    outcome = laboratory.run(FollowGoal(ActuatorPath(path), times))
    assert outcome.code == GoalCode.NONE and (laboratory.commander.values == path[-1]).all()
    assert outcome.due == pytest.approx(times, abs=0.05)
    commanded = np.array([values for _, values in laboratory.commands])
    assert (np.diff(commanded, axis=0) >= 0.0).all()


def test_a_path_with_a_model_that_is_not_there_fails_before_anything_moves(laboratory):
    class Typo(GivenPaths):
        def uses_sim_to_real(self, goal):
            raise RuntimeError("no model 'lerned'")

    outcome = laboratory.run(FollowGoal(ActuatorPath(PATH), model="lerned"), solver=Typo())
    assert outcome.code is GoalCode.INTERNAL_ERROR and "lerned" in outcome.message
    assert not laboratory.commands
