"""Robots that are added by a description alone: simulated, learned, launched, and led on the virtual rig."""

import time
from collections.abc import Iterator
from itertools import repeat
from queue import Queue
from typing import Any

import numpy as np
import pytest
import yaml
from click.testing import CliRunner
from geometry_msgs.msg import TransformStamped
from tf2_msgs.msg import TFMessage

from softform_client.client import Mode, PointPath, ShapeClient
from softform_core.cli.simulate import simulate
from softform_core.cli.train import train
from softform_core.forward.tip_model import load_tip_model
from softform_core.paths import home, robot_file
from softform_core.robots import Robot, load_robot
from softform_core.shapes.random import random_target
from softform_core.units import MM_PER_M
from softform_interfaces.msg import DriverState, ServoState, Surface
from softform_ros.background_node import BackgroundNode
from softform_ros.conversions import points_from_cloud
from softform_ros.frames import place_from_message
from softform_ros.qos import LATCHED_STATE, PREDICTED_SURFACE, TF

COARSE = {"patch": "sheet", "rows": 16, "columns": 16, "degree": 3}

pytestmark = [pytest.mark.timeout(300), pytest.mark.long]


def _described(source: str, **changes: object) -> dict:
    return yaml.safe_load(robot_file(source).read_text()) | changes


def two_by_three() -> dict:
    """Another grid, size and range, on the reality that was written for nine chambers."""
    content = _described(
        "membrane", name="two_by_three", devices=[{"name": "openpneu", "channels": [0, 1, 2, 3, 4, 5]}]
    )
    content["body"] |= {"width": 0.200, "length": 0.260, "rows": 2, "columns": 3, "cells": 18}
    content["surfaces"] = [COARSE]
    content["frames"] = {"middle": {"patch": "sheet", "u": 0.5, "v": 0.5}}
    content["actuators"]["maximum"] = 8000.0
    corners = [[-0.12, -0.14, 0.0], [0.12, -0.15, 0.0], [0.13, 0.11, 0.0], [-0.11, 0.15, 0.03]]
    return content | {"base_markers": {f"base_{number}": place for number, place in enumerate(corners)}}


def six_over_nine() -> dict:
    """Nine chambers driven by six values: the middle row lies between the outer rows. Measured in two halves."""
    outer = np.eye(6)
    matrix = np.concatenate([outer[:3], 0.5 * (outer[:3] + outer[3:]), outer[3:]])
    linear = {"kind": "linear", "names": list("abcdef"), "matrix": matrix.tolist(), "minimum": 0.0, "maximum": 5000.0}
    content = _described("membrane", name="six_over_nine", actuation_map=linear)
    content["body"]["cells"] = 18
    content["surfaces"] = [COARSE | {"patch": "left", "rows": 9}, COARSE | {"patch": "right", "rows": 8}]
    content["frames"] = {"middle": {"patch": "right", "u": 0.5, "v": 0.5}}
    return content


def two_sections() -> dict:
    """Two sections of the three-chamber actuator, one on the other, in space."""
    content = _described("three_chamber", name="two_sections")
    content["body"] |= {"sections": 2, "elements": 5}
    content["actuators"]["maximum"] = 40000.0
    content["devices"] = [{"name": "openpneu", "channels": [0, 1, 2, 3, 4, 5]}]
    content["frames"]["tip"] |= {"segments": 3, "forward_kinematics": [20], "jacobian": [20]}
    return content


@pytest.fixture(scope="module", params=[two_by_three, six_over_nine, two_sections], ids=lambda made: made.__name__)
def launched(request, stacks, tmp_path_factory) -> Iterator[tuple[Robot, Any]]:
    """One of them, simulated and trained, and its stack; its models and data lie in a home of their own."""
    place = tmp_path_factory.mktemp("home")
    for folder in ("config", "launch"):
        (place / folder).symlink_to(home() / folder)
    (place / "models").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOFTFORM_HOME", str(place))
        path = place / "mine.yaml"
        path.write_text(yaml.safe_dump(request.param()))
        robot = load_robot(path)
        _run(simulate, "--robot", path, "--jobs", "1", *(["--samples", "120"] if robot.surfaces else []))
        _run(train, "fk", "--robot", path, *(["--epochs", "400"] if robot.surfaces else []))
        yield robot, stacks.launched_with({"robot": str(path), "sim_to_real": "none"})
        stacks.close()


def _run(command: object, *arguments: object) -> None:
    done = CliRunner().invoke(command, [str(argument) for argument in arguments])
    assert done.exit_code == 0, done.output


