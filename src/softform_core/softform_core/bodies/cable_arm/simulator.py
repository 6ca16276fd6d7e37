"""The simulators of an arm with cables: as described, for data sets, and as a real one differs from it.

docs/robots/helix.md explains every field of a reality.
"""

from dataclasses import replace
from typing import Annotated

import numpy as np
from pydantic import Field

from softform_core.arrays import Array
from softform_core.bodies.cable_arm.description import CableArmBody
from softform_core.bodies.cable_arm.equilibrium import Arm, ArmProblem
from softform_core.bodies.cable_arm.mesh import cable_points, mesh_arm
from softform_core.bodies.cable_arm.rubbing import RubbingArm, Runs
from softform_core.bodies.loads.friction import CableFriction
from softform_core.bodies.realities import log_uniform, some_of, tilted
from softform_core.robots.description import Description, NotNegative, Place, Positive
from softform_core.simulation.materials import shear_modulus
from softform_core.simulation.sampled_body import SampledSurface

_CHANCES = {
    "modulus_scale": 0.8,
    "cable_stiffness_scale": 0.8,
    "cable_shift": 0.7,
    "layer_scale": 0.5,
    "payload": 0.6,
    "gravity": 0.8,
}
"""That a drawn arm differs in a field."""


class ArmFriction(CableFriction):
    """Cables of an arm in their sheaths, and along their sections.

    Attributes:
        bends: Of each cable at which it rubs; the first is its sheath.
    """

    bends: Annotated[int, Field(ge=1, le=8)] = 3


class RealCableArm(Description):
    """The real arm. What is left out is as the robot's description says.

    Attributes:
        rings: Rings of nodes of its mesh.
        layer_scale: Layers of its mesh over the described ones.
        modulus_scale: Shear modulus over the described one.
        poisson_ratio: Its Poisson's ratio.
        section_scale: Modulus of each section over that of the others, in turn.
        plate_scale: Stiffness of its anchor plates over the described one.
        cable_stiffness_scale: Axial stiffness of its cables over the described one.
        cable_shift: Deviation of each of a cable's two coordinates in the cross-section, m, by `seed`.
        payload: More mass at the tip, kg.
        gravity: m/s^2; as described, if left out.
        friction: Of its cables: its shape depends on its path then; without, if left out.
        seed: Of the deviations.
    """

    rings: Annotated[int, Field(ge=1, le=6)] | None = None
    layer_scale: Annotated[float, Field(ge=0.25, le=2.0)] = 1.0
    modulus_scale: Positive = 1.0
    poisson_ratio: Annotated[float, Field(ge=0.0, le=0.45)] | None = None
    section_scale: list[Positive] = [1.0]
    plate_scale: Positive = 1.0
    cable_stiffness_scale: Positive = 1.0
    cable_shift: NotNegative = 0.0
    payload: NotNegative = 0.0
    gravity: Place | None = None
    friction: ArmFriction | None = None
    seed: int = 0


Reality = RealCableArm
_AS_DESCRIBED = RealCableArm()


def meshed_as(body: CableArmBody, real: RealCableArm) -> CableArmBody:
    """A description with the mesh of a reality; no fewer layers of a section than its cables have bends."""
    least = 2 if real.friction is None else max(2, real.friction.bends)
    sections = [
        section.model_copy(update={"layers": max(least, round(real.layer_scale * section.layers))})
        for section in body.sections
    ]
    return body.model_copy(update={"sections": sections, "rings": real.rings or body.rings})


