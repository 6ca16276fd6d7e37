"""The rig of a robot with a tip, spoken to over the port as a driver would, and looked at by motion capture."""

import time
from pathlib import Path

import numpy as np
import pytest
import serial

from softform_core.geometry.rigid import RigidTransform
from softform_core.robots import Robot, load_robot
from softform_rig.reality import load_reality
from softform_rig.rig_settings import RigSettings
from softform_rig.virtual_rig import VirtualRig


@pytest.fixture(params=["three_chamber", "planar_fingers"])
def robot(request: pytest.FixtureRequest) -> Robot:
    return load_robot(request.param, "tip")


def made(robot: Robot, folder: Path, frames: list, **changes: object) -> VirtualRig:
    reality = load_reality("default", robot)
    unhidden = reality.motion_capture.model_copy(update={"missing": 0.0})
    settings = RigSettings(folder / "openpneu", folder / "scans", [], mocap_rate=20.0, **changes)
    reality = reality.model_copy(update={"motion_capture": unhidden})
    rig = VirtualRig(robot, reality, settings, on_markers=lambda *f: frames.append(f))
    assert rig.cameras.names == ["tip", *robot.base_markers]
    return rig


def in_robot_frame(rig: VirtualRig, positions: np.ndarray) -> np.ndarray:
    return RigidTransform.from_pose(rig.cameras.description.pose).apply(positions)


def test_the_tip_follows_the_pressures_and_the_base_stays(robot: Robot, tmp_path: Path) -> None:
    frames: list = []
    rig = made(robot, tmp_path, frames)
    rig.capture_markers()
    rig.terminals[0].firmware.channels.pressure[robot.devices[0].channels[0]] = 40.0
    rig.capture_markers()
    rest, bent = (in_robot_frame(rig, positions) for positions, _, _ in frames)
    assert np.linalg.norm(bent[0] - rest[0]) > 0.01
    assert rest[1:] == pytest.approx(bent[1:], abs=1e-3)
    assert rest[1:] == pytest.approx(np.array(list(robot.base_markers.values())), abs=1e-3)
    if robot.body.planar:
        assert np.abs([rest[0, 2], bent[0, 2]]).max() < 1e-3
    assert rig.faults == [] and rig.body.solves >= 2


def test_pressures_set_over_the_port_move_the_tip(tmp_path: Path) -> None:
    robot, frames = load_robot("three_chamber", "tip"), []
    rig = made(robot, tmp_path, frames)
    rig.start()
    try:
        with serial.Serial(str(rig.settings.port_link), 115200, timeout=2.0) as port:
            time.sleep(1.7)
            for channel in robot.devices[0].channels:
                port.write(b"SC=%d\r\nT=30.00\r\n" % channel)
            port.write(b"C\r\n")
            time.sleep(3.0)
        pressures = rig.actuator_values()
    finally:
        rig.stop()
    assert pressures == pytest.approx(30_000.0, abs=2000.0)
    first, last = (in_robot_frame(rig, positions)[0] for positions in (frames[0][0], frames[-1][0]))
    assert last[2] - first[2] > 0.003, "equal pressures stretch it"
    assert rig.faults == [] and not (tmp_path / "scans").exists()


def test_pressures_far_outside_the_range_are_a_fault_and_the_tip_stays(robot: Robot, tmp_path: Path) -> None:
    frames: list = []
    rig = made(robot, tmp_path, frames)
    rig.capture_markers()
    rig.terminals[0].firmware.channels.pressure[robot.devices[0].channels[0]] = 500.0
    rig.capture_markers()
    assert "far outside" in rig.faults[0]
    assert frames[1][0][0] == pytest.approx(frames[0][0][0], abs=1e-3)
