"""Turn a capture system's frames into markers in the robot's frame: aligned, and without false ones.

Frames may lack markers, exchange labels, see ghosts, come late, twice or not at all. What cannot be believed is
missing in what leaves here, and counted.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from softform_capture.motion_capture.attendance import FrameOrder, MarkerGaps, MarkerStrangers
from softform_capture.motion_capture.marker_plausibility import MarkerPlausibility, PlausibilityLimits, is_measured
from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.geometry.rigid import RigidTransform
from softform_core.registration.base_alignment import base_alignment


@dataclass
class StreamRecord:
    """Counts and state of a stream of marker frames.

    Attributes:
        frames: Number of frames used.
        rejected: Number of frames rejected.
        rejection: Reason for the last rejection.
        jumps: Number of markers hidden because they moved impossibly fast.
        jumped: Names of markers that jumped in the last frame.
        exchanges: Number of markers hidden because their labels seem to be exchanged.
        exchanged: Names of markers that were exchanged in the last frame.
        missing: Mean share of missing markers over the last frames.
        residual: Residual of the last alignment, m; NaN before the first.
        misalignment: Reason why the last frame was not aligned by its own base markers; empty if it was.
    """

    frames: int = 0
    rejected: int = 0
    rejection: str = ""
    jumps: int = 0
    jumped: list[str] = field(default_factory=list)
    exchanges: int = 0
    exchanged: list[str] = field(default_factory=list)
    missing: float = 0.0
    residual: float = float("nan")
    misalignment: str = ""


_MEMORY = 0.05
"""Weight of the newest frame in the mean share of missing markers."""
_LEFT = 5.0
"""Distance of a base marker from the last alignment, in largest residuals, that noise does not explain."""
_LONGEST_MISFIT = 1.0
"""Longest capture time in which base markers may be seen off their places, s; then they, or the cameras, were moved."""


class MarkerStream:
    """State of one run of frames.

    Attributes:
        record: Counts and faults of the stream.
        order: Late and lost frames, steps of the clock.
        gaps: Gaps of the markers; None before the first frame.
        strangers: Names that were not expected.
        names: Names of the surface's markers: the expected ones, else those of the first frame; empty before it.
        alignment: Takes the system's points into the robot's frame, m; None while none is known that can be trusted.

    Args:
        base_markers: Name -> place on the robot's base, m.
        max_residual: Largest residual of the alignment, m.
        limits: Plausibility limits of a marker's motion.
        names: Expected names of the surface's markers; empty: those of the first frame.
    """

    def __init__(
        self,
        base_markers: Mapping[str, Sequence[float]],
        max_residual: float,
        limits: PlausibilityLimits,
        names: Sequence[str] = (),
    ) -> None:
        self.record = StreamRecord()
        self.order = FrameOrder()
        self.gaps: MarkerGaps | None = None
        self.strangers = MarkerStrangers()
        self.names = list(names)
        self._base_markers, self._max_residual, self._limits = base_markers, max_residual, limits
        self.alignment: RigidTransform | None = None
        self._misfit_since: float | None = None  # time of the first frame whose base did not fit, since one did
        self._plausibility: MarkerPlausibility | None = None

    def take(self, names: Sequence[str], positions: Array, time: float, number: int) -> Array:
        """Use one frame; returns positions of `names`, (len(self.names), 3) m in the robot's frame, NaN where missing.

        Args:
            names: M names, base markers among them.
            positions: (M, 3) m in the capture system's frame; missing where `is_measured` says so.
            time: Capture time, s.
            number: Frame number.

        Raises:
            SoftformError: If the frame cannot be used: out of order, nothing has aligned the system yet, the base has
                been seen off its places for too long, or no marker of the surface has been seen.
        """
        self.pass_over(time, number)
        positions = np.where(is_measured(positions)[:, None], positions, np.nan)
        alignment = self._align(names, positions, time)
        aligned = alignment.apply(self._in_order(names, positions, time))
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
            self._plausibility = self._misfit_since = None

    def reject(self, reason: str) -> None:
        """Count a frame that was not used."""
        self.record.rejected += 1
        self.record.rejection = reason

    def _align(self, names: Sequence[str], positions: Array, time: float) -> RigidTransform:
        """Return the alignment: new if the base markers allow it, else the last good one while it can hold."""
        try:
            found = base_alignment(names, positions, self._base_markers, self._max_residual)
            self._check_that_none_left(names, positions)
            self.alignment, self.record.residual = found
            self.record.misalignment, self._misfit_since = "", None
        except SoftformError as error:
            self.record.misalignment = str(error)
            if self._base_is_seen(names, positions):  # while it is hidden, it was not moved
                self._misfit_since = time if self._misfit_since is None else self._misfit_since
                if time - self._misfit_since > _LONGEST_MISFIT:
                    self.alignment = None
        if self.alignment is not None:
            return self.alignment
        if np.isnan(self.record.residual):
            raise SoftformError(f"The system is not aligned yet: {self.record.misalignment}", "See there.")
        raise SoftformError(
            f"The base or the cameras were moved: {self.record.misalignment}",
            "Put the base's markers back, or measure base_markers of the robot's description anew.",
        )

    def _check_that_none_left(self, names: Sequence[str], positions: Array) -> None:
        """Reject base markers of which some have moved and others have not: that is neither the base nor the cameras.

        Three can fit with one of them a little above its place, or with two exchanged, and tilt the frame or turn it.
        """
        if self.alignment is None:
            return
        base = [(name, p) for name, p in zip(names, positions, strict=True) if name in self._base_markers]
        places = np.array([self._base_markers[name] for name, _ in base])
        away = np.linalg.norm(self.alignment.apply(np.array([p for _, p in base])) - places, axis=1)
        left = away > _LEFT * self._max_residual
        if left.any() and (away <= self._max_residual).any():
            worst = int(np.nanargmax(away))
            raise SoftformError(
                f"Base marker {base[worst][0]} is {away[worst]:.3f} m off its place, others have stayed.",
                "Put it back, or clear what the cameras take for it.",
            )

    def _base_is_seen(self, names: Sequence[str], positions: Array) -> bool:
        """Return whether enough of the base is seen for an alignment, however badly it fits."""
        try:
            base_alignment(names, positions, self._base_markers, np.inf)
        except SoftformError:
            return False
        return True

    def _in_order(self, names: Sequence[str], positions: Array, time: float) -> Array:
        """Return the surface's markers in the order of the names; other names are strangers."""
        surface = [name for name in names if name not in self._base_markers]
        if not self.names and not surface:
            raise SoftformError(
                "No marker of the surface has been seen yet.", "Let the system see it, or set `markers`."
            )
        if not self.names:
            self.names = surface
        place = {name: index for index, name in enumerate(names)}
        self.strangers.see(set(surface) - set(self.names), time)
        ordered = np.full((len(self.names), 3), np.nan)
        known = [index for index, name in enumerate(self.names) if name in place]
        ordered[known] = positions[[place[self.names[index]] for index in known]]
        return ordered

    def _believed(self, aligned: Array, time: float) -> Array:
        if self.gaps is None:
            self.gaps = MarkerGaps(len(self.names))
        self.gaps.see(np.asarray(np.isfinite(aligned).all(axis=1)), time)
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