def build_arm(body: CableArmBody, real: RealCableArm = _AS_DESCRIBED) -> Arm:
    """The arm of a description, or of a reality of it.

    Raises:
        SoftformError: If a cable leaves the arm.
    """
    body = meshed_as(body, real)
    mesh = mesh_arm(body)
    edges = np.swapaxes(mesh.nodes[mesh.elements[:, 1:]] - mesh.nodes[mesh.elements[:, :1]], 1, 2)
    later = np.linalg.inv(edges)
    slopes = np.concatenate([-later.sum(axis=1, keepdims=True), later], axis=1)
    volumes = np.linalg.det(edges) / 6.0
    scale = np.resize(real.section_scale, len(body.sections)).repeat([section.layers for section in body.sections])
    scale *= np.where(mesh.plates, real.plate_scale * body.plate_stiffness, 1.0)
    modulus = real.modulus_scale * shear_modulus(body.material)
    poisson = body.poisson_ratio if real.poisson_ratio is None else real.poisson_ratio
    shear = modulus * scale[mesh.layer]  # Lame's constants, then those of the energy, see `kernels`
    bulk = shear * (2.0 * poisson / (1.0 - 2.0 * poisson)) + 5.0 / 6.0 * shear
    mass = np.zeros(len(mesh.nodes))
    np.add.at(mass, mesh.elements, 0.25 * body.density * volumes[:, None])
    mass[-mesh.width :] += (body.tip_mass + real.payload) / mesh.width
    shift = real.cable_shift * np.random.default_rng(real.seed).standard_normal((len(body.inputs), 2))
    cables = cable_points(body, mesh, shift)
    return Arm(
        mesh=mesh,
        cables=cables,
        cable_stiffness=real.cable_stiffness_scale * body.cable_stiffness / cables.rest_length,
        most_tension=body.most_tension,
        take_up=body.take_up,
        slopes=np.ascontiguousarray(slopes),
        volumes=volumes,
        shear=4.0 / 3.0 * shear,
        bulk=bulk,
        weight=mass[:, None] * np.array(real.gravity or body.gravity),
        stiff_force=modulus * np.pi * body.radius**2,
    )


def rubbing(body: CableArmBody, real: RealCableArm, friction: ArmFriction) -> RubbingArm:
    """The arm of a reality whose cables rub; errors as of `build_arm`."""
    arm, body = build_arm(body, real), meshed_as(body, real)
    bends, begins = friction.bends, np.cumsum([0, *(section.layers for section in body.sections)])
    borders, lengths, before = [], [], 0.0  # m of the sections before
    for section, begin in zip(body.sections, begins, strict=False):
        for _ in section.cables:
            borders.append(begin + np.round(np.linspace(0, section.layers, bends + 1)).astype(int))
            lengths.append(friction.run + before)
        before += section.length
    cut = np.array(borders)
    first = arm.cables.nodes[:, 0] // arm.mesh.width  # layer in which a piece begins
    run = (cut[arm.cables.cable, 1:-1] <= first[:, None]).sum(axis=1)
    cables = arm.cables.cut(arm.cables.cable * bends + run, arm.mesh.nodes)
    own = cables.rest_length.reshape(-1, bends)
    axial = arm.cable_stiffness * arm.cables.rest_length
    stiffness = axial[:, None] / np.concatenate([np.array(lengths)[:, None], own], axis=1)
    runs = Runs(stiffness, cut, friction.coefficient, friction.drag, friction.give, friction.sheath)
    return RubbingArm(replace(arm, cables=cables), runs)


def simulator(body: CableArmBody, real: RealCableArm = _AS_DESCRIBED) -> ArmProblem:
    """The arm, or that of a reality; errors as of `build_arm`."""
    return ArmProblem(build_arm(body, real)) if real.friction is None else rubbing(body, real, real.friction)


real_simulator = simulator


def sampled(body: CableArmBody) -> SampledSurface:
    """The arm for data sets."""
    return SampledSurface(simulator(body))


def drawn_reality(nominal: CableArmBody, draw: np.random.Generator) -> RealCableArm:
    """An arm of the distribution that docs/notes/realities-at-random.md describes."""
    tilt: Array = draw.normal(0.0, 0.01, 2)
    differences = {
        "modulus_scale": log_uniform(draw, 0.8, 1.25),
        "cable_stiffness_scale": log_uniform(draw, 0.5, 1.5),
        "cable_shift": draw.uniform(0.0, 0.02) * nominal.radius,
        "layer_scale": draw.uniform(0.6, 0.9),
        "payload": draw.uniform(0.0, 0.1),
        "gravity": tilted(nominal.gravity, tilt),
    }
    return RealCableArm(seed=int(draw.integers(1 << 31)), **some_of(differences, _CHANCES, draw))
