"""The arm of bellows: derivatives, closed forms, symmetry, the printed lengths, bad descriptions."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import yaml
from pydantic import ValidationError

from softform_core.arrays import Array
from softform_core.bodies.bellows.equilibrium import BellowsProblem, build_arm, strain_under
from softform_core.bodies.bellows.skin import outline_of, skin_of
from softform_core.halton import halton_actuations
from softform_core.paths import robot_file
from softform_core.robots import Robot, load_robot
from softform_core.simulation.newton import find_equilibria
from softform_core.simulation.sampling import corner_actuations
from softform_core.simulation.sensitivity import equilibrium_sensitivities
from softform_core.simulation.simulated_body import equilibrium_points, rest_points

ROBOT = load_robot("compressible", "surface")
UNEVEN = np.array([[-30e3, 5e3, 0.0, -20e3, 1e3, 0.0, -40e3, 10e3, 1e3]])


def described(section: dict[str, Any] | None = None, **body: Any) -> Robot:
    content = yaml.safe_load(robot_file("compressible").read_text())
    content["body"] |= body
    content["body"]["section"] |= section or {}
    return Robot.model_validate(content)


@pytest.fixture(scope="module")
def arm() -> BellowsProblem:
    return ROBOT.body.simulator()


def rings(problem: Any, unknowns: Array) -> Array:
    """Middles (n, R, 3) m of the rings."""
    around = len(outline_of(ROBOT.body.section))
    return problem.points(unknowns).reshape(len(unknowns), -1, around, 3).mean(axis=2)


def length(problem: Any, pressure: float) -> float:
    """Length of the arm under one pressure in all bellows, m."""
    found = find_equilibria(problem, np.full((1, 9), pressure))
    return float(-rings(problem, found.unknowns)[0, -1, 2])


def test_gradient_and_hessian_agree_with_finite_differences(arm):
    rng, step = np.random.default_rng(0), 1e-6
    unknowns, pressures = 0.08 * rng.normal(size=(2, len(arm.rest))), rng.uniform(-40e3, 10e3, (2, 9))
    gradient, hessian = arm.derivatives(unknowns, pressures)
    for index in rng.choice(len(arm.rest), 24, replace=False):
        change = step * np.eye(len(arm.rest))[index]
        ahead, behind = unknowns + change, unknowns - change
        slope = (arm.energy(ahead, pressures) - arm.energy(behind, pressures)) / (2.0 * step)
        np.testing.assert_allclose(gradient[:, index], slope, atol=1e-7 * np.abs(gradient).max())
        curvature = (arm.derivatives(ahead, pressures)[0] - arm.derivatives(behind, pressures)[0]) / (2.0 * step)
        atol = 1e-7 * np.abs(hessian.blocks).max()
        np.testing.assert_allclose(hessian.blocks[:, 0, index], curvature, atol=atol)


def test_even_pressure_stretches_a_weightless_arm_by_the_closed_form_of_its_law():
    body = ROBOT.body
    weightless = BellowsProblem(replace(build_arm(body), gravity=np.zeros(3)), skin_of(body))
    section = body.section
    for pressure in (-40e3, -5e3, 0.0, 10e3):
        strain = float(strain_under(np.array(pressure * section.area), 60.0, 0.613 - 1.0, 0.45))
        limit = 0.613 - 1.0 if strain < 0.0 else 0.45
        assert 60.0 * strain / (1.0 - (strain / limit) ** 2) == pytest.approx(pressure * section.area, abs=1e-9)
        expected = 3.0 * (section.length * (1.0 + strain) + body.plate_length)
        assert length(weightless, pressure) == pytest.approx(expected, abs=1e-9)


def test_it_is_as_long_as_the_paper_says(arm):
    """92.0 cm natural, 65.0 cm compressed; no vacuum brings it below the length at which all folds touch."""
    assert length(arm, 0.0) == pytest.approx(0.920, abs=0.001)
    assert length(arm, ROBOT.actuator_min[0]) == pytest.approx(0.650, abs=0.001)
    solid = 3.0 * (ROBOT.body.section.length * ROBOT.body.section.shortest + ROBOT.body.plate_length)
    assert solid < length(arm, -90e3) < 0.62


def test_symmetric_pressures_bend_it_in_their_plane(arm):
    pressures = np.array([np.tile([-40e3, 5e3, 5e3], 3), np.tile([5e3, -40e3, -40e3], 3)])
    found = find_equilibria(arm, pressures)
    middles = rings(arm, found.unknowns)
    assert np.abs(middles[..., 1]).max() < 1e-9
    assert middles[0, -1, 0] > 0.3 and middles[1, -1, 0] < -0.3  # towards the shorter bellows
    bend = np.degrees((arm.strains(found.unknowns)[0, :, 1] * arm.arm.length).sum())
    assert 100.0 < bend < 180.0


def test_the_whole_range_converges(arm):
    low, high = ROBOT.actuation_min, ROBOT.actuation_max
    pressures = np.concatenate([halton_actuations(low, high, 200, 0), corner_actuations(low, high)])
    found = find_equilibria(arm, pressures)
    assert found.found.all()
    assert found.iterations.mean() < 7.0
    strain = arm.strains(found.unknowns)
    bellows = strain[..., 3, None] - strain[..., 1, None] * 0.036
    assert bellows.min() > 0.613 - 1.0


def test_the_surface_moves_as_the_implicit_function_theorem_says(arm):
    found = find_equilibria(arm, UNEVEN)
    moves = arm.moved_points(found.unknowns, equilibrium_sensitivities(arm, found.unknowns, UNEVEN))
    for index in (0, 4, 8):
        change = np.eye(9)[index]
        ahead, behind = (find_equilibria(arm, UNEVEN + sign * change, found.unknowns).unknowns for sign in (1.0, -1.0))
        expected = (arm.points(ahead) - arm.points(behind)) / 2.0
        np.testing.assert_allclose(moves[..., index], expected, atol=1e-6 * np.abs(moves).max())


@pytest.mark.parametrize("hanging", [True, False])
def test_images_of_a_shape_are_the_shapes_of_the_images(hanging):
    """A turn by a bellow moves the control grid by a third around the tube; a mirror turns it around."""
    robot = described(hanging=hanging)
    body, pressures = robot.body.simulator(), UNEVEN if hanging else 0.2 * UNEVEN
    surface = robot.parametrised(rest_points(body), body.faces)
    control = surface.fit(equilibrium_points(body, pressures)).reshape(1, 30, 30, 3)
    found = robot.body.symmetric_images(pressures, control)
    assert len(found) == 6
    assert len({tuple(image[0]) for image, _ in found}) == 6
    for image, moved in found:
        np.testing.assert_allclose(
            moved[0], surface.fit(equilibrium_points(body, image)).reshape(30, 30, 3), atol=1e-10
        )


def test_no_image_falls_between_the_rows_of_a_grid():
    control = np.zeros((1, 28, 4, 3))
    angle = 2.0 * np.pi * np.arange(28) / 28.0
    control[0, :, -1, :2] = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    assert len(ROBOT.body.symmetric_images(UNEVEN, control)) == 2  # itself, and its mirror image


def test_the_outline_holds_all_bellows_and_closes():
    section = ROBOT.body.section
    outline = outline_of(section)
    steps = np.linalg.norm(np.roll(outline, -1, axis=0) - outline, axis=1)
    assert np.ptp(steps) < 0.02 * steps.mean()
    apart = np.linalg.norm(outline[:, None] - section.places, axis=2)
    assert apart.min() == pytest.approx(section.radius, abs=1e-9)
    assert np.linalg.norm(outline, axis=1).max() == pytest.approx(section.pitch_radius + section.radius)


@pytest.mark.parametrize(
    ("section", "body", "complaint"),
    [
        ({"radius": 0.04}, {}, "bellows overlap"),
        ({"area": 0.002}, {}, "area is larger"),
        ({"shortest": 1.1}, {}, "section.shortest"),
        ({"longest": 0.9}, {}, "section.longest"),
        ({"stiffness": 0.0}, {}, "section.stiffness"),
        ({"count": 2}, {}, "section.count"),
        ({}, {"elements": 1}, "elements"),
        ({}, {"bend": 1.0}, "bend"),
        ({"count": 4, "radius": 0.021}, {}, "devices must serve"),
    ],
)
def test_bad_descriptions_are_rejected_by_name(section, body, complaint):
    with pytest.raises(ValidationError, match=complaint):
        described(section, **body)
