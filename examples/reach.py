# SPDX-License-Identifier: Apache-2.0
"""Bring the robot of a running stack to a shape, and see by a scan how close it came.

Start a stack first (`./softform launch`), then `./softform python examples/reach.py [MESH UNIT]`.
"""

import sys
from pathlib import Path

from softform_client.client import GoalFailedError, Mode, ShapeClient
from softform_core.shapes.random import random_target
from softform_core.shapes.read import read_shape


def main(mesh: str = "", unit: str = "mm") -> float:
    """Return the mean distance that the scan has from the target, mm."""
    with ShapeClient("/softform", timeout=30.0) as client:
        target = read_shape(Path(mesh), unit=unit) if mesh else random_target(client.robot(), seed=3)
        plan = client.reach(target)  # moves nothing
        print(f"{1e3 * plan.solve.mean_error:.2f} mm are predicted; reachable: {plan.solve.reachable}")
        result = client.reach(target, Mode.PLAN_MOVE_AND_VERIFY)
    error = 1e3 * float(result.measured.mean_error)
    print(f"{error:.2f} mm are measured, at {[round(value) for value in result.actuators.value]} Pa.")
    return error


if __name__ == "__main__":
    try:
        main(*sys.argv[1:3])
    except GoalFailedError as failure:  # says what is wrong, and what to do
        sys.exit(f"[{failure.code}] {failure}")
