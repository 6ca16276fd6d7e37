"""What no model without history can know: the spread of true shapes at one commanded actuation over its histories."""

import math

import numpy as np

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.robots import Robot
from softform_core.shapes.target import TargetShape
from softform_core.simulation.newton import find_equilibria
from softform_core.units import MM_PER_M
from softform_rig.gap import random_actuations
from softform_rig.live_body import HELD_S, Memory
from softform_rig.reality import Reality, true_values
from softform_studies.sim_to_real.judge import Errors

HISTORIES = 6
_PAST = 4
"""Random actuations before the one looked at, each held as long; what was before them is forgotten."""


def memory_floor(robot: Robot, reality: Reality, actuation: Array, seed: int) -> Errors:
    """Errors of a model that knows the mean of the true shapes at each actuation over its histories.

    A point's error is the share of its distance from the mean shape that is along the mean shape's normal, times
    sqrt(h / (h - 1)), as the mean is of these h shapes themselves.

    Args:
        robot: The robot.
        reality: Reality of the robot.
        actuation: (n, m) commanded.
        seed: Seed of the histories, which are random actuations in the working range.

    Returns:
        Errors (n * `HISTORIES`, V) mm; zeros of a reality without hysteresis and creep.

    Raises:
        SoftformError: If the reality has no shape at an actuation.
    """
    body = robot.body.real_simulator(reality.body)
    felt = np.array([_felt(robot, reality, each, seed + place) for place, each in enumerate(actuation)])
    if not np.ptp(felt, axis=1).any():
        return Errors(np.zeros((len(actuation) * HISTORIES, 1)))
    distances = []
    for of_one in felt:
        start = find_equilibria(body, of_one[:1]).unknowns
        found = find_equilibria(body, of_one, np.repeat(start, HISTORIES, axis=0))
        if reason := next(filter(None, found.failures), ""):
            raise SoftformError(f"Reality '{reality.name}' has no shape: {reason}", "Soften its differences.")
        shapes = MM_PER_M * body.points(found.unknowns)
        mean = shapes.mean(axis=0)
        normals = TargetShape.from_mesh(mean, body.faces).normals
        assert normals is not None
        distances.append(np.abs(np.einsum("hvx,vx->hv", shapes - mean, normals)))
    return Errors(math.sqrt(HISTORIES / (HISTORIES - 1)) * np.concatenate(distances))


def _felt(robot: Robot, reality: Reality, actuation: Array, seed: int) -> Array:
    """Values (`HISTORIES`, k) that the actuators are felt to have at an actuation (m,), after different ones."""
    felt = []
    for past in random_actuations(robot, HISTORIES * _PAST, seed).reshape(HISTORIES, _PAST, -1):
        memory = Memory(reality, len(robot.actuators))
        for commanded in (*past, actuation):
            last = memory.feel(true_values(reality, robot, robot.actuators_of(commanded)), HELD_S)
        felt.append(last)
    return np.array(felt)
