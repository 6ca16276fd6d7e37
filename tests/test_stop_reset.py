"""Under `stop` nothing but `reset` lets air in again: a state machine on the real driver and inverse-kinematics nodes.

The oracle is the emulated board: requests that arrive on its wire, and the true pressures of its channels.
`SOFTFORM_STOP_EXAMPLES=200 ./softform test tests/test_stop_reset.py` runs it long, each time with other sequences.
"""

import os
import signal
import time

import numpy as np
import psutil
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from rcl_interfaces.msg import Parameter as ParameterMessage
from rcl_interfaces.msg import ParameterType, ParameterValue
from rcl_interfaces.srv import SetParameters
from stopped_stack import DRIVER, HELD, PLANNER, ROBOT, VENTING_SECONDS, Stack

from softform_bringup.lifecycle_manager import State, Step
from softform_client.follow_messages import ActuatorPath, FollowGoal
from softform_client.follow_messages import goal_to_message as follow_message
from softform_client.reach_goal import Mode, ReachGoal
from softform_client.reach_messages import features_to_message, goal_to_message
from softform_core.shapes.features import FeaturePoints
from softform_core.shapes.random import random_target
from softform_interfaces.action import FollowWaypoints, ReachShape
from softform_interfaces.msg import ActuatorCommand, Asked
from softform_ros.conversions import cloud_from_points

EXAMPLES = int(os.environ.get("SOFTFORM_STOP_EXAMPLES", "0"))
SHORT_EXAMPLES, SHORT_STEPS = 4, 6
ODD_PRESSURES = {
    "nan": HELD * np.nan,
    "too high": HELD * 1e3,
    "too few": HELD[:3],
    "zero": HELD * 0.0,
    "the range's top": np.asarray(ROBOT.actuation_max),
}


@pytest.fixture(scope="module")
def stack(ros_domain, tmp_path_factory):
    folder = tmp_path_factory.mktemp("stopped")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOFTFORM_STATE", str(folder))
        with Stack(folder) as running:
            yield running


def test_no_restart_forgets_a_stop(stack):
    stack.pressurise()
    stack.stop()
    stack.end(DRIVER, signal.SIGKILL)
    stack.start(DRIVER)
    stack.bring_up(DRIVER)
    assert stack.remote[DRIVER].state(5.0) == State.ACTIVE  # a driver that is not up proves nothing
    time.sleep(VENTING_SECONDS)
    assert not stack.board.breaches


