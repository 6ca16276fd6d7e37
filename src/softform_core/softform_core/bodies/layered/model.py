"""Sheets in layers over a rigid core, ready for the kernels of the membrane and of contact.

Every layer has the mesh of the core. Where a layer has no chamber it is glued to what lies under it, and shares its
vertices; the chamber's border is glued, too. So a middle chamber that lies over an inner one is carried by its sheet. A
chamber is the closed space between its sheet and the surface below, whose volume is the difference of the volumes that
the membrane's kernels measure: its pressure pushes its sheet outwards, and the sheet below, where that is free,
inwards. Under the cover there is no pressure.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_matrix

from softform_core.arrays import Array
from softform_core.bodies.layered.description import LayeredBody
from softform_core.bodies.layered.grid import (
    areas_of_vertices,
    corners_of_cells,
    faces_of_grid,
    free_vertices,
    mesh_torso,
    neighbours,
    outward_normals,
    surface_elements,
    torso_points,
    unit_domes,
)
from softform_core.bodies.membrane.model import Membrane, triangles_of
from softform_core.bodies.nodal import HessianPattern, hessian_pattern, minimum_degree
from softform_core.errors import SoftformError
from softform_core.robots.description import Material
from softform_core.simulation.materials import law_and_coefficients, shear_modulus

_HENCKY = 0.595  # height of a clamped circular membrane over a (p a / E t)^(1/3)


@dataclass(frozen=True, eq=False)
class Layers(Membrane):
    """Sheets over a core: a `Membrane` of several sheets, some chambers above others. SI units.

    `chamber_of_element` is the chamber below each element, k where there is none.

    Attributes:
        chamber_above: (E,) chamber above each element, k where there is none.
        contacts: (C, 6) vertices of each contact, see `bodies.layered.equilibrium`.
        contact_areas: (C,) m^2.
        contact_stiffness: Pa/m.
        nodes_of_layer: (S,) vertices of the core and of each layer, grid line by grid line.
        skin_faces: (F, 3) triangles over the vertices of any layer.
        is_closed: Whether the first direction of the grid ends where it begins.
        lines: Number of the grid's lines in both directions: vertices (U or U + 1, V + 1) of each layer.
        normals: (V, 3) of the core below each vertex.
        domes: (V, k) height of each vertex, over the rise of each chamber, from which Newton's method begins.
        level: (V,) number of free sheets from the core to each vertex, its own included.
        rise: (k,) m / Pa^(1/3) of each chamber.
    """

    chamber_above: NDArray[np.int32]
    contacts: NDArray[np.int32]
    contact_areas: Array
    contact_stiffness: float
    nodes_of_layer: dict[str, NDArray[np.int64]]
    skin_faces: NDArray[np.int32]
    is_closed: bool
    lines: tuple[int, int]
    normals: Array
    domes: Array
    level: NDArray[np.int64]
    rise: Array

    @property
    def skin(self) -> NDArray[np.int64]:
        """Vertices (S,) of the outermost sheet, grid line by grid line."""
        return list(self.nodes_of_layer.values())[-1]

    @cached_property
    def pattern(self) -> HessianPattern:
        """Sparsity of the Hessian, contacts included."""
        return hessian_pattern([self.elements, self.contacts], self.fixed, minimum_degree)

    @cached_property
    def contact_slots(self) -> NDArray[np.int32]:
        """As `slots`, of contacts, (C, 18, 18)."""
        return self.pattern.slots(self.contacts)

    def pressure_of_element(self, pressures_pa: ArrayLike) -> Array:
        """Pressure across each element, (E,) Pa: below it less above it.

        Raises:
            SoftformError: If `pressures_pa` is not (k,) finite numbers.
        """
        pressures = np.append(self.checked_pressures(pressures_pa), 0.0)
        return np.ascontiguousarray(pressures[self.chamber_of_element] - pressures[self.chamber_above])


class Plan(NamedTuple):
    """A layer to be made.

    Attributes:
        name: Name in pictures.
        chamber_of_cell: (U, V); -1 where the layer is glued to what lies under it, k where it is free and passive.
        thickness: Thickness of the layer, m.
        prestretch: Stretch at which it is mounted.
    """

    name: str
    chamber_of_cell: NDArray[np.int64]
    thickness: float
    prestretch: float


def build_layers(body: LayeredBody, shifts: Array | None = None) -> Layers:
    """The layers of a description.

    Args:
        body: The description.
        shifts: (k, 2) m by which the chambers lie off their places around (counter-clockwise) and upwards. Around a
            chamber the shift fades; where chambers lie over or beside each other, their shifts add up.

    Raises:
        SoftformError: If a chamber is too small for the mesh, shifts fold it, or the material is impossible.
    """
    mesh = mesh_torso(body)
    turns, heights = np.meshgrid(mesh.turns, mesh.heights, indexing="ij")
    if shifts is not None:
        turns, heights = _shifted(body, turns, heights, shifts)
    passive = np.full_like(mesh.chambers[0], len(body.chambers))
    sheets = {"inner layer": body.inner, "middle layer": body.middle, "cover": body.cover}
    plans = [
        Plan(name, cells, sheet.thickness, sheet.prestretch)
        for (name, sheet), cells in zip(sheets.items(), [*mesh.chambers, passive], strict=True)
    ]
    grid = torso_points(body.core, turns, heights)
    return layers_on_grid(grid, True, plans, len(body.chambers), body.material, body.contact_stiffness)


def layers_on_grid(
    grid: Array, is_closed: bool, plans: Sequence[Plan], chambers: int, material: Material, contact_stiffness: float
) -> Layers:
    """Layers over any surface that is a grid.

    Args:
        grid: (U or U + 1, V + 1, 3) m, vertices of the core; the cross product of its first and second direction points
            outwards. The ends of the second direction are rims, and those of the first unless it is closed.
        is_closed: Whether the first direction ends where it begins: then the grid has U vertices along it.
        plans: The layers from the core outwards.
        chambers: Number k.
        material: Hyperelastic law of all sheets.
        contact_stiffness: Pa/m.

    Raises:
        SoftformError: If the material is impossible.
    """
    law, coefficients = law_and_coefficients(material)
    lines = (grid.shape[0], grid.shape[1])
    core = np.arange(lines[0] * lines[1]).reshape(lines)
    nodes, owns, domes, count = [core], [], [np.zeros((core.size, chambers))], core.size
    for plan in plans:
        own, chamber = free_vertices(plan.chamber_of_cell, is_closed)
        lower, node = nodes[-1][own], nodes[-1].copy()
        node[own] = count + np.arange(len(lower))
        count += len(lower)
        domes.append(np.concatenate(domes)[lower] + unit_domes(own, chamber, chambers))
        nodes.append(node)
        owns.append(own)
    cells = [plan.chamber_of_cell >= 0 for plan in plans]
    quads = np.concatenate([corners_of_cells(node, is_closed)[one] for node, one in zip(nodes[1:], cells, strict=True)])
    counts = [int(one.sum()) for one in cells]
    thickness = np.repeat([plan.thickness for plan in plans], counts)
    below = np.concatenate([plan.chamber_of_cell[one] for plan, one in zip(plans, cells, strict=True)])
    of_vertex = np.concatenate([core.ravel(), *(core[own] for own in owns)])
    vertices = np.ascontiguousarray(grid.reshape(-1, 3)[of_vertex])
    shapes, gradients, areas = surface_elements(vertices[quads], np.repeat([plan.prestretch for plan in plans], counts))
    contacts = [
        np.stack([upper[own], lower[own], *neighbours(lower, own)], axis=-1)
        for lower, upper, own in zip(nodes, nodes[1:], owns, strict=False)
    ]
    share = areas_of_vertices(grid, is_closed)
    return Layers(
        rest_vertices=vertices,
        faces=triangles_of(quads),
        elements=np.ascontiguousarray(quads, dtype=np.int32),
        chamber_of_element=below.astype(np.int32),
        chambers=chambers,
        shapes=shapes,
        gradients=gradients,
        areas=areas,
        thickness=thickness,
        law=law,
        coefficients=coefficients,
        springs=csr_matrix((count, count)),
        weight=np.zeros((count, 3)),
        fixed=np.arange(count) < core.size,
        material=material,
        chamber_above=_chambers_above(plans, chambers),
        contacts=np.ascontiguousarray(np.concatenate(contacts), dtype=np.int32),
        contact_areas=np.concatenate([share[own] for own in owns]),
        contact_stiffness=contact_stiffness,
        nodes_of_layer=dict(
            zip(["core", *(plan.name for plan in plans)], (node.ravel() for node in nodes), strict=True)
        ),
        skin_faces=faces_of_grid(lines, is_closed),
        is_closed=is_closed,
        lines=lines,
        normals=outward_normals(grid).reshape(-1, 3)[of_vertex],
        domes=np.concatenate(domes),
        level=_levels(nodes, owns, count),
        rise=_rises(areas, thickness, below, chambers, material),
    )


def _chambers_above(plans: Sequence[Plan], chambers: int) -> NDArray[np.int32]:
    """The chamber of the next layer over each element, (E,); `chambers` where there is none."""
    above: list[NDArray[np.int64]] = []
    over = np.full(plans[0].chamber_of_cell.shape, chambers)
    for plan in reversed(plans):
        here = plan.chamber_of_cell >= 0
        above.insert(0, over[here])
        over = np.where(here, plan.chamber_of_cell, over)
    return np.concatenate(above).astype(np.int32)


def _levels(nodes: Sequence[NDArray[np.int64]], owns: Sequence[NDArray[np.bool_]], count: int) -> NDArray[np.int64]:
    level = np.zeros(count, dtype=np.int64)
    for lower, upper, own in zip(nodes, nodes[1:], owns, strict=False):
        level[upper[own]] = level[lower[own]] + 1
    return level


def _shifted(body: LayeredBody, turns: Array, heights: Array, shifts: Array) -> tuple[Array, Array]:
    """Mesh lines moved with the chambers, less towards the rims."""
    around, total = np.pi * float(body.extent.mean()), body.core.height
    fade = np.clip(4.0 * heights * (total - heights) / total**2, 0.0, 1.0)
    moved_turns, moved_heights = turns.copy(), heights.copy()
    for chamber, (along, upwards) in zip(body.chambers, shifts, strict=True):
        u = (turns - sum(chamber.turn) / 2.0 + 0.5) % 1.0 - 0.5
        z = heights - sum(chamber.height) / 2.0
        width, height = np.ptp(chamber.turn), np.ptp(chamber.height)
        weight = fade * np.exp(-((u / width) ** 2) - (z / height) ** 2)
        moved_turns += along / around * weight
        moved_heights += upwards * weight
    along_u = np.diff(moved_turns, axis=0, append=moved_turns[:1] + 1.0)
    if (along_u <= 0.0).any() or (np.diff(moved_heights, axis=1) <= 0.0).any():
        raise SoftformError("The shifts of the chambers fold the mesh.", "Reduce shift_around and shift_upwards.")
    return moved_turns, moved_heights


def _rises(areas: Array, thickness: Array, chamber: NDArray[np.int64], chambers: int, material: Material) -> Array:
    """Heights (k,) of the domes at a pressure of 1 Pa: those of circular membranes of the same area."""
    stiffness, rises = 3.0 * shear_modulus(material), np.zeros(chambers)
    for number in range(chambers):
        ours = chamber == number
        radius = np.sqrt(areas[ours].sum() / np.pi)
        rises[number] = _HENCKY * radius * (radius / (stiffness * thickness[ours].mean())) ** (1.0 / 3.0)
    return rises
