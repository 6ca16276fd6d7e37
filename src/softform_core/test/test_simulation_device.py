"""Many membranes at once by warp, on its processor back-end and on a GPU: the shapes of the single solver."""

import sys
from pathlib import Path

import numpy as np
import pytest

from softform_core.bodies.membrane import warp_membranes
from softform_core.bodies.membrane.equilibrium import MembraneProblem, taut_sheet
from softform_core.bodies.membrane.simulator import RealMembrane, build_membrane
from softform_core.bodies.membrane.warp_membranes import BatchedMembranes, WarpMembranes
from softform_core.errors import SoftformError
from softform_core.robots import load_robot
from softform_core.robots.description import Material
from softform_core.simulation.generate import generate
from softform_core.simulation.newton import find_equilibria
from softform_core.simulation.sampling import inflations
from softform_core.simulation.simulated_body import equilibrium_points

ROBOT = load_robot("membrane")
FULL = ROBOT.actuation_max
PRESSURES = np.array([FULL, 0.0 * FULL, FULL * [1, 0, 0, 0, 0, 0, 0, 0, 0], FULL * np.linspace(0.1, 0.9, 9)])

SHEETS = {
    "nominal": {},
    "slack neo-Hookean, wrinkled": {
        "prestretch": 1.0, "material": Material(law="neo_hookean", coefficients=[3.2e5]),
    },
    "Gent's, triangles, leaning, elastic clamp": {
        "element": "triangle", "gravity": (1.0, 0.5, -9.81), "clamp_stiffness": 2e5,
        "material": Material(law="gent", coefficients=[3.2e5, 10.0]),
    },
}  # fmt: skip


def problem(**differences) -> MembraneProblem:
    return MembraneProblem(build_membrane(ROBOT.body, RealMembrane(cells=9, **differences)))


@pytest.mark.long
@pytest.mark.parametrize("differences", SHEETS.values(), ids=SHEETS)
def test_many_at_once_have_the_shapes_of_the_single_solver(device: str, differences: dict):
    sheet = problem(**differences)
    solved = WarpMembranes(sheet, device).solve(PRESSURES)
    assert solved.converged.all() and solved.positions[0, :, 2].max() > 0.02
    assert np.abs(solved.positions - equilibrium_points(sheet, PRESSURES)).max() < 1e-8  # 1e-6 m is asked for


def test_what_needs_a_line_search_is_left_to_the_single_solver(device: str):
    sheet = problem(material=Material(law="gent", coefficients=[1e5, 0.6]))
    solved = BatchedMembranes(sheet, device).solve(PRESSURES, np.zeros((4, 9, 9)))
    single = find_equilibria(sheet, PRESSURES)
    assert solved.singly.tolist() == [True, False, False, True]
    assert solved.failures == [""] * 4 and solved.iterations[0] == single.iterations[0]
    assert np.abs(solved.outputs["vertices"] - sheet.points(single.unknowns)).max() < 1e-8


def test_what_has_no_equilibrium_has_none_here(device: str):
    sheet = problem(material=Material(law="neo_hookean", coefficients=[5e4]))
    assert WarpMembranes(sheet, device).solve(PRESSURES).converged.tolist() == [False, True, False, False]
    failures = BatchedMembranes(sheet, device).solve(PRESSURES[:2], np.zeros((2, 9, 9))).failures
    assert "no equilibrium" in failures[0] and not failures[1]


def test_an_unstable_balance_is_given_up(device: str, monkeypatch: pytest.MonkeyPatch):
    """A neo-Hookean sheet below its limit pressure has two balances; the higher one, 0.40 m, is no minimum."""
    one_chamber = ROBOT.body.model_copy(update={"rows": 1, "columns": 1})
    soft = Material(law="neo_hookean", coefficients=[1e5])
    solver = WarpMembranes(
        MembraneProblem(build_membrane(one_chamber, RealMembrane(cells=6, material=soft, prestretch=1.0))), device
    )
    assert solver.solve(np.array([[2000.0]])).converged.all()

    def far_above(membrane, pressures):
        load, tension = taut_sheet(membrane, pressures)
        return 8.0 * load, tension

    monkeypatch.setattr(warp_membranes, "taut_sheet", far_above)
    assert not solver.solve(np.array([[2000.0]])).converged.any()


def test_a_store_holds_what_it_would_without_a_device_and_says_who_solved_it(device: str, tmp_path: Path):
    robot = ROBOT.model_copy(update={"body": ROBOT.body.model_copy(update={"cells": 9})})
    few, more = inflations(robot, 4), inflations(robot, 6)
    for sampling in (few, more):
        single = generate(robot, sampling, tmp_path / "single.zarr", jobs=1, progress=False)
    store = generate(robot, few, tmp_path / "device.zarr", device=device, progress=False)
    assert store.attributes["solvers"] == [f"many at once, {device}"] and store.solved_singly == []
    grown = generate(robot, more, tmp_path / "device.zarr", jobs=1, progress=False)
    assert grown.attributes["solvers"] == [f"many at once, {device}", "single"]
    assert single.attributes["solvers"] == ["single"]
    for ours, theirs in zip(grown.converged(), single.converged(), strict=True):
        assert np.abs(ours - theirs).max() < 1e-8


def test_a_device_that_is_not_there_is_named(device: str):
    with pytest.raises(SoftformError, match=f"no device 'cuda:99' here; there is .*{device}"):
        WarpMembranes(problem(), "cuda:99")


def test_without_warp_the_command_says_what_to_install(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "warp", None)
    with pytest.raises(SoftformError, match="Warp cannot be imported") as caught:
        ROBOT.body.batched("cpu")
    assert "requirements-warp.txt" in caught.value.next_step


def test_a_device_stands_alone_and_takes_membranes_alone(tmp_path: Path):
    with pytest.raises(SoftformError, match="--device excludes --jobs and --cluster"):
        generate(ROBOT, inflations(ROBOT, 2), tmp_path / "none.zarr", device="cpu", jobs=2)
    with pytest.raises(SoftformError, match="Bodies of kind 'rod' are not simulated on a device"):
        load_robot("three_chamber").body.batched("cpu")
