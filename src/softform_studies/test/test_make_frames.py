"""Frames of a study: what its cameras see are the shapes that its scanner sees."""

import numpy as np
import pytest

from softform_core.bodies.membrane.reality import RealMembrane
from softform_core.registration.rest_surface import rest_surface
from softform_core.robots import Robot, load_robot
from softform_rig.live_body import LiveBody
from softform_rig.markers import marker_layout
from softform_rig.reality import Reality, true_values
from softform_studies.sim_to_real.make_frames import make_frames, make_marker_frames


@pytest.fixture(scope="module")
def robot() -> Robot:
    return load_robot("membrane")


def test_marker_frames_see_the_shapes_that_the_scanner_sees(robot: Robot) -> None:
    differences = {"pressure_sensors": {"gain": 0.9}, "motion_capture": {"noise": 0.0}}
    reality = Reality(name="mine", title="mine", body=RealMembrane(), **differences)
    frames, truth, missing = make_marker_frames(robot, reality, 3, 1, missing=0.1, seed=5)
    scans, same_truth, _ = make_frames(robot, reality, 3, 1, seed=5)
    np.testing.assert_array_equal(frames.actuation, scans.actuation)
    np.testing.assert_allclose(truth.vertices, same_truth.vertices, atol=1e-6)
    assert missing == pytest.approx(1.0 - frames.visible.mean())
    shape = LiveBody(robot, reality).shape(true_values(reality, robot, frames.actuation[1]))
    seen = frames.positions[1, frames.visible[1]]
    assert np.linalg.norm(shape[:, None] - seen, axis=2).min(axis=0).max() < 0.007
    assert 0.32 * np.abs(frames.uv - marker_layout(rest_surface(robot), 34)).max() < 0.0015
