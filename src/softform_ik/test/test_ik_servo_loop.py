"""The servo's thread with a real model and a real commander, without ROS: who has the robot, and what is sent when."""

import threading
import time

import numpy as np
import pytest
from granted_lease import GrantedLease

from softform_client.driver_watch import DriverWatch
from softform_client.held_command import HeldCommand
from softform_core.forward.memory import NO_MEMORY, Commands
from softform_core.inverse.closest_points import closest_points_on
from softform_core.inverse.servo import Servo, ServoSettings
from softform_core.inverse.servo_target import ServoTarget
from softform_core.shapes.shape import Shape
from softform_core.surface.patch_set import SHEET
from softform_core.units import MM_PER_M
from softform_ik.robot.commander import Commander
from softform_ik.robot.stop_request import StopRequest
from softform_ik.stream.loop import ServoLoop
from softform_interfaces.msg import ActuatorState, DriverState, ServoState

HIDDEN = np.array([4000.0, 500.0, 3000.0, 800.0, 2500.0, 1500.0, 200.0, 3500.0, 1000.0])
LARGEST_STEP = 400.0
"""Pa: what the slew rate allows in the longest time that one command makes up for."""


@pytest.fixture(scope="module")
def model(pipeline):
    return pipeline.at(SHEET.samples(400))


@pytest.fixture(scope="module")
def shape(pipeline):
    return closest_points_on(Shape(pipeline.at(SHEET.samples(5000)).points(HIDDEN) / MM_PER_M))


class Bench:
    """A loop, its commander and driver, and what they did."""

    def __init__(self, robot, model, stale_after=0.5):
        self.robot, self.model, self.sent, self.reports = robot, model, [], []
        self.commander = Commander(HeldCommand(self.sent.append), GrantedLease())
        self.driver = DriverWatch(robot, state_timeout=60.0)
        self.driver.note_state(DriverState.SAFE, "")
        self.measure(np.zeros(9))
        settings = ServoSettings(robot.actuation_min, robot.actuation_max, robot.actuation_slew, 0.02, stale_after)
        self.loop = ServoLoop(
            robot, Servo(settings), 0.02, lambda: self.model, self.commander, self.driver, self.reports.append
        )
        self.streams = threading.Event()

    def measure(self, values):
        self.driver.note_values(self.robot.actuators, values, [ActuatorState.SETTLED] * 9, time.time())

    def aim(self, shape):
        self.commander.note_target()
        self.loop.aim(ServoTarget(time.time_ns(), time.monotonic(), shape))

    def stream(self, shape):
        """Publish a target every 20 ms until the event is cleared."""
        self.streams.set()

        def publish():
            while self.streams.is_set():
                self.aim(shape)
                time.sleep(0.02)

        threading.Thread(target=publish, daemon=True).start()

    @property
    def state(self):
        return self.loop.report.state


@pytest.fixture
def bench(robot, model):
    one = Bench(robot, model)
    one.loop.start()
    yield one
    one.streams.clear()
    one.loop.stop()
    assert not one.loop.is_alive


def steps(sent):
    return np.abs(np.diff(np.array(sent), axis=0)).max(axis=1)


def test_a_stream_is_followed_from_where_the_robot_is(bench, shape, wait_for):
    bench.measure(np.full(9, 300.0))
    bench.stream(shape)
    wait_for(lambda: bench.loop.report.converged, "the target to be reached")
    assert bench.sent[-1] == pytest.approx(HIDDEN, abs=40.0)
    assert np.abs(bench.sent[0] - 300.0).max() <= LARGEST_STEP and steps(bench.sent).max() <= LARGEST_STEP
    last = bench.reports[-1]
    assert last.commands == len(bench.sent) and last.errors.mean_mm < 0.5 and 0.0 < last.latency < 0.5
    stamps = [one.target_stamp for one in bench.reports]
    assert stamps == sorted(stamps) and len(set(stamps)) > 10


