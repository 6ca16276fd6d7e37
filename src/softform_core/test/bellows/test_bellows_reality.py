"""The real arm, a chain of discs: derivatives, agreement with the rod where it must agree, realities and drawn ones."""

from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from softform_core.arrays import Array
from softform_core.bodies.bellows.chain import ChainProblem
from softform_core.bodies.bellows.equilibrium import BellowsProblem
from softform_core.bodies.bellows.simulator import RealBellows
from softform_core.bodies.bellows.skin import outline_of
from softform_core.halton import halton_actuations
from softform_core.robots import load_robot
from softform_core.simulation.newton import find_equilibria
from softform_core.simulation.sensitivity import equilibrium_sensitivities

ROBOT = load_robot("compressible", "surface")
PRESSURES = halton_actuations(ROBOT.actuation_min, ROBOT.actuation_max, 12, 1)


@pytest.fixture(scope="module")
def chain() -> ChainProblem:
    drawn = ROBOT.body.drawn_reality(np.random.default_rng(4))
    return ROBOT.body.real_simulator(drawn.model_copy(update={"folds": 5, "plate_tilt": 0.02}))


def tips(problem: Any, pressures: Array) -> Array:
    """Middles (n, 3) m of the last rings."""
    found = find_equilibria(problem, pressures)
    assert found.found.all()
    return problem.points(found.unknowns)[:, -len(outline_of(ROBOT.body.section)) :].mean(axis=1)


def test_gradient_and_hessian_agree_with_finite_differences(chain):
    rng, step = np.random.default_rng(0), 1e-6
    unknowns, pressures = 0.08 * rng.normal(size=(2, len(chain.rest))), rng.uniform(-40e3, 10e3, (2, 9))
    gradient, hessian = chain.derivatives(unknowns, pressures)
    for index in rng.choice(len(chain.rest), 24, replace=False):
        change = step * np.eye(len(chain.rest))[index]
        ahead, behind = unknowns + change, unknowns - change
        slope = (chain.energy(ahead, pressures) - chain.energy(behind, pressures)) / (2.0 * step)
        np.testing.assert_allclose(gradient[:, index], slope, atol=1e-7 * np.abs(gradient).max())
        curvature = (chain.derivatives(ahead, pressures)[0] - chain.derivatives(behind, pressures)[0]) / (2.0 * step)
        atol = 1e-7 * np.abs(hessian.blocks).max()
        np.testing.assert_allclose(hessian.blocks[:, 0, index], curvature, atol=atol)


def test_its_surface_moves_as_the_implicit_function_theorem_says(chain):
    pressures = PRESSURES[:1]
    found = find_equilibria(chain, pressures)
    moves = chain.moved_points(found.unknowns, equilibrium_sensitivities(chain, found.unknowns, pressures))
    for index in (0, 5):
        change = np.eye(9)[index]
        ends = [find_equilibria(chain, pressures + sign * change, found.unknowns).unknowns for sign in (1.0, -1.0)]
        expected = (chain.points(ends[0]) - chain.points(ends[1])) / 2.0
        np.testing.assert_allclose(moves[..., index], expected, atol=1e-6 * np.abs(moves).max())


def test_many_folds_that_do_not_shear_make_the_simulators_rod():
    """Two models that share no kernel: under pressures small enough that both laws are straight, tips agree."""
    fine = RealBellows(folds=40, hardening=0.0, contact=0.01, shear=1e5)
    small = PRESSURES / 20.0
    apart = tips(ROBOT.body.real_simulator(fine), small) - tips(ROBOT.body.simulator(), small)
    moved = tips(ROBOT.body.simulator(), small) - [0.0, 0.0, -0.92]
    assert np.linalg.norm(moved, axis=1).mean() > 0.015
    assert np.linalg.norm(apart, axis=1).max() < 0.001


def test_drawn_arms_differ_and_hold_over_the_range():
    drawn = [ROBOT.body.drawn_reality(np.random.default_rng(seed)) for seed in range(3)]
    assert len({one.model_dump_json() for one in drawn}) == 3
    nominal = tips(ROBOT.body.simulator(), PRESSURES)
    for one in drawn:
        gap = np.linalg.norm(tips(ROBOT.body.real_simulator(one), PRESSURES) - nominal, axis=1).mean()
        assert 0.005 < gap < 0.15


def test_without_folds_it_is_the_simulator_itself():
    assert isinstance(ROBOT.body.real_simulator(RealBellows()), BellowsProblem)
    with pytest.raises(ValidationError, match="folds must be given"):
        RealBellows(shear=100.0)


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"stiffness_scale": [1.0, 1.0]}, "stiffness_scale has 2 numbers"),
        ({"area_scale": -1.0}, "area_scale has the value -1"),
        ({"contact": 1.2}, "contact has the value 1.2"),
    ],
)
def test_bad_realities_are_rejected_by_name(fields, complaint):
    with pytest.raises(ValueError, match=complaint):
        ROBOT.body.real_simulator(RealBellows(folds=6, **fields))
