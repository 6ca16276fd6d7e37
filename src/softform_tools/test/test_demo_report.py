"""Figures of a demo's report that need no stack."""

import numpy as np
import pytest

from softform_core.forward.robot_pipeline import load_pipeline
from softform_core.robots import load_robot
from softform_core.shapes.shape import Shape
from softform_core.units import MM_PER_M
from softform_tools.demo_report import resting_errors, values_in_rows


@pytest.mark.parametrize("share", [1.0, 0.5])
def test_the_robot_at_rest_counts_only_where_the_target_is(share):
    """A level target 10 mm above a part of the robot is 10 mm from it, however much of the robot lies beside it."""
    robot = load_robot("membrane")
    x, y = np.meshgrid(*(np.linspace(-side / 2, side / 2, 30) for side in robot.extent))
    points = np.stack([x.ravel() * share, y.ravel(), np.full(x.size, 0.01)], axis=1)
    grid = np.arange(x.size).reshape(x.shape)
    a, b, c, d = (part.ravel() for part in (grid[:-1, :-1], grid[:-1, 1:], grid[1:, 1:], grid[1:, :-1]))
    target = Shape.from_mesh(points, np.concatenate([np.stack([a, b, c], 1), np.stack([a, c, d], 1)]))
    rest = resting_errors(robot, target)
    assert rest.mean == pytest.approx(0.01, abs=2e-4)
    assert len(rest.points) == pytest.approx(3600 * share, rel=0.05)


@pytest.mark.parametrize("name", ["mannequin", "compressible"])
def test_a_robot_that_stands_or_hangs_is_at_rest_where_it_is(name):
    robot = load_robot(name)
    at_rest = Shape.from_cloud(load_pipeline(robot, 2000).points(robot.rest_actuation) / MM_PER_M)
    assert resting_errors(robot, at_rest).mean < 1e-3  # two samplings of one surface


@pytest.mark.parametrize(
    ("name", "values", "rows"),
    [
        (
            "membrane",
            [1234.5, 0.0, 3000.0] * 3,
            "c1 1234  c2    0  c3 3000\nc4 1234  c5    0  c6 3000\nc7 1234  c8    0  c9 3000",
        ),
        (
            "mannequin",
            [3283.0] * 15,
            "\n".join("  ".join(f"{f'c{i}':<3} 3283" for i in range(n, n + 3)) for n in range(1, 16, 3)),
        ),
        ("tendon_rod", [0.0123456] * 4, "t1 0.01235  t2 0.01235  t3 0.01235\nt4 0.01235"),
    ],
)
def test_values_are_shown_with_their_names_in_the_robots_unit(name, values, rows):
    assert values_in_rows(load_robot(name), values) == rows
