"""How a real membrane differs from the simulator's; docs/steps/write-a-reality.md explains every field."""

import math
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from softform_core.bodies.membrane.description import MembraneBody
from softform_core.bodies.membrane.equilibrium import MembraneProblem
from softform_core.bodies.membrane.model import build_membrane
from softform_core.bodies.random_fields import SHEETS, another_silicone, log_uniform, some_of
from softform_core.bodies.spread import Values, not_negative, spread_values
from softform_core.robots.description import Description, Material, Place, Positive

_GRAVITY = 9.81
_CHANCES = {
    "material": 0.8,
    "prestretch": 0.8,
    "thickness": 0.8,
    "wall_stiffness_scale": 0.6,
    "column_wall_shift": 0.5,
    "row_wall_shift": 0.5,
    "clamp_stiffness": 0.6,
}
"""Probability that a drawn membrane differs in a field."""

_WAVES = 200
"""Plane waves whose sum makes a thickness field close to Gaussian."""


class ThicknessField(Description):
    """Thickness of the real sheet over the nominal one: a mean factor and a smooth random field."""

    scale: Positive = 1.0
    variation: Annotated[float, Field(ge=0.0, le=0.3)] = 0.0
    correlation_length: Positive = 0.1
    seed: Annotated[int, Field(ge=0)] = 0


class RealMembrane(Description):
    """The real membrane. What is left out is as the robot's description says."""

    cells: Annotated[int, Field(ge=6, le=120)] | None = None
    element: Literal["quadrilateral", "triangle"] = "quadrilateral"
    material: Material | None = None
    thickness: ThicknessField = ThicknessField()
    prestretch: Annotated[float, Field(ge=1.0, le=2.0)] | None = None
    wall_stiffness_scale: Values = 1.0
    column_wall_shift: Values | None = None
    row_wall_shift: Values | None = None
    clamp_stiffness: Positive | None = None
    gravity: Place = (0.0, 0.0, 0.0)


Reality = RealMembrane


def real_simulator(nominal: MembraneBody, real: RealMembrane) -> MembraneProblem:
    """The membrane of a reality.

    Raises:
        ValueError: If a list does not fit the number of chambers or walls.
        SoftformError: If the simulation rejects a value.
    """
    stiffness = spread_values(real.wall_stiffness_scale, len(nominal.inputs), "wall_stiffness_scale", not_negative)
    membrane = build_membrane(
        nominal,
        cells=real.cells,
        element=real.element,
        material=real.material,
        thickness=lambda x, y: nominal.thickness * thickness_factor(real.thickness, x, y),
        prestretch=real.prestretch,
        wall_stiffness=nominal.wall_stiffness * stiffness,
        column_walls=_walls(nominal.width, nominal.columns, real.column_wall_shift, "column_wall_shift"),
        row_walls=_walls(nominal.length, nominal.rows, real.row_wall_shift, "row_wall_shift"),
        clamp_stiffness=real.clamp_stiffness,
        gravity=real.gravity,
    )
    return MembraneProblem(membrane)


def thickness_factor(field: ThicknessField, x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
    """Thickness over the nominal one at x, y (any equal shape, m): the same field on every mesh.

    A sum of random plane waves has a Gaussian covariance with the field's correlation length; it is kept within 2.5
    standard deviations.
    """
    generator = np.random.default_rng(field.seed)
    wave = generator.standard_normal((_WAVES, 2)) / field.correlation_length
    phase = generator.uniform(0.0, 2.0 * np.pi, _WAVES)
    position = np.stack([np.ravel(x), np.ravel(y)], axis=1)
    value = np.sqrt(2.0 / _WAVES) * np.cos(position @ wave.T + phase).sum(axis=1)
    return (field.scale * (1.0 + field.variation * np.clip(value, -2.5, 2.5))).reshape(np.shape(x))


def _walls(side: float, chambers: int, shift: Values | None, field: str) -> list[float] | None:
    if shift is None:
        return None
    inner = np.linspace(-side / 2.0, side / 2.0, chambers + 1)[1:-1]
    return (inner + spread_values(shift, chambers - 1, field)).tolist()


def drawn_reality(nominal: MembraneBody, draw: np.random.Generator) -> RealMembrane:
    """A membrane of the distribution that docs/notes/realities-at-random.md describes.

    Args:
        nominal: Body of the robot's description.
        draw: Decides; everything is drawn in any case, so that a field's chance changes nothing else.
    """
    material = another_silicone(nominal.material, (0.65, 1.3), SHEETS, draw)
    thickness = ThicknessField(
        scale=draw.uniform(0.85, 1.1),
        variation=draw.uniform(0.02, 0.12),
        correlation_length=draw.uniform(0.2, 0.5) * nominal.size,
        seed=int(draw.integers(2**31)),
    )
    walls = np.array([log_uniform(draw, 0.5, 2.0) for _ in nominal.inputs])
    torn = draw.random(len(walls)) < 0.15
    walls[torn] = draw.uniform(0.0, 0.2, len(walls))[torn]
    deviation = 0.01 * nominal.size
    tilt = draw.normal(size=3)
    differences = {
        "material": material,
        "prestretch": 1.0 + (nominal.prestretch - 1.0) * draw.uniform(0.6, 1.4),
        "thickness": thickness,
        "wall_stiffness_scale": walls.tolist(),
        "column_wall_shift": draw.normal(0.0, deviation, nominal.columns - 1).tolist(),
        "row_wall_shift": draw.normal(0.0, deviation, nominal.rows - 1).tolist(),
        "clamp_stiffness": log_uniform(draw, 1e5, 5e5),
    }
    upright = draw.random() < 0.75
    side = math.lcm(nominal.rows, nominal.columns)
    return RealMembrane(
        cells=side * round(draw.uniform(0.8, 1.0) * nominal.cells / side),
        element="triangle" if draw.random() < 0.5 else "quadrilateral",
        gravity=(0.0, 0.0, -_GRAVITY) if upright else tuple(_GRAVITY * tilt / np.linalg.norm(tilt)),
        **some_of(differences, _CHANCES, draw),
    )
