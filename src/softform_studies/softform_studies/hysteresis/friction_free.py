"""The physics baseline of paper 004, Sec. VI-D1: a rod with tendons and no friction, identified on few clouds.

Young's modulus, Poisson's ratio, density, compliance of the tendons and four offsets of the displacements are found by
pattern search: each parameter is moved up and down by its step, and steps are halved where nothing helps. It is no law
of the reality, whose tendons stick and slip and whose wall creeps.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.bodies.swept import STEPS
from softform_core.errors import SoftformError
from softform_core.robots.description import Material
from softform_core.simulation.newton import find_equilibria
from softform_core.units import MM_PER_M
from softform_studies.hysteresis.centre_lines import STRETCH, CentreLines

TRAINED_ON = 30
"""Clouds from which the parameters are found, as in the paper."""
_SLACK = -0.05  # m, pull of a tendon that is paid out further than any bend takes
_POLLS, _SMALLEST = 30, 0.05
_EVERY = 4  # point of a cloud is compared
_FAR = 0.15
"""Distance of clouds from the best rod, as a share of the robot's length, beyond which they are not its."""
_SMALL = 0.3
"""Extent of clouds, as a share of the robot's length, below which they are not its: near the base any rod is near."""
_ADVICE = "They are of another robot, in another unit, or in another frame: look at one of them."


@dataclass(frozen=True, eq=False)
class Parameters:
    """Eight parameters; factors over the description's but the offsets.

    Attributes:
        values: log E, nu, log rho, log compliance of the tendons, and offsets of the four displacements, mm.
    """

    values: Array

    @classmethod
    def described(cls) -> "Parameters":
        """Return those of the description, Poisson's ratio 0.5."""
        return cls(np.array([0.0, 0.5, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]))


_STEPS = np.array([0.3, 0.2, 0.3, 0.5, 0.3, 0.3, 0.3, 0.3])
_LEAST = np.array([-2.0, 0.0, -1.0, -3.0, -2.0, -2.0, -2.0, -2.0])
_MOST = np.array([2.0, 0.5, 1.0, 4.0, 2.0, 2.0, 2.0, 2.0])


class FrictionFreeRod:
    """Centre lines of configurations, by equilibria of the rod.

    Args:
        body: The robot's body.
        lines: Of the robot.
        parameters: Of the rod.

    Attributes:
        parameters: Of the rod.
    """

    def __init__(self, body: Any, lines: CentreLines, parameters: Parameters) -> None:
        self.parameters = parameters
        log_modulus, poisson, log_density, log_compliance, *offsets = parameters.values
        section = body.section
        material = Material(
            law="neo_hookean", coefficients=[float(np.exp(log_modulus)) * section.material.coefficients[0]]
        )
        section = section.model_copy(
            update={"material": material, "density": float(np.exp(log_density)) * section.density}
        )
        tendons = [
            tendon.model_copy(update={"stiffness": float(np.exp(-log_compliance)) * tendon.stiffness})
            for tendon in body.tendons
        ]
        described = body.model_copy(update={"section": section, "tendons": tendons}).simulator()
        # G = E / (2 (1 + nu)); that of the description has nu = 0.5.
        rod = replace(described.rod, torsion=1.5 / (1.0 + poisson) * described.rod.torsion)
        self._problem, self._lines = type(described)(rod, described.tendons), lines
        self._offsets = 1e-3 * np.array(offsets)

    def bends(self, configurations: Array) -> Array:
        """Return the bends (n, 2 C + 1) of configurations (n, k) m.

        Raises:
            SoftformError: If the rod finds no equilibrium.
        """
        pulls = np.where(configurations > 0.0, configurations + self._offsets, _SLACK)
        found = find_equilibria(self._problem, pulls)
        if not found.found.all():
            raise SoftformError(
                f"The rod without friction has no equilibrium: {next(filter(None, found.failures))}",
                "Give configurations within the robot's range.",
            )
        points, directors = self._problem.stations(found.unknowns)
        tangents = directors[:, :: STEPS + 1, :, 2]  # before each section and behind the last
        return np.column_stack([untwisted(tangents), STRETCH * self._lines.stretch(MM_PER_M * points)])


