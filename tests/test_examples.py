"""The examples that need no ROS do what they say: each is run as a user runs it, with few shapes."""

import json
from importlib import import_module, invalidate_caches
from pathlib import Path

import numpy as np
import pytest

from softform_core.robots import load_robot, read_robot
from softform_core.robots.body import body_class
from softform_core.shapes.random import random_target
from softform_core.shapes.write import write_ply
from softform_core.simulation.generate import generate
from softform_core.simulation.sampling import grid

EXAMPLES = Path(__file__).parents[1] / "examples"
SCRIPTS = sorted(EXAMPLES.glob("*.py"))

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(autouse=True)
def among_examples(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_an_example_is_short_and_has_a_test(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 40
    tests = "".join(test.read_text(encoding="utf-8") for test in Path(__file__).parent.glob("test_*.py"))
    assert f'example("{path.stem}")' in tests


def example(name):
    """The module of an example."""
    return import_module(name)


@pytest.mark.long
def test_a_first_model_is_learned_from_forty_shapes_and_solves(capsys):
    # Its mean is 6.3 mm off where it always says the mean shape.
    assert example("simulate_and_learn").main(epochs=200) < 2.5
    assert "40 of 40 shapes are simulated" in capsys.readouterr().out
    assert example("solve").main("first_try") < 4.0


def test_a_mesh_of_a_file_is_solved_for_with_the_model_that_ships(tmp_path):
    target = random_target(load_robot("membrane"), seed=11)
    write_ply(tmp_path / "target.ply", target, "mm")
    assert example("solve").main("-", str(tmp_path / "target.ply"), "mm") < 0.3


def test_a_body_of_ones_own_is_simulated(tmp_path, monkeypatch):
    info = tmp_path / "site" / "own_body-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: own-body\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[softform.bodies]\npiston = own_body:PistonBody\n")
    monkeypatch.syspath_prepend(str(info.parent))
    invalidate_caches()
    described = {
        "name": "piston",
        "title": "A piston",
        "source": "an example",
        "body": {"kind": "piston", "stroke": 0.1},
        "actuators": {"minimum": 0.0, "maximum": 1e5, "slew_rate": 1e5},
        "devices": [{"name": "board", "channels": [0]}],
        "frames": {"tip": {"segments": 4, "forward_kinematics": [4], "jacobian": [4]}},
    }
    robot = read_robot(described, "piston.yaml")
    assert isinstance(robot.body, example("own_body").PistonBody)
    store = generate(robot, grid(robot, 4), tmp_path / "piston.zarr", jobs=1, progress=False)
    pressures, tips, jacobians = store.converged()
    assert tips[:, 2] == pytest.approx(1e-6 * pressures[:, 0]) and tips[:, 2].max() == pytest.approx(0.1)
    assert np.ptp(jacobians[:, 2, 0]) == pytest.approx(0.0, abs=1e-15)
    body_class.cache_clear()


@pytest.mark.long
def test_the_notebook_closes_the_gap_to_reality():
    notebook = json.loads((EXAMPLES / "loop_without_ros.ipynb").read_text(encoding="utf-8"))
    assert notebook["nbformat"] == 4
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert len(cells) >= 5 and not any(cell["outputs"] for cell in cells)
    names = {"__name__": "notebook"}
    for number, cell in enumerate(cells, 1):
        exec(compile("".join(cell["source"]), f"loop_without_ros.ipynb, cell {number}", "exec"), names)
    alone, corrected = names["errors"].values()
    assert corrected < 1.0 and corrected < 0.5 * alone
