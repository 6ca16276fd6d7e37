"""The solid as arrays: mesh, material, fibres, cavities, weight and support, ready for `energy`.

`build_solid(robot.body)` makes the robot's own model, or with a `RealSolid` that of a virtual rig's reality.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from scipy.sparse import csr_matrix

from softform_core.arrays import Array
from softform_core.bodies.elements import volume_element
from softform_core.bodies.loads.description import AnyLoad
from softform_core.bodies.loads.load import Load
from softform_core.bodies.loads.on_mesh import InSupport, below_zero, loads_on_mesh
from softform_core.bodies.nodal import HessianPattern, hessian_pattern, nested_dissection
from softform_core.bodies.realities import Values, spread_values
from softform_core.bodies.solid.description import Cells, SolidBody
from softform_core.bodies.solid.mesh import SolidMesh, extrude, mesh_section, surface_points
from softform_core.errors import SoftformError
from softform_core.robots.description import Description, Material, NotNegative, Place, Positive
from softform_core.simulation.materials import law_and_coefficients, scaled, shear_modulus


@dataclass(frozen=True, eq=False)
class Solid:
    """A meshed solid with k cavities; SI units. See `energy`.

    Attributes:
        nodes: (V, 3) m, rest shape.
        elements: (E, n) nodes of each: 18 of a wedge, 10 of a tetrahedron.
        shape_gradients: (E, q, n, 3) derivatives of the shape functions by the rest coordinates, 1/m, at the q points
            of the first rule.
        volume_gradients: (E, r, n, 3) 1/m, at the r points of the second one.
        shape_volumes: (E, q) rest volume of each point of the first rule, m^3.
        volume_volumes: (E, r) of each point of the second one, m^3.
        fibres: (E, q, 3) unit direction of the fibres at each point of the first rule.
        fibre_modulus: (E,) Pa.
        bulk: (E,) Pa.
        law: Number of the material law.
        coefficients: (E, c).
        rectangles: (R, 9) faces of the cavities, and cavity_of_rectangle (R,).
        caps: (C, 6) faces of the cavities, and cavity_of_cap (C,).
        cavities: Number k.
        springs: (V,) N/m, support of each node that gives way.
        weight: (V, 3) N.
        is_fixed: (V,) whether a node is held.
        surface: (P, V) weights of the nodes in the points of the surface.
        faces: (F, 3) over those points, outwards.
        modulus: Shear modulus of the soft material, Pa.
        loads: What acts on it besides pressure and weight.
        frames: Points of the surface that have a name, each by its row.
    """

    nodes: Array
    elements: NDArray[np.int32]
    shape_gradients: Array
    volume_gradients: Array
    shape_volumes: Array
    volume_volumes: Array
    fibres: Array
    fibre_modulus: Array
    bulk: Array
    law: int
    coefficients: Array
    rectangles: NDArray[np.int32]
    cavity_of_rectangle: NDArray[np.int64]
    caps: NDArray[np.int32]
    cavity_of_cap: NDArray[np.int64]
    cavities: int
    springs: Array
    weight: Array
    is_fixed: NDArray[np.bool_]
    surface: csr_matrix
    faces: NDArray[np.int32]
    modulus: float
    loads: tuple[Load, ...] = ()
    frames: Mapping[str, int] = field(default_factory=dict)

    @cached_property
    def pattern(self) -> HessianPattern:
        """Sparsity of the Hessian, ordered once for this mesh."""
        joined = [group for load in self.loads for group in load.groups]
        return hessian_pattern([self.elements, self.rectangles, self.caps, *joined], self.is_fixed, nested_dissection)

    @cached_property
    def bulk_volumes(self) -> Array:
        """Bulk modulus times volume of each point of the second rule, (E, r) J."""
        return self.bulk[:, None] * self.volume_volumes

    @cached_property
    def fibred(self) -> NDArray[np.int64]:
        """Elements with fibres, (W,)."""
        return np.flatnonzero(self.fibre_modulus > 0.0)

    @cached_property
    def fibre_volumes(self) -> Array:
        """Modulus of their fibres times volume of each point, (W, q) J."""
        return np.asarray(self.fibre_modulus[self.fibred, None] * self.shape_volumes[self.fibred])

    @property
    def extent(self) -> float:
        """Largest extent at rest, m."""
        return float(np.ptp(self.nodes, axis=0).max())


class RealSolid(Description):
    """The real solid. What is left out is as the robot's description says.

    Attributes:
        cells: Cells of its mesh.
        material: Its material.
        wall_scale: Thickness of the outer wall over the described one; the outside stays.
        chamber_shift: How far the core of each chamber of the cross-section was cast outwards, m.
        chamber_turn: By how much it was cast turned about the axis, rad.
        fibre_scale: Stiffness of the fibres over the described one.
        clamp_stiffness: Stiffness of the support under the base plate, N/m^3; rigid, if left out.
        gravity: m/s^2; as described, if left out.
    """

    cells: Cells | None = None
    material: Material | None = None
    wall_scale: Annotated[float, Field(ge=0.5, le=1.5)] = 1.0
    chamber_shift: Values = 0.0
    chamber_turn: Values = 0.0
    fibre_scale: NotNegative = 1.0
    clamp_stiffness: Positive | None = None
    gravity: Place | None = None


_AS_DESCRIBED = RealSolid()


def build_solid(body: SolidBody, real: RealSolid = _AS_DESCRIBED) -> Solid:
    """The solid of a description, or of a reality of it.

    Raises:
        ValueError: If a list does not fit the number of chambers of a cross-section.
        SoftformError: If the material is impossible or the mesh turns inside out.
    """
    cells, count = real.cells or body.cells, body.cross_section.chambers
    section = mesh_section(
        body.cross_section,
        cells,
        wall_scale=real.wall_scale,
        shift=spread_values(real.chamber_shift, count, "chamber_shift"),
        turn=spread_values(real.chamber_turn, count, "chamber_turn"),
    )
    mesh = extrude(body, section, cells.layers, base_moves=real.clamp_stiffness is not None)
    surface, faces = surface_points(body, section, cells.layers, cells.chamber)
    is_fixed, springs = support(mesh, real.clamp_stiffness, np.pi * body.cross_section.radius**2)
    return solid_on_mesh(
        mesh,
        real.material or body.material,
        poisson_ratio=body.poisson_ratio,
        plate_stiffness=body.plate_stiffness,
        fibre_modulus=real.fibre_scale * body.fibre_modulus,
        density=body.density,
        gravity=real.gravity or body.gravity,
        cavities=body.segments * count,
        is_fixed=is_fixed,
        springs=springs,
        surface=surface,
        faces=faces,
        loads=body.loads,
        in_support=lambda point, slack: bool(point[2] <= body.plate + slack),
    )


def support(mesh: SolidMesh, clamp_stiffness: float | None, area: float) -> tuple[NDArray[np.bool_], Array]:
    """Whether each node is held, (V,), and springs under it, (V,) N/m: a rigid base, or one that gives way."""
    is_fixed, springs = np.zeros(len(mesh.nodes), dtype=bool), np.zeros(len(mesh.nodes))
    if clamp_stiffness is None:
        is_fixed[mesh.base] = True
    else:
        springs[mesh.foot] = clamp_stiffness * area / len(mesh.foot)
    return is_fixed, springs


def solid_on_mesh(
    mesh: SolidMesh,
    material: Material,
    *,
    poisson_ratio: float,
    plate_stiffness: float = 1.0,
    fibre_modulus: float = 0.0,
    density: float = 0.0,
    gravity: Sequence[float] = (0.0, 0.0, 0.0),
    cavities: int,
    is_fixed: NDArray[np.bool_],
    springs: Array | None = None,
    surface: csr_matrix | None = None,
    faces: NDArray[np.int32] | None = None,
    loads: Sequence[AnyLoad] = (),
    in_support: InSupport = below_zero,
) -> Solid:
    """A solid on any mesh of wedges or tetrahedra; without `surface` its points are its nodes. Else as `Solid`.

    Raises:
        SoftformError: If the material is impossible, an element is inside out, or `loads_on_mesh` rejects a load.
    """
    law, coefficients = law_and_coefficients(material)
    stiff = law_and_coefficients(scaled(material, plate_stiffness))[1]
    count = len(mesh.elements)
    modulus = shear_modulus(material)
    bulk = modulus * 2.0 * (1.0 + poisson_ratio) / (3.0 * (1.0 - 2.0 * poisson_ratio))
    shape_rule, volume_rule = volume_element(mesh.elements.shape[1])
    derivatives = np.concatenate([shape_rule.derivatives, volume_rule.derivatives])
    corners = mesh.nodes[mesh.elements]
    jacobian = np.einsum("eni,qnr->eqir", corners, derivatives)
    size = np.linalg.det(jacobian)
    if not (size > 0.0).all():
        wrong = np.flatnonzero((size <= 0.0).any(axis=1))
        raise SoftformError(
            f"The mesh of the solid turns inside out: {len(wrong)} of {count} elements do, the first is {wrong[0]}.",
            "Use a finer mesh, smaller shifts of the chambers, or thicker walls.",
        )
    gradients = np.einsum("qnr,eqri->eqni", derivatives, np.linalg.inv(jacobian))
    first = len(shape_rule.weights)
    shape_volumes = size[:, :first] * shape_rule.weights
    places = np.einsum("eni,qn->eqi", corners, shape_rule.shapes)
    around = np.stack([-places[..., 1], places[..., 0], np.zeros(places.shape[:2])], axis=-1)
    around /= np.maximum(np.linalg.norm(around, axis=-1, keepdims=True), 1e-300)
    weight = np.zeros((len(mesh.nodes), 3))
    mass = density * np.einsum("eq,qn->en", shape_volumes, shape_rule.shapes)
    np.add.at(weight, mesh.elements, mass[:, :, None] * np.asarray(gravity, dtype=np.float64))
    return Solid(
        nodes=mesh.nodes,
        elements=mesh.elements,
        shape_gradients=np.ascontiguousarray(gradients[:, :first]),
        volume_gradients=np.ascontiguousarray(gradients[:, first:]),
        shape_volumes=shape_volumes,
        volume_volumes=size[:, first:] * volume_rule.weights,
        fibres=around,
        fibre_modulus=np.where(mesh.is_wall, fibre_modulus, 0.0),
        bulk=np.where(mesh.is_plate, plate_stiffness, 1.0) * bulk,
        law=law,
        coefficients=np.where(mesh.is_plate[:, None], stiff, coefficients),
        rectangles=mesh.rectangles,
        cavity_of_rectangle=mesh.cavity_of_rectangle,
        caps=mesh.caps,
        cavity_of_cap=mesh.cavity_of_cap,
        cavities=cavities,
        springs=np.zeros(len(mesh.nodes)) if springs is None else springs,
        weight=weight,
        is_fixed=is_fixed,
        surface=csr_matrix(np.eye(len(mesh.nodes))) if surface is None else surface,
        faces=np.zeros((0, 3), dtype=np.int32) if faces is None else faces,
        modulus=modulus,
        loads=loads_on_mesh(loads, mesh.nodes, mesh.elements, modulus, float(shape_volumes.sum()), in_support),
    )
