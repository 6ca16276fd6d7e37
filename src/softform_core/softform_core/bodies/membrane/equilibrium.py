"""The membrane as an equilibrium problem: its total potential, the derivatives of that, a start off the flat shape.

    Pi(x) = sum of W(I1) t dA  +  1/2 k |x - X|^2 along the walls  -  sum p_i V_i(x)  -  weight . (x - X)

A pressure load has a potential because each chamber's volume has one (see `bodies.membrane.energy`), so the Hessian is
symmetric.
"""

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csc_matrix
from scipy.sparse.linalg import splu

from softform_core.arrays import Array
from softform_core.bodies.membrane.energy import assemble, chamber_volumes, potential_energy
from softform_core.bodies.membrane.model import Membrane
from softform_core.bodies.nodal import NodalProblem
from softform_core.simulation.hessian import SparseHessian
from softform_core.simulation.materials import shear_modulus


def total_potential(membrane: Membrane, vertices: Array, pressures_pa: ArrayLike) -> float:
    """Total potential Pi at `vertices` (V, 3) m, J; infinite where an element has collapsed."""
    displacement = vertices - membrane.rest_vertices
    tethers = 0.5 * float(np.sum(displacement * (membrane.springs @ displacement)))
    elements = potential_energy(
        vertices, membrane.elements, membrane.shapes, membrane.gradients, membrane.areas, membrane.thickness,
        membrane.pressure_of_element(pressures_pa), membrane.law, membrane.coefficients,
    )  # fmt: skip
    return float(elements) + tethers - float(np.sum(membrane.weight * displacement))


def gradient_and_hessian(membrane: Membrane, vertices: Array, pressures_pa: ArrayLike) -> tuple[Array, csc_matrix]:
    """Gradient (m,) N and Hessian (m, m) N/m of Pi over the free degrees of freedom `membrane.pattern.order`."""
    gradient, values = gradient_and_values(membrane, vertices, pressures_pa)
    return gradient, membrane.pattern.matrix(values)


def volumes_and_gradients(membrane: Membrane, vertices: Array) -> tuple[Array, Array]:
    """Volume between each chamber's membrane and the plane of the rims, (k,) m^3, and its gradient, (k, V, 3) m^2."""
    volumes = np.zeros(membrane.chambers)
    gradients = np.zeros((membrane.chambers, *membrane.rest_vertices.shape))
    chamber_volumes(
        vertices, membrane.elements, membrane.shapes, membrane.gradients, membrane.areas,
        membrane.chamber_of_element, volumes, gradients,
    )  # fmt: skip
    return volumes, gradients


def load_size(membrane: Membrane, pressures_pa: ArrayLike) -> float:
    """Norm of the nodal forces of pressure and weight on the flat sheet, N."""
    pressure = membrane.pressure_of_element(pressures_pa)
    return float(np.linalg.norm(flat_load(membrane, pressure))) + float(np.linalg.norm(membrane.weight))


def stiffness_of_sheet(membrane: Membrane) -> float:
    """Young's modulus times mean thickness, N/m."""
    return 3.0 * shear_modulus(membrane.material) * float(membrane.thickness.mean())


