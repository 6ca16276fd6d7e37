"""A solid of free form meshed by gmsh: curved tetrahedra of 10 nodes.

gmsh's geometry kernel (Open CASCADE) joins the parts and cuts the chambers out, and tells which piece came of which.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from softform_core.arrays import Array
from softform_core.bodies.freeform.block import FreeformMesh, block_of, mesh_block, meshed
from softform_core.bodies.freeform.description import IN_PLANE, Box, Cylinder, FreeformBody, Part, bounds_of
from softform_core.bodies.gmsh_process import started_gmsh
from softform_core.errors import SoftformError

_TETRAHEDRON, _TRIANGLE = 11, 9
"""gmsh's numbers of the quadratic elements."""
_EDGES_AS_OURS = [0, 1, 2, 3, 4, 5, 6, 7, 9, 8]
"""gmsh has the middles of 23 and 13 the other way round."""

Tag = tuple[int, int]
"""Dimension and number of a piece of geometry."""


def mesh_freeform(body: FreeformBody, shifts: Array) -> FreeformMesh:
    """The mesh of a body; of a `block_of` itself without gmsh.

    Args:
        body: The description.
        shifts: (k, 3) m by which each chamber is off its place.

    Raises:
        SoftformError: If gmsh is not installed, chambers overlap or leave the body, or it cannot be meshed.
    """
    if (block := block_of(body)) is not None:
        return mesh_block(body, block)
    with started_gmsh() as gmsh:
        chambers, soft, rigid = _volumes(gmsh, body, shifts)
        cavities = [_walls(gmsh, volume) for volume in chambers]
        for name, walls in zip(body.inputs, cavities, strict=False):
            if any(not set(gmsh.model.getAdjacencies(2, wall)[0].tolist()) & {*soft, *rigid} for wall in walls):
                raise SoftformError(
                    f"Chamber {name} has no wall: it touches the outside or another chamber.", "Move or shrink it."
                )
        gmsh.model.occ.remove([(3, tag) for volume in chambers for tag in volume])
        gmsh.model.occ.synchronize()
        _check_one_piece_on_its_base(gmsh, body, [*soft, *rigid])
        gmsh.option.setNumber("Mesh.MeshSizeMax", body.mesh_size)
        gmsh.option.setNumber("Mesh.MeshSizeMin", 0.3 * body.mesh_size)
        gmsh.option.setNumber("Mesh.MeshSizeFromCurvature", 8)
        gmsh.model.mesh.generate(3)
        gmsh.model.mesh.setOrder(2)
        # Curved sides turn elements inside out: the second method mends what the first one leaves.
        gmsh.model.mesh.optimize("HighOrderElastic")
        gmsh.model.mesh.optimize("HighOrder")
        _check_turned(gmsh)
        return _assembled(gmsh, body, soft, rigid, cavities)


def _check_one_piece_on_its_base(gmsh: Any, body: FreeformBody, volumes: list[int]) -> None:
    """Reject what cannot be held as one, before it is meshed for seconds."""
    faces = [set(_walls(gmsh, [volume])) for volume in volumes]
    touching = [[bool(one & other) for other in faces] for one in faces]
    pieces = connected_components(np.array(touching), directed=False)[0]
    if pieces > 1:
        raise SoftformError(
            f"The body is in {pieces} pieces.", "Let its parts overlap, and chambers not cut through it."
        )
    # Nothing lies below the plane, so that a face is in it where its centre is.
    heights = [gmsh.model.occ.getCenterOfMass(2, face)[2] for face in set.union(*faces)]
    if min(heights) > IN_PLANE * body.size:
        raise SoftformError(
            "The body has no base in the plane z = 0, where it is held.", "Move it down; it is cut off there."
        )


def _check_turned(gmsh: Any) -> None:
    """Reject elements that are inside out anywhere, not just at the points of a quadrature."""
    tags = gmsh.model.mesh.getElementsByType(_TETRAHEDRON)[0]
    turned = np.sum(gmsh.model.mesh.getElementQualities(tags, "minSJ") <= 0.0)
    if turned:
        raise SoftformError(
            f"The mesh turns inside out at curved walls: {turned} of its {len(tags)} tetrahedra do.",
            "Choose a smaller mesh_size.",
        )


