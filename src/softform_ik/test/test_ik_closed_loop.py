"""The closed loop against a robot that is not as the model predicts, captured with noise and holes; without ROS."""

import re
from dataclasses import replace

import numpy as np
import pytest
from builtin_interfaces.msg import Time
from granted_lease import GrantedLease
from served_models import served

from softform_client.capture_watch import CaptureWatch
from softform_client.driver_watch import DriverWatch
from softform_client.held_command import HeldCommand
from softform_client.reach_goal import Mode, ReachGoal
from softform_core.forward.history import HistoryKeeper
from softform_core.forward.live_pipeline import LivePipeline
from softform_core.forward.memory import PrandtlIshlinskii
from softform_core.forward.pipeline import ForwardPipeline
from softform_core.inverse.closest_points import closest_points_on
from softform_core.inverse.ik_options import IkOptions
from softform_core.inverse.inverse import solve_inverse_kinematics
from softform_core.networks.mlp_weights import extract_mlp
from softform_core.networks.store import load_forward_kinematics
from softform_core.paths import models_of
from softform_core.shapes.shape import Shape
from softform_core.surface.patch_set import SHEET
from softform_core.units import MM_PER_M
from softform_ik.goals.reach_limit import ReachSettings
from softform_ik.reach import goal_execution
from softform_ik.reach.reach import Reach
from softform_ik.reach.run_up import RUN_UP, Approach
from softform_ik.robot.commander import Commander
from softform_ik.robot.hardware import Hardware, HardwareSettings
from softform_ik.robot.stop_request import StopRequest
from softform_interfaces.msg import ActuatorState, DriverState
from softform_ros.goal_error import GoalCode
from softform_ros.histories import history_message

pytestmark = pytest.mark.slow

HIDDEN = np.array([3500.0, 700.0, 2800.0, 900.0, 2500.0, 1500.0, 600.0, 3100.0, 1200.0])
MIRROR = np.diag([-1.0, 1.0, 1.0])


class RealRobot:
    """The model's robot with weaker and stronger chambers and a dent; a forward model itself, to know its best fit.

    Args:
        pipeline: The model.
        response: Factor of each actuator value, () or (k,).
        dent: Depth of what no actuation can correct, mm.
    """

    degrees_of_freedom = 9

    def __init__(self, pipeline, response, dent):
        self.pipeline, self.response, self.depth = pipeline, np.broadcast_to(response, 9), dent
        u, v = pipeline.uv.T
        self.dent = np.zeros((len(u), 3))
        at_rim = np.sin(np.pi * u) * np.sin(np.pi * v)
        self.dent[:, 2] = -dent * at_rim * np.exp(-40.0 * ((u - 0.6) ** 2 + (v - 0.4) ** 2))

    @property
    def coarse(self):
        return RealRobot(self.pipeline.coarse, self.response, self.depth)

    def forward(self, actuation):
        state = self.pipeline.forward(actuation * self.response)
        return replace(state, actuation=actuation, points=state.points + self.dent)

    def jacobian(self, state):
        return self.pipeline.jacobian(state) * self.response

    def jacobian_along(self, state, directions):
        return self.pipeline.jacobian_along(state, directions) * self.response

    def surface(self, values):
        """Mesh, m."""
        points = self.forward(np.asarray(values)[None]).points[0] / MM_PER_M
        return Shape.from_mesh(points, SHEET.triangles(len(points)))


class LookingHardware(Hardware):
    """Hardware of a rig that scans when it is looked at."""

    rig: "Rig"

    def look(self, settled, stop):
        self.rig.capture()
        return super().look(settled, stop)


