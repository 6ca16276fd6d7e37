"""Targets that lie anywhere, placed on the resting robot."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from softform_core.errors import SoftformError
from softform_core.robots import load_robot
from softform_core.shapes.placing import placed
from softform_core.shapes.target import TargetShape
from softform_core.surface.patch_set import SHEET

ROBOT = load_robot("membrane")
SAMPLES = SHEET.samples(900)


def bump():
    """A hill of 40 mm on a rim in z = 0, off its middle."""
    x, y = 0.3 * (SAMPLES.T - 0.5)
    z = 0.04 * (1.0 - (2.0 * SAMPLES[:, 0] - 1.0) ** 2) * (1.0 - (2.0 * SAMPLES[:, 1] - 1.0) ** 4) * (1.0 + x)
    return TargetShape.from_mesh(np.column_stack([x, y, z]), SHEET.triangles(len(SAMPLES)))


@pytest.mark.parametrize("tilt", [[0.0, 0.0, 0.0], [0.4, -0.3, 0.0], [np.pi, 0.0, 0.0], [0.0, 2.0, 0.0]])
def test_a_mesh_comes_to_lie_with_its_rim_in_the_resting_plane(tilt):
    shape = bump()
    lost = shape.transformed(Rotation.from_rotvec(tilt).as_matrix(), np.array([0.2, -0.1, 0.5]))
    found = placed(lost, ROBOT)
    rim = np.isin(SAMPLES, [0.0, 1.0]).any(axis=1)
    assert found.points[rim, 2] == pytest.approx(0.0, abs=1e-9)
    assert found.points[:, 2] == pytest.approx(shape.points[:, 2], abs=1e-9) and found.facing[2] > 0.8
    assert 0.5 * (found.points.min(axis=0) + found.points.max(axis=0))[:2] == pytest.approx(0.0, abs=0.02)


def test_a_cloud_comes_to_lie_with_its_lowest_points_in_the_resting_plane():
    lost = TargetShape(bump().points + [0.2, -0.1, 0.5])
    found = placed(lost, ROBOT)
    assert np.percentile(found.points[:, 2], 2.0) == pytest.approx(0.0, abs=1e-3)
    assert found.points[:, 2].max() == pytest.approx(0.04, abs=6e-3)
    assert np.abs(found.points[:, :2]).max() < 0.16


def test_a_robot_without_a_surface_has_no_place_for_a_target():
    with pytest.raises(SoftformError, match="no surface"):
        placed(bump(), load_robot("three_chamber"))
