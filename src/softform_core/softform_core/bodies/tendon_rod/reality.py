"""What makes a real tendon robot depend on its path, as fields of a reality; docs/robots/tendon_robot.md has each."""

from typing import Annotated

import numpy as np
from pydantic import Field

from softform_core.arrays import Array
from softform_core.bodies.loads.friction import CableFriction
from softform_core.bodies.rod.model import Rod
from softform_core.bodies.tendon_rod.description import TendonRodBody
from softform_core.bodies.tendon_rod.guides import build_guides
from softform_core.bodies.tendon_rod.path import TendonPath
from softform_core.bodies.tendon_rod.path_dependent import Line
from softform_core.bodies.tendon_rod.wall import Softening, Wall
from softform_core.robots.description import Description, NotNegative, Positive


class Friction(CableFriction):
    """Tendons in the holes of discs.

    Attributes:
        axial: Axial stiffness EA of the tendons, N.
    """

    axial: Positive = 1500.0


class Tube(Description):
    """The metal tube in the axis: diameters, m, and moduli, Pa."""

    outer: Positive = 0.0010
    inner: Positive = 0.0008
    youngs_modulus: Positive = 60e9
    shear_modulus: Positive = 23e9

    @property
    def stiffness(self) -> Array:
        """Bending stiffness twice, and that of torsion, N m^2; axial stiffness, N."""
        second = np.pi / 64.0 * (self.outer**4 - self.inner**4)
        area = 0.25 * np.pi * (self.outer**2 - self.inner**2)
        bending = self.youngs_modulus * second
        return np.array([bending, bending, 2.0 * self.shear_modulus * second, self.youngs_modulus * area])


class PronyTerm(Description):
    """A share of the polymer's stiffness that fades like exp(-t / time), s, beside the one that stays."""

    share: Annotated[float, Field(gt=0.0, le=3.0)]
    time: Positive


class Mullins(Description):
    """Constants of Ogden and Roxburgh's law: r, m as energy of a section, J, and beta."""

    r: Annotated[float, Field(gt=1.0)] = 3.0
    m: Positive = 1e-4
    beta: NotNegative = 0.1


class PathDependence(Description):
    """A tendon robot whose shape depends on its path.

    Attributes:
        modulus: Young's modulus of the polymer in the long run, Pa.
        anisotropy: Share by which its bending stiffness differs about the two axes of the cross-section.
        creep: Its Prony series.
        softening: Its Mullins effect.
        tube: In its axis.
        friction: Of the tendons.
        dead_band: Half of the way by which a motor turns back before its tendon feels it, m.
    """

    modulus: Positive = 31e6
    anisotropy: Annotated[float, Field(gt=-0.3, lt=0.3)] = 0.0
    creep: list[PronyTerm] = []
    softening: Mullins = Mullins()
    tube: Tube = Tube()
    friction: Friction = Friction()
    dead_band: NotNegative = 0.0


def path_of(body: TendonRodBody, rod: Rod, path: PathDependence, shift: Array, stiffness_scale: Array) -> TendonPath:
    """Return the rod's way along its path.

    Args:
        body: Its description.
        rod: Its elements, one a section.
        path: What makes it depend on its path.
        shift: (k, 2) m, of the tendons' places.
        stiffness_scale: (k,) of the tendons' stiffness.

    Raises:
        SoftformError: If the rod is of another kind than `build_guides` asks for.
    """
    second = (rod.fibre_area[:, None] * rod.fibre_place[:, ::-1] ** 2).sum(0)  # about d1 and d2
    second *= 1.0 + path.anisotropy * np.array([1.0, -1.0])
    polymer = path.modulus * np.array([*second, second.sum() / 3.0, rod.fibre_area.sum()])  # incompressible: G = E / 3
    softer = rod.coefficients[:, :1] / rod.coefficients[:, :1].mean()  # of this specimen's sections
    in_bends = np.stack([1.0 / rod.length] * 3 + [rod.length], axis=1)
    wall = Wall(
        tube=path.tube.stiffness * in_bends,
        polymer=softer * polymer * in_bends,
        softening=Softening(path.softening.r, path.softening.m, path.softening.beta),
        shares=np.array([term.share for term in path.creep]),
        times=np.array([term.time for term in path.creep]),
        length=rod.length,
        rim=body.disc_radius,
    )
    friction = path.friction
    line = Line(
        guides=build_guides(body, rod, shift),
        stiffness=friction.axial * stiffness_scale,
        run=friction.run,
        sheath=friction.sheath,
        friction=friction.coefficient,
        drag=friction.drag,
        give=friction.give,
    )
    return TendonPath(rod, wall, line, path.dead_band)