def _volumes(gmsh: Any, body: FreeformBody, shifts: Array) -> tuple[list[list[int]], list[int], list[int]]:
    """Numbers of the volumes of each chamber, of what is soft, and of what is rigid."""
    shape = _union(gmsh, body.shape)
    if bounds_of(body.shape)[0][2] < 0.0:
        reach, (_, high) = 4.0 * body.size, body.box
        above = gmsh.model.occ.addBox(-reach + high[0], -reach + high[1], 0.0, 2.0 * reach, 2.0 * reach, 2.0 * reach)
        shape = gmsh.model.occ.intersect(shape, [(3, above)])[0]
    chambers = [_union(gmsh, parts) for parts in body.chambers]
    for tags, shift in zip(chambers, shifts, strict=True):
        gmsh.model.occ.translate(tags, *shift)
    rigid = _union(gmsh, body.rigid) if body.rigid else []
    given = [*chambers, rigid]
    _, pieces = gmsh.model.occ.fragment(shape, [tag for tags in given for tag in tags])
    gmsh.model.occ.synchronize()
    of_shape = {piece for found in pieces[: len(shape)] for piece in found}
    rest = iter(pieces[len(shape) :])
    of_given = [{piece for _ in tags for piece in next(rest)} for tags in given]
    taken: dict[Tag, str] = {}
    for name, found in zip(body.inputs, of_given[:-1], strict=False):
        if found - of_shape:
            raise SoftformError(f"Chamber {name} leaves the body.", "Move it, or make it smaller.")
        for piece in found:
            if piece in taken:
                raise SoftformError(f"Chambers {taken[piece]} and {name} overlap.", "Move one, or make it smaller.")
            taken[piece] = name
    body_pieces = of_shape - taken.keys()
    stiff = of_given[-1] & body_pieces
    outside = of_given[-1] - of_shape
    if outside:
        gmsh.model.occ.remove(list(outside), recursive=True)
        gmsh.model.occ.synchronize()
    chosen = [sorted(tag for _, tag in found) for found in (*of_given[:-1], body_pieces - stiff, stiff)]
    return chosen[:-2], chosen[-2], chosen[-1]


def _union(gmsh: Any, parts: list[Part]) -> list[Tag]:
    tags = [_solid_part(gmsh, part) for part in parts]
    return tags if len(tags) == 1 else list(gmsh.model.occ.fuse(tags[:1], tags[1:])[0])


def _solid_part(gmsh: Any, part: Part) -> Tag:
    occ = gmsh.model.occ
    if isinstance(part, Box):
        return 3, occ.addBox(*part.begin, *np.subtract(part.end, part.begin))
    if isinstance(part, Cylinder):
        along = np.subtract(part.end, part.begin)
        if part.end_radius in (None, part.radius):
            return 3, occ.addCylinder(*part.begin, *along, part.radius)
        return 3, occ.addCone(*part.begin, *along, part.radius, part.end_radius)
    tag = occ.addSphere(*part.centre, 1.0)
    occ.dilate([(3, tag)], *part.centre, *part.radii)
    return 3, tag


def _walls(gmsh: Any, volume: list[int]) -> list[int]:
    return [tag for _, tag in gmsh.model.getBoundary([(3, tag) for tag in volume], oriented=False)]


def _assembled(
    gmsh: Any, body: FreeformBody, soft: list[int], rigid: list[int], cavities: list[list[int]]
) -> FreeformMesh:
    """The mesh that gmsh has made, as arrays."""
    tags, coordinates, _ = gmsh.model.mesh.getNodes()
    number = np.full(int(tags.max()) + 1, -1)
    number[tags.astype(np.int64)] = np.arange(len(tags))
    nodes = coordinates.reshape(-1, 3)

    def elements_on(dimension: int, entity: int, kind: int) -> NDArray[np.int64]:
        found = gmsh.model.mesh.getElementsByType(kind, entity)[1]
        return np.asarray(number[found.astype(np.int64)].reshape(-1, 10 if dimension == 3 else 6))

    volumes = [elements_on(3, tag, _TETRAHEDRON) for tag in (*soft, *rigid)]
    elements = np.concatenate(volumes)[:, _EDGES_AS_OURS]
    is_rigid = np.repeat(np.arange(len(volumes)) >= len(soft), [len(found) for found in volumes])
    used, elements = np.unique(elements, return_inverse=True)
    renumbered = np.searchsorted(used, np.arange(len(nodes)))
    nodes, elements = nodes[used], elements.reshape(-1, 10)

    triangles = [np.concatenate([renumbered[elements_on(2, wall, _TRIANGLE)] for wall in walls]) for walls in cavities]
    return meshed(nodes, elements, is_rigid, triangles, IN_PLANE * body.size)
