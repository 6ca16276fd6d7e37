"""Names of markers that were not expected."""

from collections.abc import Iterable

_LATELY = 5.0
"""s; a name that was not seen for so long is forgotten."""
_MOST = 100
"""Names that are kept: a driver that numbers reflections makes new ones without end."""


class MarkerStrangers:
    """Follows names that were not expected, those seen last."""

    def __init__(self) -> None:
        self._seen_at: dict[str, float] = {}

    @property
    def names(self) -> list[str]:
        """Names of unknown markers seen lately, the newest first, at most a hundred."""
        return sorted(self._seen_at, key=lambda name: (-self._seen_at[name], name))

    def see(self, names: Iterable[str], time: float) -> None:
        """Take note of a frame.

        Args:
            names: Unexpected marker names of the frame.
            time: Capture time, s; sightings later than it are dropped, since the clock was set back.
        """
        self._seen_at.update(dict.fromkeys(names, time))
        lately = [name for name in self.names if 0.0 <= time - self._seen_at[name] <= _LATELY]
        self._seen_at = {name: self._seen_at[name] for name in lately[:_MOST]}
