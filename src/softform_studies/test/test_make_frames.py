"""Frames of a study: what its cameras see are the shapes that its scanner sees."""

from typing import Any

import numpy as np
import pytest

from softform_core.bodies.membrane.simulator import RealMembrane
from softform_core.geometry.rigid import RigidTransform
from softform_core.registration.rest_surface import rest_surface
from softform_core.robots import Robot, load_robot
from softform_rig.live_body import LiveBody
from softform_rig.markers import marker_layout
from softform_rig.reality import Reality, ScannerDescription, true_values
from softform_studies.sim_to_real.make_frames import (
    make_frames,
    make_marker_frames,
    session_registration,
    true_surfaces,
)


@pytest.fixture(scope="module")
def robot() -> Robot:
    return load_robot("membrane")


@pytest.mark.long
def test_marker_frames_see_the_shapes_that_the_scanner_sees(robot: Robot, monkeypatch: pytest.MonkeyPatch) -> None:
    differences = {"pressure_sensors": {"gain": 0.9}, "motion_capture": {"noise": 0.0}}
    reality = Reality(name="mine", title="mine", body=RealMembrane(), **differences)
    shapes = true_surfaces(robot, reality, 5, seed=5)
    frames, truth, missing = make_marker_frames(robot, reality, 3, 1, missing=0.1, seed=5)
    scans, same_truth, _ = make_frames(robot, reality, 3, 1, seed=5)
    np.testing.assert_array_equal(frames.actuation, scans.actuation)
    np.testing.assert_allclose(truth.vertices, same_truth.vertices, atol=1e-6)
    assert missing == pytest.approx(1.0 - frames.visible.mean())
    shape = LiveBody(robot, reality).shape(true_values(reality, robot, frames.actuation[1]))
    seen = frames.positions[1, frames.visible[1]]
    assert np.linalg.norm(shape[:, None] - seen, axis=2).min(axis=0).max() < 0.007
    assert 0.32 * np.abs(frames.uv - marker_layout(rest_surface(robot), 34)).max() < 0.0015

    def solved_again(*_: Any) -> None:
        raise AssertionError("shapes that are known are not solved again")

    monkeypatch.setattr(f"{make_frames.__module__}.true_surfaces", solved_again)
    known, known_truth, _ = make_frames(robot, reality, 3, 1, seed=5, shapes=shapes)
    np.testing.assert_allclose(known.clouds[2], scans.clouds[2], atol=1e-6)
    assert len(known_truth.vertices) == 1
    np.testing.assert_allclose(known_truth.vertices, truth.vertices, atol=1e-6)
    again, _, _ = make_marker_frames(robot, reality, 3, 1, missing=0.1, seed=5, shapes=shapes)
    np.testing.assert_allclose(again.positions, frames.positions, atol=1e-6)


def test_a_session_is_registered_by_the_base_markers_to_about_the_noise_of_a_point(robot: Robot) -> None:
    pose = RigidTransform.from_pose([0.1, -0.2, 0.5, 0.6, 0.0, 0.0, -0.8])
    true = RigidTransform(pose.rotation, pose.translation)
    places = 0.15 * np.array([[-1.0, -1.0, 0.0], [1.0, -1.0, 0.0], [0.0, 1.0, 0.3]])

    def off(seed: int = 0, **differs: float) -> float:
        found = session_registration(robot, ScannerDescription(**differs), pose, seed)
        return float(np.linalg.norm(found.after(true.inverse()).apply(places) - places, axis=1).max())

    assert off(noise=0.0) < 1e-12
    assert off(registration_shift=1e-4) < 1e-12, "registered anew in every scan: the reality says how far it is off"
    several = [off(seed, noise=2e-4) for seed in range(20)]
    assert 1e-4 < np.mean(several) < 4e-4 and len(set(several)) == 20


def test_frames_lie_where_their_registration_says(robot: Robot, monkeypatch: pytest.MonkeyPatch) -> None:
    scanner = ScannerDescription(noise=0.0, outlier_fraction=0.0, holes=0.0, rays=40)
    reality = Reality(name="mine", title="mine", body=RealMembrane(), scanner=scanner)
    registered, _, _ = make_frames(robot, reality, 1, 0, seed=5)

    def beside(*arguments: Any) -> RigidTransform:
        return session_registration(*arguments).moved(np.zeros(3), np.array([0.0, 0.0, 1e-3]), np.zeros(3))

    monkeypatch.setattr(f"{make_frames.__module__}.session_registration", beside)
    moved, _, _ = make_frames(robot, reality, 1, 0, seed=5)
    np.testing.assert_allclose(moved.clouds[0] - registered.clouds[0], np.tile([0.0, 0.0, 1e-3], (1000, 1)), atol=1e-12)
    np.testing.assert_allclose(moved.normals[0], registered.normals[0], atol=1e-12)
