"""The targets of a servo: the newest of each kind, and whether they are still to be followed."""

import threading
from collections.abc import Callable
from dataclasses import dataclass

from softform_core.inverse.closest_points import ClosestPoints
from softform_core.shapes.features import FeaturePoints


@dataclass(frozen=True, eq=False)
class ServoTarget:
    """One target, ready to be followed: a shape, or feature points; never both.

    Attributes:
        stamp: Time that it is meant for, ns since the epoch: exact, as answers repeat it.
        arrived: Time of arrival on the servo's steady clock, s.
        shape: Closest points on the shape.
        features: Places of the robot's surface and where they are wanted.
        accept_unreachable: Whether the nearest shape is followed even where it misses the target widely.
    """

    stamp: int
    arrived: float
    shape: ClosestPoints | None = None
    features: FeaturePoints | None = None
    accept_unreachable: bool = False


@dataclass(frozen=True)
class ServoTargets:
    """Targets to follow at one moment: a shape, feature points, or both.

    Attributes:
        shape: The newest shape, if it is fresh.
        features: The newest feature points, if they are fresh.
    """

    shape: ServoTarget | None = None
    features: ServoTarget | None = None

    def __bool__(self) -> bool:
        """Return whether there is anything to follow."""
        return self.shape is not None or self.features is not None

    @property
    def accept_unreachable(self) -> bool:
        """Whether each of them is followed even where it is missed widely."""
        return all(one.accept_unreachable for one in (self.shape, self.features) if one is not None)

    @property
    def newest(self) -> ServoTarget:
        """The one that came last; asked only of targets that are there."""
        return max((one for one in (self.shape, self.features) if one is not None), key=lambda one: one.arrived)


class NewestTargets:
    """Keeps the newest target of each kind for `stale_after` s; written by one thread, read by another."""

    def __init__(self, stale_after: float) -> None:
        self._stale_after = stale_after
        self._lock = threading.Lock()
        self._newest = ServoTargets()

    def note(self, target: ServoTarget) -> None:
        """Take the place of the target of the same kind."""
        with self._lock:
            if target.shape is not None:
                self._newest = ServoTargets(target, self._newest.features)
            else:
                self._newest = ServoTargets(self._newest.shape, target)

    def drop(self, is_past: Callable[[ServoTarget], bool]) -> bool:
        """Forget those for which `is_past` holds; returns whether there were any."""
        with self._lock:
            before = self._newest
            shape, features = before.shape, before.features
            self._newest = ServoTargets(
                None if shape is None or is_past(shape) else shape,
                None if features is None or is_past(features) else features,
            )
            return self._newest != before

    def __bool__(self) -> bool:
        """Return whether there is any target, fresh or stale."""
        with self._lock:
            return bool(self._newest)

    def fresh(self, moment: float) -> ServoTargets:
        """Return targets that are to be followed at a moment of the steady clock."""
        with self._lock:
            newest = self._newest
        return ServoTargets(self._fresh(newest.shape, moment), self._fresh(newest.features, moment))

    def _fresh(self, target: ServoTarget | None, moment: float) -> ServoTarget | None:
        return target if target is not None and moment - target.arrived <= self._stale_after else None
