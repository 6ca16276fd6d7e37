"""A robot whose base a gripper holds, on two stacks: its own `reach` does the rest of a target while the arms hold."""

import json
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from held_arms import Heard, heard
from scipy.spatial.transform import Rotation
from std_srvs.srv import Trigger

from softform_client.client import Code, GoalFailedError, Mode, ShapeClient
from softform_client.holding_arms import HoldingArms
from softform_client.object_client import ObjectClient, ShapeCode
from softform_core.cli.main import main
from softform_core.errors import SoftformError
from softform_core.geometry.rigid import RigidTransform
from softform_core.robots import load_robot
from softform_core.shapes.random import random_target
from softform_core.shapes.write import write_ply
from softform_interfaces.msg import ActuatorCommand, ActuatorState, DriverState
from softform_launch.launched_stack import LaunchedStack
from softform_ros import qos
from softform_ros.background_node import BackgroundNode
from softform_ros.service_calls import call_service
from softform_ros.stack_state import wait_until_active
from softform_shaping.objects import load_object
from softform_shaping.scene import grip_centres

__all__ = ["heard"]

STACK = {"launch": "shaping", "console": "false"}
SPACE = "finger"
BEND = np.array([0.0, 0.0, 0.012, -0.3, 0.0, 0.0, 0.0, 0.0, -0.012, 0.3, 0.0, 0.0])
GRIP = "0.01,0.02,0.05,0,0.6,0,0.8"  # x, y, z (m), quaternion of the base in the gripper's frame
SETTLED = 250.0  # Pa, within which a value counts as settled
TARGET = random_target(load_robot("membrane"), seed=3)  # in the base's frame

pytestmark = [pytest.mark.timeout(300), pytest.mark.long]


class HeldRobot:
    """What the stack of the held robot says."""

    def __init__(self, node) -> None:
        self.node = node
        self.commands, self.measured, self.driver = [], np.zeros(9), DriverState()
        node.create_subscription(ActuatorCommand, "actuator_command", self.commands.append, qos.ACTUATOR_COMMAND_LOG)
        node.create_subscription(ActuatorState, "actuator_state", self._note, qos.ACTUATOR_STATE_READER)
        node.create_subscription(
            DriverState, "driver_state", lambda told: setattr(self, "driver", told), qos.LATCHED_STATE
        )

    def _note(self, told) -> None:
        self.measured = np.array(told.value)


@pytest.fixture(scope="module")
def finger(stack, tmp_path_factory):
    folder = tmp_path_factory.mktemp(SPACE)
    arguments = {"run_dir": str(folder), "namespace": SPACE, "console": "false"}
    with (folder / "launch.log").open("wb") as log, LaunchedStack("softform", arguments, output=log) as launch:
        wait_until_active(SPACE, 90.0, lambda: launch.exit_code is not None)
        with BackgroundNode("observer", f"/{SPACE}") as node:
            yield HeldRobot(node)
        launch.stop()


@pytest.fixture
def arms(heard):
    with HoldingArms("softform", "right", [float(one) for one in GRIP.split(",")]) as one:
        yield one


@pytest.fixture
def robot(finger):
    with ShapeClient(SPACE, timeout=30.0) as one:
        yield one


class InArms(threading.Thread):
    """The target, in the frame of the arms, handed over by a goal in a thread of its own, on its way in the block."""

    def __init__(self, robot: ShapeClient, arms: HoldingArms) -> None:
        super().__init__(daemon=True)
        self._robot, self._arms, self._moves, self.failure = robot, arms, threading.Event(), None

    def run(self) -> None:
        target = in_arms(self._arms.held(2.0).gripper)
        options = {"max_rounds": 20, "tolerance": 1e-6, "on_feedback": self._note}
        self.failure = failure_of(self._robot.reach, target, Mode.CLOSED_LOOP, held_by=self._arms, **options)

    def _note(self, told) -> None:
        if told.stage == "verifying":
            self._moves.set()

    @contextmanager
    def midway(self):
        self.start()
        assert self._moves.wait(60.0), self.failure
        yield
        self.join(30.0)
        assert isinstance(self.failure, GoalFailedError) and self.failure.code == Code.CANCELLED, self.failure


def example(name):
    """The module of an example."""
    return import_module(name)


def failure_of(call, *words, **options) -> SoftformError | None:
    try:
        call(*words, **options)
    except SoftformError as failure:
        return failure


def in_arms(gripper: RigidTransform):
    base = gripper.after(RigidTransform.from_pose([float(one) for one in GRIP.split(",")]))
    return TARGET.transformed(base.rotation, base.translation)


