"""What a body gives to the generator of data sets."""

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array


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
