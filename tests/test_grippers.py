"""A robot of two gripper poses, all of it from a package outside the workspace, serves on the rig."""

import os
import shutil
import time
from collections.abc import Iterator
from itertools import repeat
from pathlib import Path

import numpy as np
import pytest
import yaml
from driver_operator import operated
from tf2_msgs.msg import TFMessage

from softform_actuation import conformance
from softform_actuation.assembly import check_devices, served_by_devices
from softform_actuation.ceilings import check_ceiling
from softform_actuation.state_files import OVERRIDE
from softform_client.client import Mode, PointPath, ShapeClient
from softform_core.errors import SoftformError
from softform_core.robots import Robot, load_robot
from softform_core.shapes.features import FeaturePoints
from softform_interfaces.msg import ActuatorState, DriverState, ServoState
from softform_rig import emulation, faults
from softform_rig.draw_reality import draw_reality
from softform_rig.reality import load_reality, true_values
from softform_rig.rig_settings import RigSettings
from softform_rig.virtual_rig import VirtualRig
from softform_ros.background_node import BackgroundNode
from softform_ros.frames import place_from_message
from softform_ros.qos import ACTUATOR_STATE_READER, TF
from softform_ros.service_calls import call_driver

ENTRY_POINTS = """
[softform.devices]
grippers = grippers.family:FAMILY
[softform.emulations]
grippers = grippers.emulation:EMULATION
[softform.bodies]
held_bar = grippers.body:HeldBar
"""
QUANTITIES = (["position"] * 3 + ["rotation"] * 3) * 2
UNITS = ["m", "m", "m", "rad", "rad", "rad"] * 2
GOAL = np.array([0.01, -0.015, 0.02, 0.1, -0.12, 0.14, -0.011, 0.016, 0.021, -0.05, 0.06, 0.07])
SHIFT = 2e-4
ROBOT = {
    "name": "held_bar",
    "title": "A bar between two grippers",
    "source": "test",
    "body": {"kind": "held_bar", "length": 0.2},
    "actuators": {
        "quantity": QUANTITIES,
        "minimum": ([-0.05] * 3 + [-0.3] * 3) * 2,
        "maximum": ([0.05] * 3 + [0.3] * 3) * 2,
        "slew_rate": ([0.1] * 3 + [0.6] * 3) * 2,
    },
    "devices": [
        {
            "name": "arms",
            "kind": "grippers",
            "channels": list(range(12)),
            "settings": {"grasps": [[0.1, 0.0, 0.3, 0.0, 0.0, 0.0, 1.0], [-0.1, 0.0, 0.3, 0.0, 0.0, 0.6, 0.8]]},
        }
    ],
    "frames": {"tip": {"segments": 2, "forward_kinematics": [4], "jacobian": [4]}},
    "tolerances": {"settle": ([0.0005] * 3 + [0.003] * 3) * 2},
    "base_markers": {"a": [0.0, 0.0, 0.0], "b": [0.1, 0.0, 0.0], "c": [0.0, 0.13, 0.0], "d": [0.0, 0.0, 0.17]},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Holds the robot and its reality; the package is installed as long as it is needed, in other processes, too."""
    place = tmp_path_factory.mktemp("lab")
    site = place / "site"
    info = site / "grippers-1.0.dist-info"
    info.mkdir(parents=True)
    shutil.copytree(Path(__file__).parent / "grippers", site / "grippers")
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: grippers\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
    (place / "bar.yaml").write_text(yaml.safe_dump(ROBOT))
    realities = place / "config" / "realities" / "held_bar"
    realities.mkdir(parents=True)
    slipped = {"name": "default", "title": "Slipped", "grippers": {"shift": SHIFT}}
    (realities / "default.yaml").write_text(yaml.safe_dump(slipped))
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(site)
        patch.setenv("PYTHONPATH", os.pathsep.join([str(site), os.environ.get("PYTHONPATH", "")]))
        patch.setenv("SOFTFORM_CONFIG_PATH", str(place))
        patch.setenv(OVERRIDE, str(place / "state"))
        for found in (emulation.emulations, faults.kinds):
            found.cache_clear()
        yield place
    for found in (emulation.emulations, faults.kinds):
        found.cache_clear()


@pytest.fixture(scope="module")
def robot(folder: Path) -> Robot:
    return load_robot(folder / "bar.yaml")


@pytest.fixture(scope="module")
def bench(folder: Path, robot: Robot) -> Iterator[conformance.Bench]:
    settings = RigSettings(folder / "port", folder / "scans", [0.0, 0.0, 0.5, 0.0, 0.0, 0.0, 1.0])
    rig = VirtualRig(robot, load_reality("default", robot), settings)
    rig.start()
    (terminal,) = rig.terminals
    found = conformance.Bench(
        robot=str(folder / "bar.yaml"),
        values={"port": str(terminal.link)},
        goal=GOAL,
        tolerance=robot.actuator_tolerances.settle,
        true_values=rig.actuator_values,
        is_safe=lambda: terminal.firmware.is_held,  # type: ignore[attr-defined]
        safe_seconds=1.0,
        pull_cable=terminal.pull_cable,
        plug_in=terminal.plug_in,
        block=lambda: rig.inject(faults.parse_fault("drifting_gripper=11")),
        free=rig.clear_faults,
    )
    yield found
    found.close()
    rig.stop()


def test_a_pose_is_six_channels_of_two_units(robot: Robot) -> None:
    assert robot.actuator_units == robot.actuation_units == UNITS
    assert robot.unit == ", ".join(UNITS)
    assert robot.check_commands(GOAL) == pytest.approx(GOAL)
    with pytest.raises(SoftformError, match=r"Rotation 0.5 rad of g2_rz is outside -0.3 … 0.3 rad"):
        robot.check_commands(np.append(GOAL[:-1], 0.5))
    check_devices(robot)


def test_each_channel_has_tolerances_of_its_own_quantity(robot: Robot, folder: Path) -> None:
    assert robot.actuator_tolerances.follow == pytest.approx(([0.02] * 3 + [0.12] * 3) * 2)
    assert robot.actuator_tolerances.settle == pytest.approx(([0.0005] * 3 + [0.003] * 3) * 2)
    assert np.isnan(robot.actuator_tolerances.vent_threshold).all()
    for tolerances, complaint in (
        ({"settle": [0.0005] * 3 + [0.2] + [0.003] * 8}, "settle 0.2 rad must not exceed 0.06 rad"),
        ({"settle": [0.0005] * 3}, "must have 12 entries"),
        ({"vent_threshold": 0.001}, "no actuator is commanded in Pa"),
    ):
        (folder / "wrong.yaml").write_text(yaml.safe_dump(ROBOT | {"tolerances": tolerances}))
        with pytest.raises(SoftformError, match=complaint):
            load_robot(folder / "wrong.yaml")


def test_a_turn_beyond_half_a_circle_is_above_the_usual_ceiling(robot: Robot) -> None:
    (served,) = served_by_devices(robot)
    check_ceiling(served, ["/dev/ttyUSB7"])
    served.actuator_max[5] = 4.0
    with pytest.raises(SoftformError, match=r"g1_rz .* to 4 rad; the ceiling of .* is -3.2 to 3.2 rad"):
        check_ceiling(served, ["/dev/ttyUSB7"])


def test_errors_and_faults_of_the_family_are_known_to_the_rig(robot: Robot) -> None:
    slipped = load_reality("default", robot)
    assert true_values(slipped, robot, GOAL) == pytest.approx(GOAL + SHIFT)
    drawn = [draw_reality(robot, seed) for seed in range(4)]
    assert any(np.any(true_values(reality, robot, GOAL) != GOAL) for reality in drawn)
    assert "drifting_gripper" in faults.kinds()


@pytest.mark.parametrize("check", conformance.CHECKS)
def test_conformance(check: conformance.Check, bench: conformance.Bench) -> None:
    check(bench)


def test_driver_and_rig_are_launched_commanded_measured_settled_and_stopped(folder: Path, tmp_path: Path) -> None:
    with operated(str(folder / "bar.yaml"), "two_grippers", tmp_path) as operator:
        told: list[ActuatorState] = []
        operator.node.create_subscription(ActuatorState, "actuator_state", told.append, ACTUATOR_STATE_READER)
        operator.wait_until(lambda: "ready" in operator.state.reason, "a driver")
        assert operator.state.state == DriverState.HOLDING
        operator.lease.acquire()

        def is_settled() -> bool:
            return bool(told) and all(status == ActuatorState.SETTLED for status in told[-1].status)

        operator.wait_until(is_settled, "the poses", goal=GOAL)
        assert list(told[-1].unit) == UNITS and np.abs(operator.measured - GOAL).max() < 0.003
        operator.wait_until(
            lambda: np.abs(true_poses(operator.health) - GOAL - SHIFT).max() < 0.003, "the truth", goal=GOAL
        )

        operator.wait_until(lambda: not is_settled(), "another motion", goal=np.zeros(12))
        operator.stop()
        assert operator.state.state == DriverState.FAULT and np.abs(operator.measured).max() > 0.01

        def holds_what_it_says() -> bool:  # not the last pose of the stream: a target may have followed it
            return bool(np.abs(true_poses(operator.health) - operator.state.rest_value - SHIFT).max() < 1e-6)

        operator.wait_until(holds_what_it_says, "the poses that are held")
        answer = call_driver(operator.node, "reset", 30.0)
        assert answer is not None and answer.success, answer


@pytest.mark.long
def test_their_simulator_serves_reach_follow_stream_and_predictions(folder: Path, own_stacks) -> None:
    own_stacks.launched_with({"robot": str(folder / "bar.yaml"), "model": "fem"})
    places = np.array([[0.004, -0.003, 0.006], [0.002, 0.004, -0.003]])
    wanted = FeaturePoints.of([[0.0, 0.0]], places[:1], output=["tip"])
    seen: list[np.ndarray] = []

    def note(message: TFMessage) -> None:
        for each in message.transforms:
            if each.child_frame_id == "held_bar/tip":
                seen.append(place_from_message(each).translation)

    with ShapeClient() as client, BackgroundNode("viewer", "/softform") as node:
        node.create_subscription(TFMessage, "/tf", note, TF)
        result = client.reach(None, Mode.PLAN_AND_MOVE, features=wanted)
        assert result.solve.mean_error < 1e-4 and len(result.actuators.value) == 12
        deadline = time.monotonic() + 10.0
        while not seen or np.linalg.norm(seen[-1] - places[0]) > 1.5e-3:
            assert time.monotonic() < deadline, f"the tip is predicted elsewhere: {seen[-1:]}"
            time.sleep(0.1)
        assert max(client.follow(PointPath(places)).errors) < 1e-4
        states = [state for state, _ in zip(client.stream(repeat(places[0]), 20.0), range(100), strict=False)]
        assert states[-1].state == ServoState.TRACKING and states[-1].mean_error < 1e-4


def true_poses(health: dict[str, dict[str, str]]) -> np.ndarray:
    """What the rig says last of its true values, (12,)."""
    of_rig = health.get("/two_grippers/rig", {})
    return np.array(of_rig.get(f"true values ({', '.join(UNITS)})", "nan").split(), dtype=float)
