"""The simulators of a body from files: as described, for data sets, and as a real one differs from it.

docs/robots/mesh-bodies.md explains every field of a reality.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from softform_core.arrays import Array
from softform_core.bodies.elements import IN_FOUR, TURNED_TRIANGLE
from softform_core.bodies.freeform.block import free_sides, in_rigid
from softform_core.bodies.freeform.corotational import CorotationalBody
from softform_core.bodies.freeform.simulator import RealMeshed, drawn_differences, solid_of
from softform_core.bodies.loads.on_mesh import located
from softform_core.bodies.mesh.description import MeshBody
from softform_core.bodies.mesh.outside import check_patch, cut_outside
from softform_core.bodies.mesh.tetrahedra import checked_tetrahedra, curved
from softform_core.bodies.mesh.walls import check_apart, check_walls
from softform_core.bodies.realities import SOLIDS, another_silicone
from softform_core.bodies.solid.equilibrium import SolidProblem, problem_of
from softform_core.bodies.solid.mesh import SolidMesh
from softform_core.bodies.solid.model import Solid
from softform_core.errors import SoftformError
from softform_core.simulation.sampled_body import SampledSurface, SampledTip
from softform_core.surface.closed import place
from softform_core.units import MM_PER_M

Reality = RealMeshed
_AS_DESCRIBED = RealMeshed()


def build_mesh(body: MeshBody, real: RealMeshed = _AS_DESCRIBED) -> Solid:
    """The solid of a description, or a reality of it.

    Raises:
        SoftformError: If a file is wrong (`files.read_body`), it cannot be meshed, or a support, a load or the surface
            does not fit it.
    """
    nodes, elements, walls = _tetrahedra(body, real.mesh_scale)
    sides, cavity = free_sides(elements, walls, len(nodes))
    flat, is_outside = sides[:, IN_FOUR], cavity < 0
    held = _held(body, nodes)
    mesh = SolidMesh(
        nodes=nodes,
        elements=elements.astype(np.int32),
        is_plate=(is_rigid := in_rigid(body.rigid, nodes, elements)),
        is_wall=~is_rigid,
        rectangles=np.zeros((0, 9), dtype=np.int32),
        cavity_of_rectangle=np.zeros(0, dtype=np.int64),
        caps=sides[(cavity >= 0) & (cavity < body.chamber_count)][:, TURNED_TRIANGLE].astype(np.int32),
        cavity_of_cap=cavity[(cavity >= 0) & (cavity < body.chamber_count)],
        base=np.flatnonzero(held),
        foot=np.intersect1d(np.flatnonzero(held), sides),
    )
    surface, faces = _surface(body, nodes, elements, flat[is_outside].reshape(-1, 3))
    in_base = flat[held[sides].all(axis=1)].reshape(-1, 3)
    a, b, c = nodes[in_base].transpose(1, 0, 2)
    area = 0.5 * float(np.linalg.norm(np.cross(b - a, c - a), axis=1).sum())

    def in_support(point: Array, slack: float) -> bool:
        return any(plane.heights(point) <= max(slack, body.held_within) for plane in body.supports)

    solid = solid_of(body, real, mesh, surface, faces, area, in_support)
    return replace(solid, frames=dict.fromkeys(body.frames, 0))  # its only point, if it has no surface


def _tetrahedra(body: MeshBody, scale: float) -> tuple[Array, NDArray[np.int64], list[NDArray[np.int64]]]:
    """Nodes (V, 3) m, elements (E, 10), and walls (T, 6) of its cavities and then of its voids."""
    read = body.read
    if read.tetrahedra is not None:
        return read.tetrahedra.nodes, read.tetrahedra.elements, read.tetrahedra.walls
    assert body.mesh_size is not None  # `read_body` has seen to it
    parts = [read.outside, *read.cavities, *read.voids]
    check_apart(parts)
    for one in read.cavities:
        if not read.outside.encloses(one.points[:1])[0]:
            raise SoftformError(
                f"{one.name}, {one.told()}, lies outside of {read.outside.name}, which reaches from "
                f"{place(read.bounds[0])} to {place(read.bounds[1])}.",
                "Export both in the same coordinates and the same unit.",
            )
    check_walls(parts, body.mesh_size)
    from softform_core.bodies.mesh.mesher import mesh_between  # needs gmsh

    nodes, elements = mesh_between(parts, scale * body.mesh_size)
    nodes, elements = checked_tetrahedra(nodes, elements, read.outside.name)
    nodes, walls = curved(nodes, elements, parts)
    return nodes, elements, walls[1:]


def _held(body: MeshBody, nodes: Array) -> NDArray[np.bool_]:
    """Which nodes (V,) the supports hold."""
    held = np.zeros(len(nodes), dtype=bool)
    for number, plane in enumerate(body.supports, 1):
        heights = plane.heights(nodes)
        by_this = heights <= body.held_within
        if not by_this.any():
            nearest = int(np.argmin(heights))
            raise SoftformError(
                f"Support {number} touches nothing: the nearest place of {body.file}, {place(nodes[nearest])}, lies "
                f"{MM_PER_M * heights[nearest]:.3g} mm above its plane.",
                "Move the plane (at, m), or the body (origin).",
            )
        touched = nodes[by_this] - nodes[by_this].mean(axis=0)
        if np.linalg.matrix_rank(touched, tol=body.held_within) < 2:
            raise SoftformError(
                f"Support {number} touches {body.file} in a point or a line, at {place(nodes[by_this].mean(axis=0))}.",
                "Move its plane into the body: what lies behind it is held.",
            )
        held |= by_this
    if held.all():
        raise SoftformError(
            f"All of {body.file} lies behind its supports.", "Turn a plane round (normal), or move it (at, m)."
        )
    return held


def _surface(
    body: MeshBody, nodes: Array, elements: NDArray[np.int64], outside: NDArray[np.int64]
) -> tuple[csr_matrix, NDArray[np.int32]]:
    """Weights (P, V) of the nodes in the points that are asked for, and triangles over them, (0, 3) of a tip."""
    if body.surface == "none":
        assert body.tip is not None  # the description has seen to it
        if (found := located(np.array(body.tip), nodes, elements)) is None:
            raise SoftformError(
                f"The tip {place(np.array(body.tip))} lies outside of the material of {body.file}.",
                "Choose a place in the material (m).",
            )
        element, weights = found
        row = csr_matrix((weights, (np.zeros(10, dtype=int), elements[element])), (1, len(nodes)))
        return row, np.zeros((0, 3), dtype=np.int32)
    surface, faces = cut_outside(body, nodes, outside)
    if body.surface == "whole":
        return surface, faces
    points = surface @ nodes
    patch = faces[body.faces_of(body.surface, points, faces)]
    check_patch(body, points, patch)
    return surface, faces


def simulator(body: MeshBody) -> SolidProblem | CorotationalBody:
    """The meshed body; errors as of `build_mesh`."""
    return real_simulator(body, _AS_DESCRIBED)


def real_simulator(body: MeshBody, real: RealMeshed) -> SolidProblem | CorotationalBody:
    """The meshed body of a reality, of quadratic elements as soon as it differs; errors as of `build_mesh`."""
    if body.elements == "quadratic" or real != _AS_DESCRIBED:
        return problem_of(build_mesh(body, real))
    nodes, elements, _ = _tetrahedra(body, 1.0)
    return CorotationalBody(body, nodes, elements, in_rigid(body.rigid, nodes, elements))


def sampled(body: MeshBody) -> SampledSurface | SampledTip:
    """The meshed body for data sets: its surface, or its tip."""
    problem = simulator(body)
    return SampledTip(problem) if body.surface == "none" else SampledSurface(problem)


def drawn_reality(nominal: MeshBody, draw: np.random.Generator) -> RealMeshed:
    """A body of the distribution that docs/notes/realities-at-random.md describes."""
    material = another_silicone(nominal.material, (0.8, 1.25), SOLIDS, draw)
    return RealMeshed(**drawn_differences(nominal, material, draw.normal(0.0, 0.01, 2), {}, draw))
