"""The live membrane of a reality: its shape under the pressures of the moment, solved only when somebody looks."""

import time

import numpy as np
from numpy.typing import NDArray

from softform_core.errors import SoftformError
from softform_core.robots import Robot
from softform_core.simulation import solve_equilibrium
from softform_rig.reality import Reality, build_real_membrane

_BEYOND = 0.5  # of the working range; further outside the membrane is not modelled (it would tear or lie on the floor)
_SAME_PRESSURE = 2.0  # Pa; closer pressures do not move the surface by more than the scanner's noise


class LiveMembrane:
    """Keeps the last shape and starts the next solve from it.

    Attributes:
        failure: Why the last solve failed, or None; the last good shape stays meanwhile.
        solves: Number of solves so far.
        solve_seconds: Time of the last one.
    """

    def __init__(self, robot: Robot, reality: Reality) -> None:
        """Build the membrane at rest."""
        self.membrane = build_real_membrane(robot, reality)
        self.failure: str | None = None
        self.solves = 0
        self.solve_seconds = 0.0
        margin = _BEYOND * (robot.pressure_max - robot.pressure_min)
        self._lowest, self._highest = robot.pressure_min - margin, robot.pressure_max + margin
        self._hysteresis = reality.hysteresis
        self._felt = np.zeros(robot.degrees_of_freedom)
        self._asked: NDArray[np.float64] | None = None
        self._vertices: NDArray[np.float64] | None = None

    @property
    def faces(self) -> NDArray[np.int32]:
        """Triangles (F, 3) over the vertices."""
        return self.membrane.faces

    def shape(self, pressures: NDArray[np.float64], tolerance: float = 0.0) -> NDArray[np.float64]:
        """Vertices (V, 3) m under true chamber pressures (k,) Pa; the last good ones if no equilibrium is found.

        The last ones are also given if no pressure has changed by more than `tolerance` Pa.
        """
        if self._asked is not None and np.abs(pressures - self._asked).max() <= max(tolerance, _SAME_PRESSURE):
            return self._last()
        self._asked = pressures.copy()
        if ((pressures < self._lowest) | (pressures > self._highest)).any():
            self.failure = f"Pressures {np.round(pressures).tolist()} Pa lie far outside the robot's working range."
            return self._last()
        # Play operator: within ± hysteresis of a reversal the material does not follow the pressure.
        self._felt = np.clip(self._felt, pressures - self._hysteresis, pressures + self._hysteresis)
        started = time.monotonic()
        try:
            flat = not self.membrane.weight.any() and np.abs(self._felt).max() < _SAME_PRESSURE
            # A flat sheet has no stiffness out of its plane: going back to flat, Newton from a dome would crawl.
            self._vertices = (
                self.membrane.rest_vertices.copy()
                if flat
                else solve_equilibrium(self.membrane, self._felt, self._start()).vertices
            )
            self.failure = None
        except SoftformError as error:
            self.failure = str(error)
        self.solves += 1
        self.solve_seconds = time.monotonic() - started
        return self._last()

    def _start(self) -> NDArray[np.float64] | None:
        if self._vertices is None or np.array_equal(self._vertices, self.membrane.rest_vertices):
            return None
        return self._vertices

    def _last(self) -> NDArray[np.float64]:
        return self.membrane.rest_vertices if self._vertices is None else self._vertices
