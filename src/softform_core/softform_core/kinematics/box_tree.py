"""Trees of bounding boxes, shared by the searches over points and over triangles; numba runs them without the GIL.

Items lie in Morton order, `leaf` of them in a leaf; every node has four children, so that their boxes are measured
together. Node i has the children 4i + 1 ... 4i + 4; nodes after the last inner one are the leaves.
"""

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

Array = NDArray[np.float64]

STACK = 64
"""Three more a level: enough for 4^20 leaves."""

FAST = {"contract", "nsz"}
"""Rounding may differ by fused operations; NaN and infinity stay what they are."""

_CELLS = 2.0**21 - 1.0


@dataclass(frozen=True)
class BoxTree:
    """Boxes over items in Morton order.

    Attributes:
        order: (N,) index of each item before it was put in order.
        boxes: (inner nodes, 6, 4) low x, y, z and high x, y, z of the four children.
        leaf: Items in a leaf.
    """

    order: NDArray[np.int64]
    boxes: Array
    leaf: int


def box_tree(low: Array, high: Array, most: int) -> BoxTree:
    """Build a tree over items, finite boxes low ... high, (N, 3) each, N > 0, with at most `most` items in a leaf."""
    order = np.argsort(_morton_codes(0.5 * (low + high)), kind="stable")
    levels = 1
    while most * 4**levels < len(low):
        levels += 1
    leaf = -(-len(low) // 4**levels)
    boxes = np.empty(((4**levels - 1) // 3, 6, 4))
    _fill_boxes(low, high, order, leaf, boxes)
    return BoxTree(order, boxes, leaf)


@njit(cache=True, nogil=True)
def _every_third_bit(value):  # type: ignore[no-untyped-def]  # numba infers the types
    value = (value | (value << 32)) & 0x1F00000000FFFF
    value = (value | (value << 16)) & 0x1F0000FF0000FF
    value = (value | (value << 8)) & 0x100F00F00F00F00F
    value = (value | (value << 4)) & 0x10C30C30C30C30C3
    return (value | (value << 2)) & 0x1249249249249249


@njit(cache=True, nogil=True)
def _morton_codes(points):  # type: ignore[no-untyped-def]  # numba infers the types
    """Place of each point (N, 3) on a curve that fills space, (N,)."""
    low, high = points[0].copy(), points[0].copy()
    for point in range(len(points)):
        for axis in range(3):
            low[axis] = min(low[axis], points[point, axis])
            high[axis] = max(high[axis], points[point, axis])
    cells = _CELLS / max((high - low).max(), 1e-300)
    codes = np.zeros(len(points), dtype=np.int64)
    for point in range(len(points)):
        for axis in range(3):
            codes[point] |= _every_third_bit(np.int64((points[point, axis] - low[axis]) * cells)) << axis
    return codes


@njit(cache=True, nogil=True)
def _fill_boxes(low, high, order, leaf, boxes):  # type: ignore[no-untyped-def]  # numba infers the types
    boxes[:, :3], boxes[:, 3:] = np.inf, -np.inf
    inner = len(boxes)
    for place in range(len(order)):
        node = inner + place // leaf
        parent, child = (node - 1) // 4, (node - 1) % 4
        for axis in range(3):
            boxes[parent, axis, child] = min(boxes[parent, axis, child], low[order[place], axis])
            boxes[parent, 3 + axis, child] = max(boxes[parent, 3 + axis, child], high[order[place], axis])
    for node in range(inner - 1, 0, -1):
        parent, child = (node - 1) // 4, (node - 1) % 4
        for axis in range(3):
            boxes[parent, axis, child] = boxes[node, axis].min()
            boxes[parent, 3 + axis, child] = boxes[node, 3 + axis].max()


@njit(cache=True, nogil=True, fastmath=FAST, inline="always")
def push_children(x, y, z, boxes, node, limit, stack, bound, depth):  # type: ignore[no-untyped-def]  # as above
    """Put the children of an inner node that are nearer than `limit` (squared) on the stack, the nearest on top.

    Returns:
        The new depth of the stack.
    """
    box = boxes[node]
    base = depth
    for child in range(4):
        dx = max(box[0, child] - x, x - box[3, child], 0.0)
        dy = max(box[1, child] - y, y - box[4, child], 0.0)
        dz = max(box[2, child] - z, z - box[5, child], 0.0)
        distance = dx * dx + dy * dy + dz * dz
        if distance < limit:
            place = depth
            while place > base and bound[place - 1] < distance:
                bound[place], stack[place] = bound[place - 1], stack[place - 1]
                place -= 1
            bound[place], stack[place] = distance, 4 * node + 1 + child
            depth += 1
    return depth
