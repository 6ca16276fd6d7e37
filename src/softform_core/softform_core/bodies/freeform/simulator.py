"""The simulators of a solid of free form: as described, for data sets, and as a real one differs from it.

docs/robots/freeform.md explains every field of a reality.
"""

from dataclasses import replace
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from scipy.sparse import csr_matrix

from softform_core.arrays import Array
from softform_core.bodies.freeform.corotational import CorotationalBody
from softform_core.bodies.freeform.description import FreeformBody, MeshedBody, bounds_of
from softform_core.bodies.freeform.mesh import mesh_freeform
from softform_core.bodies.freeform.plastic import PlasticBody, Plasticity
from softform_core.bodies.loads.on_mesh import InSupport, below_zero
from softform_core.bodies.realities import SOLIDS, Values, another_silicone, log_uniform, some_of, spread_values, tilted
from softform_core.bodies.solid.equilibrium import SolidProblem, problem_of
from softform_core.bodies.solid.mesh import SolidMesh
from softform_core.bodies.solid.model import Solid, solid_on_mesh, support
from softform_core.errors import SoftformError
from softform_core.robots.description import Description, Material, NotNegative, Place, Positive
from softform_core.simulation.materials import law_and_coefficients
from softform_core.simulation.materials import scaled as scaled_material
from softform_core.simulation.sampled_body import SampledSurface

_CHANCES = {"material": 0.8, "chamber_shift": 0.7, "fibre_scale": 0.6, "clamp_stiffness": 0.6, "gravity": 0.8}
"""That a drawn body differs in a field."""


class Relief(Description):
    """A side with bumps and hollows, as of convoluted foam; the middle of each hollow lies `depth` below the bumps.

    Attributes:
        axis: Of the two sides across it, that at its upper end has the profile.
        depth: m.
        pitch: From bump to bump, m.
    """

    axis: Literal["x", "y"]
    depth: Positive
    pitch: Positive


class RealMeshed(Description):
    """The real body of any body of tetrahedra. What is left out is as the robot's description says.

    Attributes:
        mesh_scale: Length of its mesh's edges over the described one.
        material: Its material.
        fibre_scale: Stiffness of the fibres over the described one.
        clamp_stiffness: Stiffness of the support under the base, N/m^3; rigid, if left out.
        gravity: m/s^2; as described, if left out.
        uneven: By which share of it the stiffness rises and falls from place to place.
        uneven_seed: Of the places where it does.
    """

    mesh_scale: Annotated[float, Field(ge=0.5, le=2.0)] = 1.0
    material: Material | None = None
    fibre_scale: NotNegative = 1.0
    clamp_stiffness: Positive | None = None
    gravity: Place | None = None
    uneven: Annotated[float, Field(ge=0.0, le=0.9)] = 0.0
    uneven_seed: Annotated[int, Field(ge=0)] = 0


class RealFreeform(RealMeshed):
    """The real body, that `RealMeshed` describes, and more.

    Attributes:
        chamber_shift: How far the core of each chamber was cast outwards from the z axis, m; along x if it lies in it.
        relief: Profile of one of its sides.
        plasticity: How it yields, of a body of corotational elements, which the real one then has, too; of the other
            fields it takes material and gravity.
    """

    chamber_shift: Values = 0.0
    relief: Relief | None = None
    plasticity: Plasticity | None = None


Reality = RealFreeform
_AS_DESCRIBED = RealFreeform()


