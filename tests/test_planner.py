"""The planner of the docs on the stack: a reason for every rejection, and what lies far away moves nothing."""

import importlib.util
import re
import time
from pathlib import Path

import numpy as np
import pytest
import rclpy
from builtin_interfaces.msg import Time
from rclpy.signals import SignalHandlerOptions
from scipy.spatial.transform import Rotation

from softform_core.geometry.rigid import RigidTransform
from softform_core.robots import load_robot
from softform_core.shapes.random import random_target
from softform_interfaces.action import ReachShape
from softform_interfaces.msg import ActuatorCommand, ActuatorValues
from softform_ros.background_node import BackgroundNode
from softform_ros.conversions import points_from_cloud
from softform_ros.frames import StaticFrames
from softform_ros.qos import ACTUATOR_COMMAND

SCRIPT = Path(__file__).parents[1] / "docs" / "examples" / "planner.py"
MOST_LINES = 60
SAME_SHAPE = 1e-4  # m
Result = ReachShape.Result

pytestmark = pytest.mark.timeout(180)


@pytest.fixture(scope="module")
def planner(stack):
    spec = importlib.util.spec_from_file_location("planner", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    node = module.Planner()
    yield node
    node.destroy_node()
    rclpy.shutdown()


@pytest.fixture(scope="module")
def commands(stack):
    heard = []
    with BackgroundNode("listener", "/softform") as node:
        node.create_subscription(ActuatorCommand, "actuator_command", heard.append, ACTUATOR_COMMAND)
        yield heard


@pytest.fixture(scope="module")
def points():
    return random_target(load_robot("membrane"), seed=3).points


def changed(cloud, **fields):
    for name, value in fields.items():
        setattr(cloud, name, value)
    return cloud


def stamped(planner, cloud, seconds):
    now = planner.get_clock().now().nanoseconds / 1e9
    cloud.header.stamp = Time(sec=int(now + seconds))
    return cloud


def with_nan(points):
    bad = points.copy()
    bad[7, 2] = np.nan
    return bad


BAD = {
    "NaN": (lambda p, x: p.cloud(with_nan(x)), {}, Result.INVALID_TARGET, "NaN"),
    "no z": (lambda p, x: changed(p.cloud(x), fields=p.cloud(x).fields[:2]), {}, Result.INVALID_TARGET, "z"),
    "a width that lies": (
        lambda p, x: changed(p.cloud(x), width=10 * len(x)),
        {},
        Result.INVALID_TARGET,
        "bytes|width",
    ),
    "no points": (lambda p, x: p.cloud(x[:0]), {}, Result.INVALID_TARGET, "0 points"),
    "3 points": (lambda p, x: p.cloud(x[:3]), {}, Result.INVALID_TARGET, "3 points"),
    "a line": (lambda p, x: p.cloud(x * [1, 0, 0]), {}, Result.INVALID_TARGET, "one line"),
    "millimetres": (lambda p, x: p.cloud(x * 1000), {}, Result.INVALID_TARGET, "millimetres"),
    "a foreign frame": (lambda p, x: p.cloud(x, "map"), {}, Result.INVALID_TARGET, "no frame 'map'"),
    "an empty frame": (lambda p, x: p.cloud(x, ""), {}, Result.INVALID_TARGET, "frame ''"),
    "an old stamp": (lambda p, x: stamped(p, p.cloud(x), -3600), {}, Result.INVALID_TARGET, "stale"),
    "a future stamp": (lambda p, x: stamped(p, p.cloud(x), 3600), {}, Result.INVALID_TARGET, "future"),
    "upside down": (lambda p, x: p.cloud(x * [1, -1, -1]), {}, Result.UNREACHABLE, "direction .*-1.00|-0.9"),
    "far away": (lambda p, x: p.cloud(x + [0, 0, 0.5]), {}, Result.UNREACHABLE, r"0\.00, 1\.00\)"),
    "a seed of wrong size": (
        lambda p, x: p.cloud(x),
        {"seed": ActuatorValues(value=[0.0] * 8)},
        Result.INVALID_SEED,
        "9",
    ),
    "a seed in kPa": (
        lambda p, x: p.cloud(x),
        {"seed": ActuatorValues(value=[1.0] * 9, unit="kPa")},
        Result.INVALID_SEED,
        "in kPa",
    ),
    "an unknown mode": (lambda p, x: p.cloud(x), {"mode": 7}, Result.INVALID_TARGET, "no mode 7"),
}


@pytest.mark.parametrize(("make", "options", "code", "reason"), BAD.values(), ids=BAD)
def test_every_rejection_has_its_reason_and_nothing_moves(planner, commands, points, make, options, code, reason):
    result = planner.reach(make(planner, points), **options)
    assert result.error_code == code
    assert re.search(reason, result.error_msg), result.error_msg
    assert not commands


def test_a_cloud_in_the_cameras_frame_gives_the_same_shape(planner, commands, points):
    place = RigidTransform(Rotation.from_euler("xyz", [2.8, 0.3, 1.0]).as_matrix(), np.array([0.05, -0.2, 0.6]))
    seen = place.apply_inverse(points)
    with BackgroundNode("camera_driver", "/lab") as camera:
        StaticFrames(camera).tell("membrane/base_link", "planner_camera", place)
        deadline = time.monotonic() + 30.0
        while True:
            result = planner.reach(planner.cloud(seen, "planner_camera"), ReachShape.Goal.PLAN_ONLY)
            if result.error_code == Result.NONE:
                break
            assert "no frame 'planner_camera'" in result.error_msg and time.monotonic() < deadline, result.error_msg
        rejected = planner.reach(planner.cloud(place.apply_inverse(points + [0.0, 0.0, 0.5]), "planner_camera"))
    expected = planner.reach(planner.cloud(points), ReachShape.Goal.PLAN_ONLY)
    assert result.solve.shape.header.frame_id == expected.solve.shape.header.frame_id == "membrane/base_link"
    shapes = [points_from_cloud(one.solve.shape) for one in (result, expected)]
    assert np.abs(shapes[0] - shapes[1]).max() < SAME_SHAPE
    assert rejected.error_code == Result.UNREACHABLE and not commands
    assert re.search(r"mm away in the direction \(-?0\.00, -?0\.00, 1\.00\) of the robot's frame", rejected.error_msg)


def test_a_good_cloud_moves_the_robot(planner, commands, points):
    result = planner.reach(planner.cloud(points))
    assert result.error_code == Result.NONE and result.error_msg == "" and commands
    assert list(result.actuators.name) == load_robot("membrane").actuators and result.actuators.unit == "Pa"
    assert result.solve.mean_error < 1e-3


def test_it_is_short_and_needs_nothing_of_softform_but_messages():
    text = SCRIPT.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= MOST_LINES
    assert {line.split(".")[0] for line in text.splitlines() if "softform_" in line} == {"from softform_interfaces"}
