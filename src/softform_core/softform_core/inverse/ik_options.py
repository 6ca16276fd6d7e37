"""What inverse kinematics is asked to solve, within which bounds, and why it may stop. Millimetres and Pa."""

import enum
from dataclasses import dataclass, field

import numpy as np

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.registration.rigid import RigidTransform


class Termination(enum.Enum):
    """Why the solver stopped."""

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
        pressure_min: (k,) Pa.
        pressure_max: (k,) Pa.
        initial_pressures: (k,) Pa, or None: the previous pressures if there are any, else the middle of the range.
        fix_pose: True: the target stays where it is (R = I, t = 0); False: its pose is solved for.
        initial_pose: Where the target starts if its pose is solved for.
        tolerance_mm: Stop when the mean error is no larger.
        relative_decrease: The paper's lambda: stop when the merit falls by less than this part of itself.
        max_iterations: The paper's i_max.
        max_seconds: Wall-clock limit.
        partial: The target shows only a part of the shape, perhaps with strays: distances to what it lacks do not
            count, and those that stand out from the others count less or not at all.
        preferred_pressures: (k,) Pa, or None: a posture that is kept as far as the target allows (redundancy).
        preference_mm2: Squared error that one chamber's whole range away from the posture is worth, mm^2.
        previous_pressures: (k,) Pa, or None: what the robot holds now.
        smoothness_mm2: Squared error that one chamber's whole range away from the previous pressures is worth, mm^2.
        most_change: (k,) Pa, or None: slew limit of this solve about the previous pressures.
    """

    pressure_min: Array
    pressure_max: Array
    initial_pressures: Array | None = None
    fix_pose: bool = True
    initial_pose: RigidTransform = field(default_factory=RigidTransform)
    tolerance_mm: float = 0.0
    relative_decrease: float = 1e-4
    max_iterations: int = 100
    max_seconds: float = 10.0
    partial: bool = False
    preferred_pressures: Array | None = None
    preference_mm2: float = 0.0
    previous_pressures: Array | None = None
    smoothness_mm2: float = 0.0
    most_change: Array | None = None

    @property
    def range(self) -> Array:
        """Width of the working range, (k,) Pa."""
        return np.asarray(self.pressure_max - self.pressure_min)

    def bounds(self) -> tuple[Array, Array]:
        """Lowest and highest pressures of this solve, (k,) Pa each: the working range, narrowed by the slew limit."""
        low, high = np.asarray(self.pressure_min), np.asarray(self.pressure_max)
        if self.most_change is None or self.previous_pressures is None:
            return low, high
        held = np.clip(self.previous_pressures, low, high)
        return np.maximum(low, held - self.most_change), np.minimum(high, held + self.most_change)

    def start(self) -> Array:
        """Pressures to start from, (k,) Pa, within the bounds."""
        low, high = self.bounds()
        for given in (self.initial_pressures, self.previous_pressures):
            if given is not None:
                return np.clip(np.asarray(given, dtype=np.float64), low, high)
        return np.asarray(0.5 * (low + high))


def check_options(options: IkOptions, degrees_of_freedom: int) -> None:
    """Reject options that make no sense for a model of so many chambers.

    Raises:
        SoftformError: On bad bounds, limits, weights, or pressures of another number or that are not finite.
    """
    low, high = np.asarray(options.pressure_min), np.asarray(options.pressure_max)
    if low.shape != (degrees_of_freedom,) or high.shape != (degrees_of_freedom,):
        raise SoftformError(
            f"Pressure bounds have shapes {low.shape} and {high.shape}, the model has {degrees_of_freedom} chambers.",
            "Give one bound for each chamber; check that the model belongs to the robot.",
        )
    if not (np.isfinite(low).all() and np.isfinite(high).all() and (low < high).all()):
        raise SoftformError("Pressure bounds must be finite and ordered.", "Check pressure_min and pressure_max.")
    if not options.max_seconds > 0.0 or options.max_iterations < 1 or not options.tolerance_mm >= 0.0:
        raise SoftformError(
            f"Limits make no sense: max_seconds {options.max_seconds}, max_iterations {options.max_iterations}, "
            f"tolerance {options.tolerance_mm} mm.",
            "Give positive limits and a tolerance of zero or more.",
        )
    for name, pressures in (
        ("Initial", options.initial_pressures),
        ("Preferred", options.preferred_pressures),
        ("Previous", options.previous_pressures),
    ):
        if pressures is not None and not _fits(pressures, degrees_of_freedom):
            raise SoftformError(
                f"{name} pressures {pressures} do not fit {degrees_of_freedom} chambers.",
                "Give one finite pressure in Pa for each chamber.",
            )
    for name, weight in (("preference", options.preference_mm2), ("smoothness", options.smoothness_mm2)):
        if not (np.isfinite(weight) and weight >= 0.0):
            raise SoftformError(f"The {name} is {weight} mm^2.", "Give zero or more.")
    if options.most_change is not None:
        if options.previous_pressures is None:
            raise SoftformError("A slew limit was given, but no pressures that it starts from.", "Give both.")
        if not _fits(options.most_change, degrees_of_freedom) or not (np.asarray(options.most_change) > 0.0).all():
            raise SoftformError(
                f"The slew limit {options.most_change} does not fit {degrees_of_freedom} chambers.",
                "Give one positive change in Pa for each chamber.",
            )


def _fits(pressures: Array, degrees_of_freedom: int) -> bool:
    values = np.asarray(pressures, dtype=np.float64)
    return values.shape == (degrees_of_freedom,) and bool(np.isfinite(values).all())
