"""The tendon-driven rod on the virtual rig: led by its motors, watched, and slackened when it goes wrong."""

import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from sensor_msgs.msg import PointCloud2

from softform_client.client import GoalFailedError, NotConnectedError, PointPath, ShapeClient
from softform_core.forward.tip_model import load_line, load_tip_model
from softform_core.robots import CENTRE_LINE, load_robot
from softform_core.shapes.features import FeaturePoints
from softform_core.units import MM_PER_M
from softform_interfaces.msg import ActuatorState, DriverState
from softform_interfaces.srv import InjectFault
from softform_ros.background_node import BackgroundNode
from softform_ros.conversions import points_from_cloud
from softform_ros.qos import ACTUATOR_STATE_READER, DIAGNOSTICS, FAULT_EVENTS, LATCHED_STATE, PREDICTED_SURFACE
from softform_ros.service_calls import call_driver, call_service
from softform_tendons.settings import SLACKENED_WITHIN
from softform_tools.ros_checks import drivers_heard

NAME = "tendon_rod"
ROBOT = load_robot(NAME, "tip")
STACK = {"robot": NAME}
MADE_SAFE = 0.3  # s from the end of the driver to the guardian's request on the wire, on a busy machine
SLACK = ROBOT.safe + 5e-4  # of the true pulls: drums, homes and backlash of the reality

pytestmark = pytest.mark.timeout(240)


class Heard:
    """What the stack has said last, and what passed on the wire."""

    def __init__(self, node):
        self.node = node
        self.driver = DriverState()
        self.measured = np.full(4, np.nan)
        self.vents: list[float] = []
        self.values: dict[str, dict[str, str]] = {}
        self.pulls: list[tuple[float, np.ndarray]] = []
        node.create_subscription(DriverState, "driver_state", lambda told: setattr(self, "driver", told), LATCHED_STATE)
        node.create_subscription(ActuatorState, "actuator_state", self._note_measured, ACTUATOR_STATE_READER)
        node.create_subscription(DiagnosticStatus, "rig/fault_events", self._note_event, FAULT_EVENTS)
        node.create_subscription(DiagnosticArray, "/diagnostics", self._note_health, DIAGNOSTICS)

    def _note_measured(self, told):
        self.measured = np.array(told.value)

    def _note_event(self, told):
        if told.message == "vent on the wire":
            self.vents.append(float(told.values[0].value))

    def _note_health(self, told):
        for status in told.status:
            values = {pair.key: pair.value for pair in status.values}
            self.values[status.name.removeprefix("/softform/")] = values
            if "true displacements (m)" in values:
                pulls = np.array(values["true displacements (m)"].split(), dtype=float)
                self.pulls.append((time.monotonic(), pulls))

    def wait_until(self, condition, what, seconds=20.0):
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, f"waited in vain for {what}: {self.driver}"
            time.sleep(0.02)

    def pulls_after(self, moment: float) -> np.ndarray:
        """The first true pulls, (4,) m, that were told after a moment."""
        self.wait_until(lambda: self.pulls and self.pulls[-1][0] > moment, "the rig's pulls")
        return next(pulls for at, pulls in self.pulls if at > moment)


@pytest.fixture
def heard(stack) -> Iterator[Heard]:
    with BackgroundNode("listener", "/softform") as node:
        yield Heard(node)


@pytest.fixture
def client(stack) -> Iterator[ShapeClient]:
    with ShapeClient("/softform", timeout=30.0) as client:
        yield client


@pytest.fixture(scope="module")
def path() -> PointPath:
    """Points of the tip, bent to three sides."""
    actuations = np.array([[0.006, 0.0, 0.0], [0.0, 0.006, 0.0], [-0.004, -0.004, 0.001]])
    return PointPath(load_tip_model(ROBOT).tip(actuations) / MM_PER_M, np.zeros(2))


def test_the_tip_follows_waypoints(client, path, heard):
    result = client.follow(path)
    width = load_tip_model(ROBOT).workspace_width_mm / MM_PER_M
    assert max(result.errors) < 0.002 * width
    # The specimen's difference from the simulator, which nothing has learned here.
    assert np.isfinite(result.measured_errors).sum() >= 2 and np.nanmean(result.measured_errors) < 0.05 * width
    assert heard.driver.state == DriverState.RUNNING
    held = np.reshape(result.actuators.value, (3, -1))[-1]
    np.testing.assert_allclose(heard.measured, held, atol=ROBOT.actuator_tolerances.arrive.min())


