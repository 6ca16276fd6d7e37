"""Planner, driver, board, reality, scanner: one chain of real nodes and the board's real protocol."""

import threading
import time

import numpy as np
import psutil
import pytest
import rclpy
from rclpy.executors import SingleThreadedExecutor

from softform_client.client import Code, GoalFailedError, Mode, ShapeClient
from softform_core.robots import load_robot
from softform_core.shapes.random import random_target
from softform_core.shapes.shape import Shape
from softform_interfaces.msg import ActuatorCommand, ActuatorState, DriverState, Surface
from softform_ros.qos import ACTUATOR_COMMAND, ACTUATOR_STATE_READER, LATCHED_STATE, PREDICTED_SURFACE

MEGABYTE = 2**20


@pytest.fixture(scope="module")
def client(stack):
    with ShapeClient("/softform", timeout=30.0) as client:
        yield client


@pytest.fixture(scope="module")
def target():
    return random_target(load_robot("membrane"), seed=3)


class Listener:
    """Keeps what the stack publishes."""

    def __init__(self):
        self.context = rclpy.Context()
        rclpy.init(context=self.context)
        self.node = rclpy.create_node("listener", namespace="softform", context=self.context)
        self.commands, self.states, self.driver, self.surfaces = [], [], [], []
        for kind, topic, kept, qos in (
            (ActuatorCommand, "actuator_command", self.commands, ACTUATOR_COMMAND),
            (ActuatorState, "actuator_state", self.states, ACTUATOR_STATE_READER),
            (DriverState, "driver_state", self.driver, LATCHED_STATE),
            (Surface, "predicted_surface", self.surfaces, PREDICTED_SURFACE),
        ):
            self.node.create_subscription(kind, topic, kept.append, qos)
        self.executor = SingleThreadedExecutor(context=self.context)
        self.executor.add_node(self.node)

    def listen(self, seconds, until=lambda: False):
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and not until():
            self.executor.spin_once(timeout_sec=0.05)
        return until()

    def close(self):
        self.node.destroy_node()
        rclpy.shutdown(context=self.context)


@pytest.fixture
def listener():
    listener = Listener()
    yield listener
    listener.close()


def test_planning_alone_moves_nothing(stack, client, target, listener):
    assert listener.listen(10.0, lambda: bool(listener.states)), "no actuator_state"
    result = client.reach(target, Mode.PLAN_ONLY)
    listener.listen(1.0)
    assert result.solve.mean_error < 1e-3
    assert not result.measured.valid
    assert not listener.commands
    assert max(abs(p) for state in listener.states for p in state.value) < 400.0


@pytest.mark.parametrize(
    ("points", "reason"),
    [
        (np.full((100, 3), np.nan), "finite|NaN"),
        (np.zeros((3, 3)), "3 points"),
        (np.random.default_rng(0).uniform(-160.0, 160.0, (500, 3)), "millimet"),
        (np.random.default_rng(0).uniform(-0.16, 0.16, (5_000_000, 3)), "5000000 points"),
    ],
    ids=["NaN", "three points", "millimetres", "five million points"],
)
def test_bad_targets_are_rejected_with_a_reason(stack, client, points, reason):
    with pytest.raises(GoalFailedError, match=reason):
        client.reach(Shape(points), Mode.PLAN_ONLY)


def test_bad_seeds_are_rejected_with_a_reason(stack, client, target):
    for seed in (np.ones(4), np.full(9, np.nan), np.full(9, 9.0e5)):
        with pytest.raises(GoalFailedError, match="pressure|Pressure|seed"):
            client.reach(target, Mode.PLAN_ONLY, seed=seed)


