"""Many rods at once by warp, on its processor back-end and on a GPU: the shapes and iterations of the single solver."""

from pathlib import Path

import numpy as np
import pytest

from softform_core.bodies.rod.batched import BatchedRods
from softform_core.bodies.rod.equilibrium import RodProblem, solve_equilibria
from softform_core.bodies.rod.model import build_rod
from softform_core.bodies.rod.warp_rods import WarpRods
from softform_core.robots import load_robot
from softform_core.robots.description import Material
from softform_core.simulation.generate import generate
from softform_core.simulation.sampling import grid

SPATIAL, PLANAR = load_robot("three_chamber"), load_robot("planar_fingers")
GENT = Material(law="gent", coefficients=[8e4, 12.0])
SOFT = Material(law="neo_hookean", coefficients=[5e4])
SECTION = SPATIAL.body.section
TWO_SECTIONS = SPATIAL.body.model_copy(
    update={"sections": 2, "elements": 8, "section": SECTION.model_copy(update={"taper": 0.8, "strain_limiter": 20.0})}
)

RODS = {
    "in space, Yeoh's": (SPATIAL.body, {}),
    "in a plane, weightless": (PLANAR.body, {}),
    "in a plane, hanging": (PLANAR.body, {"gravity": (0.0, -4.0, 0.0)}),
    "two sections, tapered, with a limiter, leaning, Gent's": (TWO_SECTIONS, {"material": GENT, "gravity": (4, 5, -7)}),
    "neo-Hookean, weightless": (SPATIAL.body, {"material": SOFT, "gravity": (0.0, 0.0, 0.0)}),
}


def rod(body, differences) -> RodProblem:
    return RodProblem(build_rod(body, **differences))


def pressures(problem: RodProblem, highest: float = 6e4) -> np.ndarray:
    drawn = np.random.default_rng(0).uniform(0.0, highest, (20, problem.rod.chambers))
    return np.vstack([np.zeros(problem.rod.chambers), drawn])


@pytest.mark.parametrize(("body", "differences"), RODS.values(), ids=RODS)
def test_many_at_once_have_the_shapes_and_iterations_of_the_single_solver(device: str, body, differences) -> None:
    problem = rod(body, differences)
    loads = pressures(problem, 2e4 if differences.get("material") == SOFT else 6e4)
    found, single = WarpRods(problem, device).solve(loads), solve_equilibria(problem, loads)
    assert found.converged.all() and np.ptp(single.tips, axis=0).max() > 0.01
    assert np.abs(problem.points(found.unknowns)[:, 0] - single.tips).max() < 1e-12  # 1e-6 m is asked for
    assert np.abs(problem.strains(found.unknowns) - single.strains).max() < 1e-8
    np.testing.assert_array_equal(found.iterations, single.iterations)


def test_what_has_no_equilibrium_has_none_here(device: str) -> None:
    problem = rod(SPATIAL.body, {"material": Material(law="neo_hookean", coefficients=[5e3])})
    loads = pressures(problem)[:6]
    found = BatchedRods(problem, 3, device).solve(loads, np.zeros((len(loads), 3, 3)))
    single = solve_equilibria(problem, loads)
    lost = np.array([bool(reason) for reason in single.failures])
    assert lost.any() and not lost.all()
    assert found.singly is not None and found.singly[lost].all()
    assert [bool(reason) for reason in found.failures] == lost.tolist()
    assert "no equilibrium" in found.failures[np.flatnonzero(lost)[0]]
    assert np.abs(found.outputs["tip"] - single.tips)[~lost].max() < 1e-9


def test_a_rod_that_buckles_is_left_to_the_single_solver(device: str) -> None:
    """Upright under its own weight a slender rod is straight and unstable; pressure tips it over."""
    problem = rod(SPATIAL.body.model_copy(update={"link_mass": 0.4}), {"material": SOFT})
    assert not problem.derivatives(problem.rest[None], problem.unloaded[None])[1].factorised().pivots.min() > 0.0
    loads = pressures(problem, 1e4)
    found = BatchedRods(problem, 3, device).solve(loads, np.zeros((len(loads), 3, 3)))
    single = solve_equilibria(problem, loads)
    assert found.singly is not None and found.singly.any()
    assert [bool(reason) for reason in found.failures] == [bool(reason) for reason in single.failures]
    there = np.array([not reason for reason in single.failures])
    assert np.abs(found.outputs["tip"] - single.tips)[there].max() < 1e-9


def test_a_store_holds_what_it_would_without_a_device(device: str, tmp_path: Path) -> None:
    sampling = grid(SPATIAL, 3)
    many = generate(SPATIAL, sampling, tmp_path / "device.zarr", device=device, progress=False)
    single = generate(SPATIAL, sampling, tmp_path / "single.zarr", jobs=1, progress=False)
    assert many.attributes["solvers"] == [f"many at once, {device}"] and many.solved_singly == []
    for ours, theirs in zip(many.converged(), single.converged(), strict=True):
        assert np.abs(ours - theirs).max() < 1e-12