def test_it_takes_what_it_is_asked_for(launched: tuple[Robot, Any]) -> None:
    robot, stack = launched
    with ShapeClient("/softform", timeout=30.0) as client:
        if robot.surfaces:
            _lead_surface(robot, client)
        else:
            _lead_tip(robot, client)
            _kill_the_servo(robot, client, stack)


def _lead_surface(robot: Robot, client: ShapeClient) -> None:
    """Reach a shape; see it predicted and captured; follow a stream to another."""
    target = random_target(robot, seed=1)
    # What is left is the reality's difference, which nothing has learned yet.
    gap = 0.35 * np.abs(target.points[:, 2]).mean()
    result = client.reach(target, Mode.PLAN_MOVE_AND_VERIFY)
    assert len(result.actuators.value) == len(robot.actuators)
    commands = robot.check_commands(np.array(result.actuators.value))
    np.testing.assert_allclose(robot.actuators_of(robot.actuation_of(commands)), commands, atol=1e-6)
    assert result.measured.valid and result.measured.mean_error < gap

    predicted: Queue[Surface] = Queue()
    placed: Queue[TransformStamped] = Queue()
    with BackgroundNode("observer", "softform") as node:
        node.create_subscription(Surface, "predicted_surface", predicted.put, PREDICTED_SURFACE)
        node.create_subscription(TFMessage, "/tf", lambda message: list(map(placed.put, message.transforms)), TF)
        surface = predicted.get(timeout=10.0)
        while (frame := placed.get(timeout=10.0)).child_frame_id != robot.frame_of("middle"):
            pass
    assert not surface.stale and [patch.name for patch in surface.patches] == [one.patch for one in robot.surfaces]
    control_points = np.array([[p.x, p.y, p.z] for patch in surface.patches for p in patch.control_points])
    patches = robot.patches
    middles = patches.evaluate(control_points, patches.joined(np.arange(len(patches)), np.full((len(patches), 2), 0.5)))
    assert np.linalg.norm(target.points[:, None] - middles, axis=-1).min(axis=0).max() < 0.01

    # The last patch names its middle: /tf tells its place, and it is led by its name.
    named = place_from_message(frame).translation
    assert np.linalg.norm(named - middles[-1]) < 1e-3
    assert max(client.follow(PointPath(named[None], output="middle"), plan_only=True).errors) < 1e-4

    captured = client.capture()
    points = points_from_cloud(captured.cloud)
    assert captured.measured.valid and captured.measured.mean_error < gap
    # Whichever half the hole of a scan lies in, it is seen.
    assert min((points[:, 0] < 0.0).sum(), (points[:, 0] > 0.0).sum()) > 0.2 * len(points)

    other = random_target(robot, seed=2)
    for state in client.stream(repeat(other, 150), rate=30.0):
        if state.state == ServoState.TRACKING and state.converged:
            break
    assert state.converged and state.mean_error < 2e-3, state


def _lead_tip(robot: Robot, client: ShapeClient) -> None:
    model = load_tip_model(robot)
    middle = 0.5 * (robot.actuation_min + robot.actuation_max)
    actuations = middle + 0.15 * (robot.actuation_max - robot.actuation_min) * np.eye(6)[[0, 2, 4]]
    points = model.tip(actuations) / MM_PER_M
    result = client.follow(PointPath(points, np.zeros(2)))
    assert max(result.errors) < 1e-3
    assert np.nanmax(result.measured_errors) < 0.15 * robot.body.size


def _kill_the_servo(robot: Robot, client: ShapeClient, stack: Any) -> None:
    """End its process while the tip follows a stream: the driver vents."""
    high = robot.actuation_min + 0.6 * (robot.actuation_max - robot.actuation_min)
    place = load_tip_model(robot).tip(high) / MM_PER_M
    said: Queue[DriverState] = Queue()
    with BackgroundNode("observer", "softform") as node:
        node.create_subscription(DriverState, "driver_state", said.put, LATCHED_STATE)
        followed = 0
        for state in client.stream(repeat(place, 600), rate=30.0):
            followed += state.state == ServoState.TRACKING
            if followed == 10:
                stack.process("inverse_kinematics_node").kill()
                break
        assert followed == 10, state
        deadline = time.monotonic() + 20.0
        while (heard := said.get(timeout=20.0)).state != DriverState.SAFE:
            assert time.monotonic() < deadline, heard
    assert "no command of 'inverse_kinematics' came" in heard.reason