class Rig:
    """Driver and scanner of the real robot: settles at once, is captured where it is looked at.

    `sent` are all commands, `places` those that are no run-up: it was looked at there, or it ended there. `spoil` is
    told the number of the capture (from 0) and its points, and returns what the scanner gives out; None is no capture.
    """

    def __init__(self, robot, real, seed=0):
        self.robot, self.real, self.random = robot, real, np.random.default_rng(seed)
        self.driver, self.captures = DriverWatch(robot, state_timeout=60.0), CaptureWatch()
        self.keeper = HistoryKeeper(robot)
        self.looked, self.feel = [], lambda values: values
        self.now, self.sent, self.scans, self.spoil = 100.0, [], 0, lambda number, points: points
        self.driver.note_state(DriverState.SAFE, "")
        self.note(np.zeros(9))

    def note(self, values, status=ActuatorState.SETTLED):
        self.driver.note_values(self.robot.actuators, values, [status] * 9, self.now)
        self.keeper.note(np.asarray(values), self.now)
        self.driver.note_history(history_message(self.keeper.history, self.robot, Time()))

    def command(self, values):
        self.sent.append(values)
        self.felt = self.feel(values)
        self.now += 1.0
        self.note(values)

    def capture(self):
        self.looked.append(len(self.sent) - 1)
        points = self.spoil(self.scans, self.scan(self.felt))
        self.scans += 1
        if points is not None:
            self.captures.note(points, self.now + 0.5)

    @property
    def places(self):
        return [each for number, each in enumerate(self.sent) if number in (*self.looked, len(self.sent) - 1)]

    def scan(self, values):
        """5000 points with 0.2 mm noise, and three holes of 25 to 50 mm that another scan has elsewhere, m."""
        points = self.real.surface(values).sample(5000, seed=int(self.random.integers(1 << 30))).points
        for _ in range(3):
            centre = points[self.random.integers(len(points))]
            points = points[np.linalg.norm(points - centre, axis=1) > self.random.uniform(0.025, 0.05)]
        return points + 2e-4 * self.random.normal(size=points.shape)

    def reach(self, model, settings, simulated=None):
        """A server's worker for this rig."""
        waiting = HardwareSettings(settle_timeout=0.2, capture_timeout=0.2)
        self.commander = Commander(HeldCommand(self.command), GrantedLease(), since_boot=lambda: 0.0)
        hardware = LookingHardware(
            self.robot, waiting, self.driver, self.captures, self.commander, lambda cloud: cloud, lambda: self.now
        )
        hardware.rig = self
        models = served(current=model, simulated=simulated or model, mean_error_mm=lambda _: 0.05)
        return Reach(self.robot, models, settings, hardware)


@pytest.fixture(autouse=True, scope="module")
def coarse():
    """Promises are judged at fewer points than the node does: most of a run would go into these."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(goal_execution, "_PROMISE_POINTS", 1600)
        yield


@pytest.fixture(scope="module")
def real(robot):
    """A robot on a finer grid than the model's, so that no point of a scan is a point of the model."""
    network, _ = load_forward_kinematics(robot)
    fine = ForwardPipeline(extract_mlp(network), SHEET.samples(2500))
    return RealRobot(fine, np.array([0.8, 1.1, 0.9, 1.2, 0.85, 1.05, 0.9, 0.8, 1.1]), 4.0)


@pytest.fixture
def rig(robot, real):
    return Rig(robot, real)


def run(rig, model, target, goal=None, stop=None, on_progress=lambda one: None, simulated=None, **settings):
    goal = goal or ReachGoal(target, Mode.CLOSED_LOOP)
    reach, stop = rig.reach(model, ReachSettings(tolerance=1e-6, **settings), simulated), stop or StopRequest()
    rig.commander.begin(stop, 1)
    return reach.run(goal, stop, on_progress)


def true_error(real, values, target):
    """Mean distance of the true surface to a target, mm."""
    return closest_points_on(target).query(real.surface(values).points * MM_PER_M).distances.mean()


def test_the_loop_comes_close_to_the_real_robots_best_fit(rig, real, pipeline, shape_of, robot):
    target = shape_of(HIDDEN)
    outcome = run(rig, pipeline, target)
    assert outcome.code == GoalCode.NONE, outcome.message
    means = [one.measured.mean for one in outcome.rounds]
    assert means[0] > 0.0015 and outcome.measured.mean == min(means) < 0.2 * means[0]
    best_fit = solve_inverse_kinematics(real, target, IkOptions(robot.actuation_min, robot.actuation_max))
    reached = true_error(real, outcome.solution.actuation, target)
    assert reached < true_error(real, best_fit.actuation, target) + 0.05
    # What the corrected model says of its last plan is true, too: the model alone promised next to nothing.
    assert outcome.rounds[-1].solution.mean_error_mm == pytest.approx(reached, abs=0.1)
    assert rig.sent[-1] == pytest.approx(outcome.solution.actuation)
    for values in rig.sent:
        robot.check_commands(values)


def test_a_free_pose_is_corrected_as_well(rig, pipeline, shape_of):
    moved = shape_of(HIDDEN).transformed(np.eye(3), np.array([0.02, -0.01, 0.03]))
    outcome = run(rig, pipeline, moved, ReachGoal(moved, Mode.CLOSED_LOOP, fix_pose=False))
    assert outcome.code == GoalCode.NONE and outcome.measured.mean < 0.3 * outcome.rounds[0].measured.mean
    assert outcome.solution.pose.translation == pytest.approx([-20.0, 10.0, -30.0], abs=4.0)


