"""Equilibria of many membranes at once on a GPU, or on the processor, by NVIDIA warp.

Potential, start, tolerance and Newton's method are those of the single solver (`simulation.newton` with
`bodies.membrane.equilibrium`). Newton's systems are solved by conjugate gradients, those of n membranes as one sparse
matrix of n independent parts (`warp.optim.linear`). There is no line search: a membrane whose step does not lessen the
forces out of balance, or along which the potential curves downwards, is given up.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from softform_core.arrays import Array
from softform_core.bodies.membrane.equilibrium import MembraneProblem, taut_sheet
from softform_core.bodies.membrane.model import Membrane
from softform_core.simulation.sampled_body import SampledSurface, Solved
from softform_core.simulation.warp_device import load_warp

_BLOCK = 64
"""Samples that are solved and written together: 0.1 GB on the device, 3 MB a chunk of the store."""


class BatchedMembranes(SampledSurface):
    """`SampledBody` of a membrane; arguments and errors as `WarpMembranes`."""

    def __init__(self, problem: MembraneProblem, device: str) -> None:
        super().__init__(problem)
        self.block, self._batched = _BLOCK, WarpMembranes(problem, device)

    def solve(self, actuators: Array, by_actuation: Array) -> Solved:
        """Vertices under pressures (b, k)."""
        vertices, converged, iterations = self._batched.solve(actuators)
        failures = [""] * len(actuators)
        for sample in np.flatnonzero(~converged).tolist():
            one = super().solve(actuators[sample : sample + 1], by_actuation[sample : sample + 1])
            vertices[sample], iterations[sample] = one.outputs["vertices"][0], one.iterations[0]
            failures[sample] = one.failures[0]
        return Solved({"vertices": vertices}, iterations, failures, ~converged)


_MAX_ITERATIONS = 12  # of Newton's method, which takes 4 to 6 from a taut sheet
_TOLERANCE = 1e-3  # of the forces that a linear system leaves: a smaller one saves hardly a step
_LINEAR_ITERATIONS = 20  # at most, times the vertices of a side; 1 to 3 are taken


class Solutions(NamedTuple):
    """What became of n membranes.

    Attributes:
        positions: (n, V, 3) m, of no meaning where it has not converged.
        converged: (n,).
        iterations: (n,) of Newton's method.
    """

    positions: Array
    converged: NDArray[np.bool_]
    iterations: NDArray[np.int64]


class WarpMembranes:
    """Solves one membrane under many pressures.

    Args:
        problem: The membrane; its fixed vertices rest.
        device: `cpu`, or `cuda:0` and so on.

    Raises:
        SoftformError: If warp is not installed, or there is no such device.
    """

    def __init__(self, problem: MembraneProblem, device: str) -> None:
        self._wp = load_warp(device)
        from softform_core.bodies.membrane import warp_kernels  # which imports warp

        self._kernels, self._device = warp_kernels, device
        self._problem, self._membrane = problem, problem.membrane
        self._pattern = _pattern_of_blocks(self._membrane)
        self._sheet = self._sheet_on_device()
        self._system: _System | None = None

    def solve(self, pressures: Array) -> Solutions:
        """Equilibria under pressures (n, k) Pa."""
        wp, kernels, count = self._wp, self._kernels, len(pressures)
        if self._system is None or self._system.count != count:
            self._system = self._new_system(count)
        system = self._system
        loads, tensions = zip(*(taut_sheet(self._membrane, one) for one in pressures), strict=True)
        self._launch(kernels.assemble_taut, system, self._array(tensions, wp.float64), self._array(loads, wp.float64))
        positions = self._array(np.tile(self._membrane.rest_vertices, (count, 1, 1)), wp.vec3d)
        going = np.ones(count, dtype=bool)
        self._step(system, going, positions)

        values = self._array(pressures, wp.float64)
        tolerance = np.array([self._problem.tolerance(one[None])[0] for one in pressures])
        before, iterations = np.full(count, np.inf), np.zeros(count, dtype=np.int64)
        converged = np.zeros(count, dtype=bool)
        for _ in range(_MAX_ITERATIONS + 1):
            self._launch(kernels.assemble, system, values, self._array(going, wp.bool), positions)
            residual = np.linalg.norm(system.force.numpy().reshape(count, -1), axis=1)
            going &= (residual < before) & ~system.bent.numpy()
            converged |= going & (residual <= tolerance)
            going &= ~converged
            if not going.any():
                break
            self._step(system, going, positions)
            before, iterations = residual, iterations + going
        return Solutions(positions.numpy(), converged, iterations)

    def _step(self, system: "_System", going: NDArray[np.bool_], positions: Any) -> None:
        """Solve the systems of those that are `going` (n,), and move them."""
        from warp.optim.linear import preconditioner

        wp, shape = self._wp, positions.shape
        wp.launch(self._kernels.hold, shape, [self._array(going, wp.bool), system.force], device=self._device)
        system.step.zero_()
        system.bent.zero_()
        system.solver(M=preconditioner(system.hessian, "block_jacobi_sequential"))
        wp.launch(self._kernels.move, shape, [system.step, positions], device=self._device)

    def _launch(self, kernel: Any, system: "_System", *arguments: Any) -> None:
        """Assemble forces and Hessians of the sheet by a kernel."""
        inputs = [self._sheet, *arguments, system.force, system.hessian.values]
        self._wp.launch(kernel, system.force.shape, inputs, device=self._device)

    def _array(self, values: Any, dtype: Any) -> Any:
        return self._wp.array(np.asarray(values), dtype=dtype, device=self._device)

    def _sheet_on_device(self) -> Any:
        wp, membrane, pattern, sheet = self._wp, self._membrane, self._pattern, self._kernels.Sheet()
        for name, values, dtype in (
            ("rest", membrane.rest_vertices, wp.vec3d), ("weight", membrane.weight, wp.vec3d),
            ("fixed", membrane.fixed, wp.bool), ("offsets", pattern.offsets, int), ("columns", pattern.columns, int),
            ("springs", pattern.aligned(membrane.springs), wp.float64),
            ("laplacian", pattern.aligned(membrane.laplacian), wp.float64),
            ("corners", pattern.corners, int), ("elements", membrane.elements, int), ("blocks", pattern.blocks, int),
            ("chambers", membrane.chamber_of_element, int), ("shapes", membrane.shapes, wp.float64),
            ("gradients", membrane.gradients, wp.vec2d), ("areas", membrane.areas, wp.float64),
            ("thickness", membrane.thickness, wp.float64),
        ):  # fmt: skip
            setattr(sheet, name, self._array(values, dtype))
        sheet.law = membrane.law
        sheet.coefficients = wp.vec3d(*np.append(membrane.coefficients, np.zeros(3 - len(membrane.coefficients))))
        return sheet

    def _new_system(self, count: int) -> "_System":
        from warp import sparse
        from warp.optim.linear import CG, LinearOperator

        wp, kernels, device = self._wp, self._kernels, self._device
        vertices, pattern = len(self._membrane.rest_vertices), self._pattern
        hessian = sparse.bsr_zeros(count * vertices, count * vertices, wp.mat33d, device=device)
        first = vertices * np.arange(count)[:, None]
        rows = np.repeat(np.arange(vertices), np.diff(pattern.offsets))
        places = [self._array((first + one).ravel(), int) for one in (rows, pattern.columns)]
        sparse.bsr_set_from_triplets(hessian, *places, prune_numerical_zeros=False)
        force, step = (wp.zeros((count, vertices), dtype=wp.vec3d, device=device) for _ in range(2))
        bent = wp.zeros(count, dtype=wp.bool, device=device)
        curvature = wp.zeros(count, dtype=wp.float64, device=device)

        def product(x: Any, y: Any, z: Any, alpha: float, beta: float) -> None:
            """As `LinearOperator`, z = alpha H x + beta y; of directions x it notes where x . H x is negative."""
            if beta != 0.0:
                wp.copy(z, y)
            sparse.bsr_mv(hessian, x, z, alpha, beta)
            if beta == 0.0:
                pairs = [one.reshape((count, vertices)) for one in (x, z)]
                wp.launch(kernels.add_curvature, (count, vertices), [*pairs, curvature], device=device)
                wp.launch(kernels.note_curvature, count, [curvature, bent], device=device)

        offsets = self._array(3 * vertices * np.arange(count + 1), int)
        operator = LinearOperator(hessian.shape, hessian.dtype, hessian.device, product, offsets, 3 * vertices)
        most = int(_LINEAR_ITERATIONS * np.sqrt(vertices))
        solver = CG(operator, force.flatten(), step.flatten(), tol=_TOLERANCE, atol=0.0, maxiter=most)
        return _System(count, hessian, force, step, bent, solver)


@dataclass(frozen=True)
class _System:
    """Newton's systems of n membranes of V vertices, on the device.

    Attributes:
        count: n.
        hessian: Sparse matrix of n V rows of blocks.
        force: Right-hand side, (n, V).
        step: Solution, (n, V).
        bent: Where the last solution met negative curvature, (n,).
        solver: Solves hessian step = force.
    """

    count: int
    hessian: Any
    force: Any
    step: Any
    bent: Any
    solver: Any


@dataclass(frozen=True)
class _Pattern:
    """Blocks (3, 3) of the Hessian of V vertices, row by row.

    Attributes:
        offsets: (V + 1,) first block of each row.
        columns: (B,).
        blocks: (E, c, c) block of each pair of an element's corners.
        corners: (V, most around a vertex) c e + a where corner a of element e lies there; -1 where there are fewer.
    """

    offsets: NDArray[np.int32]
    columns: NDArray[np.int32]
    blocks: NDArray[np.int64]
    corners: NDArray[np.int64]

    def aligned(self, matrix: csr_matrix) -> Array:
        """Entries (B,) of a sparse matrix (V, V), whose entries lie within the pattern."""
        entries, vertices = matrix.tocoo(), len(self.offsets) - 1
        rows = np.repeat(np.arange(vertices), np.diff(self.offsets))
        places = np.searchsorted(rows * vertices + self.columns, entries.row.astype(np.int64) * vertices + entries.col)
        return np.bincount(places, entries.data, len(self.columns)).astype(np.float64)


def _pattern_of_blocks(membrane: Membrane) -> _Pattern:
    elements, vertices = membrane.elements.astype(np.int64), len(membrane.rest_vertices)
    keys = elements[:, :, None] * vertices + elements[:, None, :]
    stored, blocks = np.unique(keys, return_inverse=True)
    offsets = np.searchsorted(stored, np.arange(vertices + 1) * vertices)
    around = np.bincount(elements.ravel(), minlength=vertices)
    order = np.argsort(elements.ravel(), kind="stable")
    corners = np.full((vertices, around.max()), -1)
    corners[np.repeat(np.arange(vertices), around), np.concatenate([np.arange(one) for one in around])] = order
    return _Pattern(offsets.astype(np.int32), (stored % vertices).astype(np.int32), blocks.reshape(keys.shape), corners)