def test_the_middle_of_the_centre_line_is_led_to_its_place_and_shown(client, heard):
    shown: list[np.ndarray] = []
    heard.node.create_subscription(
        PointCloud2, "predicted_centre_line", lambda told: shown.append(points_from_cloud(told)), PREDICTED_SURFACE
    )
    middle = load_line(ROBOT).at(np.array([[0.0, 0.5]]))
    place = middle.forward(np.array([[0.004, -0.002, 0.0]])).points[0] / MM_PER_M
    wanted = FeaturePoints.of([[0.0, 0.5]], place, None, [CENTRE_LINE])
    result = client.reach(features=wanted, mode="plan-and-move")
    assert result.solve.mean_error < 1e-4
    heard.wait_until(lambda: shown and np.linalg.norm(shown[-1][10] - place[0]) < 2e-3, "the middle at its place")
    assert shown[-1].shape == (21, 3) and np.linalg.norm(shown[-1][0]) < 1e-3


def test_each_motor_is_reported_and_a_broken_bus_where_to_look(heard):
    heard.wait_until(lambda: "bus" in heard.values.get("actuation", {}), "the driver's health")
    health = heard.values["actuation"]
    assert health["made safe by"] == "slacken" and health["bus"] == "all motors answer"
    for number in (1, 2, 3, 4):
        motor = health[f"motor {number} (t{number})"]
        assert "XC330-T288, 1" in motor and " V, " in motor and "°C" in motor
    told = drivers_heard()["/softform/actuation"].motors
    assert told["bus"] == "all motors answer" and told.keys() == {"bus", *(f"motor {n} (t{n})" for n in (1, 2, 3, 4))}
    _inject(heard, "cut_bus=3+4")
    heard.wait_until(lambda: heard.driver.state == DriverState.FAULT, "the driver to notice")
    assert "Look at the cable between 2 and 3" in heard.driver.reason
    heard.wait_until(lambda: "between 2 and 3" in heard.values["actuation"]["bus"], "the health to say where")
    assert "does not answer" in heard.values["actuation"]["motor 3 (t3)"]
    time.sleep(4.0)
    _reset(heard)


def test_a_pulled_bus_is_a_fault_and_is_slackened_when_it_is_back(client, path, heard):
    client.follow(path)
    _inject(heard, "disconnect+4")
    heard.wait_until(lambda: heard.driver.state == DriverState.FAULT, "the driver to notice")
    assert "lost" in heard.driver.reason
    heard.wait_until(lambda: "back on its port and safe" in heard.driver.reason, "the bus to be found again")
    assert (heard.pulls_after(time.monotonic() + SLACKENED_WITHIN) < SLACK).all()
    _reset(heard)


@pytest.mark.ends_stack
def test_a_driver_that_is_killed_midway_leaves_slack_tendons(stack, client, path, heard):
    ended, under_way = [], threading.Event()

    def follow():
        # The fault before was reset just now: until the motors are measured again a path is rejected.
        for _ in range(5):
            try:
                client.follow(path, times=[10.0, 20.0, 30.0])
            except (GoalFailedError, NotConnectedError) as failure:
                ended.append(failure)
            if under_way.wait(1.0):
                return

    thread = threading.Thread(target=follow)
    thread.start()
    heard.wait_until(lambda: heard.measured.max() > 0.002, f"the path to be under way; {ended}")
    under_way.set()
    assert heard.pulls_after(time.monotonic()).max() > 0.001
    killed = time.monotonic()
    stack.process("actuation_node").kill()
    heard.wait_until(lambda: any(at > killed for at in heard.vents), "the guardian")
    assert next(at for at in heard.vents if at > killed) - killed < MADE_SAFE
    assert (heard.pulls_after(killed + MADE_SAFE + SLACKENED_WITHIN) < SLACK).all()
    thread.join(30.0)
    assert ended


def _inject(heard, fault):
    answer = call_service(heard.node, "rig", InjectFault, "rig/inject_fault", InjectFault.Request(fault=fault), 10.0)
    assert answer is not None and answer.success, answer


def _reset(heard):
    answer = call_driver(heard.node, "reset", 20.0)
    assert answer is not None and answer.success, answer
    heard.wait_until(lambda: heard.driver.state == DriverState.SAFE, "the driver to be ready")
