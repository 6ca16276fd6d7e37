"""The simulators of a solid of free form: as described, for data sets, and as a real one differs from it.

docs/robots/freeform.md explains every field of a reality.
"""

from typing import Annotated

import numpy as np
from pydantic import Field
from scipy.sparse import csr_matrix

from softform_core.arrays import Array
from softform_core.bodies.freeform.description import FreeformBody, bounds_of
from softform_core.bodies.freeform.mesh import mesh_freeform
from softform_core.bodies.realities import SOLIDS, Values, another_silicone, log_uniform, some_of, spread_values, tilted
from softform_core.bodies.solid.equilibrium import SolidProblem, problem_of
from softform_core.bodies.solid.model import Solid, solid_on_mesh, support
from softform_core.robots.description import Description, Material, NotNegative, Place, Positive
from softform_core.simulation.sampled_body import SampledSurface

_CHANCES = {"material": 0.8, "chamber_shift": 0.7, "fibre_scale": 0.6, "clamp_stiffness": 0.6, "gravity": 0.8}
"""That a drawn body differs in a field."""


class RealFreeform(Description):
    """The real body. What is left out is as the robot's description says.

    Attributes:
        mesh_scale: Length of its mesh's edges over the described one.
        material: Its material.
        chamber_shift: How far the core of each chamber was cast outwards from the z axis, m; along x if it lies in it.
        fibre_scale: Stiffness of the fibres over the described one.
        clamp_stiffness: Stiffness of the support under the base, N/m^3; rigid, if left out.
        gravity: m/s^2; as described, if left out.
    """

    mesh_scale: Annotated[float, Field(ge=0.5, le=2.0)] = 1.0
    material: Material | None = None
    chamber_shift: Values = 0.0
    fibre_scale: NotNegative = 1.0
    clamp_stiffness: Positive | None = None
    gravity: Place | None = None


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
    if body.support == "none":
        is_fixed, springs = np.zeros(len(mesh.nodes), dtype=bool), np.zeros(len(mesh.nodes))
    else:
        base_area = float(np.prod(np.ptp(mesh.nodes[mesh.base, :2], axis=0)))
        is_fixed, springs = support(mesh, real.clamp_stiffness, base_area)
    return solid_on_mesh(
        mesh,
        real.material or body.material,
        poisson_ratio=body.poisson_ratio,
        plate_stiffness=body.rigid_stiffness,
        fibre_modulus=real.fibre_scale * body.fibre_modulus,
        density=body.density,
        gravity=real.gravity or body.gravity,
        cavities=len(body.chambers),
        is_fixed=is_fixed,
        springs=springs,
        surface=csr_matrix(
            (np.ones(len(outside)), (np.arange(len(outside)), outside)), (len(outside), len(mesh.nodes))
        ),
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


def simulator(body: FreeformBody, real: RealFreeform = _AS_DESCRIBED) -> SolidProblem:
    """The meshed body, or that of a reality; errors as of `build_freeform`."""
    return problem_of(build_freeform(body, real))


real_simulator = simulator


def sampled(body: FreeformBody) -> SampledSurface:
    """The meshed body for data sets."""
    return SampledSurface(simulator(body))


def drawn_reality(nominal: FreeformBody, draw: np.random.Generator) -> RealFreeform:
    """A body of the distribution that docs/notes/realities-at-random.md describes."""
    material = another_silicone(nominal.material, (0.8, 1.25), SOLIDS, draw)
    tilt = draw.normal(0.0, 0.01, 2)
    differences = {
        "material": material,
        "chamber_shift": draw.normal(0.0, 0.002 * nominal.size, len(nominal.chambers)).tolist(),
        "fibre_scale": log_uniform(draw, 0.7, 1.4),
        "clamp_stiffness": log_uniform(draw, 1e8, 1e9),
        "gravity": tilted(nominal.gravity, tilt),
    }
    # Never the described mesh, and no finer: a shape costs seconds, a reality a hundred of them.
    return RealFreeform(mesh_scale=draw.uniform(1.05, 1.3), **some_of(differences, _CHANCES, draw))
