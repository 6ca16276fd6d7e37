"""Trees of bounding boxes, shared by the searches over points and over triangles; numba runs them without the GIL.

Items are sorted along the widest axis and cut into equal parts, each part again along its own, until `leaf` of them are
left (a k-d tree); every node has four children, so that their boxes are measured together. Node i has the children
4i + 1 ... 4i + 4; nodes after the last inner one are the leaves.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from softform_core.arrays import Array

STACK = 64
"""Size of the stack of nodes; a level needs three more, so it is enough for 4^20 leaves."""

FAST = {"contract", "nsz"}
"""Compiler flags: fused operations may change the rounding; NaN and infinity stay what they are."""

_CUTS = 4
"""Levels of cutting by one sort, into 2^4 parts: one pass over the items does the work of four."""

_MOST_BINS = 2048


class BoxTree(NamedTuple):
    """Boxes over sorted items.

    Attributes:
        order: (N,) index of each item before it was put in order.
        centres: (3, N) of the items, in order.
        boxes: (inner nodes, 6, 4) low x, y, z and high x, y, z of the four children.
        leaf: Items in a leaf.
    """

    order: NDArray[np.int64]
    centres: Array
    boxes: Array
    leaf: int


def box_tree(low: Array, high: Array, most: int) -> BoxTree:
    """Build a tree of items between corners (N, 3), the same for points, with at most so many of them in a leaf."""
    levels = 1
    while most * 4**levels < len(low):
        levels += 1
    leaf = -(-len(low) // 4**levels)
    middle = low if low is high else 0.5 * (low + high)
    order, centres = _sorted_by_cuts(np.ascontiguousarray(middle.T), leaf, 2 * levels)
    boxes = np.empty(((4**levels - 1) // 3, 6, 4))
    if low is high:
        _fill_boxes(centres, centres, leaf, boxes)
    else:
        _fill_boxes(np.ascontiguousarray(low[order].T), np.ascontiguousarray(high[order].T), leaf, boxes)
    return BoxTree(order, centres, boxes, leaf)


def guesses(last: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """Return places to start `count` searches from, -1 where there is none.

    A solve asks for points that have moved a little: the last answers bound the search of any caller.
    """
    return last.copy() if len(last) == count else np.full(count, -1)


@njit(cache=True, nogil=True, fastmath=FAST)
def _extent(values):  # type: ignore[no-untyped-def]  # numba infers the types
    low = high = values[0]
    for value in values:
        low = value if value < low else low
        high = value if value > high else high
    return low, high


@njit(cache=True, nogil=True, fastmath=FAST)
def _sorted_by_cuts(points, leaf, cuts):  # type: ignore[no-untyped-def]  # numba infers the types
    """Order of points (3, N) in which 2^cuts leaves of equal size are compact, and the points in it.

    A part is sorted by counting, in bins along its widest axis. Where a bin lies on a cut its points fall on either
    side as they come: boxes overlap there by the width of a bin, which no search minds.
    """
    count = points.shape[1]
    here, there = points.copy(), np.empty_like(points)
    order, order_there = np.arange(count), np.empty(count, dtype=np.int64)
    bins, places = np.empty(count, dtype=np.int64), np.empty(_MOST_BINS + 1, dtype=np.int64)
    span = leaf << cuts
    while cuts > 0:
        for start in range(0, count, span):
            stop = min(start + span, count)
            axis, low, width = 0, 0.0, -1.0
            for candidate in range(3):
                least, most = _extent(here[candidate, start:stop])
                if most - least > width:
                    axis, low, width = candidate, least, most - least
            used = min(4 * (stop - start), _MOST_BINS)
            scale = (used - 1) / max(width, 1e-300)
            places[: used + 1] = 0
            for place in range(start, stop):
                bins[place] = np.int64((here[axis, place] - low) * scale)
                places[bins[place] + 1] += 1
            for each in range(used):
                places[each + 1] += places[each]
            for place in range(start, stop):
                target = start + places[bins[place]]
                places[bins[place]] += 1
                order_there[target] = order[place]
                for each in range(3):
                    there[each, target] = here[each, place]
        here, there, order, order_there = there, here, order_there, order
        step = min(_CUTS, cuts)
        span, cuts = span >> step, cuts - step
    return order, here


@njit(cache=True, nogil=True, fastmath=FAST)
def _fill_boxes(low, high, leaf, boxes):  # type: ignore[no-untyped-def]  # numba infers the types
    boxes[:, :3], boxes[:, 3:] = np.inf, -np.inf
    inner, count = len(boxes), low.shape[1]
    for first in range(0, count, leaf):
        node, stop = inner + first // leaf, min(first + leaf, count)
        parent, child = (node - 1) // 4, (node - 1) % 4
        for axis in range(3):
            boxes[parent, axis, child] = _extent(low[axis, first:stop])[0]
            boxes[parent, 3 + axis, child] = _extent(high[axis, first:stop])[1]
    for node in range(inner - 1, 0, -1):
        parent, child = (node - 1) // 4, (node - 1) % 4
        for axis in range(3):
            boxes[parent, axis, child] = _extent(boxes[node, axis])[0]
            boxes[parent, 3 + axis, child] = _extent(boxes[node, 3 + axis])[1]


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


@njit(cache=True, nogil=True, fastmath=FAST, inline="always")
def push_siblings(x, y, z, boxes, node, limit, stack, bound, distances):  # type: ignore[no-untyped-def]  # as above
    """Put the siblings of a node that are nearer than `limit` (squared) on an empty stack, in any order.

    Returns:
        How many there are.
    """
    parent, own, depth = (node - 1) // 4, (node - 1) % 4, 0
    box = boxes[parent]
    for child in range(4):
        dx = max(box[0, child] - x, x - box[3, child], 0.0)
        dy = max(box[1, child] - y, y - box[4, child], 0.0)
        dz = max(box[2, child] - z, z - box[5, child], 0.0)
        distances[child] = dx * dx + dy * dy + dz * dz
    distances[own] = np.inf
    if min(min(distances[0], distances[1]), min(distances[2], distances[3])) < limit:
        for child in range(4):
            if distances[child] < limit:
                bound[depth], stack[depth] = distances[child], 4 * parent + 1 + child
                depth += 1
    return depth


@njit(cache=True, nogil=True, fastmath=FAST, inline="always")
def push_children_within(x, y, z, boxes, node, limit, stack, depth):  # type: ignore[no-untyped-def]  # as above
    """Push children like `push_children`, in any order, for searches whose limit does not shrink."""
    box = boxes[node]
    for child in range(4):
        dx = max(box[0, child] - x, x - box[3, child], 0.0)
        dy = max(box[1, child] - y, y - box[4, child], 0.0)
        dz = max(box[2, child] - z, z - box[5, child], 0.0)
        if dx * dx + dy * dy + dz * dz < limit:
            stack[depth] = 4 * node + 1 + child
            depth += 1
    return depth
