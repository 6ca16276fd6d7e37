"""What a body gives the solver: its total potential over the free unknowns, and how it takes its load."""

from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.simulation.hessian import Hessian


class EquilibriumProblem(Protocol):
    """Total potential Pi(x; a) of a body, x its m free unknowns, a its k actuator values.

    All functions take n samples at once: unknowns (n, m), in one unit or in units of like stiffness, and actuator
    values (n, k).
    """

    @property
    def batch(self) -> int:
        """Most samples at once; 1 where the Hessian is sparse."""

    @property
    def unloaded(self) -> Array:
        """Actuator values (k,) from which the load path begins: unloaded + share (a - unloaded)."""

    @property
    def largest_step(self) -> float:
        """Largest change of an unknown in one Newton step; a mixed problem that would take a longer one has failed."""

    @property
    def rounding(self) -> float:
        """Differences of the energy below this are rounding, J."""

    def tolerance(self, actuators: Array) -> Array:
        """Norm of the gradient (n,) below which the forces are in balance."""

    def start(self, actuators: Array) -> Array:
        """Unknowns (n, m) from which Newton's method begins."""

    def energy(self, unknowns: Array, actuators: Array) -> Array:
        """Pi (n,), J; infinite where the material has collapsed."""

    def derivatives(self, unknowns: Array, actuators: Array) -> tuple[Array, Hessian]:
        """Gradient (n, m) and Hessian of Pi."""

    def load_derivative(self, unknowns: Array, actuators: Array) -> Array:
        """Derivative of the gradient by the actuator values, (n, m, k)."""

    def has_run_away(self, unknowns: Array) -> NDArray[np.bool_]:
        """Whether (n,) the body has left every shape that its model describes."""


@runtime_checkable
class MixedProblem(EquilibriumProblem, Protocol):
    """A problem whose Newton steps solve for pressures of its own, too, such as of a material that keeps its volume.

    Its energy says little on the way, for it rises steeply wherever the volume is a little off: steps are not judged by
    it, but are taken as far as `step_share` allows.
    """

    def derivatives_after(
        self, unknowns: Array, before: Array, actuators: Array, balanced: Array | None = None
    ) -> tuple[Array, Hessian]:
        """Gradient (n, m) and the matrix of the next step, where the last one came from `before` (n, m).

        Where both are the same it is `derivatives`. The first step from a balance under other values `balanced` (n, k)
        has the stresses and loads of those in its matrix.
        """

    def step_share(self, unknowns: Array, step: Array) -> Array:
        """Share (n,) of a step (n, m) that the material endures."""


@runtime_checkable
class ShapeProblem(EquilibriumProblem, Protocol):
    """A problem that has balances of forces in shapes that no body can take."""

    def impossible(self, unknowns: Array) -> list[str]:
        """What is impossible about each of n shapes (n, m), such as `chamber c2 turns inside out`; else empty."""


@runtime_checkable
class GuardedProblem(EquilibriumProblem, Protocol):
    """A problem with shapes between which no step may lead, such as those on two sides of an obstacle; `batch` is 1.

    Where a body slides off what it leans on, its Hessian is indefinite for that alone.
    """

    def free_share(self, unknowns: Array, step: Array) -> Array:
        """Share (1,) of a step (1, m) that may be taken; all shapes on the way may be."""

    def stiffened(self, unknowns: Array, actuators: Array) -> Hessian:
        """Hessian without what contact makes indefinite, for steps that go down."""

    def way_down(self, unknowns: Array, actuators: Array) -> Array | None:
        """A step (1, m) from an unstable balance to less energy; None of a stable one.

        Raises:
            NoEquilibriumError: If there is none, though the balance is unstable.
        """