def test_when_the_stream_ends_the_last_command_is_repeated_and_the_reason_reported(bench, shape, wait_for):
    bench.stream(shape)
    wait_for(lambda: bench.loop.report.converged, "the target to be reached")
    bench.streams.clear()
    wait_for(lambda: bench.state == ServoState.HOLDING, "the stream to count as stale")
    count = len(bench.sent)
    wait_for(lambda: len(bench.sent) > count + 5, "the command to be repeated")
    assert "No target came for 0.5 s" in bench.loop.report.reason
    assert (np.array(bench.sent[count:]) == bench.sent[count - 1]).all()


def test_a_goal_takes_the_robot_and_the_stream_goes_on_from_there_without_a_bump(bench, shape, wait_for):
    bench.stream(shape)
    wait_for(lambda: len(bench.sent) > 10, "the stream to be followed")
    goal, elsewhere = StopRequest(), np.full(9, 4500.0)
    bench.commander.begin(goal, 1)
    assert bench.commander.hold(elsewhere, goal)
    count = len(bench.sent)
    wait_for(lambda: bench.state == ServoState.YIELDED, "the stream to yield")
    time.sleep(0.1)
    assert len(bench.sent) == count and "action" in bench.loop.report.reason
    bench.commander.end(goal)
    wait_for(lambda: len(bench.sent) > count + 20, "the stream to go on")
    assert np.abs(bench.sent[count] - elsewhere).max() <= LARGEST_STEP
    assert steps(bench.sent[count:]).max() <= LARGEST_STEP
    assert bench.state == ServoState.TRACKING


def test_a_target_that_never_came_to_an_answer_is_reported_too(robot, shape, wait_for):
    class Broken:
        """A model that predicts nonsense."""

        memory = NO_MEMORY

        def given(self, state):
            return self

        def __getattr__(self, name):
            raise ValueError("array must not contain infs or NaNs")

    bench = Bench(robot, Broken())
    bench.loop.start()
    bench.stream(shape)
    wait_for(lambda: "could not be solved" in bench.loop.report.reason, "the reason to be told")
    bench.streams.clear()
    bench.loop.stop()
    assert bench.state == ServoState.OFF and not bench.sent


def test_after_the_goal_nothing_moves_for_targets_from_before(bench, shape, wait_for):
    bench.stream(shape)
    wait_for(lambda: len(bench.sent) > 10, "the stream to be followed")
    goal = StopRequest()
    bench.commander.begin(goal, 1)
    bench.commander.hold(HIDDEN, goal)
    bench.streams.clear()
    time.sleep(0.05)
    bench.commander.end(goal)
    count = len(bench.sent)
    wait_for(lambda: bench.state == ServoState.OFF, "the servo to wait")
    time.sleep(0.1)
    assert len(bench.sent) == count and (bench.commander.values == HIDDEN).all()


def test_after_a_stop_of_the_driver_only_a_new_target_moves_the_robot(bench, shape, wait_for):
    bench.stream(shape)
    wait_for(lambda: len(bench.sent) > 10, "the stream to be followed")
    bench.streams.clear()
    time.sleep(0.05)
    bench.driver.note_state(DriverState.FAULT, "burst hose")
    bench.commander.release()
    bench.measure(np.zeros(9))
    bench.driver.note_state(DriverState.SAFE, "reset")
    bench.commander.release()
    count = len(bench.sent)
    wait_for(lambda: bench.state == ServoState.OFF, "the servo to wait")
    time.sleep(0.1)
    assert len(bench.sent) == count and bench.commander.values is None
    for _ in range(20):  # a stream that merely goes on
        bench.aim(shape)
        time.sleep(0.02)
    assert len(bench.sent) == count and "merely goes on is not followed" in bench.loop.report.reason
    time.sleep(0.6)
    bench.aim(shape)
    wait_for(lambda: len(bench.sent) > count, "a new stream to be followed")
    assert bench.sent[count].max() <= LARGEST_STEP, "from the vented robot, not from what was held"


def test_while_the_driver_is_at_fault_no_target_is_followed(bench, shape, wait_for):
    bench.driver.note_state(DriverState.FAULT, "burst hose")
    bench.stream(shape)
    wait_for(lambda: "burst hose" in bench.loop.report.reason, "the reason")
    assert bench.state == ServoState.OFF and not bench.sent


