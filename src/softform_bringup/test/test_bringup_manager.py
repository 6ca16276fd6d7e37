"""The bring-up manager against real life-cycle nodes in processes of their own."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import pytest
import rclpy
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from lifecycle_msgs.srv import ChangeState, GetState
from rcl_interfaces.msg import Parameter as ParameterMessage
from rcl_interfaces.msg import ParameterValue
from rcl_interfaces.srv import GetParameters, SetParameters
from rclpy.executors import SingleThreadedExecutor
from std_srvs.srv import Trigger

from softform_bringup.bringup_manager_node import BringupManagerNode
from softform_bringup.lifecycle_manager import BringUpError, LifecycleManager, State, Step, Stopped
from softform_bringup.remote_lifecycle import RemoteLifecycleNode
from softform_interfaces.msg import BringupState
from softform_ros.background_node import BackgroundNode
from softform_ros.diagnostics import ERROR, WARN
from softform_ros.qos import LATCHED_STATE
from softform_ros.service_calls import call_service
from softform_ros.stack_state import state_in_words

TINY_NODE = """
import os
import sys
from softform_core.errors import SoftformError
from softform_ros.lifecycle import SoftformLifecycleNode, run_node

class Tiny(SoftformLifecycleNode):
    def __init__(self):
        super().__init__("tiny", [])
        if not self.has_parameter("launch"):
            self.declare_parameter("launch", os.environ.get("SOFTFORM_LAUNCH", ""))

    def note(self, event):
        with open(sys.argv[1], "a") as file:
            file.write(f"{self.get_name()} {event}\\n")

    def configure(self):
        self.note("configure")
        if "broken" in sys.argv[2:]:
            raise SoftformError("The pump is missing.", "Plug it in.")

    def activate(self):
        self.note("activate")

    def deactivate(self):
        self.note("deactivate")

    def cleanup(self):
        self.note("cleanup")

run_node(Tiny)
"""
MANAGER = "from softform_bringup.bringup_manager_node import main; main()"


class Stack:
    """Some tiny nodes and a manager, in a namespace of their own."""

    def __init__(self, folder):
        self.events_file = folder / "events"
        self.log = folder / "manager.log"
        self.namespace = f"/test_{os.getpid()}_{time.monotonic_ns()}"
        self.processes = {}

    def start(self, name, code, *words, parameters=(), launch="", key=None):
        ros_arguments = ["--ros-args", "-r", f"__node:={name}", "-r", f"__ns:={self.namespace}", *parameters]
        output = self.log.open("a") if name.endswith("manager") else None
        self.processes[key or name] = subprocess.Popen(
            [sys.executable, "-c", code, *words, *ros_arguments],
            env={**os.environ, "SOFTFORM_LAUNCH": launch},
            stdout=output,
            stderr=subprocess.STDOUT,
        )

    def start_tiny(self, name, *words, launch=""):
        self.start(name, TINY_NODE, str(self.events_file), *words, launch=launch)

    def start_manager(self, *nodes, name="bringup_manager", launch="", key=None, **others):
        settings = {"nodes": list(nodes), "start_timeout": 20.0, "watch_period": 0.2, "answer_timeout": 0.5, **others}
        parameters = [word for key, value in settings.items() for word in ("-p", f"{key}:={value}")]
        self.start(name, MANAGER, parameters=parameters, launch=launch, key=key)

    def exit_code(self, timeout=30, manager="bringup_manager"):
        return self.processes[manager].wait(timeout)

    def events(self):
        return self.events_file.read_text().split("\n")[:-1]

    def stop(self):
        for process in self.processes.values():
            process.kill()
            process.wait()


@pytest.fixture
def stack(tmp_path):
    stack = Stack(tmp_path)
    yield stack
    stack.stop()


@pytest.fixture
def watcher(stack):
    """A node that keeps the manager's states."""
    with BackgroundNode("watcher", stack.namespace) as node:
        node.states = []
        node.create_subscription(
            BringupState, "bringup_state", lambda m: node.states.append(state_in_words(m)), LATCHED_STATE
        )

        def wait_for_state(beginning, seconds=30.0):
            deadline = time.monotonic() + seconds
            while not any(state.startswith(beginning) for state in node.states):
                assert time.monotonic() < deadline, (node.states, stack.log.read_text())
                time.sleep(0.02)

        node.wait_for_state = wait_for_state
        yield node


UP = ["first configure", "first activate", "second configure", "second activate"]
DOWN = ["second deactivate", "second cleanup", "first deactivate", "first cleanup"]


