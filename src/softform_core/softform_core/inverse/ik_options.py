"""Options of inverse kinematics: what to solve, within which bounds, and when to stop.

An input whose bounds are equal is held: the solve frees the others only. A model of the prior and the current actuation
(paper 004) is solved so, its prior half held at what the robot had. Millimetres; actuations in the robot's unit.
"""

import enum
from dataclasses import dataclass, field

import numpy as np

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.geometry.rigid import RigidTransform

__all__ = ["IkOptions", "Termination", "check_options"]


class Termination(enum.Enum):
    """Reason why the solver stopped."""

    TOLERANCE_REACHED = "the mean error is within the tolerance"
    CONVERGED = "no further decrease of the error is possible nearby"
    STALLED = "no step lowers the error although its slope is not zero"
    MAX_ITERATIONS = "the largest number of iterations is reached"
    TIME_LIMIT = "the time is up"
    CANCELLED = "the caller asked to stop"

    @property
    def finished(self) -> bool:
        """Whether the method ended by itself rather than being cut short."""
        return self in (Termination.TOLERANCE_REACHED, Termination.CONVERGED, Termination.STALLED)


@dataclass(frozen=True)
class IkOptions:
    """What to solve and when to stop.

    Attributes:
        actuation_min: (k,).
        actuation_max: (k,), no lower; an input is held where it is equal.
        initial_actuation: (k,), or None: the previous actuation if there is one, else the middle of the range.
        fix_pose: True: the target stays where it is (R = I, t = 0); False: its pose is solved for.
        initial_pose: Initial pose of the target if the pose is solved for.
        tolerance_mm: Stop when the mean error is no larger.
        relative_decrease: The paper's lambda: stop when the merit falls by less than this part of itself.
        max_iterations: The paper's i_max.
        max_seconds: Wall-clock limit.
        partial: The target shows only a part of the shape, perhaps with strays: distances to what it lacks do not
            count, and those that stand out from the others count less or not at all.
        preferred_actuation: (k,), or None: a posture that is kept as far as the target allows (redundancy).
        preference_mm2: Squared error that one actuator's whole range away from the posture is worth, mm^2.
        previous_actuation: (k,), or None: what the robot holds now.
        smoothness_mm2: Squared error that one actuator's whole range away from the previous actuation is worth, mm^2.
        most_change: (k,), or None: slew limit of this solve about the previous actuation.
    """

    actuation_min: Array
    actuation_max: Array
    initial_actuation: Array | None = None
    fix_pose: bool = True
    initial_pose: RigidTransform = field(default_factory=RigidTransform)
    tolerance_mm: float = 0.0
    relative_decrease: float = 1e-4
    max_iterations: int = 100
    max_seconds: float = 10.0
    partial: bool = False
    preferred_actuation: Array | None = None
    preference_mm2: float = 0.0
    previous_actuation: Array | None = None
    smoothness_mm2: float = 0.0
    most_change: Array | None = None

    @property
    def range(self) -> Array:
        """Width of the working range, (k,); 0 of an input that is held."""
        return np.asarray(self.actuation_max - self.actuation_min)

    def parts(self, change: Array) -> Array:
        """Return changes of the actuation (..., k) as parts of the range; zero for a held input."""
        return np.divide(change, self.range, out=np.zeros_like(change), where=self.range > 0.0)

    def bounds(self) -> tuple[Array, Array]:
        """Return the bounds of this solve, (k,) each: the working range, narrowed by the slew limit."""
        low, high = np.asarray(self.actuation_min), np.asarray(self.actuation_max)
        if self.most_change is None or self.previous_actuation is None:
            return low, high
        held = np.clip(self.previous_actuation, low, high)
        return np.maximum(low, held - self.most_change), np.minimum(high, held + self.most_change)

    def start(self) -> Array:
        """Return the actuation to start from, (k,), within the bounds."""
        low, high = self.bounds()
        for given in (self.initial_actuation, self.previous_actuation):
            if given is not None:
                return np.clip(np.asarray(given, dtype=np.float64), low, high)
        return np.asarray(0.5 * (low + high))


