"""The solid of free form as arrays.

`build_freeform(robot.body)` makes the robot's own model. Every keyword changes one thing, so that a virtual rig can
build another reality of the same robot.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from softform_core.arrays import Array
from softform_core.bodies.freeform.description import FreeformBody, bounds_of
from softform_core.bodies.freeform.mesh import mesh_freeform
from softform_core.bodies.solid.model import Solid, solid_on_mesh, support
from softform_core.robots.description import Material


def build_freeform(
    body: FreeformBody,
    *,
    mesh_scale: float = 1.0,
    material: Material | None = None,
    chamber_shift: Array | None = None,
    fibre_scale: float = 1.0,
    clamp_stiffness: float | None = None,
    gravity: Sequence[float] | None = None,
) -> Solid:
    """The solid of a description, or another reality of it.

    Args:
        body: The description.
        mesh_scale: Edges of the mesh over the described ones.
        material: In place of the described one.
        chamber_shift: (k,) m by which the core of each chamber was cast outwards.
        fibre_scale: Stiffness of the fibres over the described one.
        clamp_stiffness: Stiffness of the support under the base, N/m^3; rigid by default. Without support it is unused.
        gravity: (3,) m/s^2.

    Raises:
        SoftformError: If it cannot be meshed, or a value or a load is impossible.
    """
    shifts = np.zeros(len(body.chambers)) if chamber_shift is None else chamber_shift
    scaled = body.model_copy(update={"mesh_size": mesh_scale * body.mesh_size})
    mesh, outside, faces = mesh_freeform(scaled, shifts[:, None] * outward(body))
    if body.support == "none":
        is_fixed, springs = np.zeros(len(mesh.nodes), dtype=bool), np.zeros(len(mesh.nodes))
    else:
        base_area = float(np.prod(np.ptp(mesh.nodes[mesh.base, :2], axis=0)))
        is_fixed, springs = support(mesh, clamp_stiffness, base_area)
    return solid_on_mesh(
        mesh,
        material or body.material,
        poisson_ratio=body.poisson_ratio,
        plate_stiffness=body.rigid_stiffness,
        fibre_modulus=fibre_scale * body.fibre_modulus,
        density=body.density,
        gravity=body.gravity if gravity is None else gravity,
        cavities=len(body.chambers),
        is_fixed=is_fixed,
        springs=springs,
        surface=_chosen(outside, len(mesh.nodes)),
        faces=faces,
        loads=body.loads,
    )


def outward(body: FreeformBody) -> Array:
    """Unit direction (k, 3) from the z axis to the middle of each chamber; x of those in it."""
    middles = np.array([bounds_of(parts).mean(axis=0)[:2] for parts in body.chambers]).reshape(-1, 2)
    distance = np.linalg.norm(middles, axis=1, keepdims=True)
    in_axis = distance < 1e-6 * body.size
    flat = np.where(in_axis, [1.0, 0.0], middles / np.where(in_axis, 1.0, distance))
    return np.column_stack([flat, np.zeros(len(flat))])


def _chosen(nodes: NDArray[np.int64], count: int) -> csr_matrix:
    return csr_matrix((np.ones(len(nodes)), (np.arange(len(nodes)), nodes)), shape=(len(nodes), count))