def test_up_in_order_and_down_in_reverse_by_service(stack, watcher):
    stack.start_manager("first", "second")
    stack.start_tiny("second")
    stack.start_tiny("first")
    watcher.wait_for_state("active")
    assert stack.events() == UP
    assert call_service(watcher, "bringup_manager", Trigger, "shutdown", Trigger.Request(), 10.0).success
    assert stack.exit_code() == 0
    assert stack.events() == UP + DOWN
    watcher.wait_for_state("down")


def test_the_driver_vents_before_anything_else_goes_down(stack, watcher):
    stack.start_manager("first", "second", safe_first=["first"])
    stack.start_tiny("first")
    stack.start_tiny("second")
    watcher.wait_for_state("active")
    stack.processes["bringup_manager"].send_signal(signal.SIGTERM)
    assert stack.exit_code() == 0
    assert stack.events() == [*UP, "first deactivate", "second deactivate", "second cleanup", "first cleanup"]


def test_down_in_reverse_by_sigterm_and_missing_node_reported(stack, watcher):
    stack.start_manager("first", "second")
    stack.start_tiny("first")
    stack.start_tiny("second")
    watcher.wait_for_state("active")
    os.kill(stack.processes["second"].pid, signal.SIGKILL)
    watcher.wait_for_state("degraded: second does not answer")
    stack.processes["bringup_manager"].send_signal(signal.SIGTERM)
    assert stack.exit_code() == 0
    assert stack.events() == [*UP, *DOWN[2:]]


def test_a_node_that_fails_brings_down_what_was_up(stack, watcher):
    stack.start_manager("first", "second", "third")
    watcher.wait_for_state("starting")
    stack.start_tiny("first")
    stack.start_tiny("second", "broken")
    stack.start_tiny("third")
    watcher.wait_for_state("failed: second failed to configure: configure failed: The pump is missing. Plug it in.")
    assert stack.exit_code() == 1
    assert stack.events() == [*UP[:3], "second cleanup", *DOWN[2:]]
    assert "The pump is missing. Plug it in." in stack.log.read_text()


def test_tells_its_parameters(stack, watcher):
    stack.start_manager("nowhere")
    watcher.wait_for_state("starting")
    request = GetParameters.Request(names=["watch_period"])
    told = call_service(watcher, "bringup_manager", GetParameters, "bringup_manager/get_parameters", request, 10.0)
    assert told is not None, stack.log.read_text()
    assert told.values[0].double_value == 0.2


def test_stop_while_waiting_for_a_node(stack, watcher):
    stack.start_manager("nowhere")
    watcher.wait_for_state("starting")
    stack.processes["bringup_manager"].send_signal(signal.SIGINT)
    assert stack.exit_code() == 0


def test_a_second_manager_of_the_same_name_ends_and_touches_nothing(stack, watcher):
    """Both would be asked by one request, and each would bring the other's nodes down."""
    stack.start_manager("first")
    stack.start_tiny("first")
    watcher.wait_for_state("active")
    stack.start_manager("first", key="second manager")
    assert stack.exit_code(manager="second manager") == 1
    said = f"{stack.namespace}/bringup_manager is there already (since"
    assert (
        said in stack.log.read_text()
        and f"process {stack.processes['bringup_manager'].pid} on" in stack.log.read_text()
    )
    assert stack.events() == ["first configure", "first activate"]
    assert watcher.states[-1] == "active"
    assert call_service(watcher, "bringup_manager", Trigger, "shutdown", Trigger.Request(), 10.0).success
    assert stack.exit_code() == 0


def test_nodes_of_another_launch_are_neither_brought_up_nor_down(stack, watcher):
    stack.start_tiny("first", launch="one")
    stack.start_manager("first", launch="two", name="other_manager")
    assert stack.exit_code(manager="other_manager") == 1
    said = "failed: first belongs to another launch. End that one, or use another namespace"
    assert said in stack.log.read_text()  # it ends at once, and messages may be lost with it
    assert not stack.events_file.exists()
    watcher.states.clear()
    stack.start_manager("first", launch="one")
    watcher.wait_for_state("active")
    stack.start_manager("first", launch="two", name="other_manager")
    time.sleep(1.0)
    stack.processes["other_manager"].send_signal(signal.SIGINT)
    stack.exit_code(manager="other_manager")
    assert stack.events() == ["first configure", "first activate"]