class Stopped(RuleBasedStateMachine):
    """What people, planners and accidents do to a stack that is stopped."""

    stack: Stack

    @initialize()
    def stop_in_motion(self):
        self.stack.pressurise()
        self.stack.stop()

    @rule(number=st.sampled_from([signal.SIGKILL, signal.SIGTERM, signal.SIGINT]), up=st.booleans())
    def restart_the_driver(self, number, up):
        self.stack.end(DRIVER, number)
        self.stack.start(DRIVER)
        if up:
            self.stack.bring_up(DRIVER)

    @rule(step=st.sampled_from([Step.DEACTIVATE, Step.ACTIVATE, Step.CLEANUP, Step.CONFIGURE]))
    def change_its_state(self, step):
        self.stack.remote[DRIVER].change(step, 5.0)

    @rule()
    def bring_it_up(self):
        self.stack.bring_up(DRIVER)

    @rule()
    def kill_its_guardian(self):
        for child in psutil.Process(self.stack.processes[DRIVER].pid).children():
            child.kill()

    @rule(seconds=st.sampled_from([0.1, 1.0]))
    def hang_it(self, seconds):
        self.stack.processes[DRIVER].send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        self.stack.processes[DRIVER].send_signal(signal.SIGCONT)

    @rule()
    def stop_again(self):
        self.stack.trigger("stop")

    @rule()
    def calibrate(self):
        self.stack.trigger("calibrate")

    @rule(number=st.sampled_from([signal.SIGKILL, signal.SIGTERM]), up=st.booleans())
    def restart_the_planner(self, number, up):
        self.stack.end(PLANNER, number)
        self.stack.start(PLANNER)
        if up:
            self.stack.bring_up(PLANNER)

    @rule(values=st.sampled_from(sorted(ODD_PRESSURES)))
    def command_something_odd(self, values):
        values = ODD_PRESSURES[values]
        newest = self.stack.states[-1]
        message = ActuatorCommand(
            source=newest.holder,
            lease=newest.lease,
            fingerprint=newest.fingerprint,
            name=ROBOT.actuators[: len(values)],
            unit=["Pa"] * len(values),
            value=values.tolist(),
        )
        for _ in range(5):
            message.header.stamp = self._now()
            self.stack.commands.publish(message)
            time.sleep(0.01)

    @rule(name=st.sampled_from(["command_timeout", "follow_timeout", "stream_timeout"]))
    def set_a_parameter(self, name):
        value = ParameterValue(type=ParameterType.PARAMETER_DOUBLE, double_value=10.0)
        request = SetParameters.Request(parameters=[ParameterMessage(name=name, value=value)])
        self.stack.call(DRIVER, SetParameters, f"{DRIVER}/set_parameters", request)

    @rule()
    def restart_the_board(self):
        self.stack.board.boot(time.monotonic())

    @rule(seconds=st.sampled_from([0.1, 1.5]))
    def pull_the_cable_and_plug_it_in(self, seconds):
        self.stack.terminal.stop()
        time.sleep(seconds)
        self.stack.terminal.start()

    @rule(mode=st.sampled_from([Mode.PLAN_AND_MOVE, Mode.CLOSED_LOOP]))
    def ask_for_a_shape(self, mode):
        self.stack.bring_up(PLANNER)
        target = ReachGoal(random_target(ROBOT, seed=1), mode, max_time=1.0)
        self._send_goal(ReachShape, "reach_shape", goal_to_message(target, "membrane/base_link", self._now()))

    @rule()
    def stream_shapes(self):
        self.stack.bring_up(PLANNER)
        points = random_target(ROBOT, seed=2).points
        self._stream(self.stack.targets, lambda stamp: cloud_from_points(points, "membrane/base_link", stamp))

    @rule()
    def stream_feature_points(self):
        self.stack.bring_up(PLANNER)
        wanted = FeaturePoints.of([[0.5, 0.5]], [[0.0, 0.0, 0.03]])
        self._stream(self.stack.features, lambda stamp: features_to_message(wanted, "membrane/base_link", stamp))

    @rule()
    def follow_pressures(self):
        self.stack.bring_up(PLANNER)
        goal = FollowGoal(ActuatorPath(np.stack([0.5 * HELD, HELD])))
        self._send_goal(FollowWaypoints, "follow_waypoints", follow_message(goal, "membrane/base_link", self._now()))

    def _now(self):
        return self.stack.node.get_clock().now().to_msg()

    def _send_goal(self, action, name, message):
        message.asked = Asked(stamp=self._now(), epoch=self.stack.states[-1].epoch)
        service = action.Impl.SendGoalService
        request = service.Request(goal=message)
        request.goal_id.uuid = np.random.default_rng().integers(0, 256, 16, dtype=np.uint8)
        self.stack.call(PLANNER, service, f"{name}/_action/send_goal", request)
        time.sleep(0.5)

    def _stream(self, publisher, message_at):
        for _ in range(10):
            publisher.publish(message_at(self._now()))
            time.sleep(0.02)

    @invariant()
    def nothing_lets_air_in(self):
        time.sleep(0.2)
        assert not self.stack.board.breaches

    def teardown(self):
        time.sleep(VENTING_SECONDS)
        self.nothing_lets_air_in()


def test_under_stop_nothing_but_reset_pressurises(stack):
    Stopped.stack = stack
    thorough = EXAMPLES > 0
    run_state_machine_as_test(
        Stopped,
        settings=settings(
            max_examples=EXAMPLES or SHORT_EXAMPLES,
            stateful_step_count=30 if thorough else SHORT_STEPS,
            derandomize=not thorough,
            database=None,
            phases=[Phase.generate, Phase.shrink] if thorough else [Phase.generate],
            suppress_health_check=list(HealthCheck),
        ),
    )
    stack.pressurise()