def test_rounds_end_early_when_there_is_nothing_to_gain(robot, pipeline, shape_of):
    as_predicted = Rig(robot, RealRobot(pipeline, 1.0, 0.0))
    outcome = run(as_predicted, pipeline, shape_of(HIDDEN), least_improvement=0.3)
    assert outcome.code == GoalCode.NONE and len(outcome.rounds) == len(as_predicted.places) <= 2
    coarse = ReachGoal(shape_of(HIDDEN), Mode.CLOSED_LOOP, tolerance=0.01)
    assert len(run(as_predicted, pipeline, None, coarse).rounds) == 1


class Forgetless(RealRobot):
    """The real robot, whose chambers stay behind by plays of several widths, of which the model knows nothing."""

    memory = PrandtlIshlinskii(
        np.outer([0.4, 1.0, 1.6], np.linspace(90.0, 160.0, 9)), np.outer([0.3, 0.3, 0.3], np.ones(9)),
        np.empty(0), np.empty((0, 9)),
    )  # fmt: skip

    def remembering(self):
        """What shows the surface under commands, one after the other."""
        states = [self.memory.at_rest(np.zeros(9))]

        def after(values):
            states[0] = self.memory.advance(states[0], np.asarray(values))
            return self.memory.now(states[0])

        return after


@pytest.mark.long
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_loop_helps_a_robot_that_remembers(robot, real, pipeline, shape_of, monkeypatch, seed):
    """Within a fifth of the best fit after three corrections; where actuators turn back it does not come there."""
    target = shape_of(np.random.default_rng(seed).uniform(700.0, 3500.0, 9))
    best_fit = solve_inverse_kinematics(real, target, IkOptions(robot.actuation_min, robot.actuation_max))
    best = true_error(real, best_fit.actuation, target)

    def ended():
        rig = Rig(robot, Forgetless(real.pipeline, real.response, real.depth))
        feels = rig.real.remembering()
        rig.feel = feels
        outcome = run(rig, pipeline, target, max_rounds=3)
        assert outcome.code == GoalCode.NONE, outcome.message
        assert outcome.measured.mean == min(one.measured.mean for one in outcome.rounds)
        return true_error(real, rig.felt, target)

    reached = ended()
    monkeypatch.setattr(goal_execution.Approach, "begins_at", lambda *_: None)
    assert reached < 1.2 * best and reached < ended() + 0.01


def test_an_approach_comes_from_the_same_side_each_time(robot):
    approach, here = Approach(robot), np.full(9, 1000.0)
    first = here + [500.0, -500.0, 0.0, *[500.0] * 6]
    assert approach.begins_at(here, first) is None
    onward = first + [50.0, -50.0, 50.0, *[50.0] * 6]
    assert approach.begins_at(first, onward) is None
    back = onward + [-50.0, 50.0, -50.0, *[0.0] * 6]
    run_up = RUN_UP * 5000.0
    np.testing.assert_allclose(
        approach.begins_at(onward, back), [*(back[:3] + [-run_up, run_up, -run_up]), *onward[3:]]
    )
    assert approach.begins_at(back, back - 5.0) is None  # regulation leaves as much
    low = np.array([100.0, *back[1:]])
    assert approach.begins_at(back, low)[0] == 0.0


def test_an_actuator_that_stood_still_but_for_noise_has_no_side_yet(robot):
    approach, here = Approach(robot), np.full(9, 1000.0)
    assert approach.begins_at(here, here - 9.0) is None  # 0.002 of the range is 10 Pa
    assert approach.begins_at(here, here + 100.0) is None, "there was no side to keep to"
    assert approach.begins_at(here + 100.0, here)[0] < 1000.0, "now there is"


@pytest.mark.parametrize("of_return", [False, True])
def test_a_run_up_that_does_not_settle_is_not_held(robot, real, pipeline, shape_of, monkeypatch, of_return):
    run_up, calls = np.full(9, 4900.0), []

    class Sticks(Rig):
        def note(self, values, status=ActuatorState.SETTLED):
            super().note(values, ActuatorState.MOVING if np.array_equal(values, run_up) else status)

    def begins_at(self, here, commanded):
        calls.append(here)
        return run_up if len(calls) == 2 + of_return else None

    monkeypatch.setattr(goal_execution.Approach, "begins_at", begins_at)
    rig = Sticks(robot, real)
    rig.spoil = lambda number, points: None if of_return and number == 1 else points
    outcome = run(rig, pipeline, shape_of(HIDDEN))
    assert outcome.code == GoalCode.SETTLE_TIMEOUT and len(outcome.rounds) == 1
    assert (rig.sent[-2] == run_up).all() and rig.sent[-1] == pytest.approx(outcome.rounds[0].commanded)
    assert calls[1] == pytest.approx(rig.sent[0]), "it begins where it was commanded to, not where it was measured"