def test_a_node_that_runs_elsewhere_is_brought_up_and_left_to_the_next_manager(stack, watcher):
    stack.start_tiny("first", launch="one")
    for launch in ("two", "three"):
        watcher.states.clear()
        stack.start_manager("first", launch=launch, elsewhere=["first"])
        watcher.wait_for_state("active")
        stack.processes["bringup_manager"].send_signal(signal.SIGTERM)
        assert stack.exit_code() == 0
    assert stack.events() == 2 * [*UP[:2], *DOWN[2:]]


def test_shutdown_answers_after_a_request_that_makes_no_sense(stack, watcher):
    stack.start_manager("nowhere")
    watcher.wait_for_state("starting")
    bad = SetParameters.Request(parameters=[ParameterMessage(name="nodes", value=ParameterValue(type=200))])
    call_service(watcher, "bringup_manager", SetParameters, "bringup_manager/set_parameters", bad, 3.0)
    assert call_service(watcher, "bringup_manager", Trigger, "shutdown", Trigger.Request(), 10.0).success
    assert stack.exit_code() == 0


class ScriptedNode:
    """Answers as scripted: the manager's decisions at the edges that real nodes reach too rarely."""

    def __init__(self, states, answers=(), there=True):
        self.name = "node"
        self.states = list(states)
        self.answers = list(answers)
        self.there = there
        self.asked = []
        self.launches = [""]

    def is_there(self):
        return self.there

    def state(self, timeout):
        return self.states.pop(0) if len(self.states) > 1 else self.states[0]

    def change(self, step, timeout):
        self.asked.append(step)
        return self.answers.pop(0) if self.answers else True

    def launch(self, timeout):
        return self.launches.pop(0) if len(self.launches) > 1 else self.launches[0]

    def last_error(self):
        return ""


def manage(node, should_stop=lambda: False, launch=""):
    return LifecycleManager([node], lambda line: None, 0.1, 0.2, should_stop, launch=launch)


def test_an_active_node_is_left_alone():
    node = ScriptedNode([State.ACTIVE])
    manager = manage(node)
    manager.bring_up()
    manager.bring_down(1.0)
    assert node.asked == []


def test_only_valid_steps_are_asked_for():
    node = ScriptedNode([None, State.INACTIVE, None, State.ACTIVE])
    manage(node).bring_up()
    assert node.asked == [Step.ACTIVATE]


@pytest.mark.parametrize(
    ("node", "message"),
    [
        (ScriptedNode([State.FINALIZED]), "is finalized"),
        (ScriptedNode([None]), "does not tell its state"),
        (ScriptedNode([State.UNCONFIGURED], [None]), "did not answer"),
        (ScriptedNode([State.UNCONFIGURED], [False]), "failed to configure"),
        (ScriptedNode([State.UNCONFIGURED], there=False), "did not appear"),
    ],
)
def test_bring_up_errors(node, message):
    with pytest.raises(BringUpError, match=message):
        manage(node).bring_up()


def test_bring_up_stops_when_asked():
    with pytest.raises(Stopped):
        manage(ScriptedNode([State.UNCONFIGURED], there=False), lambda: True).bring_up()


class SlowNode(ScriptedNode):
    """Takes a step only after `until` has become true."""

    def __init__(self, name, states, until):
        super().__init__(states)
        self.name, self.until = name, until

    def change(self, step, timeout):
        deadline = time.monotonic() + 5.0
        while not self.until():
            assert time.monotonic() < deadline
            time.sleep(0.01)
        return super().change(step, timeout)


def both(configured_ahead, first, second):
    LifecycleManager([first, second], lambda line: None, 0.5, 5.0, lambda: False, configured_ahead).bring_up()


def test_a_node_is_configured_ahead_and_activated_in_its_turn():
    second = SlowNode("second", [State.UNCONFIGURED, State.INACTIVE, State.ACTIVE], lambda: True)
    states = [State.UNCONFIGURED, State.INACTIVE, State.ACTIVE]
    first = SlowNode("first", states, lambda: second.asked == [Step.CONFIGURE])
    both(["second"], first, second)
    assert first.asked == second.asked == [Step.CONFIGURE, Step.ACTIVATE]


