"""The frame that every motion-capture system delivers, however it is connected."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.units import NANOSECONDS_PER_SECOND


def no_points() -> Array:
    """Return an empty set of points, (0, 3)."""
    return np.empty((0, 3))


@dataclass(frozen=True)
class CapturedFrame:
    """One frame in the system's own frame of reference.

    Attributes:
        number: Counted by the system.
        captured_at: Nanoseconds since the epoch on this machine's clock.
        names: M different labels, those of missing markers among them where the system knows them.
        positions: (M, 3) m; what the system writes for a missing marker (`marker_plausibility.is_measured`) is in it.
        unlabelled: (U, 3) m, points that the system saw and did not label; the same holds.
    """

    number: int
    captured_at: int
    names: list[str]
    positions: Array
    unlabelled: Array = field(default_factory=no_points)

    @property
    def time(self) -> float:
        """Capture time, s since the epoch."""
        return self.captured_at / NANOSECONDS_PER_SECOND

    def renamed(self, names: Mapping[str, str]) -> "CapturedFrame":
        """Return the same frame with other names for some markers.

        Raises:
            SoftformError: If a name comes twice then.
        """
        if not names:
            return self
        renamed = [names.get(name, name) for name in self.names]
        if len(set(renamed)) < len(renamed):
            raise SoftformError(
                f"Frame {self.number} has a name twice after renaming {', '.join(names)}.", "Correct `rename`."
            )
        return replace(self, names=renamed)


class MalformedPacketError(SoftformError):
    """Bytes that are no packet of the protocol, or a packet that contradicts itself: it is dropped and counted."""


class SourceLostError(SoftformError):
    """The system can no longer be read: it has to be opened again."""


class MotionCaptureSource(Protocol):
    """A motion-capture system behind a network connection.

    Attributes:
        malformed: Packets dropped so far because they could not be understood.
    """

    malformed: int

    def open(self) -> None:
        """Connect.

        Raises:
            SoftformError: If the system does not answer, or not as it should; the source can be opened again.
        """

    def receive(self, timeout: float) -> CapturedFrame | None:
        """Return the next frame, or None if none comes within about `timeout` s.

        Raises:
            SourceLostError: If the connection is gone.
        """

    def close(self) -> None:
        """Disconnect; harmless at any moment and twice."""


def plain_labels(qualified: Sequence[tuple[str, str]]) -> list[str]:
    """Return labels of markers that are grouped in subjects, bodies or assets.

    Args:
        qualified: Group and marker, each pair once.

    Returns:
        The marker's own name, or `group:marker` where several groups have a marker of that name.
    """
    times = Counter(marker for _, marker in qualified)
    return [marker if times[marker] == 1 else f"{group}:{marker}" for group, marker in qualified]


def parse_renames(rules: Sequence[str]) -> dict[str, str]:
    """Return the names of the system -> ours, from rules `theirs=ours`.

    Raises:
        SoftformError: If a rule is not of this form, or two of them have a name in common on one side.
    """
    pairs = [tuple(part.strip() for part in rule.rpartition("=")[::2]) for rule in rules if rule]
    theirs, ours = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    if not (all(theirs) and all(ours)) or len(set(theirs)) < len(pairs) or len(set(ours)) < len(pairs):
        raise SoftformError(
            f"The renames {list(rules)} cannot be used.", "Give each as theirs=ours, and every name only once."
        )
    return dict(zip(theirs, ours, strict=True))
