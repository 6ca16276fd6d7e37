"""Emulated motion capture: markers on material points, a frame of its own, noise and occlusions as described."""

import numpy as np
import pytest
from numpy.typing import NDArray

from softform_core.errors import SoftformError
from softform_core.geometry.rigid import RigidTransform
from softform_core.registration.rest_surface import rest_surface, rest_surface_of
from softform_core.robots import Robot, load_robot
from softform_rig.live_body import LiveBody
from softform_rig.markers import glue_markers, marker_layout
from softform_rig.motion_capture import MotionCapture
from softform_rig.reality import MotionCaptureDescription, load_reality

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def robot() -> Robot:
    return load_robot("membrane")


@pytest.fixture(scope="module")
def live(robot: Robot) -> LiveBody:
    return LiveBody(robot, load_reality("default", robot))


def cameras(robot: Robot, live: LiveBody, seed: int = 0, **described) -> MotionCapture:
    description, rest = MotionCaptureDescription(**described), live.rest
    surface = rest_surface_of(robot, live.simulated)
    glued = glue_markers(surface, marker_layout(surface, 34), description.placement_error, seed)
    return MotionCapture(description, glued, robot.base_markers, rest, seed)


def places(robot: Robot) -> NDArray[np.float64]:
    """Where the markers of the flat sheet are meant to be, (34, 2) m."""
    return robot.extent * (marker_layout(rest_surface(robot), 34) - 0.5)


def test_layout_has_every_chamber_and_no_two_markers_close(robot: Robot) -> None:
    layout = places(robot)
    assert layout.shape == (34, 2)
    assert np.abs(layout).max() < 0.5 * robot.extent.max() - 0.005
    distance = np.linalg.norm(layout[:, None] - layout, axis=2) + np.eye(34)
    assert distance.min() > 0.02
    centres = np.stack(np.meshgrid(*2 * [[-0.32 / 3, 0.0, 0.32 / 3]]), axis=-1).reshape(-1, 2)
    assert all(np.abs(layout - centre).sum(axis=1).min() < 1e-9 for centre in centres)
    with pytest.raises(SoftformError):
        marker_layout(rest_surface(robot), 3)


def test_glued_markers_move_with_the_sheet(robot: Robot, live: LiveBody) -> None:
    rest, layout, surface = live.rest, places(robot), rest_surface_of(robot, live.simulated)
    glued = glue_markers(surface, marker_layout(surface, 34), 0.0, 0)
    np.testing.assert_allclose(glued.positions(rest)[:, :2], layout, atol=1e-12)
    assert glued.weights.min() > -1e-9
    bent = rest + np.column_stack([0.1 * rest[:, 1], np.zeros(len(rest)), 0.3 * rest[:, 0]])
    expected = np.column_stack([layout[:, 0] + 0.1 * layout[:, 1], layout[:, 1], 0.3 * layout[:, 0]])
    np.testing.assert_allclose(glued.positions(bent), expected, atol=1e-12)
    beside = glue_markers(surface, marker_layout(surface, 34), 3e-4, 1).positions(rest)[:, :2] - layout
    assert 2e-4 < beside.std() < 4e-4


def test_patches_share_the_markers(robot: Robot) -> None:
    halves = [robot.surfaces[0].model_copy(update={"patch": half, "rows": 16}) for half in ("left", "right")]
    surface = rest_surface(robot.model_copy(update={"surfaces": halves}))
    layout = marker_layout(surface, 35)
    seen = glue_markers(surface, layout, 0.0, 0).positions(surface.vertices)
    np.testing.assert_allclose(seen, surface.mesh.patches.evaluate(surface.control_points, layout), atol=1e-6)
    assert ((seen[:, 0] < 0.0).sum(), len({*map(tuple, seen.round(4))})) == (18, 35)


def test_markers_come_in_the_frame_of_the_system_with_noise(robot: Robot, live: LiveBody) -> None:
    system = cameras(robot, live, missing=0.0, placement_error=0.0)
    rest = live.rest
    seen = np.array([system.capture(rest, time) for time in range(200)])
    in_robot = RigidTransform.from_pose(system.description.pose).apply(seen.reshape(-1, 3)).reshape(seen.shape)
    true = np.concatenate([np.column_stack([places(robot), np.zeros(34)]), [*robot.base_markers.values()]])
    assert system.names[:2] + system.names[-1:] == ["m01", "m02", "base_4"]
    np.testing.assert_allclose(in_robot.mean(axis=0), true, atol=5e-5)
    assert (in_robot - true).std() == pytest.approx(1e-4, rel=0.05)


@pytest.mark.parametrize("share", [0.02, 0.2])
def test_the_stated_share_is_missing_and_neighbours_together(robot: Robot, live: LiveBody, share: float) -> None:
    system = cameras(robot, live, missing=share)
    rest = live.rest
    gone = np.isnan([system.capture(rest, 10.0 * time) for time in range(3000)]).all(axis=2)
    assert gone.mean() == pytest.approx(share, rel=0.1)
    distance = np.linalg.norm(system.positions(rest)[:, None] - system.positions(rest), axis=2)
    together = np.corrcoef(gone.T)
    assert together[(distance > 0.0) & (distance < 0.05)].mean() > 0.1 + together[distance > 0.15].mean()


def test_occlusions_last(robot: Robot, live: LiveBody) -> None:
    system = cameras(robot, live, missing=0.1, occlusion_time=0.5)
    gone = np.isnan([system.capture(live.rest, time / 50.0) for time in range(3000)]).all(axis=2)
    still = (gone[1:] & gone[:-1]).sum() / gone[:-1].sum()
    assert still == pytest.approx(np.exp(-0.02 / 0.5), abs=0.02)


def test_a_sheet_that_hangs_sideways_has_a_shape_at_rest(robot: Robot) -> None:
    """Its weight lies in its plane: without pressure it stays flat."""
    live = LiveBody(robot, load_reality("sluggish", robot))
    shape = live.shape(np.zeros(9))
    assert live.failure is None
    assert np.abs(shape[:, 2]).max() < 1e-9
    assert 1e-5 < -(shape - live.rest)[:, 1].min() < 1e-3
