"""Quaternions of messages, against SciPy's."""

import numpy as np
import pytest
from geometry_msgs.msg import Quaternion
from scipy.spatial.transform import Rotation

from softform_ros.quaternions import quaternion_of, rotation_of

TURNS = [*Rotation.from_euler("xyz", np.pi * np.eye(3)), *Rotation.random(30, random_state=0)]


@pytest.mark.parametrize("turn", TURNS)
def test_rotations_go_to_messages_and_back_as_scipy_has_them(turn: Rotation) -> None:
    message = quaternion_of(turn.as_matrix())
    found = np.array([message.x, message.y, message.z, message.w])
    expected = turn.as_quat()
    np.testing.assert_allclose(found * np.sign(found @ expected), expected, atol=1e-12)
    np.testing.assert_allclose(rotation_of(message), turn.as_matrix(), atol=1e-12)
    x, y, z, w = expected
    np.testing.assert_allclose(rotation_of(Quaternion(x=x, y=y, z=z, w=w)), turn.as_matrix(), atol=1e-12)
