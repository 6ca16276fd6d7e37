"""The shared life cycle, with real processes: failures are reported, signals end in a safe state."""

import signal
import subprocess
import sys
import textwrap
import time

import pytest
from diagnostic_msgs.msg import DiagnosticArray
from lifecycle_msgs.msg import State, Transition
from lifecycle_msgs.srv import ChangeState, GetState

from softform_ros.background_node import BackgroundNode
from softform_ros.service_calls import call_service

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
    with BackgroundNode("listener", "/") as node:
        yield node


def start(*arguments):
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(NODE), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def change(node, transition):
    request = ChangeState.Request(transition=Transition(id=transition))
    return call_service(node, "/valve", ChangeState, "/valve/change_state", request, 20.0).success


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_makes_an_active_node_safe_before_it_ends(listener, number):
    process = start()
    try:
        assert change(listener, Transition.TRANSITION_CONFIGURE)
        assert change(listener, Transition.TRANSITION_ACTIVATE)
        process.send_signal(number)
        output, errors = process.communicate(timeout=20)
    finally:
        process.kill()
    assert output.split() == ["open", "activate", "vent", "close"], errors
    assert process.returncode == 0


def test_a_failed_configure_is_closed_again_and_reported(listener):
    messages = []
    listener.create_subscription(
        DiagnosticArray, "/diagnostics", lambda m: messages.extend((s.hardware_id, s.message) for s in m.status), 10
    )
    process = start("--ros-args", "-p", "broken:=true")
    try:
        assert not change(listener, Transition.TRANSITION_CONFIGURE)
        state = call_service(listener, "/valve", GetState, "/valve/get_state", GetState.Request(), 20.0).current_state
        for _ in range(100):
            time.sleep(0.1)
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
    process = start()
    try:
        assert change(listener, Transition.TRANSITION_CONFIGURE)
        request = ChangeState.Request(transition=Transition(id=Transition.TRANSITION_CONFIGURE))
        call_service(listener, "/valve", ChangeState, "/valve/change_state", request, 2.0)
        assert change(listener, Transition.TRANSITION_ACTIVATE)
        assert process.poll() is None
    finally:
        process.terminate()
        process.wait(timeout=20)
