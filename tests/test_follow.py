"""Waypoints on a robot of paper 001, on the virtual rig: planned, moved, seen by motion capture; how a path ends."""

import csv
import json
import threading
import time
from itertools import repeat

import numpy as np
import pytest
from click.testing import CliRunner

from softform_client import client_stream
from softform_client.client import (
    CaptureCode,
    FollowCode,
    GoalFailedError,
    Mode,
    NotConnectedError,
    PointPath,
    ShapeClient,
)
from softform_core.cli.main import main
from softform_core.errors import SoftformError
from softform_core.forward.tip_model import load_tip_model
from softform_core.paths import models_dir
from softform_core.robots import load_robot
from softform_core.shapes.features import FeaturePoints
from softform_core.shapes.shape import Shape
from softform_core.units import MM_PER_M
from softform_interfaces.msg import ActuatorState, DriverState, MarkerFrame, ServoState
from softform_ros.background_node import BackgroundNode
from softform_ros.qos import ACTUATOR_STATE_READER, CAPTURED_MARKERS, LATCHED_STATE

ROBOT = "three_chamber"
LEARNED = models_dir() / ROBOT / "rig_default"
STACK = {"robot": ROBOT, "sim_to_real": str(LEARNED)}

pytestmark = pytest.mark.timeout(180)


@pytest.fixture(scope="module")
def client(stack):
    with ShapeClient("/softform", timeout=30.0) as client:
        yield client


@pytest.fixture
def heard(stack):
    """The newest word of the driver, by topic."""
    words = {}
    with BackgroundNode("listener", "/softform") as node:
        for kind, topic, qos in (
            (DriverState, "driver_state", LATCHED_STATE),
            (ActuatorState, "actuator_state", ACTUATOR_STATE_READER),
        ):
            node.create_subscription(kind, topic, lambda word, topic=topic: words.__setitem__(topic, word), qos)
        wait_until(lambda: len(words) == 2, "the driver to be heard")
        yield words


@pytest.fixture(scope="module")
def path():
    """A few points around the middle of the workspace, (m, 3) m."""
    robot = load_robot(ROBOT, "tip")
    actuations = 20e3 + 6e3 * np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    return PointPath(load_tip_model(robot, sim_to_real=LEARNED).tip(actuations) / MM_PER_M, np.zeros(2))


def test_the_tip_is_led_and_seen_where_it_was_led(client, path, heard):
    result = client.follow(path)
    width = load_tip_model(load_robot(ROBOT, "tip")).workspace_width_mm / MM_PER_M
    assert max(result.errors) < 0.0018 * width
    # Paper 001, Sec. III-D: 1 % is its threshold of an accurate prediction of the real tip.
    assert result.solve.used_sim_to_real and len(result.measured_errors) == 3
    assert np.isfinite(result.measured_errors).sum() >= 2 and np.nanmean(result.measured_errors) < 0.01 * width
    held = np.reshape(result.actuators.value, (3, -1))[-1]
    assert np.array(heard["actuator_state"].value) == pytest.approx(held, abs=1500.0)


def test_the_tip_is_captured_where_it_is(client, path):
    client.follow(PointPath(path.points[:1]))
    result = client.capture()
    assert list(result.markers.name) == ["tip"] and result.markers.header.frame_id == f"{ROBOT}/base_link"
    tip = result.markers.position[0]
    assert np.linalg.norm(path.points[0] - [tip.x, tip.y, tip.z]) < 2e-3 and result.measured.mean_error < 2e-3
    with pytest.raises(GoalFailedError, match="tip and no surface") as failure:
        client.capture(Shape(np.random.default_rng(0).uniform(-0.1, 0.1, (50, 3))))
    assert failure.value.code == CaptureCode.INVALID_TARGET
    with pytest.raises(GoalFailedError, match="not captured via 'scanner'"):
        client.capture(via="scanner")


def test_the_tip_reaches_a_place_and_is_seen_there(client, path):
    place = path.points[1]
    result = client.reach(None, Mode.PLAN_AND_MOVE, features=FeaturePoints.of([[0.0, 0.0]], [place], output=["tip"]))
    assert result.solve.mean_error < 1e-4 and result.solve.used_sim_to_real
    tip = client.capture().markers.position[0]
    assert np.linalg.norm(place - [tip.x, tip.y, tip.z]) < 2e-3


def test_a_stream_of_places_is_followed_and_seen_where_it_leads(client, path):
    for place in path.points[[0, 2]]:
        for state in client.stream(repeat(place, 300), rate=30.0):
            if state.state == ServoState.TRACKING and state.converged and state.mean_error < 1e-4:
                break
        assert state.converged and state.mean_error < 1e-4, state
        tip = client.capture().markers.position[0]
        assert np.linalg.norm(place - [tip.x, tip.y, tip.z]) < 2e-3


