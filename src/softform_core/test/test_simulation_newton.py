"""Newton's method and the sensitivities on small bodies whose equilibria are known."""

import numpy as np
import pytest
from scipy.sparse import csc_matrix

import softform_core.simulation.newton as newton_module
from softform_core.simulation.hessian import BlockHessian, SparseHessian
from softform_core.simulation.newton import find_equilibria, newton
from softform_core.simulation.sensitivity import equilibrium_sensitivities

COUPLING = np.array([[0.3, -0.1], [-0.1, 0.2]])


class Wells:
    """Pi = sum_i (x_i^2 - 1)^2 / 4 + 1/2 x . K x - a . x: two coupled double wells, indefinite between them."""

    batch, largest_step, rounding = 3, 0.5, 1e-15
    unloaded = np.zeros(2)
    limit = 10.0

    def __init__(self, coupling=COUPLING):
        self.coupling = coupling

    def tolerance(self, actuators):
        return np.full(len(actuators), 1e-12)

    def start(self, actuators):
        return np.full(actuators.shape, 0.05)

    def energy(self, x, a):
        return (
            ((x**2 - 1.0) ** 2 / 4.0).sum(axis=1) + 0.5 * np.einsum("ni,ij,nj->n", x, self.coupling, x) - (a * x).sum(1)
        )

    def derivatives(self, x, a):
        curvature = np.einsum("ni,ij->nij", 3.0 * x**2 - 1.0, np.eye(2)) + self.coupling
        return x**3 - x + x @ self.coupling - a, BlockHessian(curvature[:, None])

    def load_derivative(self, x, a):
        return np.broadcast_to(-np.eye(2), (len(x), 2, 2))

    def has_run_away(self, x):
        return np.abs(x).max(axis=1) > self.limit


LOADS = np.array([[0.0, 0.0], [0.4, -0.3], [-1.0, 2.0], [3.0, 0.1], [0.01, 0.02]])


def test_each_sample_ends_in_a_minimum_wherever_it_begins():
    problem = Wells()
    for start in (None, np.random.default_rng(0).normal(0.0, 1.0, LOADS.shape)):
        found = find_equilibria(problem, LOADS, start)
        assert found.found.all()
        gradient, hessian = problem.derivatives(found.unknowns, LOADS)
        assert np.abs(gradient).max() < 1e-11
        assert (np.linalg.eigvalsh(hessian.blocks[:, 0]) > 0.0).all()
        np.testing.assert_allclose(found.energy, problem.energy(found.unknowns, LOADS))
        alone = [
            find_equilibria(problem, LOADS[n : n + 1], None if start is None else start[n : n + 1]) for n in range(5)
        ]
        np.testing.assert_array_equal(found.unknowns, np.concatenate([one.unknowns for one in alone]))
        np.testing.assert_array_equal(found.iterations, np.concatenate([one.iterations for one in alone]))


def test_a_saddle_is_no_equilibrium():
    problem, free = Wells(np.zeros((2, 2))), np.zeros((1, 2))
    ridge = np.array([[1.3, 0.0]])  # on the ridge between the wells of x_2, from where Newton's steps do not leave it
    assert newton(problem, ridge, free).failures == ["Newton ended in an unstable balance."]
    found = find_equilibria(problem, free, ridge)
    np.testing.assert_allclose(np.abs(found.unknowns), 1.0)


def test_a_body_that_runs_away_says_how_far_its_load_was_borne():
    problem = Wells()
    problem.limit = 1.5
    found = find_equilibria(problem, np.array([[0.2, 0.1], [40.0, 0.0]]))
    assert found.failures[0] == ""
    assert "no equilibrium at actuator values [40.0, 0.0]" in found.failures[1]
    assert np.isnan(found.unknowns[1]).all()
    share = float(found.failures[1].split("beyond ")[1].split(" %")[0]) / 100.0
    # x_1 = 1.5 is reached under a load of about 1.5^3 - 1.5 + 0.3 * 1.5 = 2.3: 6 % of 40.
    assert 0.03 < share < 0.07


def test_what_is_left_of_the_load_is_halved_where_it_is_too_much(monkeypatch):
    tried, reached, solve = [], [0.0], newton_module.newton

    def solve_near(problem, start, actuators, balanced=None):
        found, load = solve(problem, start, actuators), float(actuators[0, 0])
        tried.append(load)
        if load > 0.9 and reached[-1] < 0.85:
            found.failures[0] = "It is too far."
        else:
            reached.append(load)
        return found

    monkeypatch.setattr(newton_module, "newton", solve_near)
    assert find_equilibria(Wells(), np.array([[1.0, 0.5]])).found.all()
    assert tried == [1.0, 0.25, 0.75, 1.0, 0.875, 1.0]


def test_sensitivities_are_those_of_solves_beside_it():
    problem, step = Wells(), 1e-6
    centre = find_equilibria(problem, LOADS)
    found = equilibrium_sensitivities(problem, centre.unknowns, LOADS)
    for place, change in enumerate(step * np.eye(2)):
        ahead, behind = (find_equilibria(problem, LOADS + s * change, centre.unknowns).unknowns for s in (1, -1))
        np.testing.assert_allclose(found[:, :, place], (ahead - behind) / (2.0 * step), atol=1e-6)
    assert np.isnan(equilibrium_sensitivities(problem, np.zeros((1, 2)), np.zeros((1, 2)))).all()  # between the wells


@pytest.mark.parametrize("groups", [1, 4])
def test_factors_solve_and_their_pivots_count_negative_eigenvalues(groups):
    rng = np.random.default_rng(1)
    blocks = rng.normal(size=(6, groups, 5, 5)) + 2.0 * np.eye(5)
    blocks = blocks + blocks.swapaxes(2, 3)
    load = rng.normal(size=(6, groups * 5, 3))
    factor = BlockHessian(blocks).factorised()
    solution = factor.solve(load)
    np.testing.assert_allclose((blocks @ solution.reshape(6, groups, 5, 3)).reshape(load.shape), load, atol=1e-10)
    negative = (np.linalg.eigvalsh(blocks) < 0.0).sum(axis=(1, 2))
    assert negative.any()
    np.testing.assert_array_equal((factor.pivots < 0.0).sum(axis=1), negative)
    blocks[2, 0], blocks[3, 0] = 0.0, np.nan  # those of the other samples stay
    factor = BlockHessian(blocks).factorised()
    others = [0, 1, 4, 5]
    np.testing.assert_array_equal(factor.solve(load)[others], solution[others])
    assert np.isnan(factor.solve(load)[2:4, :5]).all()
    assert not (factor.pivots[2:4, :5] > 0.0).any()
    one = SparseHessian(csc_matrix(blocks[0, 0])).factorised()
    np.testing.assert_allclose(one.solve(load[:1, :5]), np.linalg.solve(blocks[0, 0], load[0, :5])[None])
    assert (one.pivots < 0.0).sum() == (np.linalg.eigvalsh(blocks[0, 0]) < 0.0).sum()
    assert not (SparseHessian(csc_matrix(np.zeros((2, 2)))).factorised().pivots > 0.0).any()
