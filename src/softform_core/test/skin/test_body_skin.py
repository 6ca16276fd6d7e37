"""The skin that a robot without a surface has by its description."""

import numpy as np
import pytest
import trimesh

from softform_core.errors import SoftformError
from softform_core.robots import load_robot
from softform_core.shapes.body_skin import body_skin
from softform_core.shapes.features import FeaturePoints
from softform_core.shapes.skin_store import BODY, load_skin, save_skin, skin_names, skin_path

RODS = "three_chamber", "planar_fingers", "tendon_rod", "tendon_robot"


@pytest.fixture(autouse=True)
def models(tmp_path, monkeypatch):
    monkeypatch.setattr("softform_core.shapes.skin_store.models_of", lambda robot: tmp_path / robot)


@pytest.mark.parametrize("name", RODS)
def test_the_outside_of_a_rod_is_closed_as_large_as_described_and_rides_on_its_elements(name):
    robot = load_robot(name)
    points, faces = robot.body.shell()
    mesh = trimesh.Trimesh(points, faces, process=False)
    assert mesh.is_watertight and mesh.is_winding_consistent
    section, body = robot.body.section, robot.body
    across = {section.width, section.height}
    if getattr(body, "disc_radius", 0.0):
        across = {2.0 * body.disc_radius}
    assert np.sort(np.ptp(points, axis=0)) == pytest.approx(sorted([*across, *across][:2] + [body.size]))
    area = section.width * section.height * (1.0 if section.outline == "rectangle" else np.pi / 4.0)
    assert mesh.volume > 0.7 * area * body.size  # tapered
    bones = body.simulator()
    skin = load_skin(robot, BODY)
    at_rest = bones.bones(bones.rest[None])[0].reshape(-1, 3)
    assert skin.points(at_rest) == pytest.approx(points, abs=1e-12)
    assert load_skin(robot, BODY) is skin


def test_one_that_was_bound_comes_first_and_may_take_its_name():
    robot, other = load_robot("three_chamber"), load_robot("tendon_rod")
    assert skin_names(robot) == [BODY]
    save_skin(skin_path(robot.name, "sleeve"), body_skin(robot))
    assert skin_names(robot) == ["sleeve", BODY]
    save_skin(skin_path(robot.name, BODY), body_skin(other))
    assert sorted(skin_names(robot)) == [BODY, "sleeve"]
    with pytest.raises(SoftformError, match="another description"):
        load_skin(robot, BODY)


def test_its_points_are_targets():
    robot = load_robot("tendon_rod")
    asked = FeaturePoints.of([[0.4, 0.6]], [[0.0, 0.0, 0.1]], output=[BODY]).on(robot)
    assert asked.anchors is not None


def test_a_robot_with_a_surface_has_none():
    assert skin_names(load_robot("membrane")) == []
    with pytest.raises(SoftformError, match="tells no outside"):
        body_skin(load_robot("membrane"))
