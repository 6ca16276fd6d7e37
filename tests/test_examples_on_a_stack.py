"""The examples that command a robot do what they say, on a running stack."""

import re
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from softform_core.robots import load_robot
from softform_core.shapes.random import random_target
from softform_core.units import MM_PER_M
from softform_tools.demo_report import resting_errors

EXAMPLES = Path(__file__).parents[1] / "examples"

pytestmark = pytest.mark.timeout(180)


@pytest.fixture(autouse=True)
def among_examples(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))


def example(name):
    """The module of an example."""
    return import_module(name)


def test_a_shape_is_reached_and_measured(stack, capsys):
    robot = load_robot("membrane")
    at_rest = resting_errors(robot, random_target(robot, seed=3)).mean * MM_PER_M
    measured = example("reach").main()
    assert measured < 0.4 * at_rest and measured < 5.0  # the simulation alone plans: what is left is the gap
    assert "are predicted; reachable: True" in capsys.readouterr().out


def test_targets_are_streamed(stack, capsys):
    assert example("stream").main(4.0) < 1.5
    targets, commands = map(int, re.search(r"(\d+) targets, (\d+) commands", capsys.readouterr().out).groups())
    assert targets > 150 and commands > 100


def test_a_table_is_followed_line_by_line(stack, tmp_path):
    lines = np.column_stack([[3.0, 4.5, 6.0], np.outer([0.2, 0.6, 0.3], np.ones(9))])
    np.savetxt(tmp_path / "table.csv", lines, delimiter=",", header="time s, chambers kPa")
    assert abs(example("follow_table").main(str(tmp_path / "table.csv"))) < 1.0


def test_what_cannot_be_followed_is_told(stack, tmp_path, monkeypatch):
    np.savetxt(tmp_path / "table.csv", np.full((2, 10), 900.0) * [[1.0], [2.0]], delimiter=",")
    module = example("follow_table")
    with pytest.raises(module.GoalFailedError, match="outside"):
        module.main(str(tmp_path / "table.csv"))
    assert "follow_table" in sys.modules
