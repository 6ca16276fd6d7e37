"""The shared life cycle, with real processes: failures are reported, signals end in a safe state."""

import signal
import subprocess
import sys
import textwrap
import time

import pytest
import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from lifecycle_msgs.msg import State, Transition
from lifecycle_msgs.srv import ChangeState, GetState

NODE = """
import sys
from softform_core.errors import SoftformError
from softform_ros.lifecycle import SoftformLifecycleNode, run_node
from softform_ros.parameters import Parameter

class Valve(SoftformLifecycleNode):
    def __init__(self):
        super().__init__("valve", [Parameter("broken", False, "whether configure fails")], "valve-1")
    def say(self, word):
        sys.stdout.write(word + chr(10)); sys.stdout.flush()
    def configure(self):
        self.say("open")
        if self.parameters["broken"]:
            raise SoftformError("the valve is stuck", "Tap it.")
    def activate(self): self.say("activate")
    def deactivate(self): self.say("vent")
    def cleanup(self): self.say("close")

run_node(Valve)
"""


@pytest.fixture
def listener():
    context = rclpy.Context()
    rclpy.init(context=context)
    node = rclpy.create_node("listener", context=context)
    executor = rclpy.executors.SingleThreadedExecutor(context=context)
    executor.add_node(node)
    yield node, executor
    node.destroy_node()
    rclpy.shutdown(context=context)


def start(*arguments):
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(NODE), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def call(node, executor, kind, service, request):
    client = node.create_client(kind, service)
    assert client.wait_for_service(timeout_sec=20.0)
    # The server may see this client later than the client sees it; an answer sent before that is lost.
    executor.spin_once(timeout_sec=0.5)
    time.sleep(0.5)
    future = client.call_async(request)
    executor.spin_until_future_complete(future, timeout_sec=10.0)
    return future.result()


def change(node, executor, transition):
    request = ChangeState.Request()
    request.transition.id = transition
    return call(node, executor, ChangeState, "/valve/change_state", request).success


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_makes_an_active_node_safe_before_it_ends(listener, number):
    process = start()
    try:
        assert change(*listener, Transition.TRANSITION_CONFIGURE)
        assert change(*listener, Transition.TRANSITION_ACTIVATE)
        process.send_signal(number)
        output, errors = process.communicate(timeout=20)
    finally:
        process.kill()
    assert output.split() == ["open", "activate", "vent", "close"], errors
    assert process.returncode == 0


def test_a_failed_configure_is_closed_again_and_reported(listener):
    node, executor = listener
    messages = []
    node.create_subscription(
        DiagnosticArray, "/diagnostics", lambda m: messages.extend((s.hardware_id, s.message) for s in m.status), 10
    )
    process = start("--ros-args", "-p", "broken:=true")
    try:
        assert not change(node, executor, Transition.TRANSITION_CONFIGURE)
        state = call(node, executor, GetState, "/valve/get_state", GetState.Request()).current_state
        for _ in range(100):
            executor.spin_once(timeout_sec=0.1)
            if ("valve-1", "configure failed: the valve is stuck Tap it.") in messages:
                break
        process.send_signal(signal.SIGTERM)
        output, errors = process.communicate(timeout=20)
    finally:
        process.kill()
    assert state.id == State.PRIMARY_STATE_UNCONFIGURED
    assert ("valve-1", "configure failed: the valve is stuck Tap it.") in messages
    assert output.split() == ["open", "close"]
    assert "the valve is stuck" in errors


def test_an_invalid_transition_does_not_end_the_node(listener):
    node, executor = listener
    process = start()
    try:
        assert change(node, executor, Transition.TRANSITION_CONFIGURE)
        client = node.create_client(ChangeState, "/valve/change_state")
        request = ChangeState.Request()
        request.transition.id = Transition.TRANSITION_CONFIGURE
        assert client.wait_for_service(timeout_sec=10.0)
        refused = client.call_async(request)
        executor.spin_until_future_complete(refused, timeout_sec=1.0)
        assert change(node, executor, Transition.TRANSITION_ACTIVATE)
        assert process.poll() is None
    finally:
        process.terminate()
        process.wait(timeout=20)
