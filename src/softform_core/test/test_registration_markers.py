"""Markers at rest get the surface parameters of the points they sit on; markers that cannot be placed are rejected."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from softform_core.errors import SoftformError
from softform_core.registration.base_alignment import base_alignment
from softform_core.registration.markers import register_markers
from softform_core.registration.rest_surface import rest_surface
from softform_core.robots import Robot, load_robot


@pytest.fixture(scope="module")
def robot() -> Robot:
    return load_robot("membrane")


def on_sheet(uv: np.ndarray, robot: Robot) -> np.ndarray:
    """Places (M, 3) m of parameters on the flat sheet: u along x, v along y."""
    return np.column_stack([(uv - 0.5) * robot.extent, np.zeros(len(uv))])


def test_markers_on_a_sagging_sheet_keep_their_parameters(robot: Robot) -> None:
    uv = np.random.default_rng(0).uniform(0.0, 1.0, (12, 2))
    rest = on_sheet(uv, robot) - [0.0, 0.0, 0.004]
    assert np.abs(register_markers(rest, robot) - uv).max() < 1e-6


def test_a_marker_beside_the_sheet_belongs_to_the_rim(robot: Robot) -> None:
    uv = np.array([[0.1, 0.2], [0.8, 0.3], [0.4, 0.9], [1.02, 0.5]])
    found = register_markers(on_sheet(uv, robot), robot)
    assert found[3] == pytest.approx([1.0, 0.5], abs=1e-4)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda rest: rest[:3], "at least 4"),
        (lambda rest: np.vstack([rest, rest[1] + 0.001]), "Markers 2, 6 are 0.0017 m apart"),
        (lambda rest: rest + np.array([0.0, 0.0, 0.05]), "0.050 m from robot 'membrane'"),
        (lambda rest: 1000.0 * rest, "Check unit"),
        (lambda rest: np.where(np.arange(5)[:, None] == 2, np.nan, rest), "Marker 3 is missing at rest"),
    ],
)
def test_markers_that_cannot_be_placed_are_rejected(robot: Robot, change, words: str) -> None:
    rest = on_sheet(np.array([[0.2, 0.2], [0.8, 0.2], [0.8, 0.8], [0.2, 0.8], [0.5, 0.5]]), robot)
    with pytest.raises(SoftformError) as rejected:
        register_markers(change(rest), robot)
    assert words in str(rejected.value)


def test_base_markers_bring_the_systems_frame_to_the_robots(robot: Robot) -> None:
    places, turn = np.array(list(robot.base_markers.values())), Rotation.from_rotvec([2.0, -0.5, 1.0])
    captured = np.vstack([turn.apply(places) + 3.0, [[0.0, 0.0, 0.0]]])
    captured[2] = np.nan
    names = [*robot.base_markers, "m01"]
    motion, residual = base_alignment(names, captured, robot.base_markers, 1e-3)
    np.testing.assert_allclose(motion.apply(captured)[[0, 1, 3]], places[[0, 1, 3]], atol=1e-12)
    assert residual < 1e-12
    captured[0] += [0.0, 0.0, 0.009]
    with pytest.raises(SoftformError, match="off their places"):
        base_alignment(names, captured, robot.base_markers, 1e-3)
    captured[1] = np.nan
    with pytest.raises(SoftformError, match="2 of the base markers base_1, base_2, base_3, base_4 are visible"):
        base_alignment(names, captured, robot.base_markers, 1e-3)


def test_base_markers_in_line_align_nothing() -> None:
    base = {"a": [0.0, 0.0, 0.0], "b": [0.1, 0.0, 0.0], "c": [0.3, 0.01, 0.0]}
    with pytest.raises(SoftformError, match="in line"):
        base_alignment(list(base), np.array(list(base.values())), base, 1e-3)


@pytest.mark.parametrize("apart", [0.007, 0.003])
def test_dense_markers_on_a_long_arm_may_be_less_than_a_hundredth_of_its_length_apart(apart: float) -> None:
    arm = load_robot("compressible")
    surface, uv = rest_surface(arm), arm.patches.samples(400)
    rest = arm.patches.evaluate(surface.control_points, uv)
    along = rest[1] - rest[0]
    rest[0] = rest[1] - apart * along / np.linalg.norm(along)
    if apart > 0.005:
        assert register_markers(rest, arm).shape == (400, 2)
    else:
        with pytest.raises(SoftformError, match=f"Markers 1, 2 are {apart:.4f} m apart"):
            register_markers(rest, arm)