def test_the_goal_may_limit_the_rounds(rig, pipeline, shape_of):
    outcome = run(rig, pipeline, None, ReachGoal(shape_of(HIDDEN), Mode.CLOSED_LOOP, max_rounds=1))
    assert outcome.code == GoalCode.NONE and len(outcome.rounds) == 2


def test_a_robot_that_answers_more_than_twice_as_strongly_does_not_run_away(robot, pipeline, shape_of):
    lively = Rig(robot, RealRobot(pipeline, 2.4, 0.0))
    low = 0.3 * HIDDEN
    outcome = run(lively, pipeline, shape_of(low), max_rounds=10)
    assert outcome.code == GoalCode.NONE and outcome.measured.mean < 0.1 * outcome.rounds[0].measured.mean
    assert lively.sent[-1] == pytest.approx(outcome.solution.actuation)
    assert outcome.solution.actuation == pytest.approx(low / 2.4, abs=40.0)


def test_the_loop_begins_at_the_commands_that_a_goal_names_and_never_ends_worse(rig, pipeline, shape_of):
    """These were tried before, and were better than what a solve from there would lead to first."""
    target = shape_of(HIDDEN)
    seed = run(rig, pipeline, target).commands
    rig.sent.clear()
    outcome = run(rig, pipeline, None, ReachGoal(target, Mode.CLOSED_LOOP, seed=seed, max_rounds=1))
    assert outcome.code == GoalCode.NONE and rig.sent[0] == pytest.approx(seed, abs=0.1)
    assert outcome.measured.mean == min(one.measured.mean for one in outcome.rounds) < 3e-4
    assert outcome.rounds[0].solution.pose.translation == pytest.approx(0.0)
    again = run(rig, pipeline, target, max_rounds=1)
    assert again.rounds[0].measured.mean > 3.0 * outcome.rounds[0].measured.mean


def test_the_loop_never_ends_worse_than_what_the_simulation_alone_plans(robot, pipeline, shape_of):
    """The robot is as simulated, and the learned model, which errs by millimetres there, has one correction."""
    learned = LivePipeline(robot, sim_to_real=str(models_of(robot.name) / "rig_default")).current
    target, as_simulated = shape_of(HIDDEN), Rig(robot, RealRobot(pipeline, 1.0, 0.0))
    goal = ReachGoal(target, Mode.CLOSED_LOOP, max_rounds=1)
    outcome = run(as_simulated, learned, None, goal, simulated=pipeline)
    means = [one.measured.mean for one in outcome.rounds]
    assert outcome.code == GoalCode.NONE and len(means) == 3 and outcome.measured.mean == means[-1] < min(means[:-1])
    assert as_simulated.sent[-1] == pytest.approx(outcome.commands)
    # Where the model is right what the simulation plans is no rival, and nobody waits for it.
    right = run(Rig(robot, RealRobot(learned, 1.0, 0.0)), learned, shape_of(HIDDEN), simulated=pipeline)
    assert right.code == GoalCode.NONE and len(right.rounds) <= 3


def test_a_rival_that_cannot_be_captured_leaves_the_robot_at_the_best_round(robot, pipeline, shape_of):
    learned = LivePipeline(robot, sim_to_real=str(models_of(robot.name) / "rig_default")).current
    rig = Rig(robot, RealRobot(pipeline, 1.0, 0.0))
    rig.spoil = lambda number, points: points[:0] if number == 2 else points
    goal = ReachGoal(shape_of(HIDDEN), Mode.CLOSED_LOOP, max_rounds=1)
    outcome = run(rig, learned, None, goal, simulated=pipeline)
    assert outcome.code == GoalCode.CAPTURE_INVALID and len(outcome.rounds) == 2 and len(rig.places) == 4
    assert rig.sent[-1] == pytest.approx(outcome.commands)


def test_the_robot_goes_back_to_the_best_round_and_settles_there(rig, pipeline, shape_of):
    def lifted_later(number, points):
        return points + [0.0, 0.0, 0.006] if number >= 1 else points

    rig.spoil = lifted_later
    stages = []
    outcome = run(rig, pipeline, shape_of(HIDDEN), on_progress=lambda one: stages.append(one.stage), max_rounds=1)
    assert outcome.code == GoalCode.NONE and len(outcome.rounds) == 2
    assert outcome.rounds[0].measured.mean < outcome.rounds[1].measured.mean
    assert outcome.solution is outcome.rounds[0].solution and outcome.measured is outcome.rounds[0].measured
    assert len(rig.places) == 3 and rig.sent[-1] == pytest.approx(outcome.solution.actuation)
    assert [stage for stage in stages if stage != "solving"][-2:] == ["moving", "settling"]