def test_a_place_that_cannot_be_followed_is_told_and_moves_nothing(client, path, heard, monkeypatch):
    client.follow(PointPath(path.points[:1]))
    before = np.array(heard["actuator_state"].value)
    for bad, why in ((path.points[0] + [0.0, 0.0, 0.5], "out of reach"), (np.full(3, np.nan), "NaN")):
        time.sleep(0.6)
        states = list(client.stream(repeat(bad, 30), rate=30.0))
        assert why in states[-1].reason and states[-1].state != ServoState.TRACKING
    assert np.array(heard["actuator_state"].value) == pytest.approx(before, abs=1500.0)
    with pytest.raises(SoftformError, match=r"shape \(2,\)"):
        next(iter(client.stream([np.zeros(2)])))
    monkeypatch.setattr(client_stream, "_PATIENCE", 0.5)
    with pytest.raises(NotConnectedError, match="No servo listens to /softform/target_shape"):
        next(iter(client.stream([Shape(np.random.default_rng(0).uniform(-0.1, 0.1, (50, 3)))])))


@pytest.mark.long
def test_the_commands_lead_and_capture_it(stack, path, tmp_path):
    points = tmp_path / "points.csv"
    np.savetxt(points, path.points, delimiter=",", header="x,y,z", comments="")
    led = CliRunner().invoke(main, ["follow", str(points), "--json", "-"])
    assert led.exit_code == 0 and max(json.loads(led.stdout)["errors"]) < 1e-4, led.output
    captured = CliRunner().invoke(main, ["capture", "--output", str(tmp_path / "tip.csv")])
    assert captured.exit_code == 0 and "1 markers" in captured.output, captured.output
    (name, *place), *others = csv.reader((tmp_path / "tip.csv").read_text().splitlines()[1:])
    assert name == "tip" and not others
    assert np.linalg.norm(path.points[-1] - np.array(place, dtype=float)) < 2e-3

    timed = np.column_stack([[0.0, 0.5, 1.0], path.points[::-1]])
    np.savetxt(points, timed, delimiter=",", header="time,x,y,z", comments="")
    streamed = CliRunner().invoke(main, ["stream", str(points), "--json", "-"])
    assert streamed.exit_code == 0, streamed.output
    assert json.loads(streamed.stdout)["targets"] > 80 and json.loads(streamed.stdout)["mean_error"] < 1e-3


def test_a_waypoint_far_out_of_the_workspace_moves_nothing(client, path, heard):
    client.follow(PointPath(path.points[:1]))
    before = np.array(heard["actuator_state"].value)
    with pytest.raises(GoalFailedError, match=r"waypoint 2 is out of reach.* mm away in the direction") as failure:
        client.follow(PointPath(np.array([path.points[1], path.points[1] + [0.0, 0.0, 0.5]])))
    assert failure.value.code == FollowCode.UNREACHABLE and not failure.value.result.times
    assert np.array(heard["actuator_state"].value) == pytest.approx(before, abs=1500.0)


def test_times_are_kept(client, path):
    result = client.follow(path, times=[2.0, 3.0, 4.0])
    assert result.times == pytest.approx([2.0, 3.0, 4.0], abs=0.5)


def test_markers_that_make_no_sense_do_not_end_the_node(client, path):
    with BackgroundNode("bridge", "/softform") as node:
        markers = node.create_publisher(MarkerFrame, "captured_markers", CAPTURED_MARKERS)
        wait_until(markers.get_subscription_count, "a reader of markers")
        message = MarkerFrame(name=["tip", "tip"])
        message.header.frame_id = "three_chamber/base_link"
        for _ in range(5):
            markers.publish(message)
            time.sleep(0.05)
    assert len(client.follow(path, plan_only=True).errors) == 3


def test_shapes_are_rejected(client, stack):
    with pytest.raises(GoalFailedError, match="tip and no surface.*follow_waypoints"):
        client.reach(Shape(np.random.default_rng(0).uniform(-0.1, 0.1, (50, 3))))


def wait_until(condition, what, seconds=20.0, until=lambda: False, but=()):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline and not until(), f"waited in vain for {what}: {until()}, {list(but)}"
        time.sleep(0.05)


@pytest.mark.ends_stack
def test_killing_the_node_midway_vents_the_robot(stack, path, heard):
    ended, progress = [], []

    def follow(client):
        try:
            client.follow(PointPath(path.points[1:]), times=[20.0, 40.0], on_feedback=progress.append)
        except (GoalFailedError, NotConnectedError) as failure:
            ended.append(failure)

    with ShapeClient("/softform", timeout=30.0) as client:
        at = np.reshape(client.follow(PointPath(path.points[:1])).actuators.value, -1)
        wait_until(lambda: np.abs(at - heard["actuator_state"].value).max() < 1000.0, "the first waypoint", but=[heard])
        assert heard["driver_state"].state == DriverState.RUNNING
        thread = threading.Thread(target=follow, args=(client,))
        thread.start()
        wait_until(
            lambda: np.abs(at - heard["actuator_state"].value).max() > 2000.0,
            "the path to be under way",
            until=lambda: ended,
            but=[heard, progress, thread],
        )
        stack.process("inverse_kinematics_node").kill()
        wait_until(lambda: heard["driver_state"].state == DriverState.SAFE, "the driver to vent", but=[heard])
        wait_until(lambda: max(heard["actuator_state"].value) < 1000.0, "the air to leave", but=[heard])
    thread.join(30.0)
    assert isinstance(ended[0], NotConnectedError)
