"""A controls engineer's hour: a node of plain rclpy, started as the client page says, streams to a measured shape."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from softform_core.robots import load_robot
from softform_core.shapes.random import random_target
from softform_core.units import MM_PER_M
from softform_tools.demo_report import resting_errors

SCRIPT = Path(__file__).parents[1] / "docs" / "examples" / "controller.py"

pytestmark = pytest.mark.timeout(180)


def run(*words, code=0):
    command = [sys.executable, "-m", "softform_core.cli.main", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=90)
    assert done.returncode == code, f"{words}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


def test_a_plain_node_streams_to_a_measured_shape_and_lets_go(stack, tmp_path):
    robot = load_robot("membrane")
    target = random_target(robot, seed=3)
    np.save(tmp_path / "points.npy", target.points)
    done = run("python", SCRIPT, tmp_path / "points.npy")
    said = done.stdout + done.stderr
    found = re.search(r"predicted ([\d.]+) mm, (\d+) commands, (\d+) rejected.*measured ([\d.]+) mm", said, re.DOTALL)
    assert found, said
    predicted, commands, rejected, measured = map(float, found.groups())
    at_rest = resting_errors(robot, target).mean * MM_PER_M
    assert predicted < 1.0 and commands > 200 and rejected < 5
    assert measured < 0.4 * at_rest and measured < 5.0  # the simulation alone plans: what is left is the gap
    assert "Released" in run("release").stdout
    assert "Nothing was held" in run("release").stdout


def test_without_its_points_it_says_what_python_says(tmp_path):
    assert "No such file" in run("python", SCRIPT, tmp_path / "absent.npy", code=1).stderr
