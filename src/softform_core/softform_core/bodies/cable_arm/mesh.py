"""The mesh of an arm: linear tetrahedra between equal layers of few nodes, and its cables' points on the layers.

A layer is a disc of rings, of 1, 6, 12, ... nodes. A prism over one of its triangles is three tetrahedra, cut by an
order of its corners that alternates around each ring and from layer to layer: the mesh is its own image when it is
turned by a third, and has no hand by which it would twist as it bends.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.bodies.cable_arm.description import CableArmBody
from softform_core.errors import SoftformError


class ArmMesh(NamedTuple):
    """An arm of n + 1 layers of w nodes and n layers of elements; the first layer of nodes is held. SI units.

    Attributes:
        nodes: ((n + 1) w, 3) m, layer by layer; the first of each is on the axis, its last ring on the outside.
        width: Number w.
        elements: (E, 4) tetrahedra, layer by layer.
        layer: (E,) layer of each.
        plates: (n,) whether a layer is an anchor plate.
        faces: (F, 3) over the outer nodes of all layers, outwards.
        outside: (P,) outer nodes.
    """

    nodes: Array
    width: int
    elements: NDArray[np.int32]
    layer: NDArray[np.int64]
    plates: NDArray[np.bool_]
    faces: NDArray[np.int32]
    outside: NDArray[np.int64]


class CablePoints(NamedTuple):
    """S pieces of all cables, each from one layer to the next: d_s = sum of weights times nodes.

    Attributes:
        nodes: (S, 6) three of the layer where it begins, and three of the next one.
        weights: (S, 6) the former below 0, the latter above.
        cable: (S,) cable of each.
        rest_length: (k,) m of each cable.
    """

    nodes: NDArray[np.int64]
    weights: Array
    cable: NDArray[np.int64]
    rest_length: Array

    def cut(self, number: NDArray[np.int64], nodes: Array) -> "CablePoints":
        """The same pieces as other cables: `number` (S,) of each; `nodes` (V, 3) m at rest."""
        pieces = np.einsum("sa,sai->si", self.weights, nodes[self.nodes])
        rest_length = np.bincount(number, np.linalg.norm(pieces, axis=1))
        return CablePoints(self.nodes, self.weights, number, np.asarray(rest_length, dtype=np.float64))


def mesh_arm(body: CableArmBody) -> ArmMesh:
    """The mesh of a description."""
    disc, triangles, rank = _disc(body.rings)
    width = len(disc)
    steps = np.concatenate([np.full(section.layers, section.length / section.layers) for section in body.sections])
    heights = np.concatenate([[0.0], np.cumsum(steps)])
    nodes = np.concatenate([np.column_stack([body.radius * disc, np.full(width, height)]) for height in heights])
    ordered = np.take_along_axis(triangles, np.argsort(rank[triangles], axis=1), axis=1)
    a, b, c = ordered.T
    prism = [(a, b, c, c + width), (a, b, b + width, c + width), (a, a + width, b + width, c + width)]
    upright = np.stack([np.stack(corners, axis=1) for corners in prism], axis=1).reshape(-1, 4)
    mirrored = np.where(upright < width, upright + width, upright - width)
    count = len(steps)
    elements = np.concatenate([(mirrored if layer % 2 else upright) + layer * width for layer in range(count)])
    edges = nodes[elements[:, 1:]] - nodes[elements[:, :1]]
    turned = np.linalg.det(edges) < 0.0
    elements[turned] = elements[turned][:, [0, 2, 1, 3]]
    plates = np.zeros(count, dtype=bool)
    ends = np.cumsum([section.layers for section in body.sections])
    plates[[end - 1 for end, section in zip(ends, body.sections, strict=True) if section.cables]] = True
    around = 6 * body.rings
    outside = (np.arange(count + 1)[:, None] * width + np.arange(width - around, width)).ravel()
    here = np.arange(around)
    following = (here + 1) % around
    side = np.concatenate(
        [
            np.stack([here, following, following + around], axis=1),
            np.stack([here, following + around, here + around], 1),
        ]
    )
    faces = np.concatenate([side + layer * around for layer in range(count)])
    layer = np.repeat(np.arange(count), len(upright))
    return ArmMesh(nodes, width, elements.astype(np.int32), layer, plates, faces.astype(np.int32), outside)


def cable_points(body: CableArmBody, mesh: ArmMesh, shift: Array | None = None) -> CablePoints:
    """The cables of a description, their places in the cross-section shifted by (k, 2) m.

    Raises:
        SoftformError: If one is shifted out of the arm.
    """
    disc, triangles, _ = _disc(body.rings)
    nodes, weights, cables = [], [], []
    begin, number = 0, 0
    for section in body.sections:
        for angle in section.cables:
            place = body.cable_circle * np.array([np.cos(angle), np.sin(angle)])
            place += 0.0 if shift is None else shift[number]
            corners, shares = _located(place / body.radius, disc, triangles, f"t{number + 1}")
            for layer in range(begin, begin + section.layers):
                nodes.append(np.concatenate([corners + layer * mesh.width, corners + (layer + 1) * mesh.width]))
                weights.append(np.concatenate([-shares, shares]))
                cables.append(number)
            number += 1
        begin += section.layers
    cable = np.array(cables)
    return CablePoints(np.array(nodes), np.array(weights), cable, np.zeros(0)).cut(cable, mesh.nodes)


def _disc(rings: int) -> tuple[Array, NDArray[np.int64], NDArray[np.int64]]:
    """Nodes (w, 2) of the unit disc, triangles (T, 3) over them, and the order (w,) by which prisms are cut."""
    nodes, first, rank = [np.zeros((1, 2))], [0], [0]
    for ring in range(1, rings + 1):
        angle = 2.0 * np.pi * np.arange(6 * ring) / (6 * ring)
        first.append(first[-1] + max(1, 6 * (ring - 1)))
        nodes.append(ring / rings * np.column_stack([np.cos(angle), np.sin(angle)]))
        rank += [2 * ring + number % 2 for number in range(6 * ring)]
    triangles = []
    for ring in range(rings):
        for sector in range(6):
            inner = [first[ring] + (sector * ring + j) % max(1, 6 * ring) for j in range(ring + 1)]
            outer = [first[ring + 1] + (sector * (ring + 1) + j) % (6 * (ring + 1)) for j in range(ring + 2)]
            triangles += [(inner[j], outer[j], outer[j + 1]) for j in range(ring + 1)]
            triangles += [(inner[j], outer[j + 1], inner[j + 1]) for j in range(ring)]
    return np.concatenate(nodes), np.array(triangles), np.array(rank)


def _located(place: Array, disc: Array, triangles: NDArray[np.int64], name: str) -> tuple[NDArray[np.int64], Array]:
    """Nodes (3,) of the triangle that a place of the unit disc lies in, and their weights (3,)."""
    corners = disc[triangles]
    edges = np.stack([corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]], axis=2)
    later = np.linalg.solve(edges, (place - corners[:, 0])[..., None])[..., 0]
    shares = np.column_stack([1.0 - later.sum(axis=1), later])
    best = int(shares.min(axis=1).argmax())
    if shares[best].min() < -1e-9:
        raise SoftformError(f"Cable {name} leaves the arm.", "Choose a smaller cable_circle, or shift it less.")
    return triangles[best], shares[best]
