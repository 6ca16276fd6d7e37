import numpy as np
import pytest
from equilibria import solve_equilibrium

from softform_core.bodies.membrane.simulator import build_membrane
from softform_core.robots import Robot, load_robot
from softform_core.surface.fit import SurfaceFitter
from softform_core.surface.mean_value import parametrise
from softform_core.training.shapes import orbits, symmetric_images
from softform_core.training.split import split_shapes
from softform_core.units import MM_PER_M


def _robot(length: float = 0.32) -> Robot:
    robot = load_robot("membrane")
    return robot.model_copy(
        update={
            "body": robot.body.model_copy(update={"cells": 12, "length": length}),
            "surfaces": [robot.surfaces[0].model_copy(update={"rows": 8, "columns": 8})],
        }
    )


@pytest.mark.parametrize(("length", "count"), [(0.32, 8), (0.40, 4)])
def test_images_of_a_solved_shape_are_the_shapes_solved_at_the_permuted_pressures(length, count):
    robot = _robot(length)
    membrane = build_membrane(robot.body)
    uv = parametrise(membrane.rest_vertices, membrane.faces).uv
    fitter = SurfaceFitter(uv, 8, 8)

    def solved(actuation: np.ndarray) -> np.ndarray:
        return fitter.fit(MM_PER_M * solve_equilibrium(membrane, actuation).vertices)

    actuation = np.array([1000.0, 4000.0, 2000.0, 3000.0, 2500.0, 3500.0, 1500.0, 500.0, 4500.0])
    images = symmetric_images(robot, actuation[None], solved(actuation)[None])
    assert len(images) == count
    assert len({tuple(permuted[0]) for permuted, _ in images}) == count
    for permuted, image in images:
        np.testing.assert_allclose(image[0], solved(permuted[0]), atol=1e-3)


def test_orbits_join_images_and_nothing_else():
    robot = _robot()
    actuation = np.random.default_rng(0).random((20, 9)) * 5000.0
    nothing = np.zeros((20, 8, 8, 3))
    images = np.concatenate([image for image, _ in symmetric_images(robot, actuation, nothing)])
    labels = orbits(robot, images).reshape(8, 20)
    assert (labels == labels[0]).all()
    assert len(np.unique(labels[0])) == 20


def test_corner_actuations_fall_into_102_orbits():
    corners = np.array(np.meshgrid(*[[0.0, 5000.0]] * 9)).reshape(9, -1).T
    assert len(np.unique(orbits(_robot(), corners))) == 102  # Burnside's count of 3 x 3 two-colourings


def test_split_is_seven_to_three_and_never_parts_an_orbit():
    corners = np.array(np.meshgrid(*[[0.0, 5000.0]] * 9)).reshape(9, -1).T
    labels = orbits(_robot(), corners)
    split = split_shapes(labels, seed=3)
    parts = [split.train, split.validation, split.test]
    assert sorted(np.concatenate(parts)) == list(range(512))
    assert len(split.test) == pytest.approx(0.3 * 512, abs=8)
    assert len(split.validation) == pytest.approx(0.07 * 512, abs=8)
    for one, other in ((0, 1), (0, 2), (1, 2)):
        assert not set(labels[parts[one]]) & set(labels[parts[other]])
    np.testing.assert_array_equal(split_shapes(labels, seed=3).test, split.test)
    assert not np.array_equal(split_shapes(labels, seed=4).test, split.test)


def test_alike_actuations_are_those_that_symmetries_and_sections_exchange():
    robot = load_robot("manipulator")
    alike = robot.alike_actuations
    assert alike.shape == (12, 3)  # two ways round for each of six chambers
    np.testing.assert_array_equal(np.unique(alike[:, 0], return_counts=True), [np.arange(6), np.full(6, 2)])
    rows = set(map(tuple, alike))
    images = symmetric_images(robot, np.arange(6.0)[None], np.zeros((1, 900, 3)))
    orders = [image[0].astype(int) for image, _ in images]
    assert len(orders) == 6
    for order in (*orders, np.roll(np.arange(6), 3)):
        assert {tuple(order[list(row)]) for row in rows} == rows


def test_no_actuations_are_alike_where_ranges_differ_or_sections_are_not_known():
    robot = load_robot("manipulator")
    weaker = robot.drive.model_copy(update={"maximum": [60000.0] * 5 + [50000.0]})
    assert robot.model_copy(update={"drive": weaker}).alike_actuations.size == 0
    assert load_robot("mannequin").alike_actuations.size == 0
    assert load_robot("membrane").alike_actuations.size == 0


def test_a_body_whose_alike_inputs_are_not_its_own_is_rejected():
    robot = load_robot("manipulator")

    class Wrong(type(robot.body)):
        @property
        def alike_inputs(self):
            return np.array([[0, 6]])

    fields = {name: getattr(robot, name) for name in ("name", "title", "source", "devices", "surfaces")}
    wrong = Wrong.model_validate(robot.body.model_dump())
    Robot.model_validate({**fields, "body": robot.body, "actuators": robot.drive})
    with pytest.raises(ValueError, match="alike_inputs of the body 'solid' must be places of its 6 inputs"):
        Robot.model_validate({**fields, "body": wrong, "actuators": robot.drive})