def noise(points):
    return np.random.default_rng(0).uniform(-0.15, 0.15, points.shape)


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda points: points[:0], "no points"),
        (lambda points: np.full_like(points, np.nan), "no points"),
        (lambda points: points * MM_PER_M, "millimetres|beside"),
        (lambda points: points @ MIRROR.T, "mirrored"),
        (lambda points: points * [1.0, 1.0, -1.0], "mirrored"),
        (noise, "noise"),
        (lambda points: points + [0.4, 0.0, 0.0], "beside"),
        (lambda points: points * [0.4, 0.4, 1.0], "covers"),
        (lambda points: points + [0.0, 0.0, 0.04], "on average"),
    ],
    ids=["empty", "no returns", "millimetres", "mirrored", "upside down", "noise", "beside", "smaller", "lifted"],
)
@pytest.mark.parametrize("number", [0, 1])
def test_a_capture_that_cannot_be_true_ends_the_goal_at_the_best_round(rig, pipeline, shape_of, spoil, reason, number):
    rig.spoil = lambda scan, points: spoil(points) if scan == number else points
    outcome = run(rig, pipeline, shape_of(HIDDEN))
    assert outcome.code == GoalCode.CAPTURE_INVALID
    assert len(outcome.rounds) == number
    assert re.search(reason, outcome.message) and "holds the best" in outcome.message
    # Sent to each plan, and back to the best one.
    assert len(rig.places) == 1 + 2 * number and rig.sent[-1] == pytest.approx(outcome.solution.actuation)


def test_a_missing_capture_in_a_later_round_keeps_what_was_measured(rig, pipeline, shape_of):
    rig.spoil = lambda number, points: None if number == 1 else points
    outcome = run(rig, pipeline, shape_of(HIDDEN))
    assert outcome.code == GoalCode.CAPTURE_TIMEOUT and len(outcome.rounds) == 1
    assert outcome.solution is outcome.rounds[0].solution
    assert rig.sent[-1] == pytest.approx(rig.sent[0]) and len(rig.places) == 3


@pytest.mark.parametrize("code", [GoalCode.CANCELLED, GoalCode.PREEMPTED, GoalCode.NODE_DEACTIVATED])
@pytest.mark.parametrize("stage", ["solving", "moving", "settling", "verifying"])
def test_a_stop_in_a_later_round_ends_there_with_what_was_measured(rig, pipeline, shape_of, stage, code):
    stop = StopRequest()

    def on_progress(one):
        if (one.round, one.stage) == (1, stage):
            stop.request(code)

    outcome = run(rig, pipeline, shape_of(HIDDEN), stop=stop, on_progress=on_progress)
    assert outcome.code == code and outcome.message
    assert len(outcome.rounds) == 1 and outcome.solution is outcome.rounds[0].solution
    # Before the robot moves nothing more is sent; cancelled while it settles, it is held where it is. It has gone to
    # where it runs up from before it is at the plan.
    held_here = stage == "settling" and code == GoalCode.CANCELLED
    assert len(rig.sent) == {"solving": 1, "moving": 1, "settling": 2 + held_here, "verifying": 3}[stage]


@pytest.mark.parametrize("stage", ["settling", "verifying"])
def test_a_driver_that_vents_while_a_goal_waits_ends_it(rig, pipeline, shape_of, stage):
    """It is ready again when the scan comes, which shows a vented robot."""

    def on_progress(one):
        if (one.round, one.stage) == (1, stage):
            rig.commander.release()

    outcome = run(rig, pipeline, shape_of(HIDDEN), on_progress=on_progress)
    assert outcome.code == GoalCode.DRIVER_FAULT and "stopped following" in outcome.message
    assert len(outcome.rounds) == 1


@pytest.mark.parametrize("stage", ["moving", "settling"])
def test_a_fault_in_a_later_round_ends_there_with_what_was_measured(rig, pipeline, shape_of, stage):
    def on_progress(one):
        if (one.round, one.stage) == (1, stage):
            rig.driver.note_state(DriverState.FAULT, "burst hose")

    outcome = run(rig, pipeline, shape_of(HIDDEN), on_progress=on_progress)
    assert outcome.code == GoalCode.DRIVER_FAULT and "burst hose" in outcome.message
    assert len(outcome.rounds) == 1 and outcome.measured is outcome.rounds[0].measured
