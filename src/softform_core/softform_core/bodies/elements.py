"""Quadratic elements: the wedge of 18 nodes, the tetrahedron of 10, faces of 6 and 9 nodes, and their quadrature.

A wedge is a triangle with quadratic shape functions times a line with quadratic ones; its node 6 l + n is node n of the
triangle (corners 0, 1, 2, then the middles of 01, 12, 20) on level l = 0, 1, 2 of the line. A tetrahedron has corners
0, 1, 2, 3, then the middles of 01, 12, 20, 03, 13, 23.
"""

from typing import NamedTuple

import numpy as np

from softform_core.arrays import Array


class Quadrature(NamedTuple):
    """Points (q, d) and weights (q,) on a reference element, with shape functions (q, n) and derivatives (q, n, d)."""

    points: Array
    weights: Array
    shapes: Array
    derivatives: Array


_TRIANGLE_6 = (0.445948490915965, 0.223381589678011), (0.091576213509771, 0.109951743655322)
"""Dunavant's rule of degree 4: the coordinate that two corners share, and the weight over the triangle's area."""


_TETRAHEDRON_4 = 0.138196601125011
"""The coordinate that three corners share in the rule of 4 points (exact to degree 2)."""

TETRAHEDRON_EDGES = np.array([(0, 1), (1, 2), (2, 0), (0, 3), (1, 3), (2, 3)])
"""Corners between which each of the nodes 4 to 9 of a tetrahedron lies."""

TETRAHEDRON_SIDES = np.array([(0, 2, 1, 6, 5, 4), (0, 1, 3, 4, 8, 7), (1, 2, 3, 5, 9, 8), (2, 0, 3, 6, 7, 9)])
"""Nodes of its sides as triangles of 6 nodes, outwards."""

IN_FOUR = np.array([[0, 3, 5], [3, 1, 4], [5, 4, 2], [3, 4, 5]])
"""Flat triangles over a triangle of 6 nodes."""

TURNED_TRIANGLE = (0, 2, 1, 5, 4, 3)
"""Order in which the nodes of a triangle make the same one that looks to the other side."""


def triangle_shapes(points: Array) -> tuple[Array, Array]:
    """Quadratic shape functions (q, 6) at (q, 2) of the unit triangle, and derivatives (q, 6, 2)."""
    x, y = points.T
    corner = np.stack([1.0 - x - y, x, y], axis=1)
    slope = np.array([[-1.0, -1.0], [1.0, 0.0], [0.0, 1.0]])
    following = np.roll(corner, -1, axis=1)
    values = np.concatenate([corner * (2.0 * corner - 1.0), 4.0 * corner * following], axis=1)
    at_corners = (4.0 * corner - 1.0)[:, :, None] * slope
    at_middles = 4.0 * (following[:, :, None] * slope + corner[:, :, None] * np.roll(slope, -1, axis=0))
    return values, np.concatenate([at_corners, at_middles], axis=1)


def line_shapes(points: Array) -> tuple[Array, Array]:
    """Quadratic shape functions (q, 3) at (q,) in -1 ... 1, nodes at -1, 0, 1, and derivatives (q, 3)."""
    z = np.asarray(points)
    values = np.stack([0.5 * z * (z - 1.0), 1.0 - z**2, 0.5 * z * (z + 1.0)], axis=1)
    return values, np.stack([z - 0.5, -2.0 * z, z + 0.5], axis=1)


def triangle_rule(count: int) -> tuple[Array, Array]:
    """Points (q, 2) and weights (q,) of 3 points (exact to degree 2) or 6 (degree 4)."""
    if count == 3:
        return np.array([[1.0, 1.0], [4.0, 1.0], [1.0, 4.0]]) / 6.0, np.full(3, 1.0 / 6.0)
    points = [[(a, a), (1.0 - 2.0 * a, a), (a, 1.0 - 2.0 * a)] for a, _ in _TRIANGLE_6]
    return np.array(points).reshape(-1, 2), np.repeat([0.5 * weight for _, weight in _TRIANGLE_6], 3)