def test_a_disabled_commander_is_not_pestered(bench, shape, wait_for):
    bench.commander.disable()
    bench.loop.aim(ServoTarget(time.time_ns() + 10**9, time.monotonic(), shape))
    time.sleep(0.1)
    assert not bench.sent and bench.loop.report.commands == 0
    bench.commander.enable()
    bench.stream(shape)
    wait_for(lambda: len(bench.sent) > 3, "the stream to be followed once it is allowed")


def test_a_failure_holds_the_robot_and_the_thread_lives_on(bench, shape, model, wait_for):
    bench.stream(shape)
    wait_for(lambda: len(bench.sent) > 10, "the stream to be followed")

    class Broken:
        def __getattr__(self, name):
            raise RuntimeError("model is gone")

    bench.model = Broken()
    wait_for(lambda: "model is gone" in bench.loop.report.reason, "the failure to be told")
    assert bench.state == ServoState.HOLDING and bench.loop.is_alive and bench.commander.values is not None
    bench.model = model
    wait_for(lambda: bench.loop.report.converged, "the stream to be followed again")


def test_a_memory_is_told_the_time_between_commands(robot, remembering, wait_for, monkeypatch):
    """What creeps goes by the clock: twenty commands a second are not twenty frames."""
    told, command = [], Commands.command

    def noted(self, wanted, seconds):
        told.append((time.monotonic(), seconds))
        return command(self, wanted, seconds)

    monkeypatch.setattr(Commands, "command", noted)
    bench = Bench(robot, remembering.at(SHEET.samples(400)))
    shape = closest_points_on(Shape(remembering.at(SHEET.samples(5000)).points(HIDDEN) / MM_PER_M))
    bench.loop.start()
    try:
        bench.stream(shape)
        wait_for(lambda: len(told) > 10, "ten commands")
    finally:
        bench.streams.clear()
        bench.loop.stop()
    (begin, _), *later = told
    assert sum(seconds for _, seconds in later) == pytest.approx(later[-1][0] - begin, abs=0.02)


def test_a_stream_leads_a_body_that_remembers_forth_and_back(robot, remembering, wait_for):
    model = remembering.at(SHEET.samples(400))
    bench = Bench(robot, model)
    state, seen = model.memory.at_rest(np.zeros(9)), 0

    def feel():
        nonlocal state, seen
        for values in bench.sent[seen:]:
            state, seen = model.memory.advance(state, values), seen + 1
        return model.memory.now(state)

    def is_reached(since):
        return bench.loop.report.converged and bench.loop.report.target_stamp > since

    bench.loop.start()
    try:
        for wanted in (HIDDEN, 0.7 * HIDDEN + 200.0):
            shape = closest_points_on(Shape(remembering.at(SHEET.samples(5000)).points(wanted) / MM_PER_M))
            begun = time.time_ns()
            bench.stream(shape)
            wait_for(lambda since=begun: is_reached(since), "the target to be reached")
            bench.streams.clear()
            time.sleep(0.05)
            assert feel() == pytest.approx(wanted, abs=60.0)
            assert np.median(np.abs(bench.sent[-1] - wanted)) > 100.0
    finally:
        bench.streams.clear()
        bench.loop.stop()


def test_another_model_in_mid_stream_begins_anew_with_its_own_memory(robot, model, remembering, shape):
    bench, begun = Bench(robot, model, stale_after=60.0), []
    commands = bench.driver.commands
    bench.driver.commands = lambda memory, start: begun.append((memory, start)) or commands(memory, start)
    bench.aim(shape)
    while len(bench.sent) < 5:
        bench.loop.turn()
    bench.model = remembering.at(SHEET.samples(400))
    held, count = bench.commander.values, len(bench.sent)
    bench.aim(shape)
    while len(bench.sent) < count + 1:
        bench.loop.turn()
    assert [memory for memory, _ in begun] == [model.memory, bench.model.memory]
    np.testing.assert_array_equal(begun[1][1], held)
    assert np.abs(bench.sent[count] - held).max() <= LARGEST_STEP