def check_options(options: IkOptions, degrees_of_freedom: int) -> None:
    """Reject invalid options for a model of so many degrees of freedom.

    Raises:
        SoftformError: On bad bounds, limits, weights, or actuations of another size or that are not finite.
    """
    low, high = np.asarray(options.actuation_min), np.asarray(options.actuation_max)
    if low.shape != (degrees_of_freedom,) or high.shape != (degrees_of_freedom,):
        raise SoftformError(
            f"Actuation bounds have shapes {low.shape} and {high.shape}, expected ({degrees_of_freedom},).",
            "Give one bound for each degree of freedom; check that the model belongs to the robot.",
        )
    if not (np.isfinite(low).all() and np.isfinite(high).all() and (low <= high).all()):
        raise SoftformError("Actuation bounds must be finite and ordered.", "Check actuation_min and actuation_max.")
    if not options.max_seconds > 0.0 or options.max_iterations < 1 or not options.tolerance_mm >= 0.0:
        raise SoftformError(
            f"Invalid limits: max_seconds {options.max_seconds}, max_iterations {options.max_iterations}, "
            f"tolerance {options.tolerance_mm} mm.",
            "Give positive limits and a tolerance of zero or more.",
        )
    for name, actuation in (
        ("Initial", options.initial_actuation),
        ("Preferred", options.preferred_actuation),
        ("Previous", options.previous_actuation),
    ):
        if actuation is not None and not _fits(actuation, degrees_of_freedom):
            raise SoftformError(
                f"{name} actuation {actuation} does not fit {degrees_of_freedom} degrees of freedom.",
                "Give one finite value for each degree of freedom.",
            )
    for name, weight in (("preference", options.preference_mm2), ("smoothness", options.smoothness_mm2)):
        if not (np.isfinite(weight) and weight >= 0.0):
            raise SoftformError(f"The {name} is {weight} mm^2.", "Give zero or more.")
    if options.most_change is not None:
        if options.previous_actuation is None:
            raise SoftformError("A slew limit was given without a previous actuation.", "Give both.")
        if not _fits(options.most_change, degrees_of_freedom) or not (np.asarray(options.most_change) > 0.0).all():
            raise SoftformError(
                f"The slew limit {options.most_change} does not fit {degrees_of_freedom} degrees of freedom.",
                "Give one positive change for each degree of freedom.",
            )


def _fits(actuation: Array, degrees_of_freedom: int) -> bool:
    values = np.asarray(actuation, dtype=np.float64)
    return values.shape == (degrees_of_freedom,) and bool(np.isfinite(values).all())


class ActuationCost:
    """Sum of weight * ((a - anchor) / range)^2 over anchors and degrees of freedom, mm^2.

    Args:
        options: Posture and previous actuation of a solve, and their weights; an input that it holds costs nothing.
    """

    def __init__(self, options: IkOptions) -> None:
        wanted = [
            (anchor, weight)
            for anchor, weight in (
                (options.preferred_actuation, options.preference_mm2),
                (options.previous_actuation, options.smoothness_mm2),
            )
            if anchor is not None and weight > 0.0
        ]
        self._parts, self._weights = options.parts, np.array([weight for _, weight in wanted])
        self._anchors = np.array([anchor for anchor, _ in wanted], dtype=np.float64).reshape(-1, len(options.range))

    def value(self, actuation: Array) -> float:
        """Return the cost of (k,), mm^2."""
        if not len(self._weights):
            return 0.0
        return float(self._weights @ (self._offsets(actuation) ** 2).sum(axis=1))

    def gradient(self, actuation: Array) -> Array:
        """Return the derivative with respect to the actuation as parts of its range, (k,) mm^2."""
        return 2.0 * self._weights @ self._offsets(actuation)

    @property
    def curvature(self) -> float:
        """Second derivative with respect to each value as a part of its range, mm^2."""
        return 2.0 * float(self._weights.sum())

    def _offsets(self, actuation: Array) -> Array:
        return self._parts(actuation - self._anchors)
