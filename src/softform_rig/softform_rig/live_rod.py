"""The live rod of a reality: its tip under the pressures of the moment, solved when somebody looks."""

import time

import numpy as np
from numpy.typing import NDArray

from softform_core.bodies.rod.equilibrium import solve_equilibria
from softform_core.robots import Robot
from softform_rig.reality import Reality

Array = NDArray[np.float64]

_BEYOND = 0.5  # of the working range; further outside the rod is not modelled


class LiveRod:
    """Keeps the last strains and starts the next solve from them; hysteresis of the material is in the pressures felt.

    Attributes:
        rest_tip: (3,) m in the robot's frame, without pressure.
        failure: Why the last solve failed, or None; the last good tip stays meanwhile.
        solves: Number of solves so far.
        solve_seconds: Time of the last one.
    """

    def __init__(self, robot: Robot, reality: Reality) -> None:
        """Build the rod and find it at rest, which compiles what is compiled."""
        self.rod = robot.body.real_simulator(reality.body)
        margin = _BEYOND * (robot.actuator_max - robot.actuator_min)
        self._lowest, self._highest = robot.actuator_min - margin, robot.actuator_max + margin
        self._hysteresis = reality.hysteresis
        self._felt = np.zeros(self.rod.chambers)
        self.failure: str | None = None
        self.solves, self.solve_seconds = 0, 0.0
        self._strains: Array = np.zeros((self.rod.elements, 4))
        self._tip: Array = np.zeros(3)
        self.rest_tip = self.tip(np.zeros(self.rod.chambers))

    def tip(self, pressures: Array) -> Array:
        """The tip (3,) m in the robot's frame under true pressures (k,) Pa; the last good one if none is found."""
        if ((pressures < self._lowest) | (pressures > self._highest)).any():
            self.failure = f"Pressures {np.round(pressures).tolist()} Pa lie far outside the robot's working range."
            return self._tip
        # Play operator: within ± hysteresis of a reversal the material does not follow the pressure.
        self._felt = np.clip(self._felt, pressures - self._hysteresis, pressures + self._hysteresis)
        started = time.monotonic()
        found = solve_equilibria(self.rod, self._felt[None], self._strains[None])
        self.solves += 1
        self.solve_seconds = time.monotonic() - started
        if found.failures[0]:
            self.failure = f"The rod has no equilibrium near pressures {np.round(self._felt).tolist()} Pa."
            return self._tip
        self.failure = None
        self._strains, self._tip = found.strains[0], found.tips[0]
        return self._tip

    def shape_between_solves(self, pressures: Array) -> Array:
        """As `tip`: a solve is quick enough for many looks a second."""
        return self.tip(pressures)