def test_a_node_that_cannot_be_configured_ahead_tells_why_in_its_turn():
    first = SlowNode("first", [State.INACTIVE, State.ACTIVE], lambda: True)
    second = SlowNode("second", [State.UNCONFIGURED], lambda: True)
    second.answers = [False, False]
    with pytest.raises(BringUpError, match="second failed to configure"):
        both(["second"], first, second)
    absent = ScriptedNode([State.UNCONFIGURED], there=False)
    with pytest.raises(BringUpError, match="did not appear within 0 s"):
        LifecycleManager([absent], lambda line: None, 0.1, 0.2, lambda: False, [absent.name]).bring_up()


@pytest.mark.parametrize(
    ("launches", "comes_up"), [([None, "mine"], True), ([""], True), (["x"], False), ([None], False)]
)
def test_who_does_not_tell_its_launch_is_not_brought_up(launches, comes_up):
    node = ScriptedNode([State.INACTIVE, State.ACTIVE])
    node.launches = launches
    if comes_up:
        manage(node, launch="mine").bring_up()
    else:
        with pytest.raises(BringUpError, match="belongs to another launch"):
            manage(node, launch="mine").bring_up()
    assert node.asked == [Step.ACTIVATE] * comes_up


def test_bring_down_gives_up_on_a_silent_node():
    node = ScriptedNode([State.INACTIVE, State.ACTIVE])
    manager = manage(node)
    manager.bring_up()
    node.states = [None]
    started = time.monotonic()
    manager.bring_down(0.3)
    assert 0.25 < time.monotonic() - started < 5.0


class LossyNode:
    """Real services of a life-cycle node, whose handler answers the first `lost` transitions by an exception only."""

    def __init__(self, node, name, lost, does_it):
        self.state, self.lost, self.does_it, self.asked = State.UNCONFIGURED, lost, does_it, 0
        node.create_service(GetState, f"{name}/get_state", self.get_state)
        node.create_service(ChangeState, f"{name}/change_state", self.change_state)

    def get_state(self, request, response):
        response.current_state.id = int(self.state)
        return response

    def change_state(self, request, response):
        self.asked += 1
        is_lost = self.asked <= self.lost
        if not is_lost or self.does_it:
            self.state = State.INACTIVE
        if is_lost:
            raise RuntimeError("this answer never leaves")
        response.success = True
        return response


@pytest.fixture
def lossy(ros_domain):
    context = rclpy.Context()
    rclpy.init(context=context)
    server, manager = (rclpy.create_node(name, context=context) for name in ("server", "manager"))
    stopped = threading.Event()

    def spin(node):
        executor = SingleThreadedExecutor(context=context)
        executor.add_node(node)
        while not stopped.is_set():
            with contextlib.suppress(RuntimeError):
                executor.spin_once(timeout_sec=0.05)

    def make(lost, does_it):
        name = f"lossy_{time.time_ns()}"  # the one before may still be seen for a moment, and then be gone
        remote = RemoteLifecycleNode(manager, name, lambda name: "", lambda: False)
        lossy_node = LossyNode(server, name, lost, does_it)
        for node in (server, manager):
            threading.Thread(target=spin, args=(node,), daemon=True).start()
        deadline = time.monotonic() + 20.0
        while not remote.is_there() and time.monotonic() < deadline:
            time.sleep(0.05)
        return remote, lossy_node

    yield make
    stopped.set()
    time.sleep(0.2)
    rclpy.shutdown(context=context)


def test_a_lost_answer_is_seen_in_the_state(lossy):
    remote, node = lossy(lost=1, does_it=True)
    assert remote.change(Step.CONFIGURE, timeout=30.0)
    assert node.asked == 1


def test_a_lost_request_is_sent_again(lossy):
    remote, node = lossy(lost=1, does_it=False)
    assert remote.change(Step.CONFIGURE, timeout=30.0)
    assert node.asked == 2
    assert node.state is State.INACTIVE


def test_errors_are_kept_of_its_own_nodes_and_what_its_callbacks_raised_is_told():
    node = BringupManagerNode.__new__(BringupManagerNode)
    node._errors, node._state, node.parameters = {"/softform/tiny": ""}, None, {"nodes": ["tiny"]}
    said = [DiagnosticStatus(name=f"/other/n{i}", level=ERROR, message="no") for i in range(9)]
    node._keep_errors(
        DiagnosticArray(status=[*said, DiagnosticStatus(name="/softform/tiny", level=ERROR, message="lost")])
    )
    assert node._errors == {"/softform/tiny": "lost"}
    node.failed_callbacks = SimpleNamespace(count=1, last="out of range", last_at=time.monotonic())
    health = node._health()
    assert health.level == WARN and "out of range" in health.message and health.values["nodes"] == "tiny"
