"""Equilibria of many rods at once on a GPU, or on the processor, by NVIDIA warp: the method of the single solver."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.bodies.placement import by_strains
from softform_core.bodies.rod.energy import LEAST_STRETCH
from softform_core.bodies.rod.equilibrium import RUNAWAY, RodProblem
from softform_core.bodies.rotations import SERIES
from softform_core.bodies.weight import Weight
from softform_core.simulation.warp_device import load_warp


class Solutions(NamedTuple):
    """What became of n rods.

    Attributes:
        unknowns: (n, m), of no meaning where it has not converged.
        converged: (n,).
        iterations: (n,) of Newton's method.
    """

    unknowns: Array
    converged: NDArray[np.bool_]
    iterations: NDArray[np.int64]


class WarpRods:
    """Solves one rod under many pressures.

    Args:
        problem: The rod.
        device: `cpu`, or `cuda:0` and so on.

    Raises:
        SoftformError: If warp is not installed, or there is no such device.
    """

    def __init__(self, problem: RodProblem, device: str) -> None:
        self._wp = load_warp(device)
        from softform_core.bodies.rod import warp_kernels  # which imports warp

        self._kernels, self._device, self._problem = warp_kernels, device, problem
        self._rod = self._rod_on_device()

    def solve(self, pressures: Array) -> Solutions:
        """Equilibria under pressures (n, k) Pa, from the straight rod."""
        wp, count, free = self._wp, len(pressures), self._problem.rod.strains
        shape = (count, self._problem.rod.elements)
        loads = np.zeros((*shape, 4))
        loads[:, :, free] = (pressures @ self._problem.wall.pushes.T).reshape(*shape, len(free))
        room = [wp.zeros(shape, dtype=one, device=self._device) for one in self._kernels.ROOM]
        iterations = wp.zeros(count, dtype=int, device=self._device)
        converged = wp.zeros(count, dtype=wp.bool, device=self._device)
        inputs = [self._rod, wp.array(loads, dtype=wp.vec4d, device=self._device), *room, iterations, converged]
        wp.launch(self._kernels.solve, count, inputs, device=self._device)
        unknowns = room[0].numpy()[:, :, free].reshape(count, -1)
        return Solutions(unknowns, converged.numpy(), iterations.numpy().astype(np.int64))

    def _rod_on_device(self) -> Any:
        wp, problem, found = self._wp, self._problem, self._kernels.Elements()
        rod, wall, free = problem.rod, problem.wall, problem.rod.strains
        weight = Weight(rod)

        def padded(values: Array) -> Array:
            of_all = np.zeros((len(values), 4))
            of_all[:, free] = values
            return of_all

        coefficients = np.zeros((rod.elements, 3))
        coefficients[:, : rod.coefficients.shape[1]] = rod.coefficients
        for name, values, dtype in (
            ("coefficients", coefficients, wp.vec3d), ("weights", wall.weights, wp.float64),
            ("unit", padded(wall.unit), wp.vec4d), ("linear", padded(wall.linear), wp.vec4d),
            ("arms", by_strains(rod.fibre_place), wp.vec4d), ("areas", rod.fibre_area, wp.float64),
            ("moment", weight.moment[:, 0], wp.float64), ("link_moment", weight.link_moment[:, 0], wp.float64),
            ("series", SERIES.T.reshape(-1, 3, 3), wp.mat33d),
        ):  # fmt: skip
            setattr(found, name, wp.array(np.ascontiguousarray(values), dtype=dtype, device=self._device))
        found.law, found.least_stretch, found.runaway = rod.law, LEAST_STRETCH, RUNAWAY
        found.free = wp.vec4d(*np.isin(np.arange(4), free).astype(float))
        found.base, found.gravity = wp.mat33d(*rod.base.ravel()), wp.vec3d(*rod.gravity)
        found.tolerance = float(problem.tolerance(np.zeros((1, rod.chambers)))[0])
        found.rounding, found.largest_step = problem.rounding, problem.largest_step
        return found
