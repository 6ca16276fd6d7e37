"""The solid as a rod: its surface at rest is the solid's, it hangs and bulges, and its derivatives are those of Pi."""

import numpy as np

from softform_core.bodies.solid.model import build_solid
from softform_core.bodies.solid.rod import RodOfSolid
from softform_core.robots import load_robot
from softform_core.simulation.sensitivity import equilibrium_sensitivities
from softform_core.simulation.simulated_body import equilibrium_points, equilibrium_unknowns, rest_points

MANIPULATOR = load_robot("manipulator")
ROD = MANIPULATOR.body.second_model.simulator()


def test_at_rest_it_has_the_surface_of_the_finite_elements() -> None:
    assert isinstance(ROD, RodOfSolid)
    solid = build_solid(MANIPULATOR.body)
    assert np.array_equal(ROD.faces, solid.faces)
    assert np.allclose(rest_points(ROD), solid.surface @ solid.nodes, atol=1e-9)


def test_it_is_another_robot_to_models_and_stores() -> None:
    other = MANIPULATOR.model_copy(update={"body": MANIPULATOR.body.second_model})
    assert other.fingerprint() != MANIPULATOR.fingerprint()


def test_pressure_bends_away_from_its_chamber_stretches_and_bulges_the_wall() -> None:
    one, every = np.zeros(6), np.full(6, 60e3)
    one[0] = 60e3
    bent, long = equilibrium_points(ROD, np.stack([one, every]))
    assert bent[-1, 0] < -0.05 and abs(bent[-1, 1]) < 1e-9
    assert np.allclose(long[-1, :2], 0.0, atol=1e-9) and 0.29 < long[-1, 2] < 0.36
    radius = np.linalg.norm(long[:-1, :2], axis=1)
    assert 0.026 < radius.max() < 0.029  # the finite elements: 27.6 mm
    plates = rest_points(ROD)[:-1, 2] <= MANIPULATOR.body.plate
    assert np.allclose(radius[plates], MANIPULATOR.body.cross_section.radius, rtol=1e-4)


def test_its_derivatives_are_those_of_its_energy_and_its_points_move_as_its_pressures_say() -> None:
    values = np.array([[30e3, 0.0, 10e3, 0.0, 40e3, 5e3]])
    draw = np.random.default_rng(0)
    unknowns, way = equilibrium_unknowns(ROD, values), draw.standard_normal(len(ROD.rest))
    away, step = unknowns + 0.01 * way, 1e-6
    gradient, hessian = ROD.derivatives(away, values)
    ahead, behind = away + step * way, away - step * way
    slope = (ROD.energy(ahead, values) - ROD.energy(behind, values)) / (2.0 * step)
    assert np.allclose(gradient @ way, slope, rtol=1e-6)
    turned = (ROD.derivatives(ahead, values)[0] - ROD.derivatives(behind, values)[0]) / (2.0 * step)
    assert np.allclose(hessian.blocks[:, 0] @ way, turned, atol=1e-6 * np.abs(turned).max())
    moved = ROD.moved_points(unknowns, equilibrium_sensitivities(ROD, unknowns, values))[0]
    more = values + np.array([[1.0, 0.0, 0.0, 0.0, 0.0, 0.0]])
    expected = equilibrium_points(ROD, more) - ROD.points(unknowns)
    assert np.allclose(moved[..., 0], expected[0], atol=1e-3 * np.abs(expected).max())
