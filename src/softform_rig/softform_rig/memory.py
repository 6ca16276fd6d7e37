"""What a body remembers of where its actuators were: friction (play) and creep."""

import numpy as np

from softform_core.arrays import Array
from softform_rig.reality import Reality


class Memory:
    """Values that a body feels in place of those that its actuators have; it begins at rest.

    Within the hysteresis of a reversal the material does not follow an actuator at all; then a share of what is left
    follows like exp(-t / time).
    """

    def __init__(self, reality: Reality, count: int) -> None:
        """At rest since ever."""
        self._hysteresis, self._creep = reality.hysteresis, reality.creep
        self._played, self._slow = np.zeros(count), np.zeros(count)

    def feel(self, values: Array, seconds: float) -> Array:
        """Values felt (k,), after the actuators have been at `values` (k,) for so long."""
        self._played = np.clip(self._played, values - self._hysteresis, values + self._hysteresis)
        self._slow = self._played + (self._slow - self._played) * np.exp(-seconds / self._creep.time)
        return self._played + self._creep.share * (self._slow - self._played)
