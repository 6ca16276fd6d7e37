"""Realities of robots with a tip: how the rod on the virtual rig differs from the simulator's.

Read from `config/realities/*.yaml` like those of the membrane; docs/steps/waypoints-001.md explains the fields.
"""

from pathlib import Path
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from scipy.spatial.transform import Rotation

from softform_core.pneumatic_robot import Description, Finite, Material, NotNegative, Positive
from softform_core.robots import TipRobot
from softform_core.rods.rod import Rod, build_rod
from softform_core.simulation.materials import shear_modulus
from softform_rig.reality import BodilessReality, read_reality

Array = NDArray[np.float64]

Spread = Annotated[float, Field(ge=0.0, le=0.2)]


class Fabrication(Description):
    """Normally distributed errors of a specimen: one draw of `seed` for each section or chamber.

    Attributes:
        stiffness: of the wall's modulus in each section, share.
        length: of each section's length, share.
        chamber_area: of each chamber's cross-section, share.
        chamber_place: of each chamber's two coordinates in the cross-section, m.
        seed: names the specimen.
    """

    stiffness: Spread = 0.0
    length: Spread = 0.0
    chamber_area: Spread = 0.0
    chamber_place: NotNegative = 0.0
    seed: Annotated[int, Field(ge=0)] = 0


class GentWall(Description):
    """The wall follows Gent's law.

    Attributes:
        modulus: its shear modulus over the described material's.
        limit: largest I1 - 3.
    """

    modulus: Positive = 1.0
    limit: Positive = 30.0


class RealRod(Description):
    """The real rod. What is left out is as the robot's description says.

    Attributes:
        elements: of each section.
        wall: its material; the described one, if left out.
        fabrication: errors of this specimen.
        base_turn: how the base is mounted: rotation about the axis along which the rod rests, and, of a rod in space,
            about the two others, rad. A planar rod is turned within its plane by the last.
        tilt: of the table out of level, about x and y, rad: gravity leans by so much.
    """

    elements: Annotated[int, Field(ge=2, le=100)] | None = None
    wall: GentWall | None = None
    fabrication: Fabrication = Fabrication()
    base_turn: tuple[Finite, Finite, Finite] = (0.0, 0.0, 0.0)
    tilt: tuple[Finite, Finite] = (0.0, 0.0)


class RodReality(BodilessReality):
    """One reality of robots with a tip."""

    body: ClassVar[str] = "rod"
    help: ClassVar[str] = "See docs/steps/waypoints-001.md."

    rod: RealRod = RealRod()


def load_rod_reality(name_or_path: str | Path, robot: TipRobot) -> RodReality:
    """Read a reality by its name in `config/realities` or by path, and check that it fits the robot.

    Raises:
        SoftformError: If the file is missing, is not YAML, or a field is wrong; the message names the field.
    """
    reality, _ = read_reality(name_or_path, robot, RodReality)
    build_real_rod(robot, reality)
    return reality


def build_real_rod(robot: TipRobot, reality: RodReality) -> Rod:
    """The rod of a reality.

    Raises:
        SoftformError: If the simulation refuses a value.
    """
    real, made = reality.rod, reality.rod.fabrication
    sections, chambers = robot.rod.sections, len(robot.chambers)
    draw = np.random.default_rng(made.seed).standard_normal
    stiffness = 1.0 + made.stiffness * draw(sections)
    length = 1.0 + made.length * draw(sections)
    area = 1.0 + made.chamber_area * draw(chambers)
    shift = made.chamber_place * draw((chambers, 2))
    nominal = robot.rod.section.material
    if real.wall is not None:
        modulus = real.wall.modulus * shear_modulus(nominal)
        nominal = Material(law="gent", coefficients=[modulus, real.wall.limit])
    along, second, third = real.base_turn
    turn = np.array([0.0, 0.0, third]) if robot.rod.planar else np.array([second, third, along])
    leaning = Rotation.from_euler("xy", real.tilt).inv()
    return build_rod(
        robot,
        elements=real.elements,
        material=lambda section: _stiffer(nominal, float(stiffness[section])),
        length_scale=length,
        chamber_shift=shift,
        chamber_scale=area,
        base_rotation=Rotation.from_rotvec(turn).as_matrix(),
        gravity=leaning.apply(robot.rod.gravity),
    )


def _stiffer(material: Material, factor: float) -> Material:
    """A material of `factor` times the modulus; of Gent's law the second coefficient is no modulus."""
    scaled = [factor * value for value in material.coefficients]
    if material.law == "gent":
        scaled[1] = material.coefficients[1]
    return Material(law=material.law, coefficients=scaled)
