"""The driver's node in this process: what its two threads do at the same time."""

import threading
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import rclpy
from std_srvs.srv import Trigger

from softform_actuation import actuation_node
from softform_actuation.actuation_node import STATE_SECONDS, ActuationNode
from softform_actuation.clock import Clock
from softform_actuation.lease import LeasedCommands
from softform_actuation.states import DriverReport, Readings, State
from softform_core.robots import load_robot
from softform_interfaces.msg import ActuatorCommand, Asked
from softform_interfaces.srv import Lease
from softform_ros.background_node import BackgroundNode
from softform_ros.service_calls import call_service

SPACE = "/two_threads"


@pytest.fixture
def node() -> Iterator[ActuationNode]:
    rclpy.init(args=["--ros-args", "-r", f"__ns:={SPACE}"])
    node = ActuationNode()
    yield node
    node._driver = None
    node.destroy_node()
    rclpy.shutdown()


def test_stop_is_answered_though_a_callback_beside_it_failed(node: ActuationNode) -> None:
    failures = []

    class Driver(SimpleNamespace):
        is_alive, fingerprint = True, "membrane"

        @property
        def held_for(self) -> float:
            failures.append(1)
            raise RuntimeError("what nobody has thought of")

    node._report = DriverReport(State.RUNNING, "following", "planner", 7, 5)
    node._driver = Driver(begin_stop=lambda: True, end_stop=lambda is_made_safe: "Measured at rest.")  # type: ignore[assignment]
    deadline = time.monotonic() + 10.0
    while len(failures) < 2:
        assert time.monotonic() < deadline, "the thread has ended"
        time.sleep(STATE_SECONDS / 4.0)
    with BackgroundNode("operator", SPACE) as operator:
        answer = call_service(operator, "actuation_stop", Trigger, "stop", Trigger.Request(), 10.0)
    assert answer is not None and answer.success, answer


def test_a_stop_is_answered_though_no_thread_can_be_started(
    node: ActuationNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(work: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(node._workers, "submit", full)
    node._driver = SimpleNamespace(  # type: ignore[assignment]
        begin_stop=lambda: True, end_stop=lambda is_made_safe: "Measured at rest.", held_for=0.0, fingerprint="membrane"
    )
    with BackgroundNode("operator", SPACE) as operator:
        answer = call_service(operator, "actuation_stop", Trigger, "stop", Trigger.Request(), 10.0)
    assert answer is not None and answer.success and answer.message == "Measured at rest.", answer


def test_a_node_that_cannot_tell_what_it_measures_makes_safe_and_ends(
    node: ActuationNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(message: object) -> None:
        raise RuntimeError("the middleware is gone")

    is_interrupted = threading.Event()
    monkeypatch.setattr(node._readings_publisher, "publish", broken)
    node._robot, node._driver = load_robot("membrane"), SimpleNamespace(interrupt=is_interrupted.set)  # type: ignore[assignment]
    node._queue_readings(Readings(np.zeros(9), np.zeros(9, dtype=np.int64), time.monotonic()))
    assert is_interrupted.wait(10.0)
    assert node.is_finished and node.exit_code == 1  # by which `run_node` makes safe and leaves


def test_a_stop_and_configure_declare_the_parameters_of_the_devices_once(
    node: ActuationNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    robot, declare, values = load_robot("membrane"), actuation_node.declare_parameters, []

    def declare_slowly(*arguments: Any) -> None:
        time.sleep(0.1)
        declare(*arguments)

    monkeypatch.setattr(actuation_node, "declare_parameters", declare_slowly)
    threads = [threading.Thread(target=lambda: values.append(node._all_values(robot))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(values) == 2 and values[0] == values[1] and "port" in values[0]


def test_a_node_that_drives_a_robot_cannot_be_given_simulated_time_later(node: ActuationNode) -> None:
    (result,) = node.set_parameters([rclpy.Parameter("use_sim_time", value=True)])
    assert not result.successful and "stamped by the computer's clock" in result.reason
    assert not node.get_parameter("use_sim_time").value


def test_a_denied_lease_is_logged_once_until_the_reason_or_the_holder_changes(
    node: ActuationNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    monkeypatch.setattr(node, "get_logger", lambda: SimpleNamespace(warning=said.append))

    def ask(source: str, times: int = 1) -> bool:
        asked = Asked(stamp=node.get_clock().now().to_msg(), epoch=commands.epoch)
        request = Lease.Request(request=Lease.Request.ACQUIRE, source=source, asked=asked, fingerprint="membrane")
        return [node._on_lease(request, Lease.Response()).success for _ in range(times)][-1]

    commands = LeasedCommands(Clock(), 3.0, "membrane")
    assert not ask("servo", 5)
    assert len(said) == 1 and "not configured" in said[0]
    node.parameters = {"lease_timeout": 3.0, "command_timeout": 0.5}
    node._driver = SimpleNamespace(acquire=commands.acquire, report=node._report)  # type: ignore[assignment]
    assert ask("planner")
    for _ in range(5):
        assert not ask("servo", 5) and not ask("collector", 5)
    assert [line.split(": ")[0] for line in said[1:]] == ["lease denied to 'servo'", "lease denied to 'collector'"]
    assert all("'planner' holds the lease" in line for line in said[1:])
    for _ in range(2):  # given anew, if to the same one, it is news
        commands.end("It was given up.")
        assert ask("planner") and not ask("servo", 5)
    assert len(said) == 5


def test_names_of_commanders_do_nothing_to_a_terminal_and_are_short(node: ActuationNode) -> None:
    node.parameters = {"lease_timeout": 3.0, "command_timeout": 0.5}
    commands, commanded = LeasedCommands(Clock(), 3.0, "membrane"), []
    node._driver = SimpleNamespace(  # type: ignore[assignment]
        acquire=commands.acquire, command=lambda source, *rest: commanded.append(source), report=node._report
    )
    name = "\x1b[2Jplanner" + 9000 * "r"
    asked = Asked(stamp=node.get_clock().now().to_msg(), epoch=commands.epoch)
    request = Lease.Request(request=Lease.Request.ACQUIRE, source=name, asked=asked, fingerprint="membrane")
    assert node._on_lease(request, Lease.Response()).success
    node._on_command(ActuatorCommand(source=name))
    holder = commands.holder[0]
    assert commanded == [holder] and holder.startswith("\ufffd[2Jplanner") and len(holder) == 200
