"""The solid as a rod whose wall bulges: a second simulator, which shares nothing with the finite elements but the mesh.

It follows from three thoughts, and from no constant but those of the description:

- Rubber keeps its volume and the thread holds the outline. So a chamber gains what its sector of the cross-section, a
  third where there are three, gains as the axis stretches: its pressure p pulls on all of that sector of area A, and
  not only on its own cross-section. The outer wall, which cannot shrink around, is 4/3 as stiff along the axis.
- All the wall's fibres are stretched by 1 + epsilon - kappa_2 x_1 + kappa_1 x_2, see `bodies.rod.equilibrium`.
- The outline yields by the hoop strain h under what is left: Lamé's tube of outer radius R and inner radius r, of
  V = A L within the outline, in which the hoop strain of its rubber falls as one over the radius squared:

      1/2 (4 mu + E_f) (R² / r² - 1) V h² - 2 p V h

  with the shear modulus mu and the modulus E_f of the thread. From one chamber to the next h fades as a raised cosine;
  to a plate it does as the wall bends, 1 - exp(-beta s) (cos beta s + sin beta s), beta⁴ = 3 (4 mu + E_f) / (4 mu r_m²
  t²) of a thin wall of radius r_m and thickness t (Timoshenko).
"""

import numpy as np

from softform_core.arrays import Array
from softform_core.bodies.bellows.skin import Skin, ring_frames
from softform_core.bodies.placement import diagonal, in_sections
from softform_core.bodies.rod.equilibrium import RodProblem
from softform_core.bodies.rod.model import Rod
from softform_core.bodies.solid.description import CrossSection, SolidBody
from softform_core.bodies.solid.mesh import extrude, mesh_section, surface_points
from softform_core.simulation.hessian import BlockHessian
from softform_core.simulation.materials import law_and_coefficients, shear_modulus

_ELEMENTS = 8  # of each segment
_FIBRES = 4  # across core, chambers and outer wall each, and around each chamber and rib
_STEP = 1e-6  # of strains, for differences of the points