def build_freeform(body: FreeformBody, real: RealFreeform = _AS_DESCRIBED) -> Solid:
    """The solid of a description, or a reality of it.

    Raises:
        ValueError: If a list does not fit the number of chambers.
        SoftformError: If it cannot be meshed, or a value or a load is impossible.
    """
    shifts = spread_values(real.chamber_shift, len(body.chambers), "chamber_shift")
    scaled = body.model_copy(update={"mesh_size": real.mesh_scale * body.mesh_size})
    mesh, outside, faces = mesh_freeform(scaled, shifts[:, None] * outward(body))
    if real.relief:
        mesh = mesh._replace(nodes=convoluted(mesh.nodes, real.relief))
    base_area = float(np.prod(np.ptp(mesh.nodes[mesh.base, :2], axis=0))) if len(mesh.base) else 0.0
    if body.support == "none":
        mesh = mesh._replace(base=mesh.base[:0], foot=mesh.foot[:0])
    surface = csr_matrix((np.ones(len(outside)), (np.arange(len(outside)), outside)), (len(outside), len(mesh.nodes)))
    return solid_of(body, real, mesh, surface, faces, base_area)


def solid_of(
    body: MeshedBody,
    real: RealMeshed,
    mesh: SolidMesh,
    surface: csr_matrix,
    faces: NDArray[np.int32],
    base_area: float,
    in_support: InSupport = below_zero,
) -> Solid:
    """The solid of a description, or a reality of it, on its mesh.

    Args:
        body: The description.
        real: What differs from it.
        mesh: Its mesh; nothing is held if no node is in the base.
        surface: Weights (P, V) of the nodes in the points of its surface.
        faces: (F, 3) over these points.
        base_area: Of what is held, m^2.
        in_support: Whether a point (3,) m outside of the mesh lies in the support.

    Raises:
        SoftformError: As `solid_on_mesh`.
    """
    if len(mesh.base):
        is_fixed, springs = support(mesh, real.clamp_stiffness, base_area)
    else:
        is_fixed, springs = np.zeros(len(mesh.nodes), dtype=bool), np.zeros(len(mesh.nodes))
    material = real.material or body.material
    solid = solid_on_mesh(
        mesh,
        material,
        poisson_ratio=body.poisson_ratio,
        plate_stiffness=body.rigid_stiffness,
        fibre_modulus=real.fibre_scale * body.fibre_modulus,
        density=body.density,
        gravity=real.gravity or body.gravity,
        cavities=body.chamber_count,
        is_fixed=is_fixed,
        springs=springs,
        surface=surface,
        faces=faces,
        loads=body.loads,
        in_support=in_support,
    )
    return solid if real.uneven == 0.0 else unevenly_stiff(solid, material, real)


def convoluted(nodes: Array, relief: Relief) -> Array:
    """Nodes (V, 3) m of a body with a profile: all between the two sides move, the more the nearer to the upper one.

    Raises:
        SoftformError: If the hollows go through the body.
    """
    axis = "xy".index(relief.axis)
    low, high = nodes[:, axis].min(), nodes[:, axis].max()
    if relief.depth >= 0.9 * (high - low):
        raise SoftformError(
            f"Hollows {1e3 * relief.depth:g} mm deep go through a body of {1e3 * (high - low):g} mm.",
            "Lower the depth of relief.",
        )
    across = 2.0 * np.pi / relief.pitch * np.delete(nodes, axis, axis=1)
    hollow = 0.5 * relief.depth * (1.0 - np.cos(across[:, 0]) * np.cos(across[:, 1]))
    moved = nodes.copy()
    moved[:, axis] = nodes[:, axis] - hollow * (nodes[:, axis] - low) / (high - low)
    return moved


_WAVES = 3


def unevenly_stiff(solid: Solid, material: Material, real: RealMeshed) -> Solid:
    """A solid whose modulus rises and falls from element to element, by waves about as long as the body."""
    random = np.random.default_rng(real.uneven_seed)
    waves = random.standard_normal((_WAVES, 3))
    waves *= 2.0 * np.pi / (solid.extent * np.linalg.norm(waves, axis=1, keepdims=True) * random.uniform(0.5, 1.2))
    middles = solid.nodes[solid.elements].mean(axis=1)
    share = 1.0 + real.uneven * np.cos(middles @ waves.T + random.uniform(0.0, 2.0 * np.pi, _WAVES)).mean(axis=1)
    once, twice = (law_and_coefficients(scaled_material(material, factor))[1] for factor in (1.0, 2.0))
    by_modulus = twice != once  # else it is a number, such as the largest stretch
    coefficients = np.where(by_modulus, solid.coefficients * share[:, None], solid.coefficients)
    return replace(solid, coefficients=coefficients, bulk=solid.bulk * share)


