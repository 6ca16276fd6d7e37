"""From a capture system's frames to markers in the robot's frame: aligned, and none of them false.

Frames may lack markers, exchange labels, see ghosts, come late, twice or not at all. What cannot be believed is
missing in what leaves here, and counted.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from softform_capture.frame_order import FrameOrder
from softform_capture.marker_gaps import MarkerGaps
from softform_capture.marker_plausibility import MarkerPlausibility, PlausibilityLimits
from softform_core.errors import SoftformError
from softform_core.registration.base_alignment import base_alignment
from softform_core.registration.rigid import RigidTransform

Array = NDArray[np.float64]


@dataclass
class StreamRecord:
    """What has come so far.

    Attributes:
        frames: That were used.
        rejected: Frames that were not, and why the last one was not.
        rejection: See there.
        jumps: Markers hidden as they moved as none can.
        jumped: Their names in the last frame.
        exchanges: Markers hidden as their labels seem to be exchanged.
        exchanged: Their names in the last frame.
        strangers: Names that were not expected.
        missing: Mean share of missing markers over the last frames.
        residual: Of the last alignment, m; NaN before there is one.
        misalignment: Why the last frame was not aligned by its own base markers; empty if it was.
    """

    frames: int = 0
    rejected: int = 0
    rejection: str = ""
    jumps: int = 0
    jumped: list[str] = field(default_factory=list)
    exchanges: int = 0
    exchanged: list[str] = field(default_factory=list)
    strangers: set[str] = field(default_factory=set)
    missing: float = 0.0
    residual: float = float("nan")
    misalignment: str = ""


_MEMORY = 0.05
"""Weight of the newest frame in the mean share of missing markers."""


class MarkerStream:
    """State of one run of frames.

    Attributes:
        record: What has come so far.
        order: Of the frames: late and lost ones, steps of the clock.
        gaps: How long markers are missing; None before the first frame.
        names: Of the surface's markers: those expected, else those of the first frame; empty before it.

    Args:
        base_markers: Name -> place on the robot's base, m.
        max_residual: Of the alignment, m.
        limits: What a marker can do.
        names: Of the surface's markers that are expected; empty for those of the first frame.
    """

    def __init__(
        self,
        base_markers: Mapping[str, Sequence[float]],
        max_residual: float,
        limits: PlausibilityLimits,
        names: Sequence[str] = (),
    ) -> None:
        """Wait for the first frame."""
        self.record = StreamRecord()
        self.order = FrameOrder()
        self.gaps: MarkerGaps | None = None
        self.names = list(names)
        self._base_markers, self._max_residual, self._limits = base_markers, max_residual, limits
        self._alignment: RigidTransform | None = None
        self._plausibility: MarkerPlausibility | None = None

    def take(self, names: Sequence[str], positions: Array, time: float, number: int) -> Array:
        """Use one frame.

        Args:
            names: M names, base markers among them.
            positions: (M, 3) m in the capture system's frame, NaN where missing.
            time: Of capture, s.
            number: Of the frame.

        Returns:
            Positions of `names`, (len(self.names), 3) m in the robot's frame, NaN where missing.

        Raises:
            SoftformError: If the frame cannot be used: out of order, nothing has aligned the system yet, or no marker
                of the surface has been seen.
        """
        self.pass_over(time, number)
        self._align(names, positions)
        if self._alignment is None:
            raise SoftformError(f"The system is not aligned yet: {self.record.misalignment}", "See there.")
        aligned = self._alignment.apply(self._in_order(names, positions))
        believed = self._believed(aligned, time)
        self.record.frames += 1
        share = float(np.isnan(believed).any(axis=1).mean()) if len(believed) else 0.0
        self.record.missing += (share - self.record.missing) * (_MEMORY if self.record.frames > 1 else 1.0)
        return believed

    def pass_over(self, time: float, number: int) -> None:
        """Take note of a frame's place among the others, and of nothing else in it.

        Raises:
            SoftformError: If it is out of order.
        """
        if self.order.accept(time, number):
            self._plausibility = None

    def reject(self, reason: str) -> None:
        """Count a frame that was not used."""
        self.record.rejected += 1
        self.record.rejection = reason

    def _align(self, names: Sequence[str], positions: Array) -> None:
        """Renew the alignment if the frame's base markers allow it; else the last good one stays."""
        try:
            found = base_alignment(names, positions, self._base_markers, self._max_residual)
            self._alignment, self.record.residual = found
            self.record.misalignment = ""
        except SoftformError as error:
            self.record.misalignment = str(error)

    def _in_order(self, names: Sequence[str], positions: Array) -> Array:
        """The surface's markers in the order of the names; other names are strangers."""
        surface = [name for name in names if name not in self._base_markers]
        if not self.names and not surface:
            raise SoftformError(
                "No marker of the surface has been seen yet.", "Let the system see it, or set `markers`."
            )
        if not self.names:
            self.names = surface
        place = {name: index for index, name in enumerate(names)}
        self.record.strangers |= set(surface) - set(self.names)
        ordered = np.full((len(self.names), 3), np.nan)
        known = [index for index, name in enumerate(self.names) if name in place]
        ordered[known] = positions[[place[self.names[index]] for index in known]]
        return ordered

    def _believed(self, aligned: Array, time: float) -> Array:
        if self.gaps is None:
            self.gaps = MarkerGaps(len(self.names))
        self.gaps.see(np.isfinite(aligned).all(axis=1), time)
        if self._plausibility is None:
            self._plausibility = MarkerPlausibility(len(self.names), self._limits)
        jumped, exchanged = self._plausibility.judge(aligned, time)
        self.record.jumps += len(jumped)
        self.record.jumped = [self.names[index] for index in jumped]
        self.record.exchanges += len(exchanged)
        self.record.exchanged = [self.names[index] for index in exchanged]
        believed = aligned.copy()
        believed[jumped] = believed[exchanged] = np.nan
        return believed