def test_the_robot_takes_the_shape_and_the_scan_says_so(stack, client, target, listener):
    stages = []
    result = client.reach(
        target, Mode.PLAN_MOVE_AND_VERIFY, on_feedback=lambda f: stages.append(f.stage) if f.stage not in stages else 0
    )
    assert result.measured.valid
    assert set(stages) <= {"solving", "moving", "settling", "verifying"}
    assert stages[-1] == "verifying"
    # The model reaches the shape; the reality differs from it by the gap that nobody has told the planner of.
    assert result.solve.mean_error < 1e-3
    assert 1e-3 < result.measured.mean_error < 8e-3
    assert listener.listen(5.0, lambda: bool(listener.states) and bool(listener.surfaces))
    state = listener.states[-1]
    assert list(state.status) == [ActuatorState.SETTLED] * 9
    np.testing.assert_allclose(state.value, result.actuators.value, atol=400.0)
    (patch,) = listener.surfaces[-1].patches
    assert patch.rows * patch.cols == len(patch.control_points) == 900
    assert 0.01 < max(point.z for point in patch.control_points) < 0.15


def test_a_new_goal_takes_the_place_of_the_old_one(stack, client, target):
    far = random_target(load_robot("membrane"), seed=11)
    outcomes = []
    moving = threading.Event()

    def first():
        try:
            outcomes.append(client.reach(far, Mode.PLAN_MOVE_AND_VERIFY, on_feedback=lambda f: moving.set()))
        except GoalFailedError as error:
            outcomes.append(error.code)

    thread = threading.Thread(target=first)
    with ShapeClient("/softform") as other:
        thread.start()
        assert moving.wait(10.0)
        result = other.reach(target, Mode.PLAN_ONLY)
    thread.join(timeout=60.0)
    assert result.error_code == Code.NONE
    assert outcomes == [Code.PREEMPTED]


def test_cancelling_returns_the_best_and_leaves_the_robot_where_it_is(stack, client, target, listener):
    done = []

    def on_feedback(feedback):
        if feedback.stage == "settling" and not done:
            done.append(client.cancel())

    flat = Shape.from_cloud(random_target(load_robot("membrane"), seed=8).points)
    with pytest.raises(GoalFailedError) as caught:
        client.reach(flat, Mode.PLAN_MOVE_AND_VERIFY, on_feedback=on_feedback)
    assert caught.value.code == Code.CANCELLED
    assert len(caught.value.result.actuators.value) == 9
    assert listener.listen(10.0, lambda: listener.driver and listener.driver[-1].state == DriverState.RUNNING)


def test_memory_stays_within_the_bars(stack):
    sizes = {p.pid: p.memory_full_info().pss / MEGABYTE for p in stack.processes()}  # what they share counts once
    assert sum(sizes.values()) < 1600.0, sizes
    assert stack.process("actuation_node").memory_info().rss / MEGABYTE < 150.0


def test_no_node_loads_torch_and_the_driver_no_open3d(stack):
    for process in stack.processes():
        unwanted = ("torch/", "open3d") if stack.process("actuation_node") == process else ("torch/",)
        maps = {m.path for m in process.memory_maps()}
        assert not [path for path in maps if any(name in path for name in unwanted)], process.cmdline()


@pytest.mark.ends_stack
def test_killing_the_rig_in_motion_ends_the_goal_and_latches_the_driver(stack, client, listener):
    target = random_target(load_robot("membrane"), seed=5)
    killed = []

    def on_feedback(feedback):
        if feedback.stage == "settling" and not killed:
            killed.append(stack.process("rig_node"))
            killed[0].kill()

    with pytest.raises(GoalFailedError) as caught:
        client.reach(target, Mode.PLAN_MOVE_AND_VERIFY, on_feedback=on_feedback)
    assert caught.value.code in (Code.DRIVER_FAULT, Code.DRIVER_NOT_READY, Code.SETTLE_TIMEOUT)
    assert listener.listen(5.0, lambda: bool(listener.driver) and listener.driver[-1].state == DriverState.FAULT)
    assert listener.driver[-1].reason
    assert killed
    psutil.wait_procs(killed, timeout=5.0)
    with pytest.raises(GoalFailedError):
        client.reach(target, Mode.PLAN_AND_MOVE)
