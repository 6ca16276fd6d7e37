"""What a body gives to the generator of data sets."""

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.simulation.newton import NO_EQUILIBRIUM_ADVICE, find_equilibria
from softform_core.simulation.sensitivity import equilibrium_sensitivities
from softform_core.simulation.simulated_body import SimulatedBody, rest_points

__all__ = ["SampledBody", "SampledSurface", "SampledTip", "Solved"]

_LARGEST_BLOCK = 8
"""Most samples of a surface that are solved and written together: what an interrupted run loses at most."""


class Solved(NamedTuple):
    """Samples that have been solved.

    Attributes:
        outputs: Outputs by name, (b, ...) each; rows that failed are not read.
        iterations: (b,) of Newton's method.
        failures: (b,) why there is no equilibrium; empty where there is one.
        singly: (b,) where a solver of many at once gave up and the single one took over; None of the single one.
    """

    outputs: dict[str, Array]
    iterations: NDArray[np.int64]
    failures: list[str]
    singly: NDArray[np.bool_] | None = None


class SampledBody(Protocol):
    """A body's simulator as data sets use it."""

    @property
    def block(self) -> int:
        """Samples that are solved and written together."""

    @property
    def constants(self) -> dict[str, NDArray]:
        """Arrays that all samples share, by name."""

    def output_shapes(self, degrees_of_freedom: int) -> dict[str, tuple[int, ...]]:
        """Shapes of one sample's outputs, by name."""

    def solve(self, actuators: Array, by_actuation: Array) -> Solved:
        """Solve samples of commands (b, k) and their derivative by the degrees of freedom, (b, k, m)."""


class SampledSurface:
    """`SampledBody` of a body whose points are the vertices of its surface."""

    def __init__(self, body: SimulatedBody) -> None:
        self._body, self.block = body, min(body.batch, _LARGEST_BLOCK)
        self.constants: dict[str, NDArray] = {"rest_vertices": rest_points(body), "faces": body.faces}

    def output_shapes(self, degrees_of_freedom: int) -> dict[str, tuple[int, ...]]:
        """`vertices` (V, 3) m."""
        return {"vertices": self.constants["rest_vertices"].shape}

    def solve(self, actuators: Array, by_actuation: Array) -> Solved:
        """Vertices under commands (b, k)."""
        found = find_equilibria(self._body, actuators)
        failures = [f"{reason} {NO_EQUILIBRIUM_ADVICE}" if reason else "" for reason in found.failures]
        return Solved({"vertices": self._body.points(found.unknowns)}, found.iterations, failures)


class SampledTip:
    """`SampledBody` of a body whose frame `tip` moves in three coordinates, solved one after another."""

    block = 1

    def __init__(self, body: SimulatedBody) -> None:
        self._body, self._tip = body, body.frames["tip"]
        self.constants: dict[str, NDArray] = {}

    def output_shapes(self, degrees_of_freedom: int) -> dict[str, tuple[int, ...]]:
        """`tip` (3,) m, and `jacobian` (3, m), m by the actuators' unit."""
        return {"tip": (3,), "jacobian": (3, degrees_of_freedom)}

    def solve(self, actuators: Array, by_actuation: Array) -> Solved:
        """Tips under commands (b, k), and their Jacobians by the implicit function theorem."""
        found = find_equilibria(self._body, actuators)
        jacobians = np.full((len(actuators), 3, by_actuation.shape[2]), np.nan)
        for index in np.flatnonzero([not reason for reason in found.failures]):
            unknowns, values = found.unknowns[index : index + 1], actuators[index : index + 1]
            moves = self._body.moved_points(unknowns, equilibrium_sensitivities(self._body, unknowns, values))
            jacobians[index] = moves[0, self._tip] @ by_actuation[index]
        failures = [f"{reason} {NO_EQUILIBRIUM_ADVICE}" if reason else "" for reason in found.failures]
        tips = self._body.points(found.unknowns)[:, self._tip]
        return Solved({"tip": tips, "jacobian": jacobians}, found.iterations, failures)