class RodOfSolid(RodProblem):
    """`SimulatedBody` of a solid; the unknowns are the bends of its rod, then the hoop strain at each chamber.

    Args:
        body: The description.
    """

    frames: dict[str, int] = {}

    def __init__(self, body: SolidBody) -> None:
        super().__init__(_rod(body))
        section = mesh_section(body.cross_section, body.cells)
        mesh = extrude(body, section, body.cells.layers, base_moves=False)
        surface, self.faces = surface_points(body, section, body.cells.layers, body.cells.chamber)
        points = surface @ mesh.nodes
        radius, outer = body.cross_section.radius, body.cross_section.outer
        rubber, thread = 4.0 * shear_modulus(body.material), body.fibre_modulus
        volume = self.rod.chamber_area * body.segment_length
        self._hoop_stiffness = (rubber + thread) * (radius**2 / outer**2 - 1.0) * volume
        self._hoop_push = 2.0 * volume
        self.rest = np.zeros(4 * self.rod.elements + len(volume))
        decay = (3.0 * (rubber + thread) / rubber) ** 0.25 / np.sqrt(0.5 * (radius**2 - outer**2))

        heights, self._level = np.unique(points[:, 2].round(12), return_inverse=True)
        pitch = body.segment_length + body.plate
        segment = np.clip((heights - body.plate) // pitch, 0, body.segments - 1).astype(int)
        along = heights - body.plate - segment * pitch
        soft = np.clip(along, 0.0, body.segment_length)
        place = soft / self.rod.length[0]
        element = np.minimum(place.astype(int), _ELEMENTS - 1)
        self._rings = Skin(segment * _ELEMENTS + element, place - element, np.zeros(len(place)), points[:, :2])
        self._base, self._in_plate = np.array([0.0, 0.0, body.plate]), along - soft
        free = _free_of_edge(decay * soft) * _free_of_edge(decay * (body.segment_length - soft))
        own = (np.arange(body.segments)[:, None] == segment) * free
        around = _shares_around(body.cross_section.chambers, np.arctan2(points[:, 1], points[:, 0]))
        self._bulges = (own[:, None, self._level] * around).reshape(len(volume), -1)

    def _free(self, unknowns: Array) -> Array:
        return unknowns[:, : 4 * self.rod.elements].reshape(len(unknowns), -1, 4)

    def _hoops(self, unknowns: Array) -> Array:
        return unknowns[:, 4 * self.rod.elements :]

    def points(self, unknowns: Array) -> Array:
        """Points (n, P, 3) m of unknowns (n, m): those of the surface of the finite elements, at rest the same."""
        places, frames = ring_frames(self.rod, self._rings, self._placed(unknowns))
        places = places + self._base + self._in_plate[:, None] * frames[..., 2]
        outline = self._rings.outline * (1.0 + self._hoops(unknowns) @ self._bulges)[..., None]
        return np.asarray(places[:, self._level] + (frames[:, self._level, :, :2] @ outline[..., None])[..., 0])

    def moved_points(self, unknowns: Array, moves: Array) -> Array:
        """As `SimulatedBody`, (n, P, 3, k) m, by central differences."""
        step = _STEP / max(float(np.abs(moves).max()), 1e-300)
        ends = [[self.points(unknowns + side * step * one) for side in (1.0, -1.0)] for one in np.moveaxis(moves, 2, 0)]
        return np.stack([(ahead - behind) / (2.0 * step) for ahead, behind in ends], axis=-1)

    def energy(self, unknowns: Array, actuators: Array) -> Array:
        """Pi (n,), J."""
        hoops = self._hoops(unknowns)
        own = (0.5 * self._hoop_stiffness * hoops**2 - self._hoop_push * actuators * hoops).sum(axis=1)
        return super().energy(unknowns, actuators) + own

    def derivatives(self, unknowns: Array, actuators: Array) -> tuple[Array, BlockHessian]:
        """Gradient (n, m) J and Hessian, J."""
        gradient, bending = super().derivatives(unknowns, actuators)
        own = self._hoop_stiffness * self._hoops(unknowns) - self._hoop_push * actuators
        count = gradient.shape[1]
        hessian = np.zeros((len(unknowns), 1, len(self.rest), len(self.rest)))
        if bending.blocks.shape[1] == 1:
            hessian[:, :, :count, :count] = bending.blocks
        else:  # without weight the elements do not feel each other
            diagonal(hessian[:, 0, :count, :count], self.rod.elements)[:] = bending.blocks
        hessian[:, :, range(count, len(self.rest)), range(count, len(self.rest))] = self._hoop_stiffness
        return np.concatenate([gradient, own], axis=1), BlockHessian(hessian)

    def load_derivative(self, unknowns: Array, actuators: Array) -> Array:
        """Derivative of the gradient by the pressures, (n, m, k)."""
        pushes = np.concatenate([self.wall.pushes, -np.diag(self._hoop_push)])
        return np.broadcast_to(pushes, (len(unknowns), *pushes.shape))


def _rod(body: SolidBody) -> Rod:
    section, length = body.cross_section, body.segment_length / _ELEMENTS
    place, area, stiffer = _fibres(section)
    law, coefficients = law_and_coefficients(body.material)
    elements, chambers = body.segments * _ELEMENTS, section.chambers
    angle, half = 2.0 * np.pi * np.arange(chambers) / chambers, np.pi / chambers
    centroid = 2.0 / 3.0 * section.radius * np.sin(half) / half
    outline = np.pi * section.radius**2
    mass = np.full(elements, body.density * area.sum() * length)
    return Rod(
        **in_sections(body.segments, mass, body.plate, body.density * outline * body.plate),
        strains=np.arange(4),
        length=np.full(elements, length),
        scale=np.ones(elements),
        fibre_place=place,
        fibre_area=stiffer * area,
        law=law,
        coefficients=np.tile(coefficients, (elements, 1)),
        limiter=np.zeros(elements),
        torsion=np.full(elements, shear_modulus(body.material) * float(area @ (place**2).sum(axis=1))),
        chamber_place=np.tile(centroid * np.stack([np.cos(angle), np.sin(angle)], axis=1), (body.segments, 1)),
        chamber_area=np.full(body.segments * chambers, outline / chambers),
        base=np.eye(3),
        gravity=np.array(body.gravity),
    )


def _fibres(section: CrossSection) -> tuple[Array, Array, Array]:
    """Places (F, 2) m and areas (F,) m² of the rubber's fibres, and how much stiffer they are than alone."""
    borders = [0.0, section.inner, section.outer, section.radius]
    rings = np.interp(np.arange(3 * _FIBRES + 1) / _FIBRES, range(4), borders)
    sector, half = 2.0 * np.pi / section.chambers, 0.5 * section.angle
    rays = np.interp(np.arange(2 * _FIBRES + 1) / _FIBRES, range(3), [-half, half, sector - half])
    starts = sector * np.arange(section.chambers)[:, None]
    angle = (starts + 0.5 * (rays[1:] + rays[:-1])).ravel()
    radius, layer = 0.5 * (rings[1:] + rings[:-1]), np.arange(3 * _FIBRES) // _FIBRES
    is_solid = (layer[:, None] != 1) | np.tile(np.arange(2 * _FIBRES) >= _FIBRES, section.chambers)
    area = (radius * np.diff(rings))[:, None] * np.tile(np.diff(rays), section.chambers)
    place = radius[:, None, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    outline, inner, outer = section.radius**2, section.inner, section.outer
    rib = (0.5 * (outline - outer**2) / outer + 0.5 * inner) / (outer - inner)
    across = np.choose(layer, [-0.5, rib, 0.5 * (outline / radius**2 - 1.0)])
    stiffer = np.broadcast_to(4.0 / 3.0 * (1.0 + across + across**2)[:, None], area.shape)
    return place[is_solid], area[is_solid], stiffer[is_solid]


def _free_of_edge(s: Array) -> Array:
    """How far a thin wall gives way beside a clamped edge, over what it does far away; s over its bending length."""
    return np.asarray(1.0 - np.exp(-s) * (np.cos(s) + np.sin(s)))


def _shares_around(chambers: int, angle: Array) -> Array:
    """Shares (k, P) of each chamber in what is at angles (P,), 1 in all."""
    apart = chambers * (angle - 2.0 * np.pi / chambers * np.arange(chambers)[:, None])
    apart = np.abs((apart + np.pi * chambers) % (2.0 * np.pi * chambers) - np.pi * chambers)
    shares = np.where(apart < 2.0 * np.pi, 1.0 + np.cos(0.5 * apart), 0.0)
    return np.asarray(shares / shares.sum(axis=0))
