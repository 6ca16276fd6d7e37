"""The live membrane of a reality: its shape under the pressures of the moment, solved only when somebody looks."""

import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from softform_core.bodies.membrane.equilibrium import Equilibrium, equilibrium_sensitivity, solve_equilibrium
from softform_core.errors import SoftformError
from softform_core.robots import Robot
from softform_rig.reality import Reality, true_pressures

Array = NDArray[np.float64]

_BEYOND = 0.5  # of the working range; further outside the membrane is not modelled (it would tear or lie on the floor)
_SAME_PRESSURE = 2.0  # Pa; closer pressures do not move the surface by more than the scanner's noise
_NEAR = 100.0  # Pa; so far the first order holds to 0.08 mm, below the noise of motion capture


class LiveMembrane:
    """Keeps the last shape and starts the next solve from it; may be asked by several threads, one at a time.

    All solves run in one thread of its own: a factor of SuperLU that another thread lets go of than the one that made
    it is never freed (https://github.com/scipy/scipy/issues/15921), 3 MB a solve.

    Attributes:
        failure: Why the last solve failed, or None; the last good shape stays meanwhile.
        solves: Number of solves so far.
        solve_seconds: Time of the last one.
    """

    def __init__(self, robot: Robot, reality: Reality) -> None:
        self._robot, self._reality = robot, reality
        self.membrane = robot.body.real_simulator(reality.body)
        self._solver = ThreadPoolExecutor(1, thread_name_prefix="membrane")
        self.failure: str | None = None
        self.solves = 0
        self.solve_seconds = 0.0
        margin = _BEYOND * (robot.actuator_max - robot.actuator_min)
        self._lowest, self._highest = robot.actuator_min - margin, robot.actuator_max + margin
        self._hysteresis = reality.hysteresis
        self._felt = np.zeros(len(robot.actuators))
        self._asked: Array | None = None
        self._vertices: Array | None = None
        self._solved: Equilibrium | None = None
        self._sensitivity: Array | None = None

    @property
    def faces(self) -> NDArray[np.int32]:
        """Triangles (F, 3) over the vertices."""
        return self.membrane.faces

    def shape(self, pressures: Array) -> Array:
        """Vertices (V, 3) m under true chamber pressures (k,) Pa; the last good ones if no equilibrium is found."""
        return self._solver.submit(self._shape, pressures).result()

    def commanded_shape(self, actuation: Array) -> Array:
        """Vertices (V, 3) m once the board has regulated its readings to an actuation (m,) Pa.

        Raises:
            SoftformError: If no equilibrium is found.
        """
        vertices = self.shape(true_pressures(self._reality, self._robot, self._robot.actuators_of(actuation)))
        if self.failure is not None:
            raise SoftformError(
                f"Reality '{self._reality.name}' has no shape: {self.failure}", "Soften its differences."
            )
        return vertices.copy()

    def shape_between_solves(self, pressures: Array) -> Array:
        """As `shape`, but to first order about the last solve where that is near, for many looks a second."""
        return self._solver.submit(self._shape_between_solves, pressures).result()

    def _shape(self, pressures: Array) -> Array:
        if self._asked is not None and np.abs(pressures - self._asked).max() <= _SAME_PRESSURE:
            return self._last()
        self._asked = pressures.copy()
        if ((pressures < self._lowest) | (pressures > self._highest)).any():
            self.failure = f"Pressures {np.round(pressures).tolist()} Pa lie far outside the robot's working range."
            return self._last()
        self._felt = self._feel(pressures)
        started = time.monotonic()
        try:
            flat = not self.membrane.weight.any() and np.abs(self._felt).max() < _SAME_PRESSURE
            # A flat sheet has no stiffness out of its plane: going back to flat, Newton from a dome would crawl.
            self._solved = None if flat else solve_equilibrium(self.membrane, self._felt, self._start())
            self._vertices = self.membrane.rest_vertices.copy() if self._solved is None else self._solved.vertices
            self._sensitivity = None
            self.failure = None
        except SoftformError as error:
            self.failure = str(error)
        self.solves += 1
        self.solve_seconds = time.monotonic() - started
        return self._last()

    def _shape_between_solves(self, pressures: Array) -> Array:
        felt = self._feel(pressures)
        if self.failure is not None or self._solved is None or np.abs(felt - self._solved.pressures).max() > _NEAR:
            return self._shape(pressures)
        self._felt = felt
        if self._sensitivity is None:
            self._sensitivity = equilibrium_sensitivity(self.membrane, self._solved)
        return self._solved.vertices + self._sensitivity @ (felt - self._solved.pressures)

    def _feel(self, pressures: Array) -> Array:
        """Play operator: within ± hysteresis of a reversal the material does not follow the pressure."""
        return np.clip(self._felt, pressures - self._hysteresis, pressures + self._hysteresis)

    def _start(self) -> Array | None:
        if self._vertices is None or np.array_equal(self._vertices, self.membrane.rest_vertices):
            return None
        return self._vertices

    def _last(self) -> Array:
        return self.membrane.rest_vertices if self._vertices is None else self._vertices
