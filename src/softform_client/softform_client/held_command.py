"""The held command, repeated so that the driver's watchdog sees that its commander lives."""

import threading
from collections.abc import Callable

from softform_core.arrays import Array


class HeldCommand:
    """Holds one command (k,); `publish` sends it at once and `repeat` again, until `release`."""

    def __init__(self, publish: Callable[[Array], object]) -> None:
        self._publish = publish
        self._lock = threading.Lock()
        self._values: Array | None = None
        self._enabled = True

    @property
    def values(self) -> Array | None:
        """The held values, (k,), or None."""
        with self._lock:
            return self._values

    def hold(self, values: Array, permitted: Callable[[], bool] = lambda: True) -> bool:
        """Hold values from now on; returns whether it is held.

        Args:
            values: Values to hold, (k,).
            permitted: Asked while no release can come in between: who forbids first and releases then is obeyed.
        """
        with self._lock:
            if not (self._enabled and permitted()):
                return False
            self._values = values.copy()
            self._publish(self._values)
            return True

    def repeat(self) -> None:
        """Send what is held once more; called by a timer."""
        with self._lock:
            if self._values is not None:
                self._publish(self._values)

    def release(self) -> bool:
        """Hold nothing; returns whether something was held. The driver then makes the robot safe."""
        with self._lock:
            held, self._values = self._values is not None, None
            return held

    def disable(self) -> bool:
        """Hold nothing, and nothing more until `enable`; returns as `release`."""
        with self._lock:
            self._enabled = False
        return self.release()

    def enable(self) -> None:
        """Hold again what is given from now on."""
        with self._lock:
            self._enabled = True
