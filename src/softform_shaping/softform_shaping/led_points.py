"""Points of the object that somebody leads: which poses of the grippers bring them there, and the shape that is then.

A target that an operator draws must be one that the grippers can make. So nothing pulls at the points themselves: of
all shapes in balance between the grippers, each the one of least elastic energy for its poses (Eqs. 3-5), the one is
looked for that has the points where they are wanted, and whose grippers leave where they were the least.
"""

import time
from contextlib import suppress

import numpy as np
from scipy.sparse import csr_matrix

from softform_core.arrays import Array
from softform_core.simulation.newton import NoEquilibriumError
from softform_shaping.model import HeldModel, HeldShape
from softform_shaping.poses import limited, moved, pose_variation

__all__ = ["led_shape"]

_ROUNDS, _SHIFT, _TURN = 16, 0.012, 0.12
"""Steps at most, and how far one goes, m and rad."""
_SHORTER, _SHORTEST = 0.25, 0.05
"""What a step that leads nowhere is shortened by, and the share of it from which no shorter one is tried."""
_SECONDS = 2.0
"""Processor time from which no further step is begun: who drags a point waits for the answer."""
_TURNED = 0.15
"""Of the size, which a turn of a gripper by 1 rad counts as: it rather turns than moves, so that the object bends."""
_LEAVING = 1e-3
"""Of a square of what a gripper moves by over one of what a point is off by."""
_ENOUGH = 1e-4, 1e-3
"""Step in m and rad below which it has been found."""


def led_shape(
    model: HeldModel, weights: csr_matrix, places: Array, importance: Array, base: Array, start: HeldShape
) -> HeldShape:
    """The shape between grippers that leave their poses `base` as little as leads points to places.

    Args:
        model: Of the object.
        weights: (B, V) of the nodes in each point.
        places: (B, 3) m, where the points are wanted; they come as near as the grippers can lead them.
        importance: (B,) of each point over the others.
        base: (12,) poses of the grippers.
        start: A shape to begin at, such as the one found before.

    Raises:
        NoEquilibriumError: If there is no shape at `base`, and none to begin at.
    """
    rooted = np.repeat(np.sqrt(importance / importance.mean()), 3)
    costs = np.tile(np.repeat([1.0, _TURNED * model.size], 3), 2) * np.sqrt(_LEAVING)

    def residual(shape: HeldShape) -> Array:
        off = rooted * (places - weights @ shape.nodes).ravel()
        return np.concatenate([off, -costs * pose_variation(shape.poses, base)])

    here, share, begun = start, 1.0, time.thread_time()
    left = residual(here)
    for _ in range(_ROUNDS):
        if share < _SHORTEST or time.thread_time() - begun > _SECONDS:
            break
        nodes = model.sensitivity(here)
        led = np.stack([weights @ nodes[:, axis] for axis in range(3)], axis=1).reshape(-1, 12)
        rows = np.concatenate([rooted[:, None] * led, np.diag(costs)])
        step = limited(np.linalg.lstsq(rows, left, rcond=None)[0], share * _SHIFT, share * _TURN)
        sizes = np.linalg.norm(step.reshape(2, 2, 3), axis=2).max(axis=0)
        if sizes[0] < _ENOUGH[0] and sizes[1] < _ENOUGH[1]:
            break
        with suppress(NoEquilibriumError):
            found = model.shape(moved(here.poses, step), here, finest=1)
            now = residual(found)
            if now @ now < left @ left:
                here, left, share = found, now, min(1.0, 2.0 * share)
                continue
        share *= _SHORTER
    return here
