"""Board, membrane and scanner together, spoken to over the port as a driver would."""

import time
from pathlib import Path

import numpy as np
import pytest
import serial
from scipy.spatial import cKDTree

from softform_core.bodies.membrane.equilibrium import MembraneProblem
from softform_core.bodies.membrane.simulator import build_membrane
from softform_core.geometry.rigid import RigidTransform
from softform_core.robots import load_robot
from softform_core.shapes.read import read_shape
from softform_core.simulation.simulated_body import equilibrium_points
from softform_rig.reality import load_reality
from softform_rig.rig_settings import RigSettings
from softform_rig.surface_scans import surface_points
from softform_rig.virtual_rig import VirtualRig

REGISTRATION = [0.0, -0.22, 0.52, 0.978599773253286, 0.0, 0.0, -0.205772893716877]


def make_rig(folder: Path, reality: str = "ideal", **changes) -> VirtualRig:
    robot = load_robot("membrane")
    settings = RigSettings(folder / "openpneu", folder / "scans", REGISTRATION, **changes)
    return VirtualRig(robot, load_reality(reality, robot), settings)


def exports(rig: VirtualRig) -> list[Path]:
    return sorted(rig.settings.scan_folder.glob("*.ply"))


def test_pressures_set_over_the_port_appear_in_the_scans(tmp_path) -> None:
    rig = make_rig(tmp_path, scan_period=0.3)
    rig.start()
    try:
        with serial.Serial(str(rig.settings.port_link), 115200, timeout=2.0) as port:
            time.sleep(1.7)
            for channel in range(9):
                port.write(b"SC=%d\r\nT=%.2f\r\n" % (channel, 1.0 + 0.3 * channel))
            port.write(b"C\r\n")
            time.sleep(3.0)
        pressures = rig.actuator_values()
    finally:
        rig.stop()
    assert pressures == pytest.approx(1000.0 + 300.0 * np.arange(9), abs=150.0)
    assert rig.faults == []
    seen = RigidTransform.from_pose(REGISTRATION).apply(read_shape(exports(rig)[-1], "mm").points)
    membrane = build_membrane(load_robot("membrane").body)
    expected = surface_points(equilibrium_points(MembraneProblem(membrane), pressures[None])[0], membrane.faces)
    assert np.median(cKDTree(expected).query(seen)[0]) < 0.002
    assert not rig.settings.port_link.is_symlink()


def test_scans_come_while_the_shape_changes_and_every_two_seconds_when_not(tmp_path) -> None:
    rig = make_rig(tmp_path, scan_period=1.0)
    assert rig.look(), "the first shape is new"
    assert not rig.look(), "nothing has changed"
    rig.terminals[0].firmware.channels.pressure[:] = 2.0
    assert rig.look(), "the shape has changed"
    rig.scanning._scanned_at -= 2.0
    assert rig.look(), "two seconds have passed"
    assert len(exports(rig)) == rig.scans == 3


def test_a_body_that_takes_long_to_solve_is_scanned_once_it_rests(tmp_path) -> None:
    rig = make_rig(tmp_path)
    rig.terminals[0].firmware.channels.pressure[:] = 2.0
    assert rig.look(), "a fast one is scanned while it moves"
    solves, rig.body.slowest_solve = rig.body.solves, 4.0
    rig.terminals[0].firmware.channels.pressure[:] = 3.0
    assert not rig.look() and rig.body.solves == solves
    assert rig.look() and rig.body.solves == solves + 1


def test_an_export_that_fails_is_reported_and_the_rig_goes_on(tmp_path) -> None:
    rig = make_rig(tmp_path)
    rig.settings.scan_folder.write_text("in the way")
    assert rig.look()
    assert rig.scans == 0
    assert "cannot be written" in rig.faults[0]
    rig.settings.scan_folder.unlink()
    rig.terminals[0].firmware.channels.pressure[:] = 2.0
    assert rig.look()
    assert rig.faults == []


def test_true_surface_is_dense_and_on_the_mesh() -> None:
    membrane = build_membrane(load_robot("membrane").body)
    points = surface_points(membrane.rest_vertices, membrane.faces)
    assert np.abs(points[:, 2]).max() == 0.0
    assert len(points) == len(membrane.rest_vertices) + 9 * len(membrane.faces)
    assert (
        cKDTree(points).query(np.random.default_rng(0).uniform(-0.16, 0.16, (500, 2)) @ np.eye(2, 3))[0].max() < 0.003
    )


def test_motion_capture_follows_the_membrane_beside_the_scanner(tmp_path) -> None:
    robot = load_robot("membrane")
    frames: list[tuple[np.ndarray, float, int]] = []
    settings = RigSettings(tmp_path / "openpneu", tmp_path / "scans", REGISTRATION, mocap_rate=50.0)
    reality = load_reality("ideal", robot)
    rig = VirtualRig(robot, reality, settings, on_markers=lambda *frame: frames.append(frame))
    rig.capture_markers()
    rig.terminals[0].firmware.channels.pressure[:] = 2.0
    rig.capture_markers()
    (flat, _, _), (raised, _, number) = frames
    assert number == 1 and rig.marker_frames == 2
    in_robot = RigidTransform.from_pose(reality.motion_capture.pose).apply
    assert rig.cameras.names[4] == "m05"
    assert (in_robot(raised) - in_robot(flat))[4, 2] > 0.02, "m05 sits on the chamber in the middle"
    rig.start()
    deadline = time.monotonic() + 30.0
    while len(frames) < 6 and time.monotonic() < deadline:
        time.sleep(0.02)
    rig.stop()
    assert len(frames) >= 6
    assert [frame[2] for frame in frames] == list(range(len(frames)))
    assert rig.faults == []


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_thread_that_dies_is_a_fault(tmp_path) -> None:
    rig = make_rig(tmp_path, mocap_rate=50.0)
    rig.cameras.capture = None
    rig.start()
    deadline = time.monotonic() + 30.0
    while not rig.faults and time.monotonic() < deadline:
        time.sleep(0.02)
    rig.stop()
    assert "The motion capture stopped: TypeError" in rig.faults[0]
