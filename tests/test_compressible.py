"""The compressible manipulator on the rig: two boards pull vacuum and push air, and vent together."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from driver_operator import Operator, operated

from softform_core.robots import load_robot

ROBOT = load_robot("compressible")
VACUUM = ROBOT.actuator_min
MIXED = np.array([10e3, -40e3, 0.0, -20e3, 5e3, -1e3, 10e3, 10e3, -40e3])
NEAR, VENTED = 600.0, 600.0  # Pa; the sensors of the default reality are off by up to 160 Pa and 3 %
PATIENCE = 30.0  # s


def is_at(operator: Operator, goal: np.ndarray) -> bool:
    near = NEAR + 0.03 * np.abs(goal)
    measured, true = (np.abs(pressures - goal) for pressures in (operator.measured, operator.true_pressures))
    return bool((measured < NEAR).all() and (true < near).all())


@pytest.fixture
def stack(tmp_path: Path) -> Iterator[Operator]:
    with operated("compressible", "compressible", tmp_path) as operator:
        yield operator


@pytest.mark.long
def test_full_vacuum_and_mixed_signs_are_reached_slowly_and_stop_vents_all(stack: Operator) -> None:
    stack.take_over()
    took = stack.wait_until(lambda: is_at(stack, VACUUM), "full vacuum", PATIENCE, VACUUM)
    assert took > 0.9 * np.abs(VACUUM).max() / ROBOT.slew_rate.max(), "at the slew rate, no faster"
    stack.wait_until(lambda: is_at(stack, MIXED), "pressures of both signs", PATIENCE, MIXED)
    stack.stop()
    stack.wait_until(lambda: np.abs(stack.true_pressures).max() < VENTED, "all to be vented", PATIENCE)