def shaped(heard: Heard, turn: float) -> RigidTransform:
    """Where the right gripper stands after the arms have shaped their object a little, by what their goal tells."""
    with ObjectClient("/softform", timeout=30.0) as client:
        x, y, z, *turned = client.shape(turn * BEND, iterations=2).gripper_poses[6:]
    heard.wait_for_rest()
    centre = grip_centres(load_object("sponge"))[1]
    return RigidTransform(Rotation.from_rotvec(turned).as_matrix(), centre + [x, y, z])


def test_what_the_arms_leave_is_reached_by_the_robot_that_they_hold(finger, heard, robot, tmp_path):
    gripper = shaped(heard, 1.0)
    write_ply(tmp_path / "target.ply", in_arms(gripper))
    words = ["reach", tmp_path / "target.ply", "--namespace", SPACE, "--held-by", "softform/right", "--grip", GRIP]
    done = CliRunner().invoke(main, [str(word) for word in [*words, "--json", tmp_path / "told.json"]])
    assert done.exit_code == 0, done.output
    assert "base is held at" in done.output
    told = json.loads((tmp_path / "told.json").read_text())
    alone = robot.reach(TARGET)
    assert told["solve"]["mean_error"] == pytest.approx(alone.solve.mean_error, abs=1e-4)
    assert np.allclose(told["actuators"]["value"], alone.actuators.value, atol=50.0)
    assert np.allclose(finger.measured, told["actuators"]["value"], atol=SETTLED)
    assert heard.driver.state == DriverState.HOLDING
    with pytest.raises(GoalFailedError) as failed:  # what is not handed over lies beside it
        robot.reach(in_arms(gripper), Mode.PLAN_AND_MOVE)
    assert failed.value.code == Code.UNREACHABLE


def test_the_arms_place_the_robot_and_the_robot_does_the_rest(finger, heard, monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "examples"))
    assert example("hand_over").main("softform", SPACE) < 1.0
    assert 10.0 < float(capsys.readouterr().out.split("the arms went ")[1].split()[0]) < 50.0
    heard.wait_for_rest()


def test_nothing_is_handed_over_while_the_arms_move_and_a_goal_ends_when_they_begin(finger, heard, robot, arms):
    goal = InArms(robot, arms)
    with ObjectClient("/softform", timeout=30.0) as client:
        long = {"controller": "printed", "iterations": 100}  # it goes on until its looks are used up
        moving = threading.Thread(target=lambda: ended.append(failure_of(client.shape, -BEND, **long)), daemon=True)
        ended: list[SoftformError | None] = []
        with goal.midway():
            moving.start()
        assert "The arms do not hold" in str(goal.failure) and "stays where it is" in str(goal.failure)
        sent = finger.commands[-1].value
        with pytest.raises(SoftformError, match="running"):
            robot.reach(TARGET, Mode.PLAN_AND_MOVE, held_by=arms)
        assert not ended
        client.cancel()
        moving.join(30.0)
    assert ended and ended[0].code == ShapeCode.CANCELLED
    assert max(sent) > 300.0 and np.allclose(finger.commands[-1].value, sent)  # held as it was, not vented
    assert np.allclose(finger.measured, sent, atol=SETTLED) and finger.driver.state == DriverState.RUNNING


@pytest.mark.parametrize(
    ("node", "words"), [("actuation_node", "driver is not heard"), ("object_shaper_node", "gripper stands is lost")]
)
def test_arms_that_fall_silent_end_the_goal_and_nothing_is_handed_over(stack, finger, robot, arms, node, words):
    goal, process = InArms(robot, arms), stack.process(node)
    try:
        with goal.midway():
            process.suspend()
        assert words in str(goal.failure)
        with pytest.raises(SoftformError, match=words):
            robot.reach(TARGET, held_by=arms)
    finally:
        process.resume()


def test_a_watch_that_is_frozen_lets_go_of_the_robot(finger, heard, arms, tmp_path):
    write_ply(tmp_path / "target.ply", in_arms(arms.held().gripper))
    words = ["-m", "softform_core.cli.main", "reach", str(tmp_path / "target.ply"), "--namespace", SPACE]
    words += ["--held-by", "softform/right", "--grip", GRIP, "--mode", "closed-loop", "--tolerance", "1e-6"]
    released = call_service(finger.node, "inverse_kinematics", Trigger, "release", Trigger.Request(), 10.0)
    assert released is not None and released.success
    heard.wait_until(lambda: finger.driver.state == DriverState.SAFE, "the robot to be vented")
    client = subprocess.Popen([sys.executable, *words, "--max-rounds", "50"])
    try:
        deadline = time.monotonic() + 60.0
        while finger.driver.state != DriverState.RUNNING:
            assert time.monotonic() < deadline and client.poll() is None
            time.sleep(0.02)
        client.send_signal(signal.SIGSTOP)
        heard.wait_until(lambda: finger.driver.state == DriverState.SAFE, "the robot to be let go of")
        assert heard.driver.state == DriverState.HOLDING
    finally:
        client.kill()
        client.wait()