def outward(body: FreeformBody) -> Array:
    """Unit direction (k, 3) from the z axis to the middle of each chamber; x of those in it."""
    middles = np.array([bounds_of(parts).mean(axis=0)[:2] for parts in body.chambers]).reshape(-1, 2)
    distance = np.linalg.norm(middles, axis=1, keepdims=True)
    in_axis = distance < 1e-6 * body.size
    flat = np.where(in_axis, [1.0, 0.0], middles / np.where(in_axis, 1.0, distance))
    return np.column_stack([flat, np.zeros(len(flat))])


def simulator(body: FreeformBody) -> SolidProblem | CorotationalBody:
    """The meshed body; errors as of `build_freeform`."""
    return real_simulator(body, _AS_DESCRIBED)


def real_simulator(body: FreeformBody, real: RealFreeform) -> SolidProblem | CorotationalBody:
    """The meshed body of a reality, of quadratic elements as soon as it differs; errors as of `build_freeform`."""
    plain = RealFreeform(material=real.material, gravity=real.gravity, plasticity=real.plasticity)
    if real.plasticity is not None and (body.elements != "corotational" or real != plain):
        raise SoftformError(
            "A body that yields has corotational elements, and of a reality material, gravity and plasticity alone.",
            "Leave the other fields out, or plasticity.",
        )
    if body.elements != "corotational" or (real != _AS_DESCRIBED and real.plasticity is None):
        return problem_of(build_freeform(body, real))
    changes = {"material": real.material or body.material, "gravity": real.gravity or body.gravity}
    mesh = mesh_freeform(body, np.zeros((0, 3))).solid
    parts = body.model_copy(update=changes), mesh.nodes, mesh.elements, mesh.is_plate
    return CorotationalBody(*parts) if real.plasticity is None else PlasticBody(*parts, real.plasticity)


def sampled(body: FreeformBody) -> SampledSurface:
    """The meshed body for data sets."""
    return SampledSurface(simulator(body))


def drawn_reality(nominal: FreeformBody, draw: np.random.Generator) -> RealFreeform:
    """A body of the distribution that docs/notes/realities-at-random.md describes."""
    material = another_silicone(nominal.material, (0.8, 1.25), SOLIDS, draw)
    tilt = draw.normal(0.0, 0.01, 2)
    shift = draw.normal(0.0, 0.002 * nominal.size, len(nominal.chambers)).tolist()
    return RealFreeform(**drawn_differences(nominal, material, tilt, {"chamber_shift": shift}, draw))


def drawn_differences(
    nominal: MeshedBody, material: Material, tilt: Array, own: dict[str, Any], draw: np.random.Generator
) -> dict[str, Any]:
    """Fields of a reality at random: of those that all bodies of tetrahedra have, and of its `own`, some.

    Args:
        nominal: The described body.
        material: Its material.
        tilt: Two small angles (2,) by which it is tilted, rad.
        own: Fields that this kind of body has besides.
        draw: The generator.
    """
    differences = {
        "material": material,
        **own,
        "fibre_scale": log_uniform(draw, 0.7, 1.4),
        "clamp_stiffness": log_uniform(draw, 1e8, 1e9),
        "gravity": tilted(nominal.gravity, tilt),
    }
    # Never the described mesh, and no finer: a shape costs seconds, a reality a hundred of them.
    return {"mesh_scale": draw.uniform(1.05, 1.3), **some_of(differences, _CHANCES, draw)}
