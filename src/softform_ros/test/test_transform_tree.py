"""The tree of transforms: there and back, in between, and what it cannot tell."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from softform_core.errors import SoftformError
from softform_core.geometry.rigid import RigidTransform
from softform_ros.transform_tree import LATENESS, LONGEST_NAME, MOST_FRAMES, TransformTree

NOW = 1_700_000_000.0
POINTS = np.random.default_rng(0).normal(size=(20, 3))


def place(yaw=0.0, x=0.0):
    return RigidTransform(Rotation.from_euler("z", yaw).as_matrix(), np.array([x, 0.0, 0.0]))


motions = st.builds(
    lambda turn, shift: RigidTransform(Rotation.from_rotvec(turn).as_matrix(), np.array(shift)),
    st.lists(st.floats(-3.0, 3.0), min_size=3, max_size=3),
    st.lists(st.floats(-5.0, 5.0), min_size=3, max_size=3),
)


@given(motions, motions, motions)
def test_there_and_back_over_both_branches(camera, robot, tip):
    tree = TransformTree()
    tree.put("world", "camera", None, camera)
    tree.put("world", "robot", NOW, robot)
    tree.put("robot", "tip", None, tip)
    there, back = tree.lookup("tip", "camera", NOW), tree.lookup("camera", "tip", NOW)
    np.testing.assert_allclose(back.apply(there.apply(POINTS)), POINTS, atol=1e-9)
    in_world = robot.apply(tip.apply(there.apply(POINTS)))
    np.testing.assert_allclose(in_world, camera.apply(POINTS), atol=1e-9)
    np.testing.assert_allclose(tree.lookup("tip", "tip", NOW).apply(POINTS), POINTS)


def test_what_moves_is_interpolated_in_whatever_order_it_came():
    tree = TransformTree()
    for stamp, yaw, x in ((NOW + 2.0, 1.0, 4.0), (NOW, 0.0, 0.0), (NOW + 1.0, 1.0, 2.0)):
        tree.put("base", "camera", stamp, place(yaw, x))
    halfway = tree.lookup("base", "camera", NOW + 0.5)
    np.testing.assert_allclose(halfway.translation, [1.0, 0.0, 0.0], atol=1e-12)
    np.testing.assert_allclose(halfway.rotation, place(0.5).rotation, atol=1e-12)
    assert tree.lookup("base", "camera", NOW + 2.0 + 0.9 * LATENESS).translation[0] == 4.0


def put_all(*pairs):
    tree = TransformTree()
    for parent, child in pairs:
        tree.put(parent, child, None, place())
    return tree


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        (put_all(), "knows no frame 'camera' .known: none"),
        (put_all(("world", "robot")), "knows no frame 'camera' .known: robot, world"),
        (put_all(("world", "robot"), ("room", "camera")), "does not connect 'camera', which stands in 'room'"),
        (put_all(("a", "camera"), ("camera", "a"), ("world", "robot")), "each other: camera in a in camera"),
    ],
)
def test_what_is_missing_apart_or_a_loop_is_reported(tree, message):
    with pytest.raises(SoftformError, match=message):
        tree.lookup("robot", "camera", NOW)


def test_stale_and_forgotten_transforms_are_reported():
    tree = TransformTree()
    for second in range(30):
        tree.put("base", "camera", NOW + second, place(x=second))
    with pytest.raises(SoftformError, match=r"stale: the pose of 'camera' in 'base' was last published 3\.0 s before"):
        tree.lookup("base", "camera", NOW + 32.0)
    with pytest.raises(SoftformError, match=r"remembered from 14\.0 s after"):
        tree.lookup("base", "camera", NOW + 5.0)


def test_a_clock_that_is_set_back_and_a_new_parent_begin_anew():
    tree = TransformTree()
    tree.put("base", "camera", NOW, place(x=1.0))
    tree.put("base", "camera", NOW - 3600.0, place(x=2.0))
    assert tree.lookup("base", "camera", NOW - 3600.0).translation[0] == 2.0
    tree.put("arm", "camera", NOW - 3599.0, place(x=3.0))
    assert tree.root("camera") == "arm"
    assert tree.lookup("arm", "camera", NOW - 3599.0).translation[0] == 3.0
    assert tree.root("nobody") == "nobody"


@pytest.mark.parametrize(
    ("parent", "child", "x"), [("", "a", 0.0), ("a", "", 0.0), ("a", "a", 0.0), ("a", "b", np.nan)]
)
def test_transforms_that_make_no_sense_are_rejected(parent, child, x):
    with pytest.raises(SoftformError):
        TransformTree().put(parent, child, NOW, place(x=x))


def test_what_anybody_publishes_takes_no_more_and_no_more_memory():
    tree = TransformTree()
    tree.put("world", "robot", None, place(x=1.0))
    for number in range(MOST_FRAMES - 1):
        tree.put("world", f"frame_{number}", NOW, place())
    with pytest.raises(SoftformError, match="more than 1000 frames"):
        tree.put("world", "one_more", NOW, place())
    with pytest.raises(SoftformError, match="longer than"):
        tree.put("world", "x" * (LONGEST_NAME + 1), NOW, place())
    for step in range(7000):
        tree.put("world", "frame_0", NOW + 1e-3 * step, place(x=float(step)))
        tree.put("world", "frame_1", NOW, place(x=float(step)))
    assert [len(history) for history in tree._moving.values()][:2] == [5000, 1]
    assert tree.lookup("world", "frame_1", NOW).translation[0] == 6999.0
    assert tree.lookup("world", "robot", NOW).translation[0] == 1.0
    with pytest.raises(SoftformError, match="no frame 'x'") as raised:
        tree.lookup("world", "x", NOW)
    assert len(str(raised.value)) < 1000