def untwisted(tangents: Array) -> Array:
    """Return the bends (n, 2 C) of a frame that does not twist, which lead a tangent through all of (n, C + 1, 3)."""
    sections = tangents.shape[1] - 1
    frame = np.broadcast_to(np.eye(3), (len(tangents), 3, 3))
    found = np.zeros((len(tangents), sections, 2))
    for section in range(sections):
        towards = (frame.swapaxes(1, 2) @ tangents[:, section + 1][..., None])[..., 0]
        across = np.stack([-towards[:, 1], towards[:, 0]], axis=1)  # e3 x t
        size = np.linalg.norm(across, axis=1)
        angle = np.arctan2(size, towards[:, 2])
        found[:, section] = across * (angle / np.maximum(size, 1e-12))[:, None]
        frame = frame @ _turn(found[:, section])
    return found.reshape(len(tangents), -1)


def _turn(bend: Array) -> Array:
    """Rotations (n, 3, 3) by bends (n, 2) across the tangent."""
    angle = np.linalg.norm(bend, axis=1)[:, None, None]
    once = np.zeros((len(bend), 3, 3))
    once[:, 0, 2], once[:, 2, 0] = bend[:, 1], -bend[:, 1]
    once[:, 1, 2], once[:, 2, 1] = -bend[:, 0], bend[:, 0]
    small = np.maximum(angle, 1e-12)
    return np.asarray(np.eye(3) + np.sin(angle) / small * once + (1.0 - np.cos(angle)) / small**2 * once @ once)


def identified(
    body: Any,
    lines: CentreLines,
    configurations: Array,
    clouds: NDArray[np.float32],
    report: Callable[[str], None],
) -> FrictionFreeRod:
    """Return the rod whose skin comes next to clouds (n, M, 3) mm at configurations (n, k) m, by pattern search.

    Raises:
        SoftformError: If no rod comes near them: they are another robot's.
    """
    measured, length = torch.as_tensor(clouds[:, ::_EVERY]), MM_PER_M * body.size
    extent = float(np.ptp(clouds, axis=1).max(axis=1).mean())
    if not extent >= _SMALL * length:
        raise SoftformError(f"The clouds are {extent:.3g} mm long, and the robot {length:.0f} mm.", _ADVICE)

    def cost(values: Array) -> float:
        try:
            bends = FrictionFreeRod(body, lines, Parameters(values)).bends(configurations)
        except SoftformError:
            return np.inf
        carried = torch.as_tensor(lines.carried(lines.lines(bends)), dtype=torch.float32)
        return float((torch.cdist(measured, carried).min(dim=2).values ** 2).mean())

    values = Parameters.described().values
    best, scale, polls = cost(values), 1.0, 0
    while scale > _SMALLEST and polls < _POLLS:
        polls, improved = polls + 1, False
        for index in range(len(values)):
            for sign in (1.0, -1.0):
                tried = values.copy()
                tried[index] = np.clip(tried[index] + sign * scale * _STEPS[index], _LEAST[index], _MOST[index])
                found = cost(tried) if tried[index] != values[index] else np.inf
                if found < best:
                    values, best, improved = tried, found, True
                    break
        scale *= 1.0 if improved else 0.5
    if not best**0.5 <= _FAR * length:
        raise SoftformError(f"The clouds are {best**0.5:.0f} mm (RMS) from the nearest rod of this kind.", _ADVICE)
    report(f"  rod without friction: {best**0.5:.2f} mm (RMS) from {len(clouds)} clouds after {polls} polls")
    return FrictionFreeRod(body, lines, Parameters(values))
