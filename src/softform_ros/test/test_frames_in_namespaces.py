"""Robots of one description, each in a namespace of its own, beside each other on one /tf."""

import re
from pathlib import Path

import numpy as np
import pytest

from softform_core.errors import SoftformError
from softform_core.geometry.rigid import RigidTransform
from softform_core.robots import load_robot
from softform_ros.transform_tree import TransformTree

SRC = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("namespace", "frame"),
    [
        *(("/softform", "membrane/base_link"), ("softform", "membrane/base_link"), ("/", "membrane/base_link")),
        *(("/left", "left/membrane/base_link"), ("lab/left/", "lab/left/membrane/base_link")),
    ],
)
def test_frames_begin_with_the_namespace_but_for_the_usual_one(namespace, frame):
    robot = load_robot("membrane").in_namespace(namespace)
    assert robot.base_frame == frame and robot.frame_of("scanner") == frame.replace("base_link", "scanner")
    assert robot.fingerprint() == load_robot("membrane").fingerprint()


def test_two_robots_of_one_description_stand_where_each_says():
    tree = TransformTree()
    for space, height in (("/left", 0.5), ("/right", 0.7)):
        robot = load_robot("membrane").in_namespace(space)
        tree.put(robot.base_frame, robot.frame_of("scanner"), None, RigidTransform(np.eye(3), np.array([0, 0, height])))
    left, right = (load_robot("membrane").in_namespace(space) for space in ("/left", "/right"))
    for robot, height in ((left, 0.5), (right, 0.7)):
        found = tree.lookup(robot.base_frame, robot.frame_of("scanner"), 0.0)
        assert found.translation == pytest.approx([0.0, 0.0, height])
    with pytest.raises(SoftformError, match="TF knows no frame 'membrane/scanner'.*left/membrane/scanner"):
        tree.lookup(left.base_frame, "membrane/scanner", 0.0)
    with pytest.raises(SoftformError, match="TF does not connect"):
        tree.lookup(left.base_frame, right.frame_of("scanner"), 0.0)


def test_each_node_has_its_robot_in_its_namespace():
    """The driver has no frames."""
    nodes = [path for path in SRC.glob("softform_*/softform_*/**/*_node.py") if path.name != "actuation_node.py"]
    loads = [call for path in nodes for call in re.findall(r"load_robot\(.*", path.read_text(encoding="utf-8"))]
    assert len(loads) >= 8 and all(".in_namespace(self.get_namespace())" in call for call in loads), loads