def triangle(count: int) -> Quadrature:
    """Triangle of 6 nodes."""
    points, weights = triangle_rule(count)
    return Quadrature(points, weights, *triangle_shapes(points))


def wedge_shapes(points: Array) -> tuple[Array, Array]:
    """Shape functions (q, 18) of a wedge at (q, 3), in the unit triangle times -1 ... 1; derivatives (q, 18, 3)."""
    (shape, slope), (rise, climb) = triangle_shapes(points[:, :2]), line_shapes(points[:, 2])
    shapes = np.einsum("qn,ql->qln", shape, rise)
    in_triangle = np.einsum("qnd,ql->qlnd", slope, rise)
    upwards = np.einsum("qn,ql->qln", shape, climb)[..., None]
    derivatives = np.concatenate([in_triangle, upwards], axis=-1)
    return shapes.reshape(-1, 18), derivatives.reshape(-1, 18, 3)


def wedge(in_plane: int, along: int) -> Quadrature:
    """Wedge of 18 nodes with `in_plane` (3, 6) times `along` quadrature points."""
    flat, flat_weights = triangle_rule(in_plane)
    line, line_weights = np.polynomial.legendre.leggauss(along)
    points = np.concatenate([flat.repeat(along, axis=0), np.tile(line, in_plane)[:, None]], axis=1)
    return Quadrature(points, np.outer(flat_weights, line_weights).ravel(), *wedge_shapes(points))


def tetrahedron_shapes(points: Array) -> tuple[Array, Array]:
    """Shape functions (q, 10) of a tetrahedron at (q, 3) of the unit one, and derivatives (q, 10, 3)."""
    corner = np.column_stack([1.0 - points.sum(axis=1), points])
    slope = np.concatenate([-np.ones((1, 3)), np.eye(3)])
    one, other = TETRAHEDRON_EDGES.T
    shapes = np.concatenate([corner * (2.0 * corner - 1.0), 4.0 * corner[:, one] * corner[:, other]], axis=1)
    at_corners = (4.0 * corner - 1.0)[:, :, None] * slope
    at_middles = 4.0 * (corner[:, other, None] * slope[one] + corner[:, one, None] * slope[other])
    return shapes, np.concatenate([at_corners, at_middles], axis=1)


def tetrahedron(count: int) -> Quadrature:
    """Tetrahedron of 10 nodes with 1 quadrature point (exact to degree 1) or 4 (degree 2)."""
    if count == 1:
        points = np.full((1, 3), 0.25)
    else:
        points = _TETRAHEDRON_4 + (1.0 - 4.0 * _TETRAHEDRON_4) * np.concatenate([np.zeros((1, 3)), np.eye(3)])
    return Quadrature(points, np.full(count, 1.0 / 6.0 / count), *tetrahedron_shapes(points))


def volume_element(nodes: int) -> tuple[Quadrature, Quadrature]:
    """Rules of an element of 18 nodes (a wedge) or 10 (a tetrahedron): for shape, and with fewer points for volume."""
    return (wedge(6, 3), wedge(3, 2)) if nodes == 18 else (tetrahedron(4), tetrahedron(1))


def rectangle() -> Quadrature:
    """Rectangle of 9 nodes, node 3 l + n is node n along the first axis on level l of the second, 3 x 3 points."""
    line, line_weights = np.polynomial.legendre.leggauss(3)
    shape, slope = line_shapes(line)
    shapes = np.einsum("pn,ql->pqln", shape, shape).reshape(9, 9)
    first = np.einsum("pn,ql->pqln", slope, shape).reshape(9, 9)
    second = np.einsum("pn,ql->pqln", shape, slope).reshape(9, 9)
    points = np.stack(np.meshgrid(line, line, indexing="ij"), axis=-1).reshape(-1, 2)
    return Quadrature(points, np.outer(line_weights, line_weights).ravel(), shapes, np.stack([first, second], axis=-1))
