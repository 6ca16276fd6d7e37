# SPDX-License-Identifier: Apache-2.0
"""Lead the robot of a running stack along a table: a time from now in s, then a value in kPa of each chamber.

Start a stack first (`./softform launch`), then `./softform python examples/follow_table.py TABLE.csv`. Without a table
it ramps all chambers up to 1 kPa and back.
"""

import sys

import numpy as np

from softform_client.client import ActuatorPath, GoalFailedError, ShapeClient


def main(table: str = "") -> float:
    """Return how late the last line was passed, s."""
    with ShapeClient("/softform", timeout=30.0) as client:
        chambers = len(client.robot().actuators)
        if table:
            lines = np.loadtxt(table, delimiter=",", comments="#", ndmin=2)
        else:
            ramp = np.array([0.0, 0.5, 1.0, 0.5, 0.0])
            lines = np.column_stack([2.0 * np.arange(1, len(ramp) + 1), np.tile(ramp[:, None], chambers)])
        times, values = lines[:, 0], 1e3 * lines[:, 1:]
        done = client.follow(ActuatorPath(values), times=times, on_feedback=lambda at: print(at.stage, at.waypoint))
    late = float(done.times[-1] - times[-1])
    print(f"{len(values)} lines in {done.times[-1]:.2f} s, the last {late:.2f} s late")
    return late


if __name__ == "__main__":
    try:
        main(*sys.argv[1:2])
    except GoalFailedError as failure:  # says what is wrong, and what to do
        sys.exit(f"[{failure.code}] {failure}")