def dome(membrane: Membrane, pressures_pa: ArrayLike) -> Array:
    """A smooth start off the flat shape, whose out-of-plane stiffness is nil: a taut sheet under the pressures (k,) Pa.

    Its height solves -T laplace(z) + k z = load, with load and tension T of `taut_sheet`.
    """
    load, tension = taut_sheet(membrane, pressures_pa)
    if not load.any():  # nothing but a weight within the plane: the sheet stays flat
        return membrane.rest_vertices.copy()
    free = np.flatnonzero(~membrane.fixed)
    system = tension * membrane.laplacian + membrane.springs
    height = np.zeros(len(load))
    sheet = csc_matrix(system[free][:, free])
    factor = splu(sheet, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
    height[free] = factor.solve(load[free])
    start = membrane.rest_vertices.copy()
    start[:, 2] = height
    return start


def taut_sheet(membrane: Membrane, pressures_pa: ArrayLike) -> tuple[Array, float]:
    """Load (V,) N of pressures (k,) Pa and weight across the sheet at rest, and a tension for it, N/m.

    That of Hencky's circular membrane of a chamber's area under the mean load, weighted by the load itself so that idle
    chambers do not slacken the sheet; nil without a load.
    """
    pressure = membrane.pressure_of_element(pressures_pa)
    load = flat_load(membrane, pressure) + membrane.weight[:, 2]
    if not load.any():
        return load, 0.0
    area = float(membrane.areas.sum())
    radius = np.sqrt(area / membrane.chambers / np.pi)
    density = np.abs(load) / np.maximum(flat_load(membrane, np.ones(len(pressure))), 1e-300)
    mean = float((density**2).sum() / density.sum())
    rise = 0.595 * radius * (mean * radius / stiffness_of_sheet(membrane)) ** (1.0 / 3.0)
    return load, mean * radius**2 / (4.0 * rise)


def gradient_and_values(membrane: Membrane, vertices: Array, pressures_pa: ArrayLike) -> tuple[Array, Array]:
    """As `gradient_and_hessian`, for any sheets, with the Hessian's stored entries in `membrane.pattern`."""
    values = membrane.constant.copy()
    gradient = membrane.springs @ (vertices - membrane.rest_vertices) - membrane.weight
    assemble(
        vertices, membrane.elements, membrane.shapes, membrane.gradients, membrane.areas, membrane.thickness,
        membrane.pressure_of_element(pressures_pa), membrane.law, membrane.coefficients, membrane.slots,
        gradient, values,
    )  # fmt: skip
    return gradient.ravel()[membrane.pattern.order], values


def flat_load(membrane: Membrane, pressure: Array) -> Array:
    """Load (V,) N of pressures (E,) Pa across the sheet at rest."""
    force = np.zeros(len(membrane.rest_vertices))
    np.add.at(force, membrane.elements, np.einsum("eq,nq,e->en", membrane.areas, membrane.shapes, pressure))
    return force


RESIDUAL_TOLERANCE = 1e-8  # of the pressure and weight forces
ROUNDING = 1e-14  # of Young's modulus times thickness: what 64-bit sums over the mesh resolve
MAX_STEP = 0.25  # largest move of a vertex in one Newton step, of the membrane's side


class MembraneProblem(NodalProblem):
    """`SimulatedBody` of a membrane; the unknowns are the places of its free vertices, m, in the pattern's order.

    Args:
        membrane: Result of `build_membrane`.
    """

    def __init__(self, membrane: Membrane) -> None:
        super().__init__(membrane.rest_vertices, membrane.pattern, membrane.extent)
        self.membrane = membrane
        self._stiffness = stiffness_of_sheet(membrane)
        self.unloaded = np.zeros(membrane.chambers)
        self.largest_step = MAX_STEP * membrane.extent
        self.rounding = ROUNDING * self._stiffness * membrane.extent**2
        self.faces = membrane.faces
        self.is_slack = not membrane.weight.any()

    def tolerance(self, actuators: Array) -> Array:
        """Forces (1,) N below which the sheet is in balance."""
        forces = RESIDUAL_TOLERANCE * load_size(self.membrane, actuators[0])
        return np.array([max(forces, ROUNDING * self._stiffness * self.membrane.extent)])

    def start(self, actuators: Array) -> Array:
        """A dome."""
        return self.unknowns(dome(self.membrane, actuators[0]))

    def energy(self, unknowns: Array, actuators: Array) -> Array:
        """Pi (1,), J."""
        return np.array([total_potential(self.membrane, self.nodes(unknowns[0]), actuators[0])])

    def derivatives(self, unknowns: Array, actuators: Array) -> tuple[Array, SparseHessian]:
        """Gradient (1, m) N and Hessian, N/m."""
        gradient, hessian = gradient_and_hessian(self.membrane, self.nodes(unknowns[0]), actuators[0])
        return gradient[None], SparseHessian(hessian)

    def load_derivative(self, unknowns: Array, actuators: Array) -> Array:
        """-dV/dx, (1, m, k) m^2."""
        _, gradients = volumes_and_gradients(self.membrane, self.nodes(unknowns[0]))
        return -gradients.reshape(self.membrane.chambers, -1)[:, self._order].T[None]
